"""Summarizers that misbehave: a valid view, the right fallback, nothing bad stored, one bill."""

import asyncio
import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from praison_compressor import (
    CompressorConfig,
    ContextCompressor,
    Event,
    Store,
    SummarizerUnavailable,
    SummaryRejected,
    SummaryReply,
    Usage,
)
from praison_compressor.messages import Message, text_of
from praison_compressor.summaries.litellm_client import LiteLLMSummarizer
from praison_compressor.summaries.prompts import SummaryRequest
from praison_compressor.summaries.validation import accept
from praison_compressor.testing import Asked, Failure, Reply
from tests.helpers.compressing import compressor
from tests.helpers.misbehaving import BEHAVIOURS, Misbehaving
from tests.helpers.transcripts import coding_turns, find_repairs
from tests.hostile.invariants import refusals

POISON = "POISONED-TEXT"
"""In every bad answer that has words at all: it must turn up nowhere."""
GOOD = "## Done\nThe modules so far are in order, V-0003 among them."


@dataclass(frozen=True)
class Fault:
    """One way to misbehave: what is answered, and what should come of it."""

    name: str
    answer: Any
    """The text of a bad reply, a reply, or the name of a behaviour."""
    reason: str
    """Words in the event; empty where no event is due."""
    method: str = "static"
    """What stands in the view when there is no other model to ask."""
    calls: int = 2
    """Requests that the faulty model gets before it is left alone."""
    retries: int = 0
    seconds: float = 60.0
    """For one call: short only where nothing comes, for a busy machine is slow to answer too."""

    def answerer(self) -> Callable[[Asked], Any]:
        """Return a model that answers so, from the beginning."""
        if self.method == "model":  # the failure the first time, a good answer ever after
            answers = [self.answer]
            return lambda asked: answers.pop() if answers else Reply(GOOD)
        if isinstance(self.answer, str) and self.answer in BEHAVIOURS:
            return Misbehaving(self.answer, text=f"{POISON} the earlier work went on.")
        reply = Reply(self.answer) if isinstance(self.answer, str) else self.answer
        return lambda asked: reply


LATE = Reply(f"{POISON} too late", delay_seconds=4)
LIMITED = Failure(429, "Rate limit reached.", "tokens", retry_after_seconds=0.02)
FAULTS = (
    Fault("timeout", LATE, "timeout_seconds", calls=1, seconds=2),
    Fault("connection reset", "reset", "aux:", calls=1),
    Fault("429 with retry-after, then well", LIMITED, "", "model", 2, 1),
    Fault("429 with retry-after, for ever", "rate_limited", "Rate limit", "static", 2, 1),
    # Refused whole, and then the first part, alone, at each of three smaller sizes.
    Fault("400 context length", "context", "maximum context length", calls=4),
    Fault("a refusal in a field of its own", "refusal_field", "refusal"),
    Fault("cut off by length", "cut_off", "cut off"),
)


@pytest.fixture(params=FAULTS, ids=lambda fault: fault.name)
def fault(request):
    return request.param


@pytest.fixture
def ours(fault, provider):
    """Return a maker of compressors whose model misbehaves."""
    provider.set_window(128_000)
    provider.route("aux", fault.answerer())
    provider.route("backup", lambda asked: Reply(GOOD))
    aux = LiteLLMSummarizer("aux", api_base=provider.base_url, context_window=128_000)
    # litellm's first call loads modules for seconds, which are not the model's.
    hello = [{"role": "user", "content": "hello"}]
    asyncio.run(aux.summarize(hello, max_tokens=100, model="backup"))
    limits = {"summary_max_retries": fault.retries, "timeout_seconds": fault.seconds}
    return partial(compressor, aux, auxiliary_model="aux", **limits)


def are_valid(views: list[list[Message]]) -> bool:
    """Return whether every view is accepted by the providers."""
    return all(find_repairs(view) == refusals(view) == [] for view in views)


def poisoned(store: Store) -> list[str]:
    """Return the stored texts that have a bad answer's words."""
    texts = [text_of(entry.segment.rendered) for entry in store.open("default", "s").entries]
    return [text for text in texts if POISON in text]


