"""What a summarizer is, and a user's own function as one."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from ..ledger.segments import Usage
from ..messages import Message
from .threads import begin

__all__ = [
    "Summarizer",
    "SummaryReply",
    "as_summarizer",
]


# -------------------------------------------------------------- prompts


@dataclass(frozen=True)
class SummaryReply:
    """What an auxiliary model answered."""

    text: str
    usage: Usage = field(default_factory=Usage)
    model: str | None = None
    finish_reason: str | None = None


class Summarizer(Protocol):
    """Writes summaries: an auxiliary model behind one method.

    One that takes long to get ready may have `async def prepare(self) -> None` too: it is awaited
    before each call and does not count as the model's time. One that asks several models may have
    `window_for(model)`, the window of the model named. One that is the agent's own model may
    have `model`, its name, and `summarize_on_prefix`, which is `summarize` with one keyword more,
    `tools`: the schemas that the agent's requests carry, of which none may be called.
    """

    @property
    def window(self) -> int | None:
        """Input tokens the model can take; None: unknown, taken as unlimited."""

    async def summarize(
        self,
        messages: list[Message],
        *,
        max_tokens: int,
        model: str | None,
        timeout_seconds: float,
    ) -> SummaryReply:
        """The model's answer to a request for a summary.

        Raises:
            SummarizerUnavailable: no answer came.
        """


# -------------------------------------------------------------- callables


def as_summarizer(given: Any) -> Summarizer | None:
    """A summarizer of our protocol, or an async callable that takes messages and returns text."""
    if given is None or hasattr(given, "summarize"):
        return given  # type: ignore[no-any-return]  # duck-typed by our protocol
    accepted = _keywords(given)
    takes_tools = accepted is not None and "tools" in accepted
    return (_WithTools if takes_tools else _Callable)(given, accepted)


class _Callable:
    """An async (or plain) callable behind the protocol; it is given the keywords it names."""

    def __init__(self, function: Callable[..., Any], accepted: frozenset[str] | None) -> None:
        self._function = function
        self._accepted = accepted

    @property
    def window(self) -> int | None:
        """A callable may say how much it can read by an attribute `window`."""
        return getattr(self._function, "window", None)

    async def summarize(self, messages: list[Message], **given: Any) -> SummaryReply:
        """The answer; `given` as in `Summarizer.summarize`."""
        passed = {k: v for k, v in given.items() if self._accepted is None or k in self._accepted}
        if _is_async(self._function):
            answer = self._function(messages, **passed)
        else:
            call = functools.partial(self._function, messages, **passed)
            answer = await asyncio.wrap_future(begin(call))
        if inspect.isawaitable(answer):
            answer = await answer
        if isinstance(answer, SummaryReply):
            return answer
        return SummaryReply("" if answer is None else answer)


class _WithTools(_Callable):
    """One that names `tools` can be asked on the agent's live prefix."""

    async def summarize_on_prefix(self, messages: list[Message], **given: Any) -> SummaryReply:
        """The answer to the agent's own request and one message more."""
        return await self.summarize(messages, **given)


def _is_async(function: Callable[..., Any]) -> bool:
    """Whether calling it returns at once; what may block must not hold up an event loop."""
    called = getattr(function, "__call__", None)  # noqa: B004
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called)


def _keywords(function: Callable[..., Any]) -> frozenset[str] | None:
    """The keywords a callable accepts; None: any."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return frozenset()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return None
    return frozenset(parameter.name for parameter in parameters)
