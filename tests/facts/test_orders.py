"""Orders of the user: what a later sentence replaces, and what stands beside it."""

from __future__ import annotations

import pytest

from praison_compressor.facts import extract
from praison_compressor.summaries.static import static_summary

INDEPENDENT = [
    ("Set retries to 3 in client.py.", "Set retries to 5 in server.py."),
    ("Look at auth.py and tell me what login does.", "Look at queue.py and tell me what is slow."),
    ("Rename get_user to fetch_user.", "Rename get_order to fetch_order."),
    ("Replace requests with httpx in api_client.py.", "Replace json with orjson in dumps.py."),
    ("Change the port to 9090 in web.yaml.", "Change the port to 7070 in admin.yaml."),
    ("Make the timeout 30s for uploads.", "Make the timeout 5s for health checks."),
    ("Update the version to 2.1.0 in pyproject.toml.", "Update the year to 2025 in LICENSE.md."),
    ("Delete the file old_config.yaml.", "Delete the file legacy_routes.py."),
    ("Set LOG_LEVEL to DEBUG in the worker.", "Set LOG_LEVEL to WARNING in the gateway."),
    ("Name the table user_events.", "Name the column event_type."),
    ("Set ttl to 300 in cache.py.", "Actually, while at it, set max_size to 500 in cache.py."),
    ("Switch to feature/login and run the linter.", "Switch to feature/search and run the tests."),
    ("The beta is due on 2025-06-01.", "The release is due on 2025-07-15."),
    ("Add an index on orders.created_at.", "Add an index on payments.paid_at."),
    ("Der Webserver läuft auf Port 8080.", "Der Mailserver läuft auf Port 2525."),
    ("Schau dir auth.py an.", "Schau dir queue.py an."),
    ("Pon el límite de la cola en 50.", "Pon el límite del pool en 10."),
    ("把 client.py 的重试次数设为 3。", "把 server.py 的重试次数设为 5。"),
    ("看一下 auth.py。", "看一下 queue.py。"),
    ("client.py のリトライを 3 に設定して。", "server.py のリトライを 5 に設定して。"),
    ("Instead of printing, log to app.log.", "Instead of sleeping, poll queue.db."),
    ("The list page needs page_size 20.", "Sorry, one more: the admin page needs page_size 50."),
    ("Do not touch migrations/0001_init.py.", "Do not touch migrations/0002_users.py."),
    ("Look at client.py.", "Change client.py to use httpx."),
    ("Be careful with a.py.", "Be careful with b.py."),
    ("Change the timeout to 30 in client.py.", "Change the timeout to 30 in server.py."),
    ("Ändere den Rand auf 5px.", "Ändere die Höhe auf 7px."),
]  # fmt: skip

CORRECTED = [
    ("Set retries to 3 in client.py.", "Set retries to 5 in client.py.", "3"),
    ("Set retries to 3 in client.py.", "No, set retries to 5.", "3"),
    ("Set retries to 3.", "Actually 5.", "3"),
    ("Set retries to 3 in client.py.", "Sorry, I meant server.py.", "client.py"),
    ("Look at auth.py first.", "Wait, look at session.py first.", "auth.py"),
    ("Use PostgreSQL 15.", "Let's use PostgreSQL 16 instead.", "15"),
    ("Name the table user_events.", "Rename the table to audit_events.", "user_events"),
    ("Write the report to out/report.md.", "Write it to docs/report.md instead.", "out/report.md"),
    ("The deadline is 2025-06-01.", "The deadline is now 2025-06-15.", "2025-06-01"),
    ("The staging URL is https://stage.example.org.",
     "The staging URL is https://stage.example.com.", "https://stage.example.org"),
    ("The timeout is 30s.", "Change the timeout to 45s.", "30s"),
    ("timeout = 30", "timeout = 60", "30"),
    ("Use 4 workers for the crawler.", "Use 6 workers rather than 4.", "4"),
    ("Send it to anna@example.org.", "Oops, send it to ben@example.org.", "anna@example.org"),
    ("Put the key in config/prod.env.", "Not config/prod.env but config/vault.env please.",
     "config/prod.env"),
    ("Deploy v1.4.2 to staging.", "Scratch that, deploy v1.4.3 to staging.", "v1.4.2"),
    ("Call it \"alpha\".", "Call it \"beta\".", "\"alpha\""),
    ("Set LOG_LEVEL to DEBUG.", "Set LOG_LEVEL back to WARNING.", "DEBUG"),
    ("Use the model gpt-4o.", "Switch to gpt-4o-mini.", "gpt-4o"),
    ("The API listens on 8080.", "The API no longer listens on 8080, it listens on 9090.", "8080"),
    ("Cache pages for 300 seconds.", "Replace 300 with 600.", "300"),
    ("Book room 204 for Monday.", "Forget 204, book room 311 for Monday.", "204"),
    ("Store uploads under /var/uploads.", "Uploads should be stored under /srv/uploads.",
     "/var/uploads"),
    ("Always use port 8080 for the web server.",
     "Use port 9090 for the web server from now on.", "8080"),
]  # fmt: skip


def told(*texts: str) -> str:
    """The facts of messages of the user, as a static summary tells them."""
    messages = [{"role": "user", "content": text} for text in texts]
    return static_summary(messages, budget_tokens=600, count=lambda text: len(text) // 4 + 1)


@pytest.mark.parametrize("pair", INDEPENDENT, ids=str)
def test_two_orders_about_two_things_both_hold(pair: tuple[str, str]) -> None:
    """An order of the user is never called superseded by one about another thing."""
    text = told(*pair)
    assert "superseded" not in text
    assert all(sentence in text for sentence in pair)


def test_in_one_session_they_all_hold() -> None:
    """Whatever else was said between two orders, neither is called superseded."""
    said = [{"role": "user", "content": text} for pair in INDEPENDENT for text in pair]
    assert [item.text for item in extract(said).user if item.old_values] == []


@pytest.mark.parametrize(("first", "later", "old"), CORRECTED)
def test_true_corrections_are_told(first: str, later: str, old: str) -> None:
    """Each marks the old value and nothing else."""
    found = extract([{"role": "user", "content": text} for text in (first, later)]).user
    assert [said.old_values for said in found] == [(old,), ()]
