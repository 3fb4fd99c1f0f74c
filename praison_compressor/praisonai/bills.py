"""`ConversationBill`: a bill with the steps that a conversation's requests carried from before."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

from ..compressor.bills import Bill
from .journal import KeptSteps


@dataclass(frozen=True)
class ConversationBill(Bill):
    """What a conversation's requests cost, their summaries, and the host's requests without us."""

    ALONE: ClassVar[str] = "As the host alone"

    kept: KeptSteps = field(default_factory=KeptSteps)
    """Steps of earlier turns that the requests carried, summed over all requests."""

    def carried(self, kept: KeptSteps) -> ConversationBill:
        """Return the bill with the kept steps of a request."""
        both = KeptSteps(self.kept.steps + kept.steps, self.kept.tokens + kept.tokens)
        return replace(self, kept=both)

    def lines(self) -> list[str]:
        """Return the bill in lines, kept steps behind the requests."""
        first, *others = super().lines()
        kept = [f"In these requests: {self.kept}"] if self.kept.steps else []
        return [first, *kept, *others]
