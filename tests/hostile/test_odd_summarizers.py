"""Summarizers that break every habit: what they give, how they end, how long they write."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from praison_compressor import (
    CompressorConfig,
    ContextCompressor,
    Event,
    SummaryRejected,
    SummaryReply,
)
from praison_compressor.messages import Message, check, text_of
from praison_compressor.summaries.validation import accept
from tests.helpers.transcripts import session

CONFIG = CompressorConfig(
    model="gpt-4o",
    context_window=3_000,
    protect_last_n_tokens=300,
    head_tokens=100,
    summary_max_retries=0,
    timeout_seconds=0.2,
)
MARK = "ODD-4471"


class Odd:
    """Something with a representation that must not become a summary."""

    def __repr__(self) -> str:
        return f"## Done {MARK} is the representation of an object"


async def compressed(summarizer: Any) -> tuple[Any, list[str]]:
    """The result with that summarizer, and why it was not used."""
    events: list[Event] = []
    ours = ContextCompressor(CONFIG, summarizer=summarizer, on_event=events.append)
    result = await ours.compress(session(9), session_id="s")
    assert check(result.messages) == []
    stored = [entry.segment for entry in ours.store.open("default", "s").entries]
    assert MARK not in "".join(text_of(segment.rendered) for segment in stored)
    return result, [str(e.data["reason"]) for e in events if e.name == "fell_back"]


@pytest.mark.parametrize(
    "given", [5, MARK.encode(), {"content": MARK}, [MARK], Odd(), SummaryReply(Odd())],  # type: ignore[arg-type]
    ids=lambda value: type(value).__name__,
)  # fmt: skip
async def test_what_is_no_text_is_no_summary(given: Any) -> None:
    """Not its representation either: the fallback stands in, and says what came."""

    async def odd(messages: list[Message]) -> Any:
        return given

    result, reasons = await compressed(odd)
    assert result.summary_method == "static"
    assert ["the summarizer gave" in reason for reason in reasons] == [True]


async def test_a_summarizer_of_the_protocol_that_gives_a_bare_text_is_named() -> None:
    """It would be billed for nothing at every turn: the reason says what is wrong with it."""

    class Careless:
        async def summarize(self, messages: list[Message], **given: Any) -> str:
            return f"## Done\n{MARK}"

    result, reasons = await compressed(Careless())
    assert result.summary_method == "static"
    assert ["it gave str, not a SummaryReply" in reason for reason in reasons] == [True]


async def test_a_summarizer_that_cancels_itself_ends_no_turn() -> None:
    """A time limit inside a user's function can leak as a cancellation: nobody cancelled us."""

    async def leaking(messages: list[Message]) -> str:
        raise asyncio.CancelledError

    result, reasons = await compressed(leaking)
    assert result.summary_method == "static"
    assert ["not by us" in reason for reason in reasons] == [True]


class Fatal(BaseException):
    """What is no Exception, as PyO3's panics are none."""


def raising(error: BaseException, how: str) -> Any:
    """A summarizer that ends with the error: a coroutine, or a plain function."""

    async def at_once(messages: list[Message]) -> str:
        raise error

    async def later(messages: list[Message]) -> str:
        await asyncio.sleep(0)
        raise error

    def plain(messages: list[Message]) -> str:
        raise error

    found = {"at once": at_once, "later": later, "plain": plain}
    return found[how]


@pytest.mark.parametrize("how", ["at once", "later", "plain"])
@pytest.mark.parametrize("error", [SystemExit(3), GeneratorExit(), Fatal("core")], ids=repr)
def test_a_summarizer_that_ends_more_than_itself_ends_no_turn(
    error: BaseException, how: str
) -> None:
    """It falls back like any failure, with a loop running and without; the reason names it."""
    result, reasons = asyncio.run(compressed(raising(error, how)))
    assert result.summary_method == "static"
    assert [type(error).__name__ in reason for reason in reasons] == [True]
    ours = ContextCompressor(CONFIG, summarizer=raising(error, how))
    assert ours.compress_sync(session(9)).summary_method == "static"


@pytest.mark.parametrize("how", ["at once", "later", "plain"])
def test_what_the_person_at_the_keyboard_wants_passes(how: str) -> None:
    """Ctrl+C while a summary is written ends the program, as it does anywhere else."""
    ours = ContextCompressor(CONFIG, summarizer=raising(KeyboardInterrupt(), how))
    with pytest.raises(KeyboardInterrupt):
        ours.compress_sync(session(9))


