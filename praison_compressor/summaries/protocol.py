"""Define the values that pass between compressor, writer and summarizer."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

from ..concurrency import start_thread
from ..errors import ConfigError
from ..ledger.segments import TextMethod, Usage
from ..messages import Message


@dataclass(frozen=True)
class Brief:
    """What a summary is written from."""

    messages: tuple[Message, ...]
    model_messages: tuple[Message, ...]
    """Messages that the model reads: without the messages whose prose is in `folded`."""
    text_tokens: int
    prose_tokens: int
    """Tokens of prose to ask of the model; 0: no model."""
    quote_tokens: int
    """Upper bound of the tokens of quotes beside prose."""
    spare_tokens: int = 0
    """Tokens above `text_tokens` for prose longer than asked."""
    reference: str = ""
    """The segment's name, such as "s3"; "": nothing is recorded."""
    references: tuple[str, ...] = ()
    """References of the messages; (): no recall tools."""
    folded: tuple[str, ...] = ()
    earlier: tuple[str, ...] = ()
    """Prose of the older summaries that stay in the view."""
    visible: str = ""
    """Text that the view shows; the summary does not quote this text again."""
    instructions: str | None = None
    """The user's own words for the request."""


@dataclass(frozen=True)
class SegmentText:
    """The text of a segment, and its cost."""

    message: Message
    method: TextMethod
    model: str | None = None
    usage: Usage = field(default_factory=Usage)


# -------------------------------------------------------------- the summarizer


@dataclass(frozen=True)
class SummaryReply:
    """An auxiliary model's answer."""

    text: str
    """The answer's text."""
    usage: Usage = field(default_factory=Usage)
    """Tokens and cost of the call."""
    model: str | None = None
    """The model that answered; None: unknown."""
    finish_reason: str | None = None
    """Why the answer ended, in the provider's spelling."""


class Summarizer(Protocol):
    """Write summaries: an auxiliary model behind one method.

    Optional attributes:
        window: the model's window in tokens, or None without a limit.
        window_for: a method that takes a model's name and returns its window.
        model: the name of the model that answers if `summarize` gets None.
        ready: an async method, awaited before each call, outside `timeout_seconds`.
    """

    async def summarize(
        self, messages: list[Message], *, max_tokens: int, model: str | None, timeout_seconds: float
    ) -> SummaryReply:
        """Return the model's answer to a request for a summary.

        Raises:
            SummarizerUnavailable: no answer came.
        """


def as_summarizer(summarizer: Any) -> Summarizer | None:
    """Return the summarizer; wrap a callable that returns text."""
    method = getattr(summarizer, "summarize", None)
    if summarizer is None or inspect.iscoroutinefunction(method):
        return summarizer  # type: ignore[no-any-return]  # duck-typed by our protocol
    if not callable(summarizer):
        raise ConfigError(
            f"summarizer is {type(summarizer).__name__}; expected an object with an async method "
            "`summarize`, or a callable that takes messages and returns text; give the name of a "
            "model as CompressorConfig(auxiliary_model=...)"
        )
    return _CallableSummarizer(summarizer)


class _CallableSummarizer:
    """Call a plain or async function as a summarizer."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._parameters: Mapping[str, inspect.Parameter] = {}
        with suppress(TypeError, ValueError):  # some callables have no signature
            self._parameters = inspect.signature(function).parameters

    @property
    def window(self) -> int | None:
        """The function's attribute `window`, or None."""
        return getattr(self._function, "window", None)

    async def summarize(self, messages: list[Message], **options: Any) -> SummaryReply:
        takes_all = any(p.kind is p.VAR_KEYWORD for p in self._parameters.values())
        accepted = {k: v for k, v in options.items() if takes_all or k in self._parameters}
        # A plain function may block.
        call = functools.partial(self._function, messages, **accepted)
        answer = await asyncio.wrap_future(start_thread(call))
        if inspect.isawaitable(answer):
            answer = await answer
        if isinstance(answer, SummaryReply):
            return answer
        return SummaryReply("" if answer is None else answer)
