"""A corrected value survives as superseded and is never presented as current."""

from __future__ import annotations

import pytest

from praison_compressor.facts import extract
from praison_compressor.summaries.static import static_summary


def count(text):
    return len(text) // 4 + 1


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
