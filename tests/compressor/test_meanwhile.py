"""While a model writes and the window is full: what is sent stays what was sent."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from praison_compressor.messages import check, text_of
from tests.compressor.test_background import WAIT, Gate, compressor
from tests.helpers.transcripts import session

Message = dict[str, Any]
LIMIT = 6_000


def ends_of(messages: list[Message], first: int = 2) -> list[int]:
    """Where a request is made."""
    return [n for n in range(first, len(messages) + 1) if messages[n - 1]["role"] == "tool"]


def begins_with(after: list[Message], before: list[Message]) -> bool:
    return after[: len(before)] == before


def test_the_prefix_stays_while_the_model_writes() -> None:
    """Only what the window asks is added; nothing is recorded; the model's text replaces it."""
    gate = Gate()
    ours = compressor(gate)
    messages = session(18)
    views = []
    for end in ends_of(messages):
        result = ours.compress_sync(messages[:end], session_id="s")
        assert result.tokens_after <= LIMIT
        assert check(result.messages) == []
        views.append(result.messages)
        ours.compress_sync(messages[:end], session_id="s", extends=False)  # moves nothing
    assert gate.asked.wait(WAIT)
    breaks = sum(not begins_with(after, before) for before, after in pairwise(views))
    assert len(views) > 50
    assert breaks <= len(views) / 8  # a text that has to be added to moves it; not each turn
    assert ours.store.open("default", "s").tip == "s"
    assert len(gate.requests) == 1
    gate.open.set()
    assert ours.background.wait(WAIT)
    result = ours.compress_sync(messages, session_id="s")
    assert "The modules so far are in order." in "\n".join(map(text_of, result.messages))
    ours.close()


def test_the_text_is_at_hand_before_it_is_needed() -> None:
    """It is written when the model is asked: the turn that fills the window takes it as it is.

    What the window takes whole is sent whole all the same, and the text is told of once.
    """
    gate = Gate()
    ours = compressor(gate)
    messages = session(30)
    sizes = [(end, ours.tokens.messages(messages[:end])) for end in ends_of(messages)]
    early = next(end for end, size in sizes if size > 4_500)
    late = next(end for end, size in sizes if size > LIMIT + 100)
    assert ours.compress_sync(messages[:early], session_id="s").context_status == "full"
    assert gate.asked.wait(WAIT)
    messages[0] = {"role": "system", "content": "Other rules."}  # so that this turn is read anew
    whole = ours.compress_sync(messages[: late - 8], session_id="s")
    assert (whole.context_status, whole.written) == ("full", ())
    result = ours.compress_sync(messages[:late], session_id="s")
    assert (result.context_status, result.summary_method) == ("summarized", "static")
    assert len(result.segments[0].run) < early - 4  # its newest messages were the tail then
    assert result.tokens_after <= LIMIT
    again = ours.compress_sync(messages[:late], session_id="s")
    assert (again.summary_method, again.written) == ("static", ())  # no summary of the ledger's
    gate.open.set()
    assert ours.background.wait(WAIT)
    assert ours.compress_sync(messages[:late], session_id="s").summary_method == "reused"
    ours.close()


def test_what_another_wrote_meanwhile_is_taken() -> None:
    """Another worker on the same ledger was quicker: its segment stands, not our makeshift."""
    gate = Gate()
    ours = compressor(gate)
    messages = session(16)
    first = ours.compress_sync(messages, session_id="s")
    assert [segment.method for segment in first.segments] == ["static"]
    other = compressor(quick, store=ours.store, background=False)
    gate.asked.wait(WAIT)
    ours.background.close()  # its lease is given back
    other.compress_sync(messages, session_id="s")
    again = ours.compress_sync(messages, session_id="s")
    assert "says the other" in text_of(again.segments[0].rendered)
    ours.close()


async def quick(messages: list[Message]) -> str:
    return "## Done\nModules and their ports are in order, says the other."


@pytest.mark.parametrize("edited", [8, 40])
def test_an_edit_of_what_was_left_out_shows(edited: int) -> None:
    """What no longer stands for the messages is not sent for them."""
    gate = Gate()
    ours = compressor(gate)
    messages = session(16)
    first = ours.compress_sync(messages, session_id="s")
    changed = [dict(message) for message in messages]
    changed[edited]["content"] = "edited: port V-7777 is the one. " * 3
    again = ours.compress_sync(changed, session_id="s")
    assert again.tokens_after <= LIMIT
    assert check(again.messages) == []
    assert [s.run for s in again.segments] != [s.run for s in first.segments]
    ours.close()
