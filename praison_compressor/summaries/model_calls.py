"""Ask the auxiliary model until a text is accepted; pause failing models."""

from __future__ import annotations

import asyncio
import logging
import math
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

from ..concurrency import renew_after_fork, run_for
from ..config import CompressorConfig
from ..errors import SummarizerUnavailable, SummaryError, SummaryRejected
from ..events import Event
from ..ledger.segments import Usage
from ..messages import Message
from ..tokens.counter import TokenCounter
from ..tokens.refusals import overflow_of
from .litellm_client import REFUSED, error_text, failure_of, retry_after
from .prompts import SummaryRequest
from .protocol import SummaryReply
from .validation import accept

logger = logging.getLogger(__name__)

T = TypeVar("T")

MOST_CALLS = 16  # requests for one compression, refused and repeated ones included
REJECTED_TRIES = 2  # texts asked of one model: a second one may be good

_RETRIED_KINDS = frozenset({"network", "quota", "provider"})
"""Kinds of failure worth a retry. A timeout is not: it has used the whole time."""


@dataclass(frozen=True)
class Tally:
    """Number and cost of one compression's requests, and a learned window."""

    calls: int = 0
    usage: Usage = field(default_factory=Usage)
    model: str | None = None
    """The newest answer's model."""
    window: int | None = None
    """The window that the newest refusal teaches."""

    def __add__(self, other: Tally) -> Tally:
        model, window = other.model or self.model, other.window or self.window
        return Tally(self.calls + other.calls, self.usage + other.usage, model, window)


class NoUsableAnswer(Exception):
    """Raised when no text was accepted, with the tally of all requests."""

    def __init__(self, error: SummaryError, spent: Tally) -> None:
        self.error = error
        self.spent = spent
        super().__init__(str(error))


@dataclass(frozen=True)
class ModelCaller:
    """Ask one model for the texts of one summary."""

    config: CompressorConfig
    summarizer: Any
    emit: Callable[[Event], None]
    session_id: str
    model: str | None = None
    """The model to ask; None means the summarizer's own."""
    learned_window: int | None = None
    """The window that the model's refusals teach; None before the first."""

    @property
    def model_name(self) -> str | None:
        """Return the name of the model to ask, or None if unknown."""
        return self.model or _read_attribute(self.summarizer, "model", str)

    @property
    def window(self) -> int | None:
        """Return the window in tokens, or None for any number."""
        listed = _window_stated_by(self.summarizer, self.model)
        return min(
            (window for window in (self.learned_window, listed) if window is not None),
            default=None,
        )

    async def text(
        self, request: SummaryRequest, tokens: TokenCounter, max_tokens: int, spent: Tally
    ) -> tuple[str, Tally]:
        """Return one accepted text within `max_tokens`, and the new tally.

        A refusal for length teaches the model's window, counted by `tokens`.

        Raises:
            NoUsableAnswer: the last failure, whose kind decides the number of tries.
        """
        rejected = failed = 0
        while spent.calls < MOST_CALLS:
            spent += Tally(calls=1)
            try:
                reply = await self._answer(request.messages, max_tokens)
                spent += Tally(usage=reply.usage, model=reply.model)
                return await asyncio.to_thread(accept, reply, request), spent
            except SummaryRejected as error:
                rejected += 1
                if rejected >= REJECTED_TRIES:
                    raise NoUsableAnswer(error, spent) from error
            except SummarizerUnavailable as error:
                failed += 1
                sent = tokens.messages(request.messages) if error.kind == "context" else 0
                spent += Tally(window=self._learn_window(error, sent, max_tokens))
                wait = self._wait(error, failed)
                if wait is None:
                    raise NoUsableAnswer(error, spent) from error
                await asyncio.sleep(wait)
        exhausted = SummarizerUnavailable(
            f"one compression may make {MOST_CALLS} requests, and all are spent; name an "
            "auxiliary model with a larger window",
            kind="context",
        )
        raise NoUsableAnswer(exhausted, spent)

    def _learn_window(self, error: Exception, sent: int, max_tokens: int) -> int | None:
        window = learn_window(error, self.learned_window, sent, max_tokens) if sent else None
        if window is not None:
            logger.warning(
                "%s refused a request of %d tokens as too long; its window counts as %d tokens now",
                self.model_name or "the auxiliary model",
                sent,
                window,
            )
        return window

    def _wait(self, error: SummarizerUnavailable, failed: int) -> float | None:
        """Return the seconds before the next try, or None without one."""
        if error.kind not in _RETRIED_KINDS or failed > self.config.summary_max_retries:
            return None
        wait = error.retry_after if error.retry_after is not None else 0.5 * 2**failed
        return None if wait > self.config.timeout_seconds else wait

    async def _answer(self, messages: list[Message], max_tokens: int) -> SummaryReply:
        """Return one answer; emit an event before and after it.

        Raises:
            SummaryError: no answer came.
        """
        ready = _read_attribute(self.summarizer, "ready", object)
        if callable(ready):
            await _await_work(ready, STARTUP_SECONDS)
        data: dict[str, Any] = {"model": self.model_name}
        self.emit(Event("model_called", self.session_id, data))
        began = time.monotonic()
        try:
            reply = await _await_work(
                partial(self._ask, messages, max_tokens), self.config.timeout_seconds
            )
            data = {**asdict(reply.usage), "model": reply.model or self.model_name}
            return reply
        except BaseException as error:
            data = {**data, "error": getattr(error, "kind", type(error).__name__)}
            raise
        finally:
            data = {**data, "seconds": time.monotonic() - began}
            self.emit(Event("model_answered", self.session_id, data))

    async def _ask(self, messages: list[Message], max_tokens: int) -> SummaryReply:
        """Return the summarizer's answer, its fields checked."""
        return _check_reply(
            await self.summarizer.summarize(
                # Copies, since a user's summarizer may edit them.
                [dict(message) for message in messages],
                max_tokens=max_tokens,
                model=self.model,
                timeout_seconds=self.config.timeout_seconds,
            )
        )


