"""Orders of the user: what a later sentence replaces, and what stands beside it."""

from __future__ import annotations

import pytest

from praison_compressor.facts import extract
from praison_compressor.summaries.static import static_summary

INDEPENDENT = [
    ("Set retries to 3 in client.py.", "Set retries to 5 in server.py."),
    ("Look at auth.py and tell me what login does.", "Look at queue.py and tell me what is slow."),
    ("Look at auth.py, is it safe?", "Look at queue.py, is it safe?"),
    ("Fix the bug in parser.py line 40.", "Fix the bug in lexer.py line 12."),
    ("Add a test for billing.py.", "Add a test for invoice.py."),
    ("Rename get_user to fetch_user.", "Rename get_order to fetch_order."),
    ("Replace requests with httpx in api_client.py.", "Replace json with orjson in dumps.py."),
    ("Change the port to 9090 in web.yaml.", "Change the port to 7070 in admin.yaml."),
    ("Use PostgreSQL 15 in staging.", "Use PostgreSQL 16 in production."),
    ("The web server listens on 8080.", "The metrics server listens on 9100."),
    ("Make the timeout 30s for uploads.", "Make the timeout 5s for health checks."),
    ("Update the version to 2.1.0 in pyproject.toml.", "Update the year to 2025 in LICENSE.md."),
    ("Open ticket OPS-114 and summarize it.", "Open ticket OPS-115 and summarize it."),
    ("Run tests/test_auth.py please.", "Run tests/test_queue.py please."),
    ("Delete the file old_config.yaml.", "Delete the file legacy_routes.py."),
    ("Use 4 workers for the crawler.", "Use 8 workers for the indexer."),
    ("Set LOG_LEVEL to DEBUG in the worker.", "Set LOG_LEVEL to WARNING in the gateway."),
    ("Name the table user_events.", "Name the column event_type."),
    ("Set ttl to 300 in cache.py.", "Actually, while at it, set max_size to 500 in cache.py."),
    ("Review PR 811.", "No rush, but review PR 812 as well."),
    ("Wait for build 417 to finish.", "Wait for build 418 to finish, then deploy it."),
    ("Switch to feature/login and run the linter.", "Switch to feature/search and run the tests."),
    ("Move utils.py to lib/.", "Move helpers.py to lib/."),
    ("Send the report to anna@example.org.", "Send the invoice to ben@example.org."),
    ("The beta is due on 2025-06-01.", "The release is due on 2025-07-15."),
    ("Alice's limit is 1,000 EUR.", "Bob's limit is 2,500 EUR."),
    ("Add an index on orders.created_at.", "Add an index on payments.paid_at."),
    ("Document fetch_page in docs/api.md.", "Document parse_page in docs/api.md."),
    ("Limit the uploads to 20MB.", "Limit the avatars to 2MB."),
    ("Der Webserver läuft auf Port 8080.", "Der Mailserver läuft auf Port 2525."),
    ("Setze retries in client.py auf 3.", "Setze retries in server.py auf 5."),
    ("Schau dir auth.py an.", "Schau dir queue.py an."),
    ("Mets la limite de la file à 50.", "Mets la limite du pool à 10."),
    ("Pon el límite de la cola en 50.", "Pon el límite del pool en 10."),
    ("把 client.py 的重试次数设为 3。", "把 server.py 的重试次数设为 5。"),
    ("看一下 auth.py。", "看一下 queue.py。"),
    ("client.py のリトライを 3 に設定して。", "server.py のリトライを 5 に設定して。"),
    ("Bump numpy to 1.26 in requirements.txt.", "Bump pandas to 2.2 in requirements.txt."),
    ("In section 2, cite the paper of 2019.", "In section 4, cite the paper of 2021."),
    ("Instead of printing, log to app.log.", "Instead of sleeping, poll queue.db."),
    ("Change the button color to #ff0000.", "Change the border color to #00ff00."),
    ("Call the first service \"alpha\".", "Call the second service \"beta\"."),
    ("The list page needs page_size 20.", "Sorry, one more: the admin page needs page_size 50."),
    ("Do not touch migrations/0001_init.py.", "Do not touch migrations/0002_users.py."),
    ("Never write to /etc/hosts.", "Never write to /var/lib/app.db."),
    ("Is user 1042 in the beta?", "Is user 1077 in the beta?"),
    ("The staging URL is https://stage.example.org.", "The live URL is https://example.org."),
    ("Should be quick: fix README.md.", "Should be quick too: fix CONTRIBUTING.md."),
    ("Please read src/core/loop.py again, slowly.", "Please read src/core/step.py again, slowly."),
    ("Deploy v1.4.2 to eu-west-1.", "Deploy v1.4.3 to us-east-1."),
    ("Look at client.py.", "Change client.py to use httpx."),
    ("Look at queue.db.", "Instead of sleeping, poll queue.db."),
    ("What is 15% of 2,000?", "What is 20% of 3,000?"),
    ("Make sure a.py has tests.", "Make sure b.py has tests."),
    ("Be careful with a.py.", "Be careful with b.py."),
    ("The tests in a.py should be faster.", "The tests in b.py should be faster."),
    ("Change the timeout to 30 in client.py.", "Change the timeout to 30 in server.py."),
    ("Use GET for /users.", "Use GET for /orders."),
    ("Ändere den Rand auf 5px.", "Ändere die Höhe auf 7px."),
    ("No trailing spaces in a.md.", "No trailing spaces in b.md."),
    ("Wait 5 seconds before the login.", "Wait 10 seconds before the upload."),
    ("Make a branch fix/parser.", "Make a branch fix/lexer."),
]  # fmt: skip