def test_a_summarizer_that_misbehaves_gives_a_static_text(fault, ours, provider):
    """A misbehaving model is given up for a static text, with its reason."""
    events: list[Event] = []
    alone = ours(on_event=events.append)
    first = alone.compress_sync(coding_turns(20), session_id="s")
    calls = len(provider.for_model("aux"))
    # Without `force`: a forced call asks a resting model again.
    later = alone.compress_sync(coding_turns(24), session_id="s")
    reasons = [str(event.data["reason"]) for event in events if event.name == "fell_back"]
    assert (first.summary_method, calls) == (fault.method, fault.calls)
    assert len(provider.for_model("aux")) - calls == (fault.method == "model")
    assert fault.reason.lower() in " ".join(reasons[:1]).lower()
    assert bool(reasons) == bool(fault.reason)
    assert later.written
    assert poisoned(alone.store) == []
    assert are_valid([first.messages, later.messages])


def test_the_next_model_writes_for_one_that_misbehaves(fault, ours):
    """The next model's summary takes the place of a misbehaving one's."""
    helped = ours(fallback_models=("backup",))
    result = helped.compress_sync(coding_turns(20), session_id="s")
    by = "aux" if fault.method == "model" else "backup"
    assert (result.summary_method, result.segments[0].model) == ("model", by)
    assert poisoned(helped.store) == []
    assert are_valid([result.messages])


# ---------------------------------------------------------------- odd answers and exceptions

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
    """A user's summarizer whose attributes, or replies, mean something else."""

    def __init__(self, reply: Any, **attributes: Any) -> None:
        vars(self).update(attributes)
        self._reply = reply

    async def summarize(self, messages: list[Message], **given: Any) -> Any:
        return self._reply


class Unreadable:
    """A value whose attributes and text cannot be read."""

    def __getattr__(self, name: str) -> object:
        raise RuntimeError(name)

    def __str__(self) -> str:
        raise RuntimeError("no text")


class Speechless(SummarizerUnavailable):
    """A user's error of ours, whose attributes have other types."""

    def __init__(self, **attributes: object) -> None:
        vars(self).update(attributes)

    __str__ = Unreadable.__str__


class Silent(Exception):
    """An error without a text."""

    __str__ = Unreadable.__str__


class Fatal(BaseException):
    """What is no Exception, as PyO3's panics are none."""


def giving(value: Any) -> Any:
    """Return a summarizer that gives the value, or raises it, after a while."""

    async def model(messages: list[Message]) -> Any:
        await asyncio.sleep(0)
        if isinstance(value, BaseException):
            raise value
        return value

    return model


def raising_at_once(error: BaseException) -> Any:
    """Return a plain function that raises the error."""

    def model(messages: list[Message]) -> str:
        raise error

    return model


async def compressed(summarizer: Any) -> tuple[Any, list[Event]]:
    """Return the result with that summarizer, and the events."""
    events: list[Event] = []
    ours = ContextCompressor(CONFIG, summarizer=summarizer, on_event=events.append)
    result = await ours.compress(coding_turns(9), session_id="s")
    assert find_repairs(result.messages) == []
    stored = [entry.segment for entry in ours.store.open("default", "s").entries]
    assert MARK not in "".join(text_of(segment.rendered) for segment in stored)
    return result, events


async def assert_static(summarizer: Any, reason: str) -> None:
    """Assert that the fallback stands in, and that one event says why."""
    result, events = await compressed(summarizer)
    reasons = [str(e.data["reason"]) for e in events if e.name == "fell_back"]
    assert result.summary_method == "static"
    assert [reason in said for said in reasons] == [True]


ODD_ANSWERS: dict[str, tuple[Any, str]] = {
    **{
        f"gives {value!r}"[:30]: (giving(value), "the summarizer gave")
        for value in (5, MARK.encode(), {"content": MARK}, SummaryReply([MARK]))
    },
    "text: bytes": (giving(SummaryReply(MARK.encode())), "the summarizer gave"),
    "model: a number": (giving(SummaryReply(GOOD, model=7)), "model"),
    "usage: a dictionary": (giving(SummaryReply(GOOD, {"prompt_tokens": 5})), "usage is dict"),
    "usage: nothing": (giving(SummaryReply(GOOD, None)), "usage is NoneType"),
    "usage: of texts": (giving(SummaryReply(GOOD, Usage(prompt_tokens="5"))), "TypeError"),
    "cost: of text": (giving(SummaryReply(GOOD, Usage(cost="$ 1"))), "TypeError"),
    "a text of the protocol": (Odd(GOOD), "it gave str, not a SummaryReply"),
    # A time limit inside a user's function can leak as a cancellation.
    "cancelled": (giving(asyncio.CancelledError()), "not by us"),
    "an error without a text": (giving(Silent()), "Silent"),
    "an error of ours without a text": (giving(Speechless()), ""),
    "an error of ours, of a list": (giving(Speechless(kind=["auth"], retry_after="soon")), ""),
}


