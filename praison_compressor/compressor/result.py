"""What comes back from a compression."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..config import Event
from ..ledger.segments import Segment, Usage
from ..ledger.tools import SCHEMAS
from ..messages import Message
from ..summaries.protocol import Written
from ..tokens.counter import TokenCounter
from ..tokens.models import cached_input_price, input_price
from .call import Look


@dataclass(frozen=True)
class Origin:
    """What a view was made from: its rules are read from there, if somebody asks."""

    messages: Sequence[Message] = ()
    hidden: frozenset[int] = frozenset()
    """Positions of the messages that do not stand in the view as they are."""


@dataclass(frozen=True)
class CompressResult:
    """What to send, and what was done to get there. Counts are tokens of the model at hand.

    Its `repr` leaves the conversation out: `asyncio.run` makes one of what a task has returned, and
    that of a long one takes as long as a sixth of counting it.
    """

    messages: list[Message] = field(repr=False)
    context_status: str
    """ "full", "masked" or "summarized": what the view is now."""
    tokens_before: int
    tokens_after: int
    session_id: str
    """The newest epoch; any epoch's id, and the stable one, name the session in later calls."""
    parent_session_id: str | None
    summary_method: str | None
    """ "model" or "static" when this call wrote a summary, "reused" when it found one; "static" too
    while a text without a model stands in for a summary that is being written."""
    usage: Usage = field(default_factory=Usage)
    """What the auxiliary model cost in this call, and in the background since the one before."""
    segments: tuple[Segment, ...] = field(default=(), repr=False)
    """The summaries that stand in the view, in order."""
    masked: int = 0
    """How many tool outputs stand in the view as one line, or as their first and last lines."""
    newly_masked: int = 0
    """How many of them this call has recorded."""
    newly_summarized: int = 0
    """How many messages the summaries stand for that this call has recorded."""
    vetoed: bool = False
    """Whether a hook refused a compression that was due or asked for: `messages` fit all the same,
    above the window by a text that is recorded nowhere."""
    masked_secrets: int = 0
    """How many keys and tokens are masked in the archive of what the view leaves out."""
    written: tuple[Written, ...] = field(default=(), repr=False)
    """What this call wrote."""
    model: str | None = None
    """The model that reads the view."""
    recall_tools: tuple[Callable[..., str], ...] = field(default=(), repr=False, compare=False)
    """Two functions that search and read what the view leaves out, to give to the model as tools;
    none while nothing is left out. `recall_schemas` describes them to it."""
    origin: Origin = field(default=Origin(), repr=False, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        # Tools hold a store: a process that a result is handed to has its own.
        return {**vars(self), "recall_tools": (), "origin": Origin()}

    @property
    def recall_schemas(self) -> list[dict[str, Any]]:
        """The recall tools as a chat request's `tools` describe them; empty without them."""
        return [copy.deepcopy(schema) for schema in SCHEMAS] if self.recall_tools else []

    @property
    def tokens_saved(self) -> int:
        """Tokens that the view has fewer than the messages given."""
        return self.tokens_before - self.tokens_after

    @property
    def cost_saved(self) -> float | None:
        """US dollars that a request with this view costs less than one with the messages given.

        `tokens_saved` at the input price that litellm's table lists for `model`; None where it has
        none. Every later request saves it again. What was paid for summaries is in `usage`.
        """
        return _priced(self.tokens_saved, input_price(self.model))

    @property
    def cost_saved_cached(self) -> float | None:
        """The same where the provider's prompt cache would have served those tokens: the least."""
        return _priced(self.tokens_saved, cached_input_price(self.model))

    def committed(self, look: Look, *, seconds: float) -> Event:
        """The event of this result; `look` is what was before it, `seconds` what it took."""
        return Event(
            "committed",
            look.session.id,
            {
                "tokens_before": look.layout.size(),
                "tokens_after": self.tokens_after,
                "method": self.summary_method,
                "status": self.context_status,
                "model": next((text.model for text in self.written if text.model), None),
                "masked": self.masked,
                "secrets": self.masked_secrets,
                "epoch": self.session_id,
                "parent": self.parent_session_id,
                "prompt_tokens": self.usage.prompt_tokens,
                "completion_tokens": self.usage.completion_tokens,
                "cache_read_tokens": self.usage.cache_read_tokens,
                "cost": self.usage.cost,
                "cost_saved": self.cost_saved,
                "seconds": seconds,
            },
        )


def result_of(look: Look, tokens: TokenCounter, written: Sequence[Written] = ()) -> CompressResult:
    """The result that a look shows, after `written`: with the caller's own messages."""
    call, layout = look.call, look.layout
    segments = layout.summaries()
    standing = [segment for _, _, segment in layout.standing()]
    masked = len(standing) - len(segments)
    methods = {text.method for text in written}
    method = "model" if "model" in methods else "static" if methods else None
    # What stands in while a model writes is recorded nowhere: no summary of the ledger's.
    stand_ins = layout.segments[len(look.session.entries) :]
    found = "static" if any(s is t for s in segments for t in stand_ins) else "reused"
    return CompressResult(
        messages=layout.view(own=look.reading.own),
        context_status="summarized" if segments else "masked" if masked else "full",
        tokens_before=tokens.seen(call.reading.seen),
        tokens_after=layout.size() + tokens.messages([]),
        session_id=look.session.tip,
        parent_session_id=look.session.parent,
        summary_method=method or (found if segments else None),
        usage=functools.reduce(Usage.__add__, (text.usage for text in written), Usage()),
        segments=segments,
        masked=masked,
        masked_secrets=sum(segment.secrets for segment in standing),
        written=tuple(written),
        model=call.config.model,
        origin=Origin(
            layout.transcript.messages,
            frozenset(n for start, end, _ in layout.standing() for n in range(start, end)),
        ),
    )


def _priced(tokens: int, price: float | None) -> float | None:
    return None if price is None else tokens * price
