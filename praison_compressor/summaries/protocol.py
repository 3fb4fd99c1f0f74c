"""The values that pass between the compressor, the writer and a summarizer.

The compressor hands a `Brief` to the writer, the writer sends chat messages to a `Summarizer` and
gets a `SummaryReply`, and the compressor gets what was `Written`.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from ..errors import ConfigError
from ..facts import Coverage, Facts
from ..ledger.segments import Usage
from ..messages import Message
from .static import RuleList
from .threads import begin


@dataclass(frozen=True)
class Prefix:
    """What the agent's last request began with, up to the end of a range to be summarized."""

    messages: tuple[Message, ...]
    first: Message
    """The message with which the range begins."""
    tools: tuple[Mapping[str, Any], ...] = ()
    rolled: bool = False
    """Whether the range holds earlier summaries, which the new one replaces."""


@dataclass(frozen=True)
class Brief:
    """What one summary is written from."""

    messages: tuple[Message, ...]
    """All messages it stands for."""
    shown: tuple[Message, ...]
    """Those of them that no folded summary represents: what the model reads whole."""
    room: int
    """Tokens that the framed message should take at most."""
    most: int
    """Tokens that it may take where a model's text alone is longer."""
    tokens: int
    """Of the messages that it stands for: whether a model that failed is worth another try."""
    facts: int
    """Tokens of facts beside a model's text."""
    prose: int
    """Tokens asked of the model."""
    words: int = 0
    """Tokens that the facts may take where the user's words fill them."""
    by_model: bool = True
    """False: not worth a call, the static summary will do."""
    spare: int = 0
    """Tokens of the view's tail that give way before a model's text is refused as too long."""
    folded: tuple[str, ...] = ()
    """Texts of summaries that this one replaces."""
    earlier: tuple[str, ...] = ()
    """Texts of summaries that stay in the view before it."""
    visible: str = ""
    """Text that stays verbatim in the view: it needs no room here."""
    originals: tuple[Message, ...] = ()
    """The whole transcript: a name in it is not made up, whether the model was shown it or not."""
    tools: tuple[Mapping[str, Any], ...] = ()
    """The schemas of the agent's tools, whose names are known too."""
    reference: str = ""
    """The name that its segment will have in the session; "" where it is recorded nowhere."""
    references: tuple[str, ...] = ()
    """By which the archive will read each of `messages`; empty where they are not archived, or the
    reader has no tool that follows them."""
    recall: bool = False
    """Whether the recall tool, which reads the originals by that name, exists."""
    instructions: str | None = None
    """The user's own words to the model: of a domain, of this one compression."""
    prefix: Prefix | None = None
    """What the agent's last request began with, where a summary may be asked on it."""
    rules: RuleList = field(default_factory=RuleList)
    """What binds of all that the view leaves out: it stands verbatim at the end of the text."""

    @property
    def longest(self) -> int:
        """Tokens that a model's text may have, framed: less than its messages."""
        return min(self.most + self.spare, self.tokens)


class Doubt(NamedTuple):
    """A claim of a summary that the originals contradict or do not bear out."""

    claim: str
    """The sentence or list item; "" where what is in doubt stands in a block of code."""
    verdict: str
    """`contradicted` or `unwitnessed`."""
    kind: str
    """`approval`, `quote`, `number`, `outcome`, `completion`, `negation`, `file` or `name`;
    `judged` where a model says so."""
    reason: str
    """In a few words; of a contradiction the witness."""
    source: str = ""
    """The witness's reference, as s2.14; "" without one."""
    at: int = 0
    """Where in the model's text the claim ends, in characters."""

    @property
    def mark(self) -> str:
        """What stands behind the claim in the summary."""
        reason = " ".join(self.reason.split()).replace("[", "(").replace("]", ")")
        if self.verdict != "contradicted":
            return f"[unverified: {reason}]"
        return f"[contradicted{f' by {self.source}' if self.source else ''}: {reason}]"

    def told(self) -> str:
        """The claim and its mark, in one line."""
        return f"{self.claim} {self.mark}".strip()


@dataclass(frozen=True)
class Written:
    """A rendered summary and how it came to be."""

    message: Message
    method: str
    prose: str = ""
    """The model's own text."""
    model: str | None = None
    usage: Usage = field(default_factory=Usage)
    parts: tuple[int, ...] = ()
    """How many messages each call of the model was shown; their sum is all that were to show."""
    before: Coverage | None = None
    """Facts that the model's own text held."""
    after: Coverage | None = None
    """Facts that the finished text holds."""
    unverified: tuple[Doubt, ...] = ()
    """Claims of the model's text that what it was written from does not bear out."""
    facts: Facts | None = None
    """What was found in the messages that the text stands for."""


# -------------------------------------------------------------- the summarizer


@dataclass(frozen=True)
class SummaryReply:
    """What an auxiliary model answered."""

    text: str
    usage: Usage = field(default_factory=Usage)
    model: str | None = None
    finish_reason: str | None = None


class Summarizer(Protocol):
    """Writes summaries: an auxiliary model behind one method.

    It may have `window`, the input tokens that the model can take (None, or without: any number),
    or `window_for(model)`, if it asks several. One that is the agent's own model may have `model`,
    its name, and `takes_tools = True`: `summarize` then has one keyword more, `tools`, the schemas
    that the agent's requests carry, of which none may be called. An async method `ready` is awaited
    before each call, and what it takes is no part of `timeout_seconds`.
    """

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


def as_summarizer(given: Any) -> Summarizer | None:
    """A summarizer of our protocol, or a callable that takes messages and returns text."""
    if given is None or inspect.iscoroutinefunction(getattr(given, "summarize", None)):
        return given  # type: ignore[no-any-return]  # duck-typed by our protocol
    if not callable(given):
        raise ConfigError(
            f"summarizer: a {type(given).__name__}; expected an object with an async method "
            "`summarize`, or a callable that takes messages and returns text; the name of a model "
            "belongs in CompressorConfig(auxiliary_model=...)"
        )
    return _Callable(given)


class _Callable:
    """An async (or plain) callable behind the protocol; it is given the keywords it names."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._accepted = _keywords(function)
        self.takes_tools = self._accepted is not None and "tools" in self._accepted

    @property
    def window(self) -> int | None:
        """A callable may say how much it can read by an attribute `window`."""
        return getattr(self._function, "window", None)

    async def summarize(self, messages: list[Message], **given: Any) -> SummaryReply:
        """The answer; `given` as in `Summarizer.summarize`."""
        passed = {k: v for k, v in given.items() if self._accepted is None or k in self._accepted}
        # In a thread, for it may block: of an async one only the making of its coroutine is.
        call = functools.partial(self._function, messages, **passed)
        answer = await asyncio.wrap_future(begin(call))
        if inspect.isawaitable(answer):
            answer = await answer
        if isinstance(answer, SummaryReply):
            return answer
        return SummaryReply("" if answer is None else answer)


def _keywords(function: Callable[..., Any]) -> frozenset[str] | None:
    """The keywords a callable accepts; None: any."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return frozenset()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return None
    return frozenset(parameter.name for parameter in parameters)
