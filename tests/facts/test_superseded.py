"""A corrected value survives as superseded and is never presented as current."""

from __future__ import annotations

import itertools

import pytest

from praison_compressor.facts import extract
from praison_compressor.summaries.static import static_summary
from tests.helpers.matters import MATTERS

PAIRS = [(noun, old, new) for noun, (old, new, *_) in MATTERS[:6]]
CORRECTIONS = [
    "no, {new}",
    "No, use {new} for the {noun}.",
    "Actually the {noun} should be {new}.",
    "Change the {noun} to {new}",
    "use {new} instead of {old}",
    "Sorry, I meant {new}.",
    "Please use {noun} {new} for this.",
]


def count(text):
    return len(text) // 4 + 1


def conversation(noun, old, new, correction):
    return [
        {"role": "user", "content": "Set up the service."},
        {"role": "assistant", "content": "Which settings?"},
        {"role": "user", "content": f"Please use {noun} {old} for this."},
        {"role": "assistant", "content": f"Fine: {noun} {old}."},
        {"role": "user", "content": correction.format(noun=noun, old=old, new=new)},
        {"role": "assistant", "content": "Done."},
    ]


@pytest.mark.parametrize(
    ("matter", "correction"), list(itertools.product(PAIRS, CORRECTIONS)), ids=str
)
def test_a_replaced_value_is_marked_wherever_it_is_printed(matter, correction):
    """The old value stands only where its line says that it no longer holds; the new one stands."""
    noun, old, new = matter
    text = static_summary(conversation(noun, old, new, correction), budget_tokens=600, count=count)
    said = extract(conversation(noun, old, new, correction)).user
    first = next(item for item in said if item.text.startswith("Please use") and item.index == 2)
    assert old in first.old_values
    assert new in text
    lines = [line for line in text.splitlines() if old in line and f"instead of {old}" not in line]
    assert lines
    assert all("superseded" in line for line in lines)


def test_two_different_matters_do_not_replace_each_other():
    """A second value for another thing leaves the first one current."""
    facts = extract(
        [
            {"role": "user", "content": "The web server listens on port 8080."},
            {"role": "user", "content": "The retry limit of the mail queue is 5000 messages."},
        ]
    )
    assert [item.superseded_by for item in facts.user] == [None, None]


def test_the_next_item_of_a_series_replaces_nothing():
    """Looking at part 3 and then at part 4 are two requests."""
    facts = extract(
        [
            {"role": "user", "content": "Please look at the handler number 3."},
            {"role": "user", "content": "Please look at the handler number 4."},
        ]
    )
    assert [item.superseded_by for item in facts.user] == [None, None]


@pytest.mark.parametrize(
    "series",
    [
        "Remember that fact-{n} is X please.",
        "Please do task {n}: value V00{n}x must be kept.",
        "Set the limit of queue-{n} to high.",
        "Turn {n}: look after ledger L-00{n}.",
        "Use worker-{n} and then use report_{n}.md too.",
    ],
)
def test_sentences_of_one_pattern_are_no_corrections(series):
    """What is named changes, not what it is set to: a false "superseded" would lose a rule."""
    texts = [series.format(n=n) for n in (1, 2, 3)]
    said = extract([{"role": "user", "content": text} for text in texts]).user
    assert [item.old_values for item in said] == [()] * len(said)


@pytest.mark.parametrize("budget", [150, 400, 2_000])
@pytest.mark.parametrize(
    "promise",
    [
        "I decided on the port 8080 because the proxy expects it.",
        "Next I need to open the port 8080 in src/net/firewall_rules.py.",
    ],
)
def test_what_the_assistant_said_of_a_replaced_value_is_not_told_as_current(promise, budget):
    """Its decision and its next step fell with the value; what it says afterwards stands."""
    messages = [
        {"role": "user", "content": "Please use port 8080 for this."},
        {"role": "assistant", "content": promise},
        {"role": "user", "content": "No, use 9090 for the port."},
    ]
    text = static_summary(messages, budget_tokens=budget, count=count)
    assert [line for line in text.splitlines() if "8080" in line and "superseded" not in line] == []
    after = {"role": "assistant", "content": "I decided to close port 8080 because 9090 serves."}
    assert after["content"] in static_summary([*messages, after], budget_tokens=400, count=count)
