"""What a session is busy with decides which of many names is kept."""

from __future__ import annotations

import json

import pytest

from praison_compressor.facts import extract
from praison_compressor.facts.importance import Shared, Topic, words_of
from praison_compressor.facts.model import Facts, Identifier, Said
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


def test_a_rare_word_counts_for_more_than_a_common_one() -> None:
    """`store` is in every name: to share it says little."""
    names = [Identifier(f"store{subject}", "symbol") for subject in SUBJECTS]
    busy = Identifier("storeParcel_now", "symbol", named=1, last=9)
    topic = Topic(Facts(identifiers=(*names, busy)))
    common, rare = topic.shared(names[0]).calls, topic.shared(names[3]).calls
    assert 0 < common < 0.5
    assert rare == 1


def test_only_the_newest_calls_are_what_the_session_is_busy_with() -> None:
    """What was looked for a hundred calls ago is no longer the business."""
    old = Identifier("oldPension", "symbol", named=1, last=1)
    later = [Identifier(f"new{n}Salary", "symbol", named=1, last=n) for n in range(10, 30)]
    shown = Identifier("pensionRate", "symbol")
    assert Topic(Facts(identifiers=(old, shown, *later))).shared(shown).calls == 0
    assert Topic(Facts(identifiers=(old, shown))).shared(shown).calls > 0


def test_pasted_text_and_little_words_are_not_what_the_user_asked_for() -> None:
    """A paste is material; "this file should" names nothing."""
    user = (Said(0, "This file should work"), Said(0, "Traceback of pensionRate", pasted=1))
    items = (Identifier("thisFile_should", "symbol"), Identifier("pensionRate", "symbol"))
    topic = Topic(Facts(user=user, identifiers=items))
    assert [topic.shared(item) for item in items] == [Shared(), Shared()]


def test_a_name_without_words_shares_none() -> None:
    """Nothing is divided by nothing."""
    item = Identifier("a1b2", "id")
    assert Topic(Facts(identifiers=(item,))).shared(item) == Shared()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("HTTPServerError", {"http", "server", "error"}),
        ("snake_case_name", {"snake", "case", "name"}),
        ("docs/setup-guide.md", {"docs", "setup", "guide"}),
        ("run2048", {"run", "2048"}),
        ("", set()),
    ],
)
def test_words_of_a_name(name: str, words: set[str]) -> None:
    """As people write names: camel, snake, paths, numbers."""
    assert words_of(name) == words
