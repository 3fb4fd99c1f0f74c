"""What a summary is written from, and what came of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..facts import Coverage, Facts
from ..ledger.segments import Usage
from ..messages import Message
from .cache_marks import Prefix

__all__ = [
    "Brief",
    "Written",
    "billed",
]


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
    """The name that its segment will have in the session."""
    recall: bool = False
    """Whether the recall tool, which reads the originals by that name, exists."""
    prefix: Prefix | None = None
    """What the agent's last request began with, where a summary may be asked on it."""


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
    ungrounded: tuple[str, ...] = ()
    """Names in the model's text that stand nowhere in the conversation."""
    facts: Facts | None = None
    """What was found in the messages that the text stands for."""


def billed(written: Sequence[Written], spent: Iterable[Usage]) -> list[Written]:
    """The texts, of which the first also bears what was `spent` on texts that came to nothing."""
    return [
        replace(text, usage=sum(spent, text.usage)) if number == 0 else text
        for number, text in enumerate(written)
    ]
