"""Many texts counted at once: beside other work, each once, and the same whatever goes wrong."""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from praison_compressor.summaries.drafting import Piece, abridged, packed
from praison_compressor.tokens.counter import TokenCounter
from praison_compressor.tokens.encodings import (
    BETWEEN,
    Counting,
    Tiktoken,
    Vocabulary,
    vocabulary_for,
)
from tests.helpers.texts import prose


def lengths(texts: Sequence[str]) -> list[int]:
    return list(map(len, texts))


@given(st.lists(st.text(max_size=60).map(lambda text: text * 2_000), max_size=30))
def test_every_text_is_counted_in_its_place(texts: list[str]) -> None:
    """However the texts are shared out among threads."""
    assert Counting(texts, lengths).counts() == lengths(texts)


def test_what_a_thread_raises_is_raised_to_who_asks() -> None:
    """No count is made up for what could not be counted."""

    def fails(texts: Sequence[str]) -> list[int]:
        raise ValueError("no vocabulary")

    with pytest.raises(ValueError, match="no vocabulary"):
        Counting([prose(4_000)] * 8, fails).counts()


def test_where_no_thread_can_be_had_the_asker_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A system at its limit of threads, or an interpreter about to end, refuses them."""

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    texts = [prose(4_000)] * 8
    assert Counting(texts, lengths).counts() == lengths(texts)


# ---------------------------------------------------------------- by tiktoken


@pytest.fixture(scope="module", params=["gpt-4o", "gpt-4"])
def by_tiktoken(request: pytest.FixtureRequest) -> Vocabulary:
    """A vocabulary that its own library counts."""
    return vocabulary_for(request.param, fast=False)


def test_no_two_tokens_have_a_separator_between_them(by_tiktoken: Vocabulary) -> None:
    """So that it can be looked for among their bytes."""
    own: Any = by_tiktoken.count_piece
    encoding = own._encoding
    low, high = divmod(encoding.encode(BETWEEN, allowed_special="all")[0], 1 << 16)[::-1]
    assert encoding.n_vocab < 4 << 16
    assert (low % 256 >= 4, low // 256 >= 4, high < 4) == (True, True, True)


def test_texts_counted_in_one_go_do_not_run_into_each_other(by_tiktoken: Vocabulary) -> None:
    """Not what stands between them either, whole or in halves, nor a half of a pair."""
    halves = [BETWEEN[:4], BETWEEN[4:], BETWEEN[:-1], BETWEEN[1:]]
    texts = ["a", "", "b c", *halves, "  ", "\n", " d"]
    for more in ([], [BETWEEN], [f"x{BETWEEN}y"], ["\ud83d"]):
        found = by_tiktoken.count_all([*texts, *more, *texts])
        assert found == list(map(by_tiktoken.count, [*texts, *more, *texts]))


def test_a_tiktoken_without_its_inner_entry_counts_one_by_one(by_tiktoken: Vocabulary) -> None:
    """What is no promise of the library may go: it costs time, and no count."""
    own: Any = by_tiktoken.count_piece

    class Another:
        encode_ordinary = staticmethod(own._encoding.encode_ordinary)

    texts = ["def f(x):", "", BETWEEN, "你好"]
    assert Tiktoken(Another()).all(texts) == list(map(by_tiktoken.count, texts))


# ---------------------------------------------------------------- a transcript


def transcript(turns: int) -> list[dict[str, Any]]:
    call = {"type": "function", "function": {"name": "look", "arguments": '{"at": "%d"}'}}
    found: list[dict[str, Any]] = []
    for n in range(turns):
        found += [
            {"role": "user", "content": f"question {n}"},
            {"role": "assistant", "content": None, "tool_calls": [{"id": f"c{n}", **call}]},
            {"role": "tool", "tool_call_id": f"c{n}", "content": [{"type": "text", "text": "is"}]},
            {"role": "assistant", "content": f"answer {n}"},
        ]
    return found


def test_a_transcript_that_is_counted_while_it_is_read_has_the_same_counts() -> None:
    """Also where messages were edited meanwhile, so that other texts were begun."""
    messages = transcript(100)
    one_by_one = list(map(TokenCounter("gpt-4o").message, messages))
    counter = TokenCounter("gpt-4o")
    begun = counter.begin(messages)
    assert begun is not None
    assert counter.each(counter.cache.all(messages), begun) == one_by_one
    other = TokenCounter("gpt-4o")
    begun = other.begin(transcript(101)[4:])
    assert other.each(other.cache.all(messages), begun) == one_by_one


def without_end() -> list[Any]:
    found: list[Any] = []
    found.append(found)
    return found


@pytest.mark.parametrize(
    "calls",
    [7, [None], [{"function": 3}], [{"function": {"name": "f", "arguments": without_end()}}]],
)
def test_what_cannot_be_read_is_left_to_who_reads(calls: Any) -> None:
    """Nothing is told of before the message is known by its place, as in a short transcript."""
    wrong = {"role": "assistant", "tool_calls": calls}
    messages = [wrong, *transcript(100)]
    messages[25:] = [part for message in messages[25:] for part in (message, wrong)]
    begun = TokenCounter("gpt-4o").begin(messages)
    assert begun is not None
    assert begun.by_text()["question 7"] == 3


def test_only_a_long_transcript_that_nobody_has_seen_is_begun() -> None:
    """A turn of a known one, though a host made all its messages anew, counts nothing twice."""
    counter = TokenCounter("gpt-4o")
    assert counter.begin(transcript(10)) is None
    counter.messages(transcript(100))
    assert counter.begin(transcript(100)) is None
    assert counter.begin([*transcript(99), *transcript(102)[-8:]]) is None
    another = [{**m, "content": f"elsewhere {n}"} for n, m in enumerate(transcript(100))]
    assert counter.begin([transcript(100)[0], *another]) is not None


# ---------------------------------------------------------------- parts for a summarizer


@given(
    groups=st.lists(st.lists(st.text(min_size=1, max_size=40), min_size=1, max_size=4), max_size=9),
    space=st.integers(8, 60),
)
def test_parts_hold_every_message_once_and_no_more_than_fits(
    groups: list[list[str]], space: int
) -> None:
    """In their order, whatever has to be split."""
    parts = packed([[Piece(text) for text in group] for group in groups], space, lengths)
    texts = [piece.text for part in parts for piece in part]
    assert "".join(texts) == "".join(text for group in groups for text in group)
    assert sum(piece.ends for part in parts for piece in part) == sum(map(len, groups))
    assert all(sum(len(piece.text) + 2 for piece in part) <= space + 2 for part in parts)


@given(
    groups=st.lists(st.lists(st.integers(1, 400), min_size=1, max_size=4), min_size=1, max_size=20),
    space=st.integers(900, 2_000),
    longest=st.none() | st.integers(200, 800),
    most=st.none() | st.integers(3, 9),
)
def test_parts_are_no_more_than_they_must_be(
    groups: list[list[int]], space: int, longest: int | None, most: int | None
) -> None:
    """At most one more than what is shown fills, and never more than the calls that there are."""
    pieces = [[Piece("some words\n" * words) for words in group] for group in groups]
    parts = packed(pieces, space, lengths, longest=longest, most=most)
    shown = sum(len(piece.text) + 2 for part in parts for piece in part)
    assert len(parts) <= min(-(-shown // space) + 1, most or len(parts))
    assert sum(piece.ends for part in parts for piece in part) == sum(map(len, groups))
    assert all(sum(len(piece.text) + 2 for piece in part) <= space + 2 for part in parts)


def test_what_a_long_message_says_of_errors_and_names_is_shown() -> None:
    """Head and tail, the lines between that tell most, in their order, and how much is not."""
    lines = [f"compiling unit {n} of the second stage" for n in range(900)]
    lines[300] = "NameError: name 'retry_budget' is not defined"
    lines[600] = "see src/billing/refunds.py and ticket ACME-4471"
    text = "\n".join(lines)
    shown = abridged(text, 1_500)
    assert (shown[:300], shown[-300:]) == (text[:300], text[-300:])
    assert 0 < shown.find("NameError: name 'retry_budget'") < shown.find("refunds.py and ticket")
    left_out = int(re.findall(r"(\d+) characters left out", shown)[0])
    assert len(shown) < 1_700
    assert abs(len(text) - left_out - len(shown)) < 200
    assert abridged(shown, 2_000) == shown


def test_what_fits_is_counted_once() -> None:
    """All of it together: counting is what takes the time."""
    asked: list[list[str]] = []

    def count(texts: Sequence[str]) -> list[int]:
        asked.append(list(texts))
        return lengths(texts)

    packed([[Piece("one"), Piece("two")], [Piece("three")]], 9, count)
    assert asked == [["one", "two", "three"]]