@pytest.mark.parametrize("name", ODD_ANSWERS)
async def test_an_answer_that_is_no_text_is_no_summary(name):
    """An answer that is no text is replaced by the static text, with the reason."""
    await assert_static(*ODD_ANSWERS[name])


ODD_ATTRIBUTES: dict[str, dict[str, Any]] = {
    "window: text": {"window": "128k"},
    "window: a function": {"window": lambda: 5},
    "window: negative": {"window": -1},
    "window: True": {"window": True},
    "window: not a number": {"window": float("nan")},
    "window_for: raises": {"window_for": lambda model: 1 / 0},
    "window_for: a number": {"window_for": 5},
    "window_for: no argument": {"window_for": lambda: 5},
    "window_for: text": {"window_for": lambda model: "8k"},
    "model: an object": {"model": object()},
    "model: unreadable": {"model": Unreadable()},
    "ready: True": {"ready": True},
}


@pytest.mark.parametrize("name", ODD_ATTRIBUTES)
async def test_attributes_of_other_types_are_ignored(name):
    """A user's summarizer may have our attributes' names with other types."""
    result, _ = await compressed(Odd(SummaryReply(GOOD), **ODD_ATTRIBUTES[name]))
    assert result.summary_method == "model"


WAYS = pytest.mark.parametrize("raising", [giving, raising_at_once])


@WAYS
@pytest.mark.parametrize("error", [SystemExit(3), GeneratorExit(), Fatal("core")], ids=repr)
async def test_a_summarizer_that_ends_more_than_itself_ends_no_turn(error, raising):
    """SystemExit and its like from a summarizer give the static text."""
    await assert_static(raising(error), type(error).__name__)


@WAYS
def test_ctrl_c_while_a_summary_is_written_ends_the_program(raising):
    """Ctrl+C while a summary is written ends the program."""
    ours = ContextCompressor(CONFIG, summarizer=raising(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        ours.compress_sync(coding_turns(9))


@pytest.mark.parametrize(("is_hidden", "kind"), [(True, "provider"), (False, "network")])
async def test_a_hidden_context_is_not_the_kind_of_a_failure(is_hidden, kind):
    """`raise ... from None` hides the context from the kind of a failure."""
    error = ValueError("the prompt has no template")
    error.__context__ = ConnectionError("the cache is gone")
    error.__suppress_context__ = is_hidden  # as `from None` sets it
    _, events = await compressed(giving(error))
    assert [e.data["error"] for e in events if e.name == "model_answered"] == [kind]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        pytest.param("<think>" * 140_000, "empty", id="opened"),
        pytest.param("<think></reasoning>" * 50_000, "empty", id="crossed"),
        pytest.param("## Done\n" + "word " * 250_000, "too long", id="endless"),
    ],
)
def test_an_answer_without_end_is_read_once(answer, reason):
    """A megabyte of tags is refused in linear time."""
    with pytest.raises(SummaryRejected, match=reason):
        accept(SummaryReply(answer), SummaryRequest([]))


async def test_half_a_character_in_a_summary_ends_no_session():
    """Surrogates in a summary are paired or replaced."""
    given = "## Done\nAll modules \ud83d\ude00 are in order \udc80."
    result, _ = await compressed(giving(given))
    assert result.summary_method == "model"
    sent = "".join(map(text_of, result.messages))
    assert "modules \U0001f600 are in order \ufffd" in sent
    assert sent.encode("utf-8")


def swallowing(caught: type[BaseException]) -> Any:
    """Return a summarizer that catches each of these and never ends."""

    async def model(messages: Any) -> str:
        while True:
            with contextlib.suppress(caught):
                await asyncio.sleep(3_600)

    return model


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("caught", [asyncio.CancelledError, BaseException])
def test_a_summarizer_that_ignores_cancelling_delays_no_turn(caught):
    """Code without a loop gets the static text after a bounded wait."""
    began = time.monotonic()
    result = ContextCompressor(CONFIG, summarizer=swallowing(caught)).compress_sync(coding_turns(9))
    assert result.summary_method == "static"
    assert time.monotonic() - began < 20


def test_a_loop_ends_that_had_an_endless_summarizer():
    """`asyncio.run` ends, for the abandoned summarizer's task has ended."""
    ours = ContextCompressor(CONFIG, summarizer=swallowing(asyncio.CancelledError))
    began = time.monotonic()
    assert asyncio.run(ours.compress(coding_turns(9))).summary_method == "static"
    assert time.monotonic() - began < 20
