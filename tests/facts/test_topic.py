"""What a session is busy with decides which of many names is kept."""

from __future__ import annotations

import json

import pytest

from praison_compressor.facts import extract
from praison_compressor.messages import Message
from praison_compressor.summaries.static import repair, static_summary
from praison_compressor.tokens.counter import TokenCounter

COUNT = TokenCounter("gpt-4o").text
SUBJECTS = "Invoice Ledger Tariff Parcel Voucher Margin Pallet Coupon Carrier Refund".split()
DEEDS = "load parse render merge split index purge clone rank fold".split()
FILLER = (
    "// Walks over everything that was handed in and leaves aside whatever came too late for the "
    "yearly closing of the books, which another department answers for since last spring."
)
LISTING = "\n".join(
    f"{FILLER}\nfunc {deed}{subject}(rows Rows) error" for deed in DEEDS for subject in SUBJECTS
)


def _call(name: str, at: int, **arguments: str) -> Message:
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"id": f"c{at}", "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def _session(asked: str, then: str) -> list[Message]:
    """A listing of a hundred functions, and a call that shows what they are wanted for."""
    return [
        {"role": "user", "content": asked},
        _call("read_file", 1, path="internal/all_of_it.go"),
        {"role": "tool", "tool_call_id": "c1", "content": LISTING},
        _call("search", 2, pattern=then),
        {"role": "tool", "tool_call_id": "c2", "content": "no matches"},
    ]


def _kept(summary: str, word: str) -> int:
    return sum(f"{deed}{word}" in summary for deed in DEEDS)


@pytest.mark.parametrize("word", ["Tariff", "Coupon", "Refund"])
def test_names_akin_to_those_in_the_newest_calls_come_first(word: str) -> None:
    """The functions about tariffs stay, once a call was about `tariff_rules`."""
    summary = static_summary(
        _session("Go on.", f"{word.lower()}_rules"), budget_tokens=120, count=COUNT
    )
    others = [_kept(summary, other) for other in SUBJECTS if other != word]
    assert _kept(summary, word) >= 8 > 2 * max(others)


def test_names_made_of_the_users_words_come_first() -> None:
    """Nobody called anything about vouchers; the user asked for them."""
    asked = "The voucher is counted twice."
    summary = static_summary(_session(asked, "x_y"), budget_tokens=120, count=COUNT)
    others = [_kept(summary, other) for other in SUBJECTS if other != "Voucher"]
    assert _kept(summary, "Voucher") >= 8 > 2 * max(others)


def test_the_audit_knows_the_topic_from_names_that_the_summary_holds() -> None:
    """What a model's text names need not be said again, but it says what matters."""
    messages = _session("Go on.", "tariff_rules")
    added = repair(
        "It searched for tariff_rules in internal/all_of_it.go.",
        extract(messages),
        budget_tokens=120,
        count=COUNT,
    )
    others = [_kept(added, other) for other in SUBJECTS if other != "Tariff"]
    assert _kept(added, "Tariff") >= 8 > 2 * max(others)
