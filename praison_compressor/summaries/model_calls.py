"""Ask one model until a text is accepted; learn its window."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any, TypeVar, get_args

from ..concurrency import run_for
from ..config import CompressorConfig
from ..errors import FailureKind, SummarizerUnavailable, SummaryError, SummaryRejected
from ..events import Event
from ..ledger.segments import Usage
from ..messages import Message
from ..tokens.counter import TokenCounter
from ..tokens.learned import SummarizerWindows, taught_window
from ..tokens.refusals import SMALLEST_WINDOW, error_text, overflow_of
from .litellm_client import failure_of, retry_after
from .prompts import SummaryRequest
from .protocol import SummaryReply
from .validation import accept

logger = logging.getLogger(__name__)

T = TypeVar("T")

MOST_REQUESTS = 16
"""One compression makes at most this number of requests; retries count too."""
MOST_REJECTED_ANSWERS = 2
"""After this number of refused answers a model is not asked again."""

_RETRIED_KINDS = frozenset({"network", "quota", "provider"})
"""A timeout is not retried: it has taken all of `timeout_seconds`."""


@dataclass(frozen=True)
class Tally:
    """Number and cost of one compression's requests."""

    calls: int = 0
    usage: Usage = field(default_factory=Usage)
    model: str | None = None
    """The model that answered last."""

    def __add__(self, other: Tally) -> Tally:
        model = other.model or self.model
        return Tally(self.calls + other.calls, self.usage + other.usage, model)


def window_too_small(fact: str) -> SummarizerUnavailable:
    """Return the error of a too small window."""
    remedy = "name an auxiliary model with a larger window"
    return SummarizerUnavailable(f"{fact}; {remedy}", kind="context")


class NoUsableAnswer(Exception):
    """No text was accepted; `tally` counts all requests."""

    def __init__(self, error: SummaryError, tally: Tally) -> None:
        self.error = error
        self.tally = tally
        super().__init__(str(error))


@dataclass(frozen=True)
class ModelCaller:
    """Ask one model for the texts of one summary."""

    config: CompressorConfig
    summarizer: Any
    emit: Callable[[Event], None]
    session_id: str
    summarizer_windows: SummarizerWindows
    model: str | None = None
    """The model to ask; None: the summarizer's own."""

    @property
    def model_name(self) -> str | None:
        """The name of the model to ask; None: unknown."""
        return self.model or _read_attribute(self.summarizer, "model", str)

    @property
    def window(self) -> int | None:
        """The window in tokens; None: no known limit."""
        windows = (self.summarizer_windows.of(self.model_name), self._stated_window())
        return min((window for window in windows if window is not None), default=None)

    def _stated_window(self) -> int | None:
        window = _read_attribute(self.summarizer, "window", int)
        window_for = _read_attribute(self.summarizer, "window_for", object)
        if callable(window_for):
            with suppress(Exception):
                window = window_for(self.model)
        # The type is checked: a user's summarizer may use these names for anything.
        return window if type(window) is int and window > 0 else None

    async def ask(
        self, request: SummaryRequest, tokens: TokenCounter, max_tokens: int, tally: Tally
    ) -> tuple[str, Tally]:
        """Return one accepted text within `max_tokens`, and the new tally.

        Raises:
            NoUsableAnswer: all tries failed.
        """
        rejected = failed = 0
        while tally.calls < MOST_REQUESTS:
            tally += Tally(calls=1)
            try:
                reply = await self._reply(request.messages, max_tokens)
                tally += Tally(usage=reply.usage, model=reply.model)
                return await asyncio.to_thread(accept, reply, request), tally
            except SummaryRejected as error:
                rejected += 1
                if rejected >= MOST_REJECTED_ANSWERS:
                    raise NoUsableAnswer(error, tally) from error
            except SummarizerUnavailable as error:
                failed += 1
                if error.kind == "context":
                    self._learn_window(error, tokens.messages(request.messages), max_tokens)
                wait = self._seconds_to_wait(error, failed)
                if wait is None:
                    raise NoUsableAnswer(error, tally) from error
                await asyncio.sleep(wait)
        spent = f"one compression may make {MOST_REQUESTS} requests, and all are spent"
        raise NoUsableAnswer(window_too_small(spent), tally)

    def _learn_window(self, error: Exception, sent: int, max_tokens: int) -> None:
        refusal = overflow_of(error, sent)
        window = 0 if refusal is None else taught_window(refusal, sent, max_tokens)
        if window < SMALLEST_WINDOW:
            return
        name = self.model_name
        self.summarizer_windows.learn(name, window)
        logger.warning(
            "%s refused a request of %d tokens as too long; its window counts as %d tokens now",
            name or "the auxiliary model",
            sent,
            window,
        )

    def _seconds_to_wait(self, error: SummarizerUnavailable, failed: int) -> float | None:
        if error.kind not in _RETRIED_KINDS or failed > self.config.summary_max_retries:
            return None
        wait = error.retry_after if error.retry_after is not None else 0.5 * 2**failed
        return None if wait > self.config.timeout_seconds else wait

    async def _reply(self, messages: list[Message], max_tokens: int) -> SummaryReply:
        """Return one answer; emit an event before and after it.

        Raises:
            SummaryError: no answer came.
        """
        ready = _read_attribute(self.summarizer, "ready", object)
        if callable(ready):
            await _await_work(ready, STARTUP_SECONDS)
        model = self.model_name
        self.emit(Event("model_called", self.session_id, {"model": model}))
        began = time.monotonic()
        try:
            call = partial(self._call_summarizer, messages, max_tokens)
            reply = await _await_work(call, self.config.timeout_seconds)
            answer: dict[str, Any] = {**asdict(reply.usage), "model": reply.model or model}
        except BaseException as error:
            answer = {"model": model, "error": _error_type(error)}
            raise
        finally:
            timed = {**answer, "seconds": time.monotonic() - began}
            self.emit(Event("model_answered", self.session_id, timed))
        return reply

    async def _call_summarizer(self, messages: list[Message], max_tokens: int) -> SummaryReply:
        reply = await self.summarizer.summarize(
            # The summarizer gets copies: a user's summarizer may edit the messages.
            [dict(message) for message in messages],
            max_tokens=max_tokens,
            model=self.model,
            timeout_seconds=self.config.timeout_seconds,
        )
        return _check_reply(reply)


