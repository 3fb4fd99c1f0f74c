"""Background mode: no turn waits for a model, prefixes stay, work ends with its compressor."""

import contextvars
import copy
import functools
import gc
import threading
import time
import weakref
from itertools import pairwise

import pytest

from praison_compressor import ContextCompressor, MemoryStore, SummaryReply, Usage
from praison_compressor.compressor.background import Background
from praison_compressor.messages import Message, digest, text_of
from tests.helpers import compressing
from tests.helpers.compressing import Gate, Model
from tests.helpers.transcripts import coding_turns, find_repairs

WAIT = 30.0  # seconds: a bound on waiting for another thread, not a measure of anything


# Masks off: these tests are about what only a model can write.
compressor = functools.partial(
    compressing.compressor, context_window=8_000, background=True, tool_policies={"*": "summarize"}
)


def up_to(ours: ContextCompressor, tokens: int) -> list[Message]:
    """Return the longest beginning of a session of at most that many tokens."""
    messages = coding_turns(60)
    ends = [end for end in range(2, len(messages), 2) if messages[end - 1]["role"] == "tool"]
    fitting = [end for end in ends if ours.tokens.messages(messages[:end]) <= tokens]
    return messages[: fitting[-1]]


# ---------------------------------------------------------------- nobody waits


def test_a_background_summary_is_reused_at_the_trigger():
    """Above the soft mark a summary is written in the background for the trigger."""
    gate = Gate()
    gate.open.set()
    events = []
    ours = compressor(gate, on_event=events.append)
    ours.compress_sync(up_to(ours, 3_900), session_id="s")
    assert (ours.wait_for_summaries(WAIT), gate.requests) == (True, [])
    early, late = up_to(ours, 4_700), up_to(ours, 5_400)
    assert ours.compress_sync(early, session_id="s").messages == early
    assert ours.wait_for_summaries(WAIT)
    result = ours.compress_sync(late, session_id="s")
    assert (result.summary_method, len(gate.requests)) == ("reused", 1)
    assert result.tokens_after <= 4_800
    names = ["started", "model_called", "model_answered", "committed"]
    assert [event.name for event in events] == names
    assert ours.verbatim(result.messages, session_id="s") == late


def test_the_next_result_has_the_usage_of_the_background_once():
    """The background's usage is in the next recording result alone."""
    paid = Usage(prompt_tokens=900, completion_tokens=80, cost=0.5)

    gate = Gate()

    async def model(messages):
        return SummaryReply(await gate(messages), paid, "aux", "stop")

    ours = compressor(model)
    messages = up_to(ours, 4_700)
    assert ours.compress_sync(messages, session_id="s").usage == Usage()
    gate.open.set()
    assert ours.wait_for_summaries(WAIT)
    gate.open.clear()  # the other session's model does not answer
    assert ours.compress_sync(messages, session_id="other").usage == Usage()
    assert ours.compress_sync(messages, session_id="s", extends=False).usage == Usage()
    assert ours.compress_sync(messages, session_id="s").usage == paid
    assert ours.compress_sync(messages, session_id="s").usage == Usage()
    assert ours.store.open("default", "s").entries[0].segment.usage == paid


def test_masks_do_not_wait_for_a_summary_that_is_written():
    """While a summary is written, masks are sent uncommitted."""
    gate = Gate()
    ours = compressor(gate, tool_policies={"bash": "summarize"})
    short = [m if m["role"] != "tool" else {**m, "content": "short"} for m in coding_turns(40)]
    ours.compress_sync(short, session_id="s")
    assert gate.asked.wait(WAIT)
    result = ours.compress_sync(coding_turns(8, steps=1, words=250), session_id="s")
    assert result.context_status == "masked"
    assert ours.store.open("default", "s").tip == "s"
    gate.open.set()
    assert ours.wait_for_summaries(WAIT)
    assert len(gate.requests) == 1


def test_a_request_that_only_reads_begins_nothing():
    """A request with `extends=False` leaves no trace."""
    gate = Gate()
    for background in (True, False):
        ours = compressor(gate, background=background)
        result = ours.compress_sync(coding_turns(20), session_id="s", extends=False)
        assert result.summary_method == "static"
        assert ours.store.open("default", "s").tip == "s"
        assert ours.wait_for_summaries(WAIT)
        ours.close()
    assert gate.requests == []


@pytest.mark.parametrize("options", [{"force": True}, {"since": 0}, {"target_tokens": 3_000}])
def test_force_waits_for_the_model_in_the_background_mode(options):
    """A compression that the caller asks for waits for the model in the background mode too."""
    gate = Gate()
    gate.open.set()
    ours = compressor(gate)
    assert ours.compress_sync(coding_turns(20), **options).summary_method == "model"


# ---------------------------------------------------------------- meanwhile


def test_a_head_edited_meanwhile_harms_nothing():
    """A summary of messages edited meanwhile replaces and archives only their originals."""
    gate = Gate()
    ours = compressor(gate)
    messages = coding_turns(20)
    before = copy.deepcopy(messages)
    ours.compress_sync(messages, session_id="s")
    assert gate.asked.wait(WAIT)
    for message in messages[4:40]:
        message["content"] = f"edited: {message['content']}"
    gate.open.set()
    assert ours.wait_for_summaries(WAIT)
    entry = ours.store.open("default", "s").entries[0]
    originals = ours.store.originals(ours.store.open("default", "s"), entry)
    assert tuple(map(digest, originals)) == entry.segment.run
    result = ours.compress_sync(messages, session_id="s")
    assert entry.segment.rendered not in result.messages
    assert find_repairs(result.messages) == []
    unedited = ours.compress_sync(before, session_id="s")
    assert ours.verbatim(unedited.messages, session_id="s") == before


