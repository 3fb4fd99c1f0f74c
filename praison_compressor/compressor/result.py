"""`CompressResult`: the view to send, and its history; the event of a commit."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..events import Event
from ..ledger.segments import Segment, Usage
from ..ledger.tools import api_of, schemas_for
from ..messages import Message, to_plain
from ..summaries.protocol import Written
from ..tokens.counter import TokenCounter
from ..tokens.models import cached_input_price, input_price
from ..view.view import View
from .bills import Bill
from .request import Request


@dataclass(frozen=True)
class CompressResult:
    """The view to send, with counts in tokens of its model.

    The `repr` leaves the conversation out: `asyncio.run` makes one of every result, which for a
    long conversation takes a sixth of the time of counting it.
    """

    messages: list[Message] = field(repr=False)
    context_status: str
    """ "full", "masked" or "summarized"."""
    tokens_before: int
    tokens_after: int
    session_id: str
    """The newest epoch's id. Each epoch's id and the stable id name the session in later calls."""
    parent_session_id: str | None
    summary_method: str | None
    """ "model" or "static" if this call wrote a summary, "reused" if the ledger had one. "static"
    too while the view has a text without a model in place of a summary that is being written."""
    usage: Usage = field(default_factory=Usage)
    """Cost of the auxiliary model in this call, and in the background since the call before."""
    segments: tuple[Segment, ...] = field(default=(), repr=False)
    """The summaries of the view, in order."""
    masked: int = 0
    """Tool outputs that the view shows as one line, or as their first and last lines."""
    newly_masked: int = 0
    """Those of `masked` that this call recorded."""
    newly_summarized: int = 0
    """Messages that summaries of this call replace."""
    vetoed: bool = False
    """Whether a hook refused a compression. `messages` fit the window all the same, if necessary by
    a text that is recorded nowhere."""
    masked_secrets: int = 0
    """Keys and tokens masked in the archived originals of the view."""
    written: tuple[Written, ...] = field(default=(), repr=False)
    """Texts that this call wrote and recorded."""
    model: str | None = None
    """The model that reads the view."""
    bill: Bill | None = field(default=None, compare=False)
    """What the session has cost so far; requests by `record_usage`."""
    recall_tools: tuple[Callable[..., str], ...] = field(default=(), repr=False, compare=False)
    """Two functions to give to the model as tools: they search and read the archive. () while the
    view leaves nothing out. `recall_schemas` describes them to the model."""

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
        """Return the tokens of the given messages less those of the view."""
        return self.tokens_before - self.tokens_after

    @property
    def cost_saved(self) -> float | None:
        """Return the US dollars that one request saves, or None if unknown.

        That is `tokens_saved` at the input price of `model` in litellm's table. Every later request
        saves it again. `usage` has the cost of summaries.
        """
        return _priced(self.tokens_saved, input_price(self.model))

    @property
    def cost_saved_cached(self) -> float | None:
        """Return `cost_saved` at the price of cached input, the least saving."""
        return _priced(self.tokens_saved, cached_input_price(self.model))


def result_of(
    request: Request, view: View, tokens: TokenCounter, written: Sequence[Written] = ()
) -> CompressResult:
    """Return the result with a view; `written` has the texts of this call."""
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
        # Copies: an application may edit what it is given.
        segments=tuple(replace(each, rendered=to_plain(each.rendered)) for each in segments),
        masked=masked,
        masked_secrets=sum(tile.segment.secrets for tile in standing),
        written=tuple(written),
        model=request.config.model,
    )


def usage_of(written: Sequence[Written]) -> Usage:
    """Return the cost of the texts."""
    return functools.reduce(Usage.__add__, (text.usage for text in written), Usage())


def _method(view: View, written: Sequence[Written]) -> str | None:
    """Return the `summary_method` of a view."""
    methods = {text.method for text in written}
    if methods:
        return "model" if "model" in methods else "static"
    segments = view.summaries()
    # A placeholder's text is recorded nowhere.
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