async def test_a_model_is_told_of_before_it_is_asked_and_after_it_has_answered() -> None:
    """So that who listens can say that a turn waits for it; one that fails is told of as well."""
    events: list[Event] = []
    heard: list[list[str]] = []

    async def model(messages: list[Message]) -> str:
        heard.append([event.name for event in events])
        return "" if len(heard) == 1 else "## Done\nThe modules so far are in order."

    ours = ContextCompressor(CONFIG, summarizer=model, on_event=events.append)
    await ours.compress(session(9))
    once = ["started", "model_called"]
    assert heard == [once, [*once, "model_answered", "model_called"]]
    answered = [event.data for event in events if event.name == "model_answered"]
    assert [sorted(data) for data in answered] == [sorted(answered[0])] * 2
    assert "seconds" in answered[0]


@pytest.mark.parametrize(("is_hidden", "kind"), [(True, "provider"), (False, "network")])
async def test_what_an_error_hides_is_not_its_cause(is_hidden: bool, kind: str) -> None:
    """`raise ... from None` says that what came before has nothing to do with it."""
    events: list[Event] = []

    async def model(messages: list[Message]) -> str:
        error = ValueError("the prompt has no template")
        error.__context__ = ConnectionError("the cache is gone")
        error.__suppress_context__ = is_hidden  # as `from None` sets it
        raise error

    ours = ContextCompressor(CONFIG, summarizer=model, on_event=events.append)
    await ours.compress(session(9))
    assert [e.data["error"] for e in events if e.name == "model_answered"] == [kind]


async def test_a_summarizer_that_will_not_be_cancelled_holds_up_no_turn() -> None:
    """It is told to end, given a moment, and left to itself."""
    cancelled: list[str] = []

    async def stubborn(messages: list[Message]) -> str:
        try:
            await asyncio.sleep(3_600)
        except asyncio.CancelledError:
            cancelled.append("once")
            await asyncio.sleep(3_600)
        return MARK

    result, reasons = await asyncio.wait_for(compressed(stubborn), 30)
    assert result.summary_method == "static"
    assert ["no answer in" in reason for reason in reasons] == [True]
    assert cancelled == ["once"]


async def test_our_own_cancellation_reaches_the_summarizer() -> None:
    """Who gives up a turn gives up the call for its summary: it may clean up before we are gone."""
    ended = asyncio.Event()
    begun = asyncio.Event()

    async def waiting(messages: list[Message]) -> str:
        begun.set()
        try:
            await asyncio.sleep(3_600)
        finally:
            ended.set()
        return MARK

    config = CompressorConfig(model="gpt-4o", context_window=3_000, protect_last_n_tokens=300)
    ours = ContextCompressor(config, summarizer=waiting)
    turn = asyncio.ensure_future(ours.compress(session(9)))
    await begun.wait()
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    await asyncio.wait_for(ended.wait(), 10)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [("<think>" * 140_000, "empty"), ("<think></reasoning>" * 50_000, "empty"),
     ("## Done\n" + "word " * 250_000, "too long")],
    ids=["opened", "crossed", "endless"],
)  # fmt: skip
def test_an_answer_without_end_is_read_once(answer: str, reason: str) -> None:
    """A megabyte of tags takes no longer than a megabyte of words."""
    with pytest.raises(SummaryRejected, match=reason):
        accept(SummaryReply(answer), [])


async def test_half_a_character_in_a_summary_ends_no_session() -> None:
    """What a model writes can be sent: both halves of a character are one, a lone one is marked."""

    async def odd(messages: list[Message]) -> str:
        return "## Done\nAll modules \ud83d\ude00 are in order \udc80."

    result, reasons = await compressed(odd)
    assert (result.summary_method, reasons) == ("model", [])
    sent = "".join(map(text_of, result.messages))
    assert "modules \U0001f600 are in order \ufffd" in sent
    assert sent.encode("utf-8")


BLOCK = re.compile(r"<(think|reasoning|analysis)>.*?</\1\s*>", re.DOTALL | re.I)
REST = re.compile(r"<(think|reasoning|analysis)>.*", re.DOTALL | re.I)
BEFORE = re.compile(r"\A.*?</(think|reasoning)\s*>", re.DOTALL | re.I)


@given(
    st.lists(
        st.sampled_from(
            "<think> </think> </THINK > <reasoning> </reasoning> <analysis> </analysis> a b".split(
                " "
            )
        )
    )
)
def test_reasoning_is_left_out_as_the_plain_way_leaves_it_out(pieces: list[str]) -> None:
    """Closed blocks, then what is not closed, then what was not opened."""
    text = "".join(pieces)
    plain = BEFORE.sub("", REST.sub("", BLOCK.sub("", text))).strip()
    try:
        told = accept(SummaryReply(text), [])
    except SummaryRejected:
        told = ""
    assert told == (plain if re.search(r"\w", plain) else "")