def test_a_failure_in_the_background_is_no_failure_of_a_turn():
    """If the model fails, later turns reuse a static text."""

    async def down(messages):
        raise RuntimeError("boom")

    ours = compressor(down, summary_max_retries=0)
    ours.compress_sync(coding_turns(20))
    assert ours.wait_for_summaries(WAIT)
    later = ours.compress_sync(coding_turns(20))
    assert later.summary_method == "reused"
    assert later.segments[0].method == "static"


def test_the_prefix_stays_while_the_model_writes():
    """While a model writes, most views begin as the view before."""
    gate = Gate()
    ours = compressor(gate)
    messages = coding_turns(18)
    views = []
    for end in (n for n, m in enumerate(messages, 1) if m["role"] == "tool"):
        result = ours.compress_sync(messages[:end], session_id="s")
        assert (result.tokens_after <= 6_000, find_repairs(result.messages)) == (True, [])
        views.append(result.messages)
        ours.compress_sync(messages[:end], session_id="s", extends=False)  # moves nothing
    assert gate.asked.wait(WAIT)
    breaks = sum(after[: len(before)] != before for before, after in pairwise(views))
    assert len(views) > 50
    assert breaks <= len(views) / 8  # a text that has to be added to moves it; not each turn
    assert ours.store.open("default", "s").tip == "s"
    assert len(gate.requests) == 1
    gate.open.set()
    assert ours.wait_for_summaries(WAIT)
    result = ours.compress_sync(messages, session_id="s")
    assert "The modules so far are in order." in "\n".join(map(text_of, result.messages))


def test_another_process_s_segment_replaces_the_uncommitted_text():
    """Another process's segment replaces the uncommitted text."""
    gate = Gate()
    ours = compressor(gate)
    messages = coding_turns(16)
    first = ours.compress_sync(messages, session_id="s")
    assert [segment.method for segment in first.segments] == ["static"]
    quick = Model("## Done\nModules and their ports are in order, says the other.")
    other = compressor(quick, store=ours.store, background=False)
    gate.asked.wait(WAIT)
    ours._background.close()  # its lease is given back
    other.compress_sync(messages, session_id="s")
    again = ours.compress_sync(messages, session_id="s")
    assert "says the other" in text_of(again.segments[0].rendered)


@pytest.mark.parametrize("edited", [8, 40])
def test_an_edit_of_what_was_left_out_shows(edited):
    """After an edit the uncommitted text is not sent for the edited messages."""
    gate = Gate()
    ours = compressor(gate)
    messages = coding_turns(16)
    first = ours.compress_sync(messages, session_id="s")
    changed = [dict(message) for message in messages]
    changed[edited]["content"] = "edited: port V-7777 is the one. " * 3
    again = ours.compress_sync(changed, session_id="s")
    assert again.tokens_after <= 6_000
    assert find_repairs(again.messages) == []
    assert [s.run for s in again.segments] != [s.run for s in first.segments]


# ---------------------------------------------------------------- the end


def test_close_cancels_what_runs_and_gives_the_lease_back():
    """`close` leaves no work, commit or lease of a running summary."""
    released = []

    class Store(MemoryStore):
        def release(self, session, holder):
            released.append(session.id)

    gate = Gate()
    ours = compressor(gate, store=Store())
    ours.compress_sync(coding_turns(20), session_id="s")
    assert gate.asked.wait(WAIT)
    ours.close()
    assert gate.cancelled.wait(WAIT)
    assert released == ["s"]
    assert ours.store.open("default", "s").tip == "s"
    again = ours.compress_sync(coding_turns(20), session_id="s")
    assert [segment.method for segment in again.segments] == ["static"]
    assert len(gate.requests) == 1


def test_a_compressor_that_is_dropped_takes_its_thread_along():
    """The background thread ends with its compressor."""
    before = set(threading.enumerate())
    gate = Gate()
    gate.open.set()
    ours = compressor(gate)
    ours.compress_sync(coding_turns(20))
    assert ours.wait_for_summaries(WAIT)
    gone = weakref.ref(ours._background)
    new = set(threading.enumerate()) - before
    threads = [thread for thread in new if thread.name == "praison-compressor-background"]
    assert len(threads) == 1
    del ours
    gc.collect()
    for thread in threads:
        thread.join(WAIT)
    assert gone() is None
    assert not threads[0].is_alive()


# ---------------------------------------------------------------- the thread


def test_the_work_has_a_context_of_its_own():
    """What a request sets for its own listeners is not set in the background."""
    asking, seen = contextvars.ContextVar("asking", default="nobody"), []

    async def work() -> None:
        seen.append(asking.get())

    asking.set("a request")
    background = Background()
    assert background.start("s", work)
    assert background.wait(WAIT)
    background.close()
    assert seen == ["nobody"]


def test_a_failure_that_repeats_is_logged_once(caplog):
    """A failure is logged when it differs from the one before."""

    async def fail(text: str) -> None:
        raise OSError(text)

    background = Background()
    for text in ("full", "full", "gone"):
        assert background.start("s", functools.partial(fail, text))
        assert background.wait(WAIT)
        while background.is_busy("s"):
            time.sleep(0.001)
    background.close()
    warned = [r.getMessage() for r in caplog.records if r.levelname == "WARNING"]
    assert [text.rpartition(": ")[2] for text in warned] == ["full", "gone"]
