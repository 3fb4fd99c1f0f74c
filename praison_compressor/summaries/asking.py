"""Ask the auxiliary model until a text is accepted; rest failing models; learn their windows."""

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

from ..concurrency import in_time, renewed
from ..config import CompressorConfig
from ..errors import SummarizerUnavailable, SummaryError, SummaryRejected
from ..events import Event
from ..ledger.segments import Usage
from ..messages import Message
from ..tokens.counter import TokenCounter
from ..tokens.refusals import overflow_of
from .litellm_client import REFUSED, error_text, failure_of, retry_after
from .protocol import SummaryReply
from .validation import accept

logger = logging.getLogger(__name__)

T = TypeVar("T")

MOST_CALLS = 16  # requests for one compression, refused and repeated ones included
REJECTED_TRIES = 2  # texts asked of one model: a second one may be good

_PASSING = frozenset({"network", "quota", "provider"})
"""Kinds of failure that another try may mend. A timeout is none: its whole time was spent."""


@dataclass
class Asker:
    """Ask a summarizer for one summary; sum up the cost, rejected answers included."""

    config: CompressorConfig
    summarizer: Any
    emit: Callable[[Event], None]
    windows: AuxiliaryWindows
    session_id: str
    calls: int = MOST_CALLS
    """Requests that may still be made."""
    model: str | None = None
    """The model to ask; None means the summarizer's own."""
    usage: Usage = field(default_factory=Usage)
    answered_by: str | None = None

    @property
    def model_name(self) -> str | None:
        """Return the name of the model to ask, or None if unknown."""
        return self.model or _stated(self.summarizer, "model", str)

    @property
    def window(self) -> int | None:
        """Return the window in tokens, or None for any number."""
        listed = _listed_window(self.summarizer, self.model)
        return self.windows.of(self.model_name, listed)

    async def text(self, messages: list[Message], tokens: TokenCounter, most: int) -> str:
        """Return one accepted text of at most `most` tokens.

        A refusal as too long teaches the model's window, counted by `tokens`.

        Raises:
            SummaryError: the last failure; its kind decides the number of tries.
        """
        rejected = failed = 0
        while True:
            try:
                reply = await self._answer(messages, most)
                return await asyncio.to_thread(accept, reply, messages)
            except SummaryRejected:
                rejected += 1
                if rejected >= REJECTED_TRIES:
                    raise
            except SummarizerUnavailable as error:
                if error.kind == "context":
                    sent = tokens.messages(messages)
                    self.windows.learn(self.model_name, error, sent=sent, most=most)
                failed += 1
                if error.kind not in _PASSING or failed > self.config.summary_max_retries:
                    raise
                wait = error.retry_after if error.retry_after is not None else 0.5 * 2**failed
                if wait > self.config.timeout_seconds:
                    raise
                await asyncio.sleep(wait)

    async def _answer(self, messages: list[Message], most: int) -> SummaryReply:
        """Return one answer; emit an event before and after it.

        Raises:
            SummarizerUnavailable: no answer came, or no request is left.
        """
        if self.calls <= 0:
            raise SummarizerUnavailable(
                f"one compression may make {MOST_CALLS} requests, and all are spent; name an "
                "auxiliary model with a larger window",
                kind="context",
            )
        self.calls -= 1
        ready = _stated(self.summarizer, "ready", object)
        if callable(ready):
            await _done(ready, STARTING_UP)
        data: dict[str, Any] = {"model": self.model_name}
        self.emit(Event("model_called", self.session_id, data))
        began = time.monotonic()
        try:
            reply = await _done(partial(self._ask, messages, most), self.config.timeout_seconds)
            data = {**asdict(reply.usage), "model": reply.model or self.model_name}
            self.usage, self.answered_by = self.usage + reply.usage, reply.model or self.answered_by
            return reply
        except BaseException as error:
            data = {**data, "error": getattr(error, "kind", type(error).__name__)}
            raise
        finally:
            data = {**data, "seconds": time.monotonic() - began}
            self.emit(Event("model_answered", self.session_id, data))

    async def _ask(self, messages: list[Message], most: int) -> SummaryReply:
        """Return the summarizer's answer, its fields checked."""
        return _checked(
            await self.summarizer.summarize(
                # Copies, since a user's summarizer may edit them.
                [dict(message) for message in messages],
                max_tokens=most,
                model=self.model,
                timeout_seconds=self.config.timeout_seconds,
            )
        )


# -------------------------------------------------------------- a user's own summarizer

STARTING_UP = 60.0  # seconds in which a summarizer gets ready, outside the model's timeout


def _stated(given: Any, name: str, kind: type[T] | tuple[type[T], ...]) -> T | None:
    """Return an attribute, or None if unreadable or of another type."""
    with suppress(Exception):
        value = getattr(given, name, None)
        return value if isinstance(value, kind) and not isinstance(value, bool) else None
    return None


def _listed_window(summarizer: Any, model: str | None) -> int | None:
    """Return the window that a summarizer states, or None."""
    window = _stated(summarizer, "window", int)
    ask = _stated(summarizer, "window_for", object)
    if callable(ask):
        with suppress(Exception):
            window = ask(model)
    # A user's summarizer may use both names for something else. True is no window.
    return window if type(window) is int and window > 0 else None


