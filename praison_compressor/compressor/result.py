"""`CompressResult`: the output of one call."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from ..ledger.segments import Segment, Session, Usage
from ..messages import Message, to_plain
from ..recall.answers import api_of, schemas_for
from ..summaries.protocol import SegmentText
from ..tokens.counter import TokenCounter
from ..tokens.models import prices_of
from ..view.view import View
from .bills import Bill
from .request import Request

ContextStatus = Literal["full", "masked", "summarized"]
SummaryMethod = Literal["model", "static", "reused"]


@dataclass(frozen=True)
class CompressResult:
    """The view to send, with counts in tokens of its model."""

    # `repr` omits the messages: `asyncio.run` calls `repr`, which would take a sixth of the
    # counting time.
    messages: list[Message] = field(repr=False)
    """The view: the messages to send."""
    context_status: ContextStatus
    """ "full", "masked" or "summarized"."""
    tokens_before: int
    """Tokens of the given messages, as they came."""
    tokens_after: int
    """Tokens of `messages`, with the opening of a request."""
    session_id: str
    """The newest epoch's id. Each epoch's id and the stable id name the session in later calls."""
    parent_session_id: str | None
    """Id of the previous epoch, or of the forked epoch; None in a new session."""
    summary_method: SummaryMethod | None
    """ "model" or "static" if this call wrote a summary, "reused" if the ledger had one. It is
    "static" too while the background still writes the summary."""
    usage: Usage = field(default_factory=Usage)
    """Cost of the auxiliary model in this call, and in the background since the previous call."""
    segments: tuple[Segment, ...] = field(default=(), repr=False)
    """The summaries of the view, in order."""
    masked: int = 0
    """Tool outputs that the view shows as one line, or as their first and last lines."""
    newly_masked: int = 0
    """Outputs among `masked` that this call recorded."""
    newly_summarized: int = 0
    """Messages that summaries of this call replace."""
    summarized_by_model: int = 0
    """Messages among `newly_summarized` whose summary has a model's prose; other summaries have
    only quotes."""
    vetoed: bool = False
    """Whether a hook refused a compression. `messages` still fit the window; an unrecorded static
    text may replace some."""
    redacted_secrets: int = 0
    """Keys and tokens redacted in the archived originals of the view."""
    written: tuple[SegmentText, ...] = field(default=(), repr=False)
    """Summaries that this call recorded."""
    model: str | None = None
    """The model that reads the view."""
    bill: Bill | None = field(default=None, compare=False)
    """The session's cost. Requests count only after `record_usage`."""
    recall_tools: tuple[Callable[..., str], ...] = field(default=(), repr=False, compare=False)
    """Two functions to give to the model as tools: they search and read the archive. () while the
    view leaves nothing out. `recall_schemas` describes them to the model."""

    def __getstate__(self) -> dict[str, Any]:
        # The tools are left out: they hold a store, and another process has its own store.
        return {**vars(self), "recall_tools": ()}

    @property
    def recall_schemas(self) -> list[dict[str, Any]]:
        """The recall tools, in the form of the messages' calls.

        Before the first call the form is unknown: call `recall_schemas_for(api)`.
        """
        return self.recall_schemas_for(api_of(self.messages))

    def recall_schemas_for(self, api: str) -> list[dict[str, Any]]:
        """Return the recall tools in the form of "chat", "messages" or "responses"."""
        return schemas_for(api) if self.recall_tools else []

    @property
    def tokens_saved(self) -> int:
        """Tokens of the given messages less those of the view."""
        return self.tokens_before - self.tokens_after

    @property
    def cost_saved(self) -> float | None:
        """US dollars saved by each request; None if unknown."""
        return _dollars_for(self.tokens_saved, prices_of(self.model).input)

    @property
    def cost_saved_cached(self) -> float | None:
        """Lower bound of `cost_saved`, by the price of cached input."""
        return _dollars_for(self.tokens_saved, prices_of(self.model).cached)


def result_of(
    request: Request,
    view: View,
    tokens: TokenCounter,
    *,
    session_before: Session | None = None,
    texts: Sequence[SegmentText] = (),
    is_shortened: bool = False,
) -> CompressResult:
    """Return the result with a view.

    Args:
        session_before: the session before this call's commit; None: nothing was committed.
        texts: the summaries that this call's commit recorded.
        is_shortened: whether fixed messages were shortened; the status is then at least "masked".
    """
    segments = view.summaries()
    masked = len(view.all_tiles) - len(segments)
    entries = view.session.entries[len(session_before.entries) :] if session_before else ()
    new = [entry.segment for entry in entries]
    summaries = [segment for segment in new if segment.kind == "summary"]
    return CompressResult(
        messages=view.messages(),
        context_status="summarized" if segments else "masked" if masked or is_shortened else "full",
        tokens_before=view.given_tokens,
        tokens_after=view.size() + view.pinned_tokens() + tokens.messages([]),
        session_id=view.session.tip,
        parent_session_id=view.session.parent,
        summary_method=_summary_method(view, texts, session_before),
        usage=usage_of(texts),
        # Copies, because an application may edit its result.
        segments=tuple(replace(s, rendered=to_plain(s.rendered)) for s in segments),
        masked=masked,
        newly_masked=sum(segment.replaces_result for segment in new),
        newly_summarized=sum(len(segment.run) for segment in summaries),
        summarized_by_model=sum(len(s.run) for s in summaries if s.method == "model"),
        redacted_secrets=sum(tile.segment.secrets for tile in view.all_tiles),
        written=tuple(texts),
        model=request.config.model,
    )


def usage_of(texts: Sequence[SegmentText]) -> Usage:
    """Return the cost of the texts."""
    return functools.reduce(Usage.__add__, (text.usage for text in texts), Usage())


def add_cost(unreported: Usage, texts: Sequence[SegmentText]) -> tuple[SegmentText, ...]:
    """Return the texts; add the unreported cost to the first."""
    charged = [replace(text, usage=text.usage + unreported) for text in texts[:1]]
    return (*charged, *texts[1:])


def _summary_method(
    view: View, texts: Sequence[SegmentText], session_before: Session | None
) -> SummaryMethod | None:
    earlier = [entry.segment.rendered for entry in session_before.entries] if session_before else []
    methods = {text.method for text in texts if text.message not in earlier}
    if methods:
        return "model" if "model" in methods else "static"
    segments = view.summaries()
    # A placeholder's text is recorded nowhere.
    unrecorded = view.segments[len(view.session.entries) :]
    if any(s is t for s in segments for t in unrecorded):
        return "static"
    return "reused" if segments else None


def _dollars_for(tokens: int, price: float | None) -> float | None:
    return None if price is None else tokens * price
