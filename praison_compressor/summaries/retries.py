"""Ask the auxiliary model until one text is accepted; rest failing models; learn windows.

A table may not know a deployment: a proxy, a server started with a smaller context. What a refusal
says about the window holds as long as the compressor lives.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import math
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

from ..config import CompressorConfig
from ..errors import SummarizerUnavailable, SummaryError, SummaryRejected
from ..events import Event
from ..ledger.segments import Usage
from ..messages import Message
from ..messages.forks import renewed
from ..tokens.counter import TokenCounter
from ..tokens.refusals import overflow_of
from .litellm_client import REFUSED, kind_of, retry_after, words_of
from .protocol import SummaryReply
from .validation import accept

logger = logging.getLogger(__name__)

T = TypeVar("T")

MOST_CALLS = 16
"""Requests for one compression, with the refused and the repeated ones."""

REJECTED_TRIES = 2
"""Texts asked of one model: a second one may be good."""

_PASSING = frozenset({"network", "quota", "provider"})
"""Kinds of failure that another try may mend; a timeout has already cost its whole time."""


@dataclass
class Asker:
    """Ask a summarizer for one summary; sum up what its requests cost, rejected ones too."""

    config: CompressorConfig
    summarizer: Any
    emit: Callable[[Event], None]
    windows: LearnedWindows
    session_id: str
    calls: int = MOST_CALLS
    """Requests that may still be made."""
    model: str | None = None
    """The model to ask; None means the summarizer's own."""
    most: int = 0
    """Tokens at which the provider cuts the answer off."""
    usage: Usage = field(default_factory=Usage)
    answered_by: str | None = None
    parts: list[int] = field(default_factory=list)
    """How many messages each call was shown."""

    @property
    def model_name(self) -> str | None:
        """Return the model that will answer, where its name is known."""
        own = getattr(self.summarizer, "model", None)
        return self.model or (own if isinstance(own, str) else None)

    @property
    def window(self) -> int | None:
        """Return the tokens that the model reads and writes, or None for any number."""
        listed = _listed_window(self.summarizer, self.model)
        return self.windows.of(self.model_name, listed)

    async def text(self, messages: list[Message], tokens: TokenCounter) -> str:
        """Return one accepted text.

        A refusal as too long teaches the model's window, in tokens as `tokens` counts.

        Raises:
            SummaryError: the last failure, after the tries that its kind deserves.
        """
        rejected = failed = 0
        while True:
            try:
                reply = await self.answer(messages)
                return await asyncio.to_thread(accept, reply, messages)
            except SummaryRejected:
                rejected += 1
                if rejected >= REJECTED_TRIES:
                    raise
            except SummarizerUnavailable as error:
                if error.kind == "context":
                    sent = tokens.messages(messages)
                    self.windows.learn(self.model_name, error, sent=sent, most=self.most)
                failed += 1
                if error.kind not in _PASSING or failed > self.config.summary_max_retries:
                    raise
                wait = error.retry_after if error.retry_after is not None else 0.5 * 2**failed
                if wait > self.config.timeout_seconds:
                    raise
                await asyncio.sleep(wait)

    async def answer(self, messages: list[Message]) -> SummaryReply:
        """Return one answer as it comes, without a second try.

        Raises:
            SummarizerUnavailable: no answer came, or no request is left.
        """
        if self.calls <= 0:
            raise SummarizerUnavailable(
                f"the requests that one compression may make ({MOST_CALLS}) are spent; name an "
                "auxiliary model that reads more at once",
                kind="context",
            )
        self.calls -= 1
        reply = await self._reply(messages)
        self.usage, self.answered_by = self.usage + reply.usage, reply.model or self.answered_by
        return reply

    async def _reply(self, messages: list[Message]) -> SummaryReply:
        """Return one answer; emit an event before it, and one after it with its cost."""
        seconds = self.config.timeout_seconds
        given = {"max_tokens": self.most, "model": self.model, "timeout_seconds": seconds}
        data: dict[str, Any] = {"model": self.model_name}
        ready = getattr(self.summarizer, "ready", None)
        if ready is not None:
            await _in_time(ready, STARTING_UP)
        self.emit(Event("model_called", self.session_id, dict(data)))
        began = time.monotonic()
        try:
            ask = functools.partial(self.summarizer.summarize, messages, **given)
            reply = await _in_time(ask, seconds)
            if not isinstance(reply, SummaryReply):
                raise SummarizerUnavailable(f"it gave {type(reply).__name__}, not a SummaryReply")
            if not isinstance(reply.usage, Usage):
                wrong = f"its usage is a {type(reply.usage).__name__}, not a Usage"
                raise SummarizerUnavailable(wrong)
            if not isinstance(reply.model, (str, type(None))):
                raise SummarizerUnavailable(f"its model is a {type(reply.model).__name__}")
            data |= {**asdict(reply.usage), "model": reply.model or data["model"]}
            return reply
        except BaseException as error:
            data["error"] = getattr(error, "kind", type(error).__name__)
            raise
        finally:
            data["seconds"] = time.monotonic() - began
            self.emit(Event("model_answered", self.session_id, data))


