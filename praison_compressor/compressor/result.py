"""`CompressResult`: what to send, and what was done to get there."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..events import Event
from ..ledger.segments import Segment, Usage
from ..ledger.tools import api_of, schemas_for
from ..messages import Message
from ..summaries.protocol import Written
from ..tokens.counter import TokenCounter
from ..tokens.models import cached_input_price, input_price
from ..view.view import View
from .request import Request


@dataclass(frozen=True)
class CompressResult:
    """What to send, and what was done to get there. Counts are tokens of the model that reads it.

    The `repr` leaves the conversation out: `asyncio.run` makes one of what a task has returned, and
    that of a long conversation takes as long as a sixth of counting it.
    """

    messages: list[Message] = field(repr=False)
    context_status: str
    """ "full", "masked" or "summarized": what the view is now."""
    tokens_before: int
    tokens_after: int
    session_id: str
    """The newest epoch. Any epoch's id, and the stable one, name the session in later calls."""
    parent_session_id: str | None
    summary_method: str | None
    """ "model" or "static" when this call wrote a summary, "reused" when it found one. "static" too
    while a text without a model fills in for a summary that is being written."""
    usage: Usage = field(default_factory=Usage)
    """What the auxiliary model cost in this call, and in the background since the one before."""
    segments: tuple[Segment, ...] = field(default=(), repr=False)
    """The summaries of the view, in order."""
    masked: int = 0
    """How many tool outputs the view shows as one line, or as their first and last lines."""
    newly_masked: int = 0
    """How many of these this call has recorded."""
    newly_summarized: int = 0
    """How many messages are replaced by summaries that this call has recorded."""
    vetoed: bool = False
    """Whether a hook refused a compression that was due or asked for. `messages` fit all the same;
    above the window by a text that is recorded nowhere."""
    masked_secrets: int = 0
    """How many keys and tokens are masked in the archive of what the view leaves out."""
    written: tuple[Written, ...] = field(default=(), repr=False)
    """What this call wrote."""
    model: str | None = None
    """The model that reads the view."""
    recall_tools: tuple[Callable[..., str], ...] = field(default=(), repr=False, compare=False)
    """Two functions that search and read what the view leaves out, to give to the model as tools;
    none while nothing is left out. `recall_schemas` describes them to the model."""

    def __getstate__(self) -> dict[str, Any]:
        # The tools hold a store: another process has its own.
        return {**vars(self), "recall_tools": ()}

    @property
    def recall_schemas(self) -> list[dict[str, Any]]:
        """Return the recall tools as the request's `tools` describe them; [] without tools.

        The form is that of the calls in `messages`: chat completions, Anthropic's Messages or
        Responses. Where nothing was called yet, `recall_schemas_for` takes the API's name.
        """
        return self.recall_schemas_for(api_of(self.messages))

    def recall_schemas_for(self, api: str) -> list[dict[str, Any]]:
        """Return the recall tools in the form of "chat", "messages" or "responses"."""
        return schemas_for(api) if self.recall_tools else []

    @property
    def tokens_saved(self) -> int:
        """Return the tokens that the view has fewer than the messages given."""
        return self.tokens_before - self.tokens_after

    @property
    def cost_saved(self) -> float | None:
        """Return the US dollars that a request with this view costs less than with the messages.

        That is `tokens_saved` at the input price that litellm's table lists for `model`; None where
        the table has none. Every later request saves it again. `usage` has what summaries cost.
        """
        return _priced(self.tokens_saved, input_price(self.model))

    @property
    def cost_saved_cached(self) -> float | None:
        """Return the saving where the provider's prompt cache had served the tokens: the least."""
        return _priced(self.tokens_saved, cached_input_price(self.model))


def result_of(
    request: Request, view: View, tokens: TokenCounter, written: Sequence[Written] = ()
) -> CompressResult:
    """Return the result that shows a view, after `written`."""
    segments, standing = view.summaries(), view.standing
    masked = len(standing) - len(segments)
    return CompressResult(
        messages=view.messages(),
        context_status="summarized" if segments else "masked" if masked else "full",
        tokens_before=view.given_tokens,
        tokens_after=view.size() + view.pinned_tokens + tokens.messages([]),
        session_id=view.session.tip,
        parent_session_id=view.session.parent,
        summary_method=_method(view, written),
        usage=usage_of(written),
        segments=segments,
        masked=masked,
        masked_secrets=sum(tile.segment.secrets for tile in standing),
        written=tuple(written),
        model=request.config.model,
    )


def usage_of(written: Sequence[Written]) -> Usage:
    """Return the sum of what the texts cost."""
    return functools.reduce(Usage.__add__, (text.usage for text in written), Usage())


def _method(view: View, written: Sequence[Written]) -> str | None:
    """Return how the summaries came to be: written now, or found in the ledger."""
    methods = {text.method for text in written}
    if methods:
        return "model" if "model" in methods else "static"
    segments = view.summaries()
    # A text that fills in while a model writes is recorded nowhere.
    unrecorded = view.segments[len(view.session.entries) :]
    found = "static" if any(s is t for s in segments for t in unrecorded) else "reused"
    return found if segments else None


def committed(request: Request, before: View, result: CompressResult, seconds: float) -> Event:
    """Return the event of a compression that was recorded."""
    usage = result.usage
    return Event(
        "committed",
        before.session.id,
        {
            "tokens_before": before.size(),
            "tokens_after": result.tokens_after,
            "method": result.summary_method,
            "status": result.context_status,
            "model": next((text.model for text in result.written if text.model), None),
            "masked": result.masked,
            "secrets": result.masked_secrets,
            "epoch": result.session_id,
            "parent": result.parent_session_id,
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
            "cache_read_tokens": usage.cache_read_tokens,
            "cost": usage.cost,
            "cost_saved": result.cost_saved,
            "seconds": seconds,
        },
    )


def _priced(tokens: int, price: float | None) -> float | None:
    return None if price is None else tokens * price
