"""Define the values that pass between compressor, writer and summarizer.

The compressor gives a `Brief` to the writer. The writer sends chat messages to a `Summarizer`,
gets a `SummaryReply`, and returns a `SegmentText`.
"""

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
    """Everything that one summary is written from."""

    messages: tuple[Message, ...]
    """The segment's originals, in order."""
    model_messages: tuple[Message, ...]
    """Messages that the model reads; messages with prose in `folded` are left out."""
    text_tokens: int
    """Most tokens of the framed message."""
    prose_tokens: int
    """Tokens of prose to ask of the model; 0 means the static text."""
    quote_tokens: int
    """Tokens of quotes beside prose; the quotes of a static text take all tokens."""
    spare_tokens: int = 0
    """Tokens above `text_tokens` for prose that is longer than asked, not for quotes."""
    reference: str = ""
    """The segment's name, such as "s3"; "" if nothing is recorded."""
    references: tuple[str, ...] = ()
    """One name per message, such as "s3.14"; () without recall tools."""
    folded: tuple[str, ...] = ()
    """Prose of the summaries that this one replaces."""
    earlier: tuple[str, ...] = ()
    """Prose of the summaries before this one, which stay in the view."""
    visible: str = ""
    """Text that stays in the view, and is not quoted again."""
    instructions: str | None = None
    """The user's words to the model, added to the request."""


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
    """Adapt a plain or async callable to the protocol."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._parameters: Mapping[str, inspect.Parameter] = {}
        with suppress(TypeError, ValueError):  # some callables have no signature
            self._parameters = inspect.signature(function).parameters

    @property
    def window(self) -> int | None:
        """Return the callable's attribute `window`, or None."""
        return getattr(self._function, "window", None)

    async def summarize(self, messages: list[Message], **options: Any) -> SummaryReply:
        """Call the function with the keywords that it accepts."""
        takes_all = any(p.kind is p.VAR_KEYWORD for p in self._parameters.values())
        accepted = {k: v for k, v in options.items() if takes_all or k in self._parameters}
        # A plain function may block, so it runs in a thread.
        call = functools.partial(self._function, messages, **accepted)
        answer = await asyncio.wrap_future(start_thread(call))
        if inspect.isawaitable(answer):
            answer = await answer
        if isinstance(answer, SummaryReply):
            return answer
        return SummaryReply("" if answer is None else answer)
