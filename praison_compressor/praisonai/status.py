"""Describe a conversation's last or next request, in parts and in words."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..compressor.bills import Bill, short_count
from ..compressor.context_compressor import ContextCompressor
from ..messages import is_system
from ..tokens.models import model_limits
from .agent_ledger import store_place
from .conversations import Conversation
from .journal import KeptSteps

NO_BILL = Bill()


@dataclass(frozen=True)
class Status:
    """The parts of a conversation's last or next request, in tokens."""

    session_id: str
    epoch: str
    """The newest epoch; the session's id before the first compression."""
    context_status: str
    model: str | None
    window: int
    tokens_before: int
    """Tokens of the whole conversation, with tool schemas."""
    system_tokens: int = 0
    summary_tokens: int = 0
    kept_tokens: int = 0
    tool_tokens: int = 0
    summaries: int = 0
    store: str = "memory"
    """The ledger's place."""
    earlier: KeptSteps = field(default_factory=KeptSteps)
    """Dropped steps of earlier turns, a part of the kept tokens."""
    is_sent: bool = True
    """False: the numbers describe the next request, which a command changed."""
    bill: Bill = NO_BILL
    """The conversation's cost so far."""
    pinned: tuple[str, ...] = ()
    """Texts that every compressed view keeps word for word: the option's, then `/pin`'s."""

    @property
    def tokens(self) -> int:
        """Return the tokens that were sent."""
        return self.system_tokens + self.summary_tokens + self.kept_tokens + self.tool_tokens

    def __str__(self) -> str:
        return f"{self.parts} ({self.context_status}){self.of_earlier}"

    @property
    def parts(self) -> str:
        """Return the parts, their sum and share of the window, in words."""
        share = round(100 * self.tokens / self.window)
        return (
            f"{short_count(self.tokens)} (system {short_count(self.system_tokens)}, "
            f"summary {short_count(self.summary_tokens)}, kept {short_count(self.kept_tokens)}, "
            f"tools {short_count(self.tool_tokens)}) · {share} % of {short_count(self.window)}"
        )

    @property
    def of_earlier(self) -> str:
        """Return words for the kept steps of earlier turns, "" without any."""
        return f"; {self.earlier}" if self.earlier.steps else ""


def status_of(
    conversation: Conversation, engine: ContextCompressor, bill: Bill = NO_BILL
) -> Status:
    """Return the status of the last request, with zeros before the first."""
    config, result = engine.config, conversation.result
    messages, segments = (result.messages, result.segments) if result else ((), ())
    system = sum(map(engine.tokens.message, filter(is_system, messages)))
    summaries = sum(segment.tokens for segment in segments)
    before = result.tokens_before + conversation.overhead_tokens if result else 0
    return Status(
        session_id=conversation.session_id,
        epoch=result.session_id if result else conversation.session_id,
        context_status=result.context_status if result else "full",
        model=config.model,
        window=model_limits(config.model, config.context_window).window,
        tokens_before=before,
        system_tokens=system,
        summary_tokens=summaries,
        kept_tokens=max(0, result.tokens_after - system - summaries) if result else 0,
        tool_tokens=conversation.overhead_tokens,
        summaries=len(segments),
        store=store_place(engine.store),
        earlier=conversation.kept_steps,
        is_sent=conversation.is_sent,
        bill=bill,
        pinned=tuple(dict.fromkeys((*config.pinned, *conversation.pinned))),
    )
