"""Summarizers with odd answers, odd exceptions and no end."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from praison_compressor import CompressorConfig, ContextCompressor, Event, SummaryRejected
from praison_compressor import SummaryReply as Reply
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
GOOD = "## Done\nThe modules so far are in order."


class Careless:
    """Of the protocol, but for what it gives: it would be billed for nothing at every turn."""

    async def summarize(self, messages: list[Message], **given: Any) -> str:
        return f"## Done\n{MARK}"


class Fatal(BaseException):
    """What is no Exception, as PyO3's panics are none."""


def giving(value: Any) -> Any:
    """A summarizer that gives the value, or raises it."""

    async def model(messages: list[Message]) -> Any:
        if isinstance(value, BaseException):
            raise value
        return value

    return model


def raising(error: BaseException, how: str) -> Any:
    """A summarizer that ends with the error: a coroutine, or a plain function."""

    async def later(messages: list[Message]) -> str:
        await asyncio.sleep(0)
        raise error

    def plain(messages: list[Message]) -> str:
        raise error

    return {"later": later, "plain": plain}[how]


async def compressed(summarizer: Any) -> tuple[Any, list[Event]]:
    """Return the result with that summarizer, and the events."""
    events: list[Event] = []
    ours = ContextCompressor(CONFIG, summarizer=summarizer, on_event=events.append)
    result = await ours.compress(session(9), session_id="s")
    assert check(result.messages) == []
    stored = [entry.segment for entry in ours.store.open("default", "s").entries]
    assert MARK not in "".join(text_of(segment.rendered) for segment in stored)
    return result, events


async def assert_static(summarizer: Any, reason: str) -> None:
    """The fallback stands in, and one event says why."""
    result, events = await compressed(summarizer)
    reasons = [str(e.data["reason"]) for e in events if e.name == "fell_back"]
    assert result.summary_method == "static"
    assert [reason in said for said in reasons] == [True]


@pytest.mark.parametrize(
    ("summarizer", "reason"),
    [
        *(
            (giving(value), "the summarizer gave")
            for value in (5, MARK.encode(), {"content": MARK}, Reply([MARK]))  # type: ignore[arg-type]
        ),
        (Careless(), "it gave str, not a SummaryReply"),
        # A time limit inside a user's function can leak as a cancellation.
        (giving(asyncio.CancelledError()), "not by us"),
    ],
)
async def test_what_is_no_text_is_no_summary(summarizer: Any, reason: str) -> None:
    """An answer that is no text is replaced by the static text, with the reason."""
    await assert_static(summarizer, reason)


WAYS = pytest.mark.parametrize("how", ["later", "plain"])


@WAYS
@pytest.mark.parametrize("error", [SystemExit(3), GeneratorExit(), Fatal("core")], ids=repr)
async def test_a_summarizer_that_ends_more_than_itself_ends_no_turn(
    error: BaseException, how: str
) -> None:
    """SystemExit and its like from a summarizer give the static text."""
    await assert_static(raising(error, how), type(error).__name__)


@WAYS
def test_what_the_person_at_the_keyboard_wants_passes(how: str) -> None:
    """Ctrl+C while a summary is written ends the program."""
    ours = ContextCompressor(CONFIG, summarizer=raising(KeyboardInterrupt(), how))
    with pytest.raises(KeyboardInterrupt):
        ours.compress_sync(session(9))


@pytest.mark.parametrize(("is_hidden", "kind"), [(True, "provider"), (False, "network")])
async def test_what_an_error_hides_is_not_its_cause(is_hidden: bool, kind: str) -> None:
    """`raise ... from None` hides the context from the kind of a failure."""
    error = ValueError("the prompt has no template")
    error.__context__ = ConnectionError("the cache is gone")
    error.__suppress_context__ = is_hidden  # as `from None` sets it
    _, events = await compressed(giving(error))
    assert [e.data["error"] for e in events if e.name == "model_answered"] == [kind]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [("<think>" * 140_000, "empty"), ("<think></reasoning>" * 50_000, "empty"),
     ("## Done\n" + "word " * 250_000, "too long")],
    ids=["opened", "crossed", "endless"],
)  # fmt: skip
def test_an_answer_without_end_is_read_once(answer: str, reason: str) -> None:
    """A megabyte of tags is refused in linear time."""
    with pytest.raises(SummaryRejected, match=reason):
        accept(Reply(answer), [])


async def test_half_a_character_in_a_summary_ends_no_session() -> None:
    """Surrogates in a summary are paired or replaced."""
    given = "## Done\nAll modules \ud83d\ude00 are in order \udc80."
    result, _ = await compressed(giving(given))
    assert result.summary_method == "model"
    sent = "".join(map(text_of, result.messages))
    assert "modules \U0001f600 are in order \ufffd" in sent
    assert sent.encode("utf-8")