CORRECTED = [
    ("Set retries to 3 in client.py.", "Set retries to 5 in client.py.", "3"),
    ("Set retries to 3 in client.py.", "No, set retries to 5.", "3"),
    ("Set retries to 3.", "Actually 5.", "3"),
    ("Set retries to 3 in client.py.", "Make that 5 retries.", "3"),
    ("Set retries to 3 in client.py.", "Sorry, I meant server.py.", "client.py"),
    ("Look at auth.py first.", "Wait, look at session.py first.", "auth.py"),
    ("Look at auth.py.", "No, I meant auth_v2.py.", "auth.py"),
    ("Use PostgreSQL 15.", "Let's use PostgreSQL 16 instead.", "15"),
    ("Name the table user_events.", "Rename the table to audit_events.", "user_events"),
    ("Write the report to out/report.md.", "Write it to docs/report.md instead.", "out/report.md"),
    ("The deadline is 2025-06-01.", "The deadline is now 2025-06-15.", "2025-06-01"),
    ("The staging URL is https://stage.example.org.",
     "The staging URL is https://stage.example.com.", "https://stage.example.org"),
    ("The timeout is 30s.", "Change the timeout to 45s.", "30s"),
    ("timeout = 30", "timeout = 60", "30"),
    ("Use 4 workers for the crawler.", "Use 8 workers for the crawler.", "4"),
    ("Use 4 workers for the crawler.", "Use 6 workers rather than 4.", "4"),
    ("Send it to anna@example.org.", "Oops, send it to ben@example.org.", "anna@example.org"),
    ("Limit uploads to 20MB.", "On second thought, limit uploads to 50MB.", "20MB"),
    ("Put the key in config/prod.env.", "Not config/prod.env but config/vault.env please.",
     "config/prod.env"),
    ("Deploy v1.4.2 to staging.", "Scratch that, deploy v1.4.3 to staging.", "v1.4.2"),
    ("Call it \"alpha\".", "Call it \"beta\".", "\"alpha\""),
    ("The button color is #ff0000.", "Correction: the button color is #00aa00.", "#ff0000"),
    ("Set LOG_LEVEL to DEBUG.", "Set LOG_LEVEL back to WARNING.", "DEBUG"),
    ("Use the model gpt-4o.", "Switch to gpt-4o-mini.", "gpt-4o"),
    ("Review PR 811.", "No, PR 812.", "811"),
    ("The API listens on 8080.", "The API no longer listens on 8080, it listens on 9090.", "8080"),
    ("The limit is 1,000 EUR.", "1,000 is wrong, the limit is 2,500 EUR.", "1,000"),
    ("Indent with 8 spaces.", "Indent with 2 spaces instead.", "8"),
    ("Run it on eu-west-1.", "Run it on us-east-1 after all.", "eu-west-1"),
    ("The user id is 1042.", "Hmm, the user id is 1077.", "1042"),
    ("Keep the last 30 days.", "Keep the last 90 days, not 30.", "30"),
    ("The batch size is 500.", "Change the batch size from 500 to 200.", "500"),
    ("Pin numpy to 1.26 in requirements.txt.", "Actually pin numpy to 2.0.", "1.26"),
    ("Cache pages for 300 seconds.", "Replace 300 with 600.", "300"),
    ("Book room 204 for Monday.", "Forget 204, book room 311 for Monday.", "204"),
    ("Store uploads under /var/uploads.", "Uploads should be stored under /srv/uploads.",
     "/var/uploads"),
    ("The main class is OrderService.", "The main class is now OrderManager.", "OrderService"),
    ("Set the currency to EUR.", "Set the currency to USD.", "EUR"),
    ("Always use port 8080 for the web server.",
     "Use port 9090 for the web server from now on.", "8080"),
    ("The retry limit is 3 for uploads.", "The retry limit is 6 for uploads.", "3"),
    ("Setze retries in client.py auf 3.", "Nein, setze retries in client.py auf 5.", "3"),
    ("Nimm Port 8080.", "Nimm doch lieber 9090.", "8080"),
    ("Die Frist ist der 2025-06-01.",
     "Die Frist ist nicht mehr 2025-06-01, sondern 2025-06-15.", "2025-06-01"),
    ("Utilise le port 8080.", "Finalement, utilise le port 9090.", "8080"),
    ("El límite es 50.", "No, el límite es 80.", "50"),
    ("Usa la tabla ventas_2024.", "Usa ventas_2025 en vez de ventas_2024.", "ventas_2024"),
    ("端口用 8080。", "端口改成 9090。", "8080"),
    ("重试次数设为 3。", "重试次数设为 5。", "3"),
    ("タイムアウトは30sです。", "いや、タイムアウトは45sです。", "30s"),
    ("ポートは8080にしてください。", "やっぱり9090にしてください。", "8080"),
]  # fmt: skip
ENOUGH = 45


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


def test_true_corrections_are_told() -> None:
    """Of fifty corrections at least forty-five mark the old value and nothing else."""
    right = [
        first
        for first, later, old in CORRECTED
        if [
            said.old_values
            for said in extract([{"role": "user", "content": text} for text in (first, later)]).user
        ]
        == [(old,), ()]
    ]
    assert len(CORRECTED) == 50
    assert len(right) >= ENOUGH