# -------------------------------------------------------------- a user's own summarizer

FAILURE_KINDS: tuple[FailureKind, ...] = get_args(FailureKind)

STARTUP_SECONDS = 60.0
"""Longest wait for `ready` before the model's timeout begins."""


def _read_attribute(summarizer: Any, name: str, kind: type[T] | tuple[type[T], ...]) -> T | None:
    with suppress(Exception):
        value = getattr(summarizer, name, None)
        return value if isinstance(value, kind) and not isinstance(value, bool) else None
    return None


def _check_reply(reply: Any) -> SummaryReply:
    if not isinstance(reply, SummaryReply):
        raise TypeError(f"it gave {type(reply).__name__}, not a SummaryReply")
    if not isinstance(reply.usage, Usage):
        raise TypeError(f"its usage is {type(reply.usage).__name__}, not Usage")
    if not isinstance(reply.model, str | None):
        raise TypeError(f"its model is {type(reply.model).__name__}, not str")
    return replace(reply, usage=Usage() + reply.usage)  # raises TypeError if a count is a text


async def _await_work(work: Callable[[], Awaitable[T]], seconds: float) -> T:
    """Await a summarizer's work for at most `seconds`.

    Raises:
        SummaryError: the work failed, was cancelled or took longer.
    """
    task = await run_for(_catch_errors(work), seconds)
    if task is None:
        raise SummarizerUnavailable(
            f"no answer in {seconds:g} s; raise timeout_seconds or use a faster model",
            kind="timeout",
        )
    if task.cancelled():
        raise SummarizerUnavailable("the summarizer was cancelled, and not by us")
    result = task.result()
    if isinstance(result, SummaryError):
        raise result
    return result


async def _catch_errors(work: Callable[[], Awaitable[T]]) -> T | SummaryError:
    try:
        return await work()
    except (asyncio.CancelledError, KeyboardInterrupt):
        raise
    except BaseException as error:
        # The error is returned: a raised SystemExit would end the event loop.
        return _to_summary_error(error)


def _error_type(error: BaseException) -> str:
    return error.kind if isinstance(error, SummarizerUnavailable) else type(error).__name__


def _to_summary_error(error: BaseException) -> SummaryError:
    """Return a SummaryError whose attributes have the right types."""
    if type(error) is SummaryRejected:
        return error
    if isinstance(error, SummarizerUnavailable):
        name = _read_attribute(error, "kind", str)
        kind: FailureKind = next((k for k in FAILURE_KINDS if k == name), "provider")
        wait = _read_attribute(error, "retry_after", (int, float))
        sound = SummarizerUnavailable(error_text(error), kind=kind, retry_after=wait)
    else:
        text = f"{type(error).__name__}: {error_text(error)}"
        sound = SummarizerUnavailable(text, kind=failure_of(error), retry_after=retry_after(error))
    sound.__cause__ = error
    return sound