def _checked(reply: Any) -> SummaryReply:
    """Return the reply, or raise TypeError for a field of another type."""
    if not isinstance(reply, SummaryReply):
        raise TypeError(f"it gave {type(reply).__name__}, not a SummaryReply")
    for name, kinds in (("usage", (Usage,)), ("model", (str, type(None)))):
        if not isinstance(value := getattr(reply, name), kinds):
            found, expected = type(value).__name__, kinds[0].__name__
            raise TypeError(f"its {name} is a {found}, not a {expected}")
    return replace(reply, usage=Usage() + reply.usage)  # the sum raises TypeError for texts


async def _done(work: Callable[[], Awaitable[T]], seconds: float) -> T:
    """Await a summarizer's work for at most `seconds`.

    Raises:
        SummaryError: the work failed, was cancelled or took longer.
    """
    task = await in_time(_contained(work), seconds)
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


async def _contained(work: Callable[[], Awaitable[T]]) -> T | SummaryError:
    """Do the work; return its exception as a SummaryError of ours."""
    try:
        return await work()
    except (asyncio.CancelledError, KeyboardInterrupt):
        raise
    except BaseException as error:
        # Not raised: SystemExit would end the loop; a closed coroutine may raise no other error.
        return _as_ours(error)


def _as_ours(error: BaseException) -> SummaryError:
    """Return an exception as a SummaryError with attributes of sound types."""
    if type(error) is SummaryRejected:
        return error
    if isinstance(error, SummarizerUnavailable):
        kind, wait = _stated(error, "kind", str), _stated(error, "retry_after", (int, float))
        ours = SummarizerUnavailable(error_text(error), kind=kind or "provider", retry_after=wait)
    else:
        text = f"{type(error).__name__}: {error_text(error)}"
        ours = SummarizerUnavailable(text, kind=failure_of(error), retry_after=retry_after(error))
    ours.__cause__ = error
    return ours


# -------------------------------------------------------------- failing models

COOLDOWNS = (60.0, 300.0, 900.0)
"""Seconds after the first, second and every further failure in a row."""

FIRST = {"quota": 1, "auth": 2}
"""Kind of failure → its first index in COOLDOWNS; other kinds begin at 0."""

LASTING = {"auth", REFUSED}
"""Kinds that only time ends, not a longer segment."""

GROWTH = 1.5  # a segment longer by this factor is worth a try after other kinds

REMEMBERED = 1_024
"""Failures held; the oldest are forgotten, so that a long-lived process does not grow."""


class Breaker:
    """A circuit breaker per model and session; thread-safe. `clock` returns seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = renewed(threading.Lock())
        # Seconds when the rest ends, tokens of a segment that end it earlier, index in COOLDOWNS.
        self._failures: dict[tuple[str, str | None], tuple[float, float, int]] = {}

    def allows(self, session_id: str, model: str | None, tokens: int) -> bool:
        """Return whether the model may be asked for a segment of `tokens`."""
        until, grown, _ = self._failures.get((session_id, model), (0.0, 0, 0))
        return self._clock() >= until or tokens >= grown

    def failed(self, session_id: str, model: str | None, tokens: int, kind: str) -> float:
        """Record a failure; return the seconds for which the model rests."""
        key, now = (session_id, model), self._clock()
        with self._lock:
            *_, before = self._failures.pop(key, (-1,))
            step = min(max(before + 1, FIRST.get(kind, 0)), len(COOLDOWNS) - 1)
            grown = math.inf if kind in LASTING else GROWTH * tokens
            self._failures[key] = (now + COOLDOWNS[step], grown, step)
            while len(self._failures) > REMEMBERED:
                del self._failures[next(iter(self._failures))]
            return COOLDOWNS[step]

    def succeeded(self, session_id: str, model: str | None) -> None:
        """Forget the failures of a model that answers again."""
        with self._lock:
            self._failures.pop((session_id, model), None)


# -------------------------------------------------------------- windows

LEAST_WINDOW = 2_000  # tokens; a smaller window has no room for a part worth its call


class AuxiliaryWindows:
    """Remember the windows that refusals teach, by model."""

    def __init__(self) -> None:
        self._learned: dict[str | None, int] = {}

    def of(self, model: str | None, listed: int | None) -> int | None:
        """Return the smaller of the learned and the listed window."""
        known = [window for window in (self._learned.get(model), listed) if window is not None]
        return min(known, default=None)

    def learn(self, model: str | None, error: Exception, *, sent: int, most: int) -> None:
        """Learn a smaller window from a refusal as too long.

        It is the refusal's number if that is below the request and the known window, else half of
        the request. `sent` are the request's tokens, `most` those of its answer.
        """
        refused = overflow_of(error)
        if refused is None:
            return
        before = self._learned.get(model, sent + most)
        named, half = refused.window, sent // 2 + most
        window = named if named is not None and named < min(before, sent + most) else half
        if not LEAST_WINDOW <= window < before:
            return
        self._learned[model] = window
        logger.warning(
            "%s refused a request of %d tokens as too long; its window counts as %d tokens now",
            model or "the auxiliary model",
            sent,
            window,
        )
