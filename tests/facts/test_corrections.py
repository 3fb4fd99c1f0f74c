"""The user's own words: a value that a later one replaced is never told as current."""

from __future__ import annotations

import itertools
import random
import re

import pytest

from praison_compressor.facts import Said, extract
from praison_compressor.summaries.static import repair, static_summary
from tests.helpers.matters import MATTERS
from tests.helpers.transcripts import step


def spoken(*texts: str) -> tuple[Said, ...]:
    """What a user said in messages of his own."""
    return extract([{"role": "user", "content": text} for text in texts]).user


INDEPENDENT = [
    ("Look at part 3 first.", "Look at part 4 first."),
    ("billing_port = 8080", "shipping_port = 9090"),
    ("Use port 8080.", "Also use port 9090."),
    ("Please do task 1: value V001x must be kept.", "Please do task 2: value V002x must be kept."),
    ("Use worker-1 and then use report_1.md too.", "Use worker-2 and then use report_2.md too."),
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
    ("Repair src/module_8.py.", "Actually you may touch src/legacy/ now, I changed my mind."),
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
    ("Nimm Port 8080.", "Nimm Port 9090 statt 8080.", "8080"),
    ("Die Konfiguration liegt in conf/dev.yaml.",
     "Die Konfiguration soll doch in conf/prod.yaml liegen.", "conf/dev.yaml"),
    ("Utilise le port 8080.", "Utilise plutôt le port 9090.", "8080"),
    ("Usa la tabla ventas_2024.", "No, usa ventas_2025 en lugar de ventas_2024.",
     "ventas_2024"),
    ("El formato debe ser CSV.", "El formato mejor en XLSX, no en CSV.", "CSV"),
    ("Usa a porta 8080.", "Não, a porta 9090 em vez de 8080.", "8080"),
    ("服务端口用8080。", "端口改成9090吧。", "8080"),
    ("タイムアウトを30sに設定してください。", "やっぱりタイムアウトは45sにして。", "30s"),
    ("ポートは8080にしてください。", "8080ではなく9090にしてください。", "8080"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("first", "later", "old"),
    [
        *((first, later, ()) for first, later in INDEPENDENT),
        *((first, later, (old,)) for first, later, old in CORRECTED),
        ("Use port 8080.", "No, 5 retries.", ()),
        ("Use port 8080.", "Use the file src/a.py.", ()),
        ("Use port 8080 with 3 workers.", "Change the port to 9090.", ("8080",)),
        ("Use port 8080 with 3 workers.", "No, 4 workers.", ("3",)),
        ("Use port 8080 with 3 workers.", "No, port 9090 with 4 workers.", ("8080", "3")),
    ],
)
def test_a_later_value_replaces_an_earlier_one_of_the_same_matter(
    first: str, later: str, old: tuple[str, ...]
) -> None:
    """A correction that says so, or the very same sentence; two orders about two things hold."""
    before, after = spoken(first, later)
    assert (before.old_values, after.old_values) == (old, ())
    assert before.superseded_by == (later if old else None)
    told = [{"role": "user", "content": text} for text in (first, later)]
    lines = static_summary(told, budget_tokens=600, count=count).splitlines()
    mark = f" (superseded later: {', '.join(old)} no longer holds)" if old else ""
    assert f"- {first}{mark}" in lines


def test_a_correction_that_names_what_was_named_before_speaks_of_that() -> None:
    """A word of correction and a path of an older rule take no other path's place."""
    told = spoken(
        "Never edit src/legacy/ before Monday.",
        "Repair src/module_8.py.",
        "Actually src/legacy/ too.",
    )
    assert [item.old_values for item in told] == [(), (), ()]


def test_in_one_session_they_all_hold() -> None:
    """Whatever else was said between two orders, neither is called superseded."""
    said = spoken(*(text for pair in INDEPENDENT for text in pair))
    assert [item.text for item in said if item.old_values] == []


def test_pastes_are_not_the_users_words() -> None:
    """Long material comes after the user's words: four sentences of it are still theirs."""
    paste = "\n".join(f"line number {n} must stay" for n in range(100))
    found = spoken(paste)
    assert [s.pasted for s in found[:5]] == [0, 0, 0, 0, 1]
    assert {s.pasted for s in found} == {0, 1, 2}
    assert spoken("short\n" * 15)[-1].pasted == 0
    assert len(spoken("\n".join(["one two three"] * 4 + ["two words"] * 20))) == 4


Message = dict[str, str]
Chain = tuple[int, ...]

CHAINS: list[Chain] = [(0, 1), (0, 1, 0), (0, 1, 2, 0), (0, 1, 2, 1), (0, 1, 2, 0, 1, 2)]
FIRST = ["Please use {noun} {new} for this.", "The {noun} is {new}.", "Set the {noun} to {new}."]
ON = [
    "no, {new}",
    "No, use {new} for the {noun}.",
    "Actually the {noun} should be {new}.",
    "Change the {noun} to {new}",
    "use {new} instead of {old}",
    "Sorry, I meant {new}.",
    "Change the {noun} from {old} to {new}.",
    "Not {old} but {new} please.",
    "Replace {old} with {new}.",
]
BACK = [
    "back to {new} after all",
    "Go back to {new} please.",
    "Set the {noun} back to {new}.",
    "No, use {noun} {new} again.",
    "Revert to {new}, that was right.",
    "Use {new} rather than {old} after all.",
    "Switch to {new} again.",
]
ANSWERS = [
    "Fine: {noun} {new}.",
    "I decided on the {noun} {new} because the proxy expects it.",
    "Next I need to put the {noun} {new} into src/settings.py.",
]
NOISE = ["Thanks.", "How is it going?", "The web page needs a footer.", "Run the linter too."]


def count(text: str) -> int:
    """A token for four characters."""
    return len(text) // 4 + 1


def talk_of(noun: str, values: list[str], chain: Chain, seed: int) -> list[Message]:
    """The values set one after the other, with answers and other talk between."""
    chance = random.Random(seed)
    messages = [{"role": "user", "content": "Set up the service."}]
    for n, at in enumerate(chain):
        phrases = FIRST if n == 0 else BACK if at in chain[:n] else ON
        words = {"noun": noun, "new": values[at], "old": values[chain[n - 1]]}
        said = chance.choice(phrases).format(**words)
        messages.append({"role": "user", "content": said})
        messages.append({"role": "assistant", "content": chance.choice(ANSWERS).format(**words)})
        if chance.random() < 0.4:
            messages.append({"role": "user", "content": chance.choice(NOISE)})
            messages.append({"role": "assistant", "content": "All right."})
    return messages


def has_word(text: str, value: str) -> bool:
    """Whether the text has the value as a word of its own."""
    return re.search(rf"(?<![\w,]){re.escape(value)}(?!\w|,\d)", text) is not None


def told_as_current(text: str, old: str) -> list[str]:
    """The lines that show an old value and do not say that it is one."""
    drops = rf"(?:instead of|rather than|from|Not|Replace) {re.escape(old)}"
    lines = (re.sub(drops, "", line) for line in text.splitlines())
    return [line for line in lines if has_word(line, old) and "superseded" not in line]


def told_as_superseded(text: str, current: str) -> list[str]:
    """The lines that say of the current value that it no longer holds."""
    marks = re.findall(r"\(superseded[^)]*\)", text)
    return [mark for mark in marks if has_word(mark, current)]


@pytest.mark.parametrize(
    ("matter", "chain", "seed"),
    [(*case, seed) for seed, case in enumerate(itertools.product(MATTERS, CHAINS))],
    ids=str,
)
def test_only_the_last_value_of_a_chain_is_current(
    matter: tuple[str, list[str]], chain: Chain, seed: int
) -> None:
    """However often it was set and replaced before; any other is marked where it is told."""
    noun, values = matter
    messages = talk_of(noun, values, chain, seed)
    current = values[chain[-1]]
    facts = extract(messages)
    for budget in (150, 600):
        text = static_summary(messages, budget_tokens=budget, count=count, facts=facts)
        assert has_word(text, current)
        assert told_as_superseded(text, current) == []
        assert [told_as_current(text, values[n]) for n in chain if n != chain[-1]] == [
            [] for n in chain if n != chain[-1]
        ]
    first = facts.user[1].old_values
    assert first == (() if chain[-1] == chain[0] else (values[chain[0]],))


SETTINGS = [
    ("Use port 8080 for the web server.", "Use port 8080 for the admin page.", "admin", "8080"),
    ("The web port is 8080.", "The admin port is 8080.", "admin", "8080"),
    ("Set the read timeout to 30s.", "Set the write timeout to 30s.", "write", "30s"),
    ("orders go to table shared_events", "invoices go to table shared_events", "invoices",
     "shared_events"),
]  # fmt: skip
OTHERS = {"8080": "9090", "30s": "45s", "shared_events": "audit_events"}


@pytest.mark.parametrize("together", [True, False], ids=["one message", "two messages"])
@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_of_two_settings_with_equal_values_only_one_is_replaced(
    setting: tuple[str, str, str, str], together: bool
) -> None:
    """And set back, neither is marked."""
    kept, changed, which, old = setting
    new = OTHERS[old]
    texts = [f"{kept}\n{changed}"] if together else [kept, changed]

    def olds(*later: str) -> dict[str, tuple[str, ...]]:
        said = spoken(*texts, *later)
        return {item.text: item.old_values for item in said if item.old_values}

    change = f"Change that of {which} to {new}"
    assert olds(change) == {changed: (old,)}
    assert olds(change, f"Back to {old} for {which} after all") == {change: (new,)}
    first = f"Use {new} instead of {old} for {which}."
    assert olds(first) == {changed: (old,)}


def test_a_tools_words_replace_nothing_of_the_users() -> None:
    """What a configuration shows is no correction; what it showed before one is marked as old."""
    shows = step("c", "metrics_target: http://10.0.0.1:9090/metrics", path="conf/service.yaml")
    said = [{"role": "user", "content": "Use port 8080."}]
    assert [item.old_values for item in extract([*said, *shows]).user] == [()]
    before = [{"role": "user", "content": "Use port 9090."}, *shows,
              {"role": "user", "content": "No, use port 8080."}]  # fmt: skip
    text = static_summary(before, budget_tokens=400, count=count)
    assert told_as_current(text, "9090") == []
    assert "http://10.0.0.1:9090/metrics (superseded: 9090)" in text


def test_a_summary_that_has_an_old_value_is_told_so() -> None:
    """A model that wrote down what the user took back, word for word, is set right below."""
    texts = ["Use port 8080.", "Always lint.", "No, use port 9090."]
    messages = [{"role": "user", "content": text} for text in texts]
    summary = "The user said: Use port 8080. The user said: Always lint."
    added = repair(summary, extract(messages), budget_tokens=200, count=count)
    assert "Use port 8080. (superseded later: 8080 no longer holds)" in added
    assert "No, use port 9090." in added
    assert "Always lint" not in added
