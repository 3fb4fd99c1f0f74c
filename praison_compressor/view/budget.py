"""`Budget`: tokens of a view and its parts; pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..config import CompressorConfig
from ..errors import BudgetTooSmall
from .costs import Costs

LEAST_QUOTES = 3_000
"""Least tokens of quotes, up to an eighth of the target: a session's files and wishes do not shrink
with the window. An eighth is below half of `fold_ratio`, so that not every summary is a fold."""

LARGE_SHARE = 0.25
"""Share of the window less the reserve that one tool's result may take; a larger result goes to the
archive at once (tests/view/test_masks.py)."""

LEAST_USER_QUOTE = 50
"""Tokens in which a message of the user is quoted by its beginning and end
(tests/compressor/test_tails.py)."""

TAIL_SHARE = 0.5
"""Share of the target less the head that the tail gets if it asks
(tests/compressor/test_tails.py)."""

EXACT_TAIL_SHARE = 0.25
"""Tail's share of the target less the head, for `target_tokens` without recall: a shorter tail
makes room for a deeper summary."""

TINY_TAIL_SHARE = 0.6
"""Tail's share of the target less the head in a tiny room; the rest holds a frame and twice the
requested prose (tests/benchmarks/exam). With recall the frame is longer: `TAIL_SHARE`."""

CROWDED_SHARE = 0.75
"""Largest share of the trigger for fixed messages; above it the marks are raised. Otherwise every
few turns would compress and free little (tests/view/test_plan.py)."""

CROWDED_TARGET = 0.3
"""A compression fills this share of the room between the fixed messages and a raised trigger. A
summary needs some of it, the turns to come the rest."""

FORCED_SHARE = 0.6
"""A compression forced below the trigger leaves this share of the view."""


def usual_reserve(window: int) -> int:
    """Return the tokens left for an answer unless `output_reserve` is given."""
    return min(8_000, window // 4)


@dataclass(frozen=True)
class Budget:
    """Tokens of a view and its parts."""

    limit: int
    """The provider refuses a view above it: window - reserve - overhead."""
    trigger: int
    target: int
    tail_tokens: int
    head_tokens: int
    prose_tokens: int | None
    """Asked of the model; None: 5 % of the segment, 750 to 8,000."""
    quote_tokens: int
    """Set aside for quotes."""
    most_quote_tokens: int
    """Quotes, once the tail has all it asks for."""
    fold_tokens: int
    """Room of a fold. Summaries that exceed it by the room of one more are folded."""
    user_quote_tokens: int = 0
    """Least quotes per user message; 0: `quote_tokens` is the whole budget."""
    min_gain: float = 0.05
    recent_turns: int = 0
    mask_recent_tokens: int = 0
    """Newest tokens whose tool outputs are not masked."""
    most_result_tokens: int | None = None
    """Most for one tool result; a larger one is archived at once. None: no bound."""
    is_exact: bool = False
    """Whether a size was requested, whatever the window."""
    tail_share: float = TAIL_SHARE
    has_model: bool = False
    """Whether a model writes prose; without one the quotes take its room."""
    is_forced: bool = False
    """Whether to compress below the trigger too."""
    costs: Costs | None = None
    """Prices and pace by which masks are decided; None: unknown, `MASK_WORTH` decides."""
    tiny_tail_share: float | None = None
    """The tail's share of an exact size where head and newest step leave little room."""
    mask_reach: float = 0.5
    """Masks alone suffice up to this share of the way from target to trigger. Above it, masks would
    break the prefix cache repeatedly (tests/benchmarks/economy.py)."""

    @classmethod
    def of(cls, config: CompressorConfig, window: int, overhead: int = 0) -> Budget:
        """Return the budget for a window, by the ratios of the configuration.

        Raises:
            BudgetTooSmall: reserve and overhead leave nothing.
        """
        reserve = config.output_reserve
        if reserve is None:
            reserve = usual_reserve(window)
        usable = window - reserve - overhead
        if usable <= 0:
            raise BudgetTooSmall(
                reserve + overhead, window, "output_reserve, tool schemas and pinned texts"
            )
        floor = min(config.token_floor, usable)
        trigger = max(int(usable * config.trigger_ratio), floor)
        target = int(trigger * config.target_ratio)
        # The overhead varies and is left out: a result sent whole must stay whole.
        room = window - reserve
        large = max(int(room * LARGE_SHARE), min(floor, room // 2))
        return replace(cls._with_target(config, usable, trigger, target), most_result_tokens=large)

    @classmethod
    def exactly(cls, config: CompressorConfig, target: int) -> Budget:
        """Return the budget of a view of at most `target` tokens.

        A reader without recall gets more quotes and less tail.
        """
        budget = replace(cls._with_target(config, target, target, target), is_exact=True)
        if config.recall:
            return replace(budget, tiny_tail_share=TAIL_SHARE)
        return replace(
            budget,
            tail_share=EXACT_TAIL_SHARE,
            tiny_tail_share=TINY_TAIL_SHARE,
            most_quote_tokens=max(0, target),
        )

    @classmethod
    def _with_target(
        cls, config: CompressorConfig, limit: int, trigger: int, target: int
    ) -> Budget:
        head, quotes = config.head_tokens, config.quotes_budget_tokens
        tail = config.protect_last_n_tokens
        user_quote = LEAST_USER_QUOTE if quotes is None else 0
        if quotes is None:
            quotes = max(target // 10, min(LEAST_QUOTES, target // 8))
        return cls(
            limit=limit,
            trigger=trigger,
            target=target,
            tail_tokens=tail,
            head_tokens=limit // 10 if head is None else head,
            prose_tokens=config.summary_target_tokens,
            quote_tokens=quotes,
            most_quote_tokens=quotes,
            user_quote_tokens=user_quote,
            fold_tokens=int(target * config.fold_ratio),
            min_gain=config.min_gain_ratio,
            recent_turns=config.keep_recent_turns or 0,
            mask_recent_tokens=min(target // 2, tail),
        )

    @property
    def window_limit(self) -> int:
        """Return the window's limit; 0 for a requested size."""
        return 0 if self.is_exact else self.limit

    def prose_for(self, source_tokens: int) -> int:
        """Return the tokens of prose for a segment of that size."""
        if self.prose_tokens is not None:
            return self.prose_tokens
        return min(8_000, max(750, source_tokens // 20))

    # ---------------------------------------------------------- the marks of one view

    def raise_marks(self, fixed: int) -> Budget:
        """Return the budget with higher marks if `fixed` tokens crowd it."""
        if fixed <= CROWDED_SHARE * self.trigger:
            return self
        room = min(int((1 - CROWDED_SHARE) * self.trigger), (self.limit - fixed) // 2)
        trigger = max(self.trigger, fixed + room)
        target = max(self.target, fixed + int((trigger - fixed) * CROWDED_TARGET))
        return replace(self, trigger=trigger, target=target)

    def force_below(self, size: int) -> Budget:
        """Return the budget that makes a view of `size` tokens compress.

        Masks alone must then reach the target.
        """
        if size > self.trigger:
            return replace(self, mask_reach=0.0)
        target = min(self.target, int(size * FORCED_SHARE))
        return replace(self, trigger=size - 1, target=target, mask_reach=0.0)

    def mark_at(self, share: float) -> int:
        """Return the tokens a share of the way from target to trigger."""
        return self.target + int(share * (self.trigger - self.target))