# -------------------------------------------------------------- a user's own summarizer

STARTUP_SECONDS = 60.0  # seconds in which a summarizer gets ready, outside the model's timeout


def _read_attribute(summarizer: Any, name: str, kind: type[T] | tuple[type[T], ...]) -> T | None:
    """Return an attribute, or None if unreadable or of another type."""
    with suppress(Exception):
        value = getattr(summarizer, name, None)
        return value if isinstance(value, kind) and not isinstance(value, bool) else None
    return None


def _window_stated_by(summarizer: Any, model: str | None) -> int | None:
    """Return the window that a summarizer states, or None."""
    window = _read_attribute(summarizer, "window", int)
    ask = _read_attribute(summarizer, "window_for", object)
    if callable(ask):
        with suppress(Exception):
            window = ask(model)
    # A user's summarizer may use both names for something else. True is no window.
    return window if type(window) is int and window > 0 else None


def _check_reply(reply: Any) -> SummaryReply:
    """Return the reply, or raise TypeError for a field of another type."""
    if not isinstance(reply, SummaryReply):
        raise TypeError(f"it gave {type(reply).__name__}, not a SummaryReply")
    for name, kinds in (("usage", (Usage,)), ("model", (str, type(None)))):
        if not isinstance(value := getattr(reply, name), kinds):
            found, expected = type(value).__name__, kinds[0].__name__
            raise TypeError(f"its {name} is a {found}, not a {expected}")
    return replace(reply, usage=Usage() + reply.usage)  # the sum raises TypeError for texts


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
    ended = task.result()
    if isinstance(ended, SummaryError):
        raise ended
    return ended


async def _catch_errors(work: Callable[[], Awaitable[T]]) -> T | SummaryError:
    """Do the work; return its exception as a SummaryError of ours."""
    try:
        return await work()
    except (asyncio.CancelledError, KeyboardInterrupt):
        raise
    except BaseException as error:
        # Returned, not raised: SystemExit would end the event loop, and a closed coroutine may not
        # raise another error.
        return _to_summary_error(error)