def _listed_window(summarizer: Any, model: str | None) -> int | None:
    """Return the window that a summarizer states, or None where it states none."""
    try:
        if hasattr(summarizer, "window_for"):
            stated = summarizer.window_for(model)
        else:
            stated = getattr(summarizer, "window", None)
    except Exception:
        logger.warning("the summarizer's window cannot be read; any number is assumed")
        return None
    # A user's own summarizer may use the name for something else.
    known = isinstance(stated, int) and not isinstance(stated, bool) and stated > 0
    return stated if known else None


STARTING_UP = 60.0
"""Seconds in which a summarizer gets ready, outside the model's timeout."""

CLEANING_UP = 2.0
"""Seconds in which cancelled work ends and gives its connection back."""


async def _in_time(work: Callable[[], Awaitable[T]], seconds: float) -> T:
    """Await a summarizer's work for at most `seconds`; cancel it then, or when cancelled.

    Raises:
        SummaryError: the work's own, or the reason why it gave nothing.
    """
    task = asyncio.ensure_future(_contained(work))
    # The outcome of abandoned work is read, so that the loop does not log it.
    task.add_done_callback(lambda ended: None if ended.cancelled() else ended.exception())
    try:
        await asyncio.wait({task}, timeout=seconds)
    finally:
        given_up = task.cancel()
        if given_up:
            # Not `wait_for`: it waits until cancelled work ends, however late.
            await asyncio.wait({task}, timeout=CLEANING_UP)
    if given_up:
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
    """Do the work; return its exception as a value.

    A SystemExit of the work would end the loop. A GeneratorExit, thrown where this coroutine is
    closed, must not leave it as another error.
    """
    try:
        return await work()
    except (asyncio.CancelledError, KeyboardInterrupt):
        raise
    except SummaryError as error:
        return error
    except BaseException as error:
        words, kind = f"{type(error).__name__}: {words_of(error)}", kind_of(error)
        failure = SummarizerUnavailable(words, kind=kind, retry_after=retry_after(error))
        failure.__cause__ = error
        return failure


# -------------------------------------------------------------- failing models

COOLDOWNS = (60.0, 300.0, 900.0)
"""Seconds after the first, second and every further failure in a row."""

FIRST = {"quota": 1, "auth": 2}
"""The step at which kinds begin that no short wait mends: 300 s a quota, 900 s a key."""

LASTING = {"auth", REFUSED}
"""Kinds that growth does not release."""

GROWTH = 1.5
"""Growth of a conversation since another failure that is worth another try."""

REMEMBERED = 1_024
"""Failures held; older ones are forgotten, so that a long-lived process does not grow."""


class Breaker:
    """Remember failures per model and session; thread-safe. `clock` returns seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = renewed(threading.Lock())
        # The time when the rest ends, the tokens that end it earlier, the step in COOLDOWNS.
        self._failures: dict[tuple[str, str | None], tuple[float, float, int]] = {}

    def allows(self, session_id: str, model: str | None, tokens: int) -> bool:
        """Return whether the model may be asked for a segment of `tokens`."""
        until, grown, _ = self._failures.get((session_id, model), (0.0, 0, 0))
        return self._clock() >= until or tokens >= grown

    def failed(self, session_id: str, model: str | None, tokens: int, kind: str) -> float:
        """Note a failure; return the seconds for which the model rests."""
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

LEAST_WINDOW = 2_000
"""Tokens: a smaller window has no room for a part worth its call."""


class LearnedWindows:
    """Remember the windows that refusals named, by model."""

    def __init__(self) -> None:
        self._learned: dict[str | None, int] = {}

    def of(self, model: str | None, listed: int | None) -> int | None:
        """Return the smaller of the learned and the listed window; None for any number."""
        known = [window for window in (self._learned.get(model), listed) if window is not None]
        return min(known, default=None)

    def learn(self, model: str | None, error: Exception, *, sent: int, most: int) -> None:
        """Learn a smaller window from the refusal of a request that was too long.

        The refusal's own number counts, unless the request was smaller or the number was known:
        then half of the request. `sent` are the request's tokens, `most` those of its answer.
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
            "%s refused a request of %d tokens as too long; its window is now taken as %d tokens",
            model or "the auxiliary model",
            sent,
            window,
        )
