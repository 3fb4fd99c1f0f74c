"""What a view may weigh: window, reserve, trigger and target as tokens."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..config import CompressorConfig
from ..errors import BudgetTooSmall

LEAST_FACTS = 3_000
"""Tokens of facts where an eighth of the target allows it: how many files and rules a session has
does not shrink with the window. Half of `fold_ratio`, so that not every summary is a fold."""


@dataclass(frozen=True)
class Budget:
    """Tokens, all of them; what each is for."""

    limit: int
    """A view above it is refused by the provider: window - reserve - overhead."""
    trigger: int
    target: int
    tail: int
    head: int
    prose: int | None
    """Asked of the model; None: 5 % of the segment, 750 to 8,000."""
    facts: int
    fold: int
    """All summaries but one new one; above it they are folded into one that takes no more."""
    min_gain: float = 0.05
    recent_turns: int = 0
    mask_recent: int = 0
    """Newest tokens whose tool outputs are not masked."""
    large: int | None = None
    """Of one tool's result; a larger one goes to the archive at once. None: however large."""
    exact: bool = False
    """The target is a size asked for: facts may fill what the prose leaves of it."""

    @classmethod
    def of(cls, config: CompressorConfig, window: int, overhead: int = 0) -> Budget:
        """The budget for a window, by the ratios of the configuration.

        Raises:
            BudgetTooSmall: reserve and overhead leave nothing.
        """
        reserve = config.output_reserve
        if reserve is None:
            reserve = min(8_000, window // 4)
        usable = window - reserve - overhead
        if usable <= 0:
            raise BudgetTooSmall(reserve + overhead, window, "output_reserve and tool schemas")
        floor = min(config.token_floor, usable)
        trigger = max(int(usable * config.trigger_ratio), floor)
        target = int(trigger * config.target_ratio)
        share = config.large_result_share
        # Without the overhead, which changes: what was whole once stays so in the next request.
        room = window - reserve
        large = None if share is None else max(int(room * share), min(floor, room // 2))
        return replace(cls._with_target(config, usable, trigger, target), large=large)

    @classmethod
    def exactly(cls, config: CompressorConfig, target: int) -> Budget:
        """A view of at most `target` tokens: replaces window, reserve, trigger and target.

        Facts fill what the prose leaves of it, unless the reader can look them up: then the tail.
        """
        budget = cls._with_target(config, target, target, target)
        return replace(budget, exact=not config.recall)

    @classmethod
    def _with_target(
        cls, config: CompressorConfig, limit: int, trigger: int, target: int
    ) -> Budget:
        head, facts = config.head_tokens, config.quotes_budget_tokens
        return cls(
            limit=limit,
            trigger=trigger,
            target=target,
            tail=config.protect_last_n_tokens,
            head=limit // 10 if head is None else head,
            prose=config.summary_target_tokens,
            facts=max(target // 10, min(LEAST_FACTS, target // 8)) if facts is None else facts,
            fold=int(target * config.fold_ratio),
            min_gain=config.min_gain_ratio,
            recent_turns=config.keep_recent_turns or 0,
            mask_recent=min(target // 2, config.protect_last_n_tokens)
            if config.mask_keep_recent_tokens is None
            else config.mask_keep_recent_tokens,
        )

    def prose_for(self, source_tokens: int) -> int:
        """Tokens to ask of the model for a segment of that size."""
        if self.prose is not None:
            return self.prose
        return min(8_000, max(750, source_tokens // 20))