def _to_summary_error(error: BaseException) -> SummaryError:
    """Return an exception as a SummaryError with attributes of sound types."""
    if type(error) is SummaryRejected:
        return error
    if isinstance(error, SummarizerUnavailable):
        kind = _read_attribute(error, "kind", str)
        wait = _read_attribute(error, "retry_after", (int, float))
        ours = SummarizerUnavailable(error_text(error), kind=kind or "provider", retry_after=wait)
    else:
        text = f"{type(error).__name__}: {error_text(error)}"
        ours = SummarizerUnavailable(text, kind=failure_of(error), retry_after=retry_after(error))
    ours.__cause__ = error
    return ours


# -------------------------------------------------------------- windows

LEAST_LEARNED_WINDOW = 2_000  # tokens; a smaller window has no room for a part worth its call


def learn_window(
    error: Exception, learned_window: int | None, sent: int, max_tokens: int
) -> int | None:
    """Return the smaller window that a refusal for length teaches, or None.

    It is the refusal's number if that is below the request and the learned window, else half of the
    request. `sent` are the request's tokens, `max_tokens` those of its answer.
    """
    refused = overflow_of(error)
    if refused is None:
        return None
    whole = sent + max_tokens
    before = whole if learned_window is None else learned_window
    named, half = refused.window, sent // 2 + max_tokens
    window = named if named is not None and named < min(before, whole) else half
    return window if LEAST_LEARNED_WINDOW <= window < before else None


# -------------------------------------------------------------- failing models

COOLDOWNS = (60.0, 300.0, 900.0)
"""Seconds after the first, second and every further failure in a row."""

FIRST_COOLDOWN = {"quota": 1, "auth": 2}
"""Kind of failure → its first index in COOLDOWNS; other kinds begin at 0."""

LASTING_KINDS = {"auth", REFUSED}
"""Kinds that end only with time; a longer segment does not retry the model earlier."""

RETRY_GROWTH = 1.5  # a segment longer by this factor is worth a try after other kinds

MAX_FAILURES = 1_024
"""Failures held; the oldest are forgotten, so that a long-lived process does not grow."""


class CircuitBreaker:
    """A circuit breaker per model and session; thread-safe. `clock` returns seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = renew_after_fork(threading.Lock())
        # (clock when the cooldown ends, segment tokens that end it earlier, index in COOLDOWNS)
        self._failures: dict[tuple[str, str | None], tuple[float, float, int]] = {}

    def allows(self, session_id: str, model: str | None, tokens: int) -> bool:
        """Return whether the model may be asked for a segment of `tokens`."""
        until, grown, _ = self._failures.get((session_id, model), (0.0, 0, 0))
        return self._clock() >= until or tokens >= grown

    def record_failure(self, session_id: str, model: str | None, tokens: int, kind: str) -> float:
        """Record a failure; return the seconds for which the model rests."""
        key, now = (session_id, model), self._clock()
        with self._lock:
            *_, before = self._failures.pop(key, (-1,))
            step = min(max(before + 1, FIRST_COOLDOWN.get(kind, 0)), len(COOLDOWNS) - 1)
            grown = math.inf if kind in LASTING_KINDS else RETRY_GROWTH * tokens
            self._failures[key] = (now + COOLDOWNS[step], grown, step)
            while len(self._failures) > MAX_FAILURES:
                del self._failures[next(iter(self._failures))]
            return COOLDOWNS[step]

    def wake(self, session_id: str) -> None:
        """End the session's cooldowns, but keep the count of failures."""
        with self._lock:
            for key, (_, grown, step) in self._failures.items():
                if key[0] == session_id:
                    self._failures[key] = (-math.inf, grown, step)

    def record_success(self, session_id: str, model: str | None) -> None:
        """Forget the failures of a model that answers again."""
        with self._lock:
            self._failures.pop((session_id, model), None)
