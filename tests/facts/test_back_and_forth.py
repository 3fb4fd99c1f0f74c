"""A value that is set, replaced and set again: the current one is never told as superseded."""

from __future__ import annotations

import itertools
import random
import re

import pytest

from praison_compressor.facts import extract
from praison_compressor.summaries.static import repair, static_summary
from tests.helpers.matters import MATTERS

Message = dict[str, str]
Chain = tuple[int, ...]

CHAINS: list[Chain] = [
    (0, 1), (0, 1, 0), (0, 1, 2), (0, 1, 0, 1), (0, 1, 2, 0), (0, 1, 2, 1), (0, 1, 0, 2),
    (0, 1, 0, 2, 0), (0, 1, 2, 0, 1, 2),
]  # fmt: skip
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


def conversation(noun: str, values: list[str], chain: Chain, seed: int) -> list[Message]:
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


def names(text: str, value: str) -> bool:
    """Whether the text has the value as a word of its own."""
    return re.search(rf"(?<![\w,]){re.escape(value)}(?!\w|,\d)", text) is not None


def told_as_current(text: str, old: str) -> list[str]:
    """The lines that show an old value and do not say that it is one."""
    drops = rf"(?:instead of|rather than|from|Not|Replace) {re.escape(old)}"
    lines = (re.sub(drops, "", line) for line in text.splitlines())
    return [line for line in lines if names(line, old) and "superseded" not in line]


def told_as_superseded(text: str, current: str) -> list[str]:
    """The lines that say of the current value that it no longer holds."""
    marks = re.findall(r"\(superseded[^)]*\)", text)
    return [mark for mark in marks if names(mark, current)]


@pytest.mark.parametrize(
    ("matter", "chain", "seed"),
    [(*case, seed) for case in itertools.product(MATTERS, CHAINS) for seed in range(3)],
    ids=str,
)
def test_only_the_last_value_of_a_chain_is_current(
    matter: tuple[str, list[str]], chain: Chain, seed: int
) -> None:
    """However often it was set and replaced before; any other is marked where it is told."""
    noun, values = matter
    messages = conversation(noun, values, chain, seed)
    current = values[chain[-1]]
    facts = extract(messages)
    for budget in (150, 600):
        text = static_summary(messages, budget_tokens=budget, count=count, facts=facts)
        assert names(text, current)
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
        said = [{"role": "user", "content": text} for text in (*texts, *later)]
        return {item.text: item.old_values for item in extract(said).user if item.old_values}

    change = f"Change that of {which} to {new}"
    assert olds(change) == {changed: (old,)}
    assert olds(change, f"Back to {old} for {which} after all") == {change: (new,)}
    first = f"Use {new} instead of {old} for {which}."
    assert olds(first) == {changed: (old,)}


def test_a_tools_words_replace_nothing_of_the_users() -> None:
    """What a configuration shows is no correction; what it showed before one is marked as old."""
    shows = [
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": "c", "type": "function",
             "function": {"name": "read_file", "arguments": '{"path": "conf/service.yaml"}'}}]},
        {"role": "tool", "tool_call_id": "c", "content": "metrics_target: http://10.0.0.1:9090/metrics"},
    ]  # fmt: skip
    said = [{"role": "user", "content": "Use port 8080."}]
    assert [item.old_values for item in extract([*said, *shows]).user] == [()]
    before = [{"role": "user", "content": "Use port 9090."}, *shows,
              {"role": "user", "content": "No, use port 8080."}]  # fmt: skip
    text = static_summary(before, budget_tokens=400, count=count)
    assert told_as_current(text, "9090") == []
    assert "http://10.0.0.1:9090/metrics (superseded: 9090)" in text


@pytest.mark.parametrize(
    ("first", "later"),
    [
        ("Use port 8080.", "Actually, limit the retries to 5."),
        ("Use port 8080.", "No, 5 retries."),
        ("Use port 8080.", "Change the batch to 5000 rows."),
        ("Use port 8080 with 3 workers.", "Wait, the title needs 20px."),
        ("Keep Python 3.10.", "No, wait 30s between the calls."),
    ],
)
def test_a_value_of_another_matter_is_not_replaced(first: str, later: str) -> None:
    """Whatever the sentence opens with."""
    said = extract([{"role": "user", "content": text} for text in (first, later)]).user
    assert [item.old_values for item in said] == [(), ()]


def test_of_two_values_in_a_sentence_the_one_of_the_matter_is_replaced() -> None:
    """The words beside each say which."""

    def olds(later: str) -> tuple[str, ...]:
        texts = ("Use port 8080 with 3 workers.", later)
        return extract([{"role": "user", "content": text} for text in texts]).user[0].old_values

    assert olds("Change the port to 9090.") == ("8080",)
    assert olds("No, 4 workers.") == ("3",)
    assert olds("No, 9090.") == ("8080",)
    assert olds("No, port 9090 with 4 workers.") == ("8080", "3")


def test_every_line_with_an_old_value_is_marked() -> None:
    """A step of the list, a command, an error: what is told of them was before."""
    todo = '{"todos": [{"content": "Open port 8080", "status": "pending"}]}'
    run = '{"command": "curl localhost:8080/health"}'
    calls = [("a", "TodoWrite", todo, "saved"),
             ("b", "Bash", run, "Exit code 7\ncurl: Error: 8080 refused")]  # fmt: skip
    messages: list[dict[str, object]] = [{"role": "user", "content": "Use port 8080."}]
    for name, tool, arguments, result in calls:
        function = {"name": tool, "arguments": arguments}
        made = {"id": name, "type": "function", "function": function}
        messages.append({"role": "assistant", "content": None, "tool_calls": [made]})
        messages.append({"role": "tool", "tool_call_id": name, "content": result})
    messages.append({"role": "user", "content": "No, use port 9090."})
    text = static_summary(messages, budget_tokens=900, count=count)
    assert "Open port 8080 (superseded: 8080)" in text
    assert "still fails: curl localhost:8080/health: exit 7: curl: Error: 8080 refused [4]" in text
    assert told_as_current(text, "8080") == []


def test_a_summary_that_has_an_old_value_is_told_so() -> None:
    """A model that wrote down what the user took back, word for word, is set right below."""
    texts = ["Use port 8080.", "Always lint.", "No, use port 9090."]
    messages = [{"role": "user", "content": text} for text in texts]
    summary = "The user said: Use port 8080. The user said: Always lint."
    added = repair(summary, extract(messages), budget_tokens=200, count=count)
    assert "Use port 8080. (superseded later: 8080 no longer holds)" in added
    assert "No, use port 9090." in added
    assert "Always lint" not in added


def test_what_replaced_a_value_is_told_before_what_it_replaced() -> None:
    """In the least room stands what holds."""
    texts = ["Use port 8080.", "No, use port 9090.", *(f"Please see page {n}." for n in range(9))]
    messages = [{"role": "user", "content": text} for text in texts]
    text = static_summary(messages, budget_tokens=30, count=count)
    assert "No, use port 9090." in text
