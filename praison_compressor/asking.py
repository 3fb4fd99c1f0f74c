"""Asks the auxiliary model: one accepted text, after the tries that a failure deserves."""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

from .answers import accept, is_about
from .config import CompressorConfig
from .deadline import within
from .errors import SummarizerUnavailable, SummaryError, SummaryRejected
from .events import Event
from .ledger import Usage
from .messages import Message
from .prompts import Summarizer, SummaryReply
from .provider_errors import kind_of, retry_after

__all__ = ["MOST_CALLS", "Asker", "Order", "Spent"]

MOST_CALLS = 16
"""Requests for one compression, refused and repeated ones included: a summary is worth no more."""

REJECTED_TRIES = 2  # a second text from one model may be good, a third is paid for nothing

Tools = Sequence[Mapping[str, Any]]
T = TypeVar("T")


@dataclass
class Spent:
    """What the calls for one summary cost so far, rejected texts included."""

    usage: Usage = field(default_factory=Usage)
    model: str | None = None
    parts: list[int] = field(default_factory=list)
    """How many messages each call was shown."""
    calls: int = MOST_CALLS
    """Requests that may still be made."""

    def add(self, reply: SummaryReply) -> None:
        """One more answer."""
        self.usage = self.usage + reply.usage
        self.model = reply.model or self.model


@dataclass(frozen=True)
class Order:
    """For whom a model is asked, which one, and how much it may write."""

    session_id: str
    model: str | None
    most: int
    """Tokens at which the provider cuts the answer off."""
    spent: Spent


class Asker:
    """Puts requests to one summarizer, and tells what each took."""

    def __init__(
        self, config: CompressorConfig, summarizer: Summarizer, emit: Callable[[Event], None]
    ) -> None:
        self._config = config
        self._summarizer = summarizer
        self._emit = emit

    def window(self, order: Order) -> int | None:
        """Tokens that the model of an order can read, by its table; None: any number."""
        summarizer: Any = self._summarizer
        if hasattr(summarizer, "window_for"):
            window: int | None = summarizer.window_for(order.model)
            return window
        return getattr(summarizer, "window", None)

    def can_on_prefix(self) -> bool:
        """Whether the summarizer can be asked on a live prefix."""
        return getattr(self._summarizer, "summarize_on_prefix", None) is not None

    def model_of(self, order: Order) -> str | None:
        """The model that answers an order, where it is known before."""
        return order.model or getattr(self._summarizer, "model", None)

    async def text(self, messages: list[Message], order: Order, tools: Tools | None = None) -> str:
        """One accepted text; with `tools` on the live prefix.

        Raises:
            SummaryError: the last reason, after the tries that this kind of failure deserves.
        """
        on_prefix = tools is not None  # what is no answer there may be one to an ordinary request
        tries, passing = (1, _PASSING_ON_PREFIX) if on_prefix else (REJECTED_TRIES, _PASSING)
        rejected = failed = 0
        while True:
            try:
                return await self._once(messages, order, tools)
            except SummaryRejected:
                rejected += 1
                if rejected >= tries:
                    raise
            except SummarizerUnavailable as error:
                failed += 1
                if error.kind not in passing or failed > self._config.summary_max_retries:
                    raise
                wait = error.retry_after if error.retry_after is not None else 0.5 * 2**failed
                if wait > self._config.timeout_seconds:
                    raise
                await asyncio.sleep(wait)

    async def _once(self, messages: list[Message], order: Order, tools: Tools | None) -> str:
        if order.spent.calls <= 0:
            raise SummarizerUnavailable(
                f"the requests that one compression may make ({MOST_CALLS}) are spent; name an "
                "auxiliary model that reads more at once",
                kind="context",
            )
        order.spent.calls -= 1
        reply = await self._reply(messages, order, tools)
        order.spent.add(reply)
        return await asyncio.to_thread(_accepted, reply, messages)

    async def _reply(
        self, messages: list[Message], order: Order, tools: Tools | None
    ) -> SummaryReply:
        """One answer; an event before it, and one after that tells what it took."""
        prepare = getattr(self._summarizer, "prepare", None)
        if prepare is not None:
            await _in_time(prepare())
        told: dict[str, Any] = {"model": self.model_of(order)}
        self._emit(Event("model_called", order.session_id, dict(told)))
        began = time.monotonic()
        try:
            reply = await self._answer(messages, order, tools)
        except BaseException as error:
            told["error"] = getattr(error, "kind", type(error).__name__)
            raise
        else:
            told |= {**asdict(reply.usage), "model": reply.model or told["model"]}
            return reply
        finally:
            told["seconds"] = time.monotonic() - began
            self._emit(Event("model_answered", order.session_id, told))

    async def _answer(
        self, messages: list[Message], order: Order, tools: Tools | None
    ) -> SummaryReply:
        seconds = self._config.timeout_seconds
        summarizer: Any = self._summarizer
        ask: Callable[..., Awaitable[SummaryReply]] = summarizer.summarize
        if tools is not None:
            ask = functools.partial(summarizer.summarize_on_prefix, tools=tools)

        async def answered() -> SummaryReply:
            return await ask(
                messages, max_tokens=order.most, model=order.model, timeout_seconds=seconds
            )

        reply = await _in_time(answered(), seconds)
        if not isinstance(reply, SummaryReply):
            raise SummarizerUnavailable(f"it gave {type(reply).__name__}, not a SummaryReply")
        return reply


def _accepted(reply: SummaryReply, asked: list[Message]) -> str:
    text = accept(reply, asked)
    if not is_about(text, asked):
        raise SummaryRejected("unrelated", "it says nothing of what it was to summarize")
    return text


async def _in_time(work: Awaitable[T], seconds: float | None = None) -> T:
    """What a summarizer's work gives in that time.

    Raises:
        SummaryError: whatever it raises itself.
    """
    try:
        return await within(work, seconds)
    except SummaryError:
        raise
    except (asyncio.TimeoutError, TimeoutError) as error:
        late = "it timed out" if seconds is None else f"no answer in {seconds:g} s"
        raise SummarizerUnavailable(late, kind="timeout") from error
    except Exception as error:
        raise SummarizerUnavailable(
            f"{type(error).__name__}: {error}",
            kind=kind_of(error),
            retry_after=retry_after(error),
        ) from error


_PASSING_ON_PREFIX = frozenset({"network", "quota"})
_PASSING = _PASSING_ON_PREFIX | {"provider"}
"""Kinds of failure that another try may mend; a timeout has already cost its whole time."""
