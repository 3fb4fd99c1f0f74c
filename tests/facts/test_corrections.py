"""The user's own words: a value that a later one replaced is never told as current."""

from __future__ import annotations

import itertools
import random
import re

import pytest

from praison_compressor.facts import Said, extract
from praison_compressor.facts.extraction import notes
from praison_compressor.facts.passages import Passage
from praison_compressor.summaries.static import repair, static_summary
from tests.helpers.matters import MATTERS
from tests.helpers.transcripts import step


def spoken(*texts: str) -> tuple[Said, ...]:
    """What a user said in messages of his own."""
    return extract([{"role": "user", "content": text} for text in texts]).user


@pytest.mark.parametrize(
    ("first", "later", "old"),
    [
        ("Use port 8080.", "No, use port 9090.", ("8080",)),
        ("Look at part 3 first.", "Look at part 4 first.", ()),
        ("Use port 8080.", "Also use port 9090.", ()),
        ("Use port 8080.", "Use the file src/a.py.", ()),
        ("billing_port = 8080", "shipping_port = 9090", ()),
        ("Deploy v1.2 of billing.", "Actually the weather of Paris has 3 clouds over trees.", ()),
        ("Use port 8080.", "No, 5 retries.", ()),
        ("Use port 8080 with 3 workers.", "Change the port to 9090.", ("8080",)),
        ("Use port 8080 with 3 workers.", "No, 4 workers.", ("3",)),
        ("Use port 8080 with 3 workers.", "No, port 9090 with 4 workers.", ("8080", "3")),
    ],
)  # fmt: skip
def test_a_later_value_replaces_an_earlier_one_of_the_same_matter(
    first: str, later: str, old: tuple[str, ...]
) -> None:
    """A correction that says so, or the very same sentence; of two values that of the matter."""
    before, after = spoken(first, later)
    assert before.old_values == old
    assert before.superseded_by == (later if old else None)
    assert before.superseded_at == (1 if old else None)
    assert after.superseded_by is None


def test_pastes_are_not_the_users_words() -> None:
    """Long material comes after the user's words: four sentences of it are still theirs."""
    paste = "\n".join(f"line number {n} must stay" for n in range(100))
    found = spoken(paste)
    assert [s.pasted for s in found[:5]] == [0, 0, 0, 0, 1]
    assert {s.pasted for s in found} == {0, 1, 2}
    assert spoken("short\n" * 15)[-1].pasted == 0
    assert len(spoken("\n".join(["one two three"] * 4 + ["two words"] * 20))) == 4


@pytest.mark.parametrize(
    "series",
    [
        "Remember that fact-{n} is X please.",
        "Please do task {n}: value V00{n}x must be kept.",
        "Use worker-{n} and then use report_{n}.md too.",
    ],
)
def test_sentences_of_one_pattern_are_no_corrections(series):
    """What is named changes, not what it is set to: a false "superseded" would lose a rule."""
    said = spoken(*(series.format(n=n) for n in (1, 2, 3)))
    assert [item.old_values for item in said] == [()] * len(said)


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


@pytest.mark.parametrize(
    ("first", "later", "old"),
    [
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
    ],
)  # fmt: skip
def test_a_correction_is_one_in_any_of_the_languages(first: str, later: str, old: str) -> None:
    """The older sentence is marked, and printed only so."""
    assert [said.old_values for said in spoken(first, later)] == [(old,), ()]
    told = [{"role": "user", "content": text} for text in (first, later)]
    lines = static_summary(told, budget_tokens=400, count=len).splitlines()
    assert f"- {first} (superseded later: {old} no longer holds)" in lines


@pytest.mark.parametrize(
    ("sentence", "kind"),
    [
        ("Ich nehme nginx, weil Caddy hier fehlt.", "decision"),
        ("J'ai décidé d'utiliser SQLite.", "decision"),
        ("因为支持异步，我决定用 FastAPI。", "decision"),
        ("リトライがあるため、45sに決定しました。", "decision"),
        ("Als Nächstes prüfe ich die Rundung.", "open"),
        ("El siguiente paso es pedir el permiso.", "open"),
        ("La prochaine étape est la migration.", "open"),
        ("下一步修改测试。", "open"),
        ("次にテストを追加します。", "open"),
    ],
)
def test_decisions_and_open_work(sentence: str, kind: str) -> None:
    """In the words of the assistant."""
    assert [found for found, _ in notes(Passage(0, "assistant", sentence))] == [kind]
