"""What a caller may ask of a compression, and what comes back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypedDict

from .facts import Coverage
from .ledger import Segment, Usage
from .messages import Message
from .writer import Written

__all__ = ["CompressResult", "Options"]


class Options(TypedDict, total=False):
    """The keywords of `ContextCompressor.compress`; what each means stands there."""

    protect_last_n_tokens: int | None
    summary_target_tokens: int | None
    auxiliary_model: str | None
    session_id: str | None
    parent_session_id: str | None
    target_tokens: int | None
    force: bool
    overhead_tokens: int
    extends: bool


@dataclass(frozen=True)
class CompressResult:
    """What to send, and what was done to get there. Counts are tokens of the model at hand."""

    messages: list[Message]
    context_status: str
    """ "full", "masked" or "summarized": what the view is now."""
    tokens_before: int
    tokens_after: int
    session_id: str
    """The newest epoch; any epoch's id, and the stable one, name the session in later calls."""
    parent_session_id: str | None
    summary_method: str | None
    """ "model" or "static" when this call wrote a summary, "reused" when it found one."""
    usage: Usage = field(default_factory=Usage)
    """What the auxiliary model cost in this call."""
    segments: tuple[Segment, ...] = ()
    """The summaries that stand in the view, in order."""
    masked: int = 0
    """How many tool outputs stand in the view as one line."""
    written: tuple[Written, ...] = ()
    """What this call wrote, with the coverage of facts before and after repair."""

    @property
    def tokens_saved(self) -> int:
        """Tokens that the view has fewer than the messages given."""
        return self.tokens_before - self.tokens_after

    @property
    def coverage_before(self) -> Coverage | None:
        """Facts that the model's own text held; None where no model wrote."""
        return next((text.before for text in self.written if text.before), None)

    @property
    def coverage_after(self) -> Coverage | None:
        """Facts that the finished summary holds; None where none was written."""
        return next((text.after for text in self.written if text.after), None)
