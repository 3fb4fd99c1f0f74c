"""Define the values of a plan: `Budget`, `Plan` with its `Job`s."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from ..config import CompressorConfig
from ..errors import BudgetTooSmall
from ..ledger.segments import Segment
from .costs import Costs
from .view import Run, View, largest_fixed

LEAST_QUOTE_TOKENS = 3_000
"""Lower bound of the tokens for quotes, but at most an eighth of the target; a tenth of the target
if that is more. With a much larger share few summaries would reach `fold_ratio` (0.28), so most
summaries would be folds."""

LARGE_SHARE = 0.25
"""A tool result above this share of (window - reserve) is excerpted (tests/view/test_masks.py)."""

LEAST_USER_QUOTE_TOKENS = 50
"""Tokens for the beginning and end of one user message (tests/compressor/test_tails.py)."""

TAIL_SHARE = 0.5
"""The tail's share of the target less the head (tests/compressor/test_tails.py)."""

EXACT_TAIL_SHARE = 0.25
"""Replaces `TAIL_SHARE` for `target_tokens` without recall: the summary gets more tokens."""

TINY_TAIL_SHARE = 0.6
"""Replaces `EXACT_TAIL_SHARE` if few tokens are free: the other tokens suffice for a frame and
twice the requested prose (tests/benchmarks/exam)."""

CROWDED_SHARE = 0.75
"""If the fixed messages exceed this share of the trigger, trigger and target are raised. Without
the raise a compression would free few tokens (tests/view/test_plan.py)."""

CROWDED_FILL_SHARE = 0.3
"""Where a raised target lies between the fixed messages (0) and the raised trigger (1)."""

BESIDE_VIEW = "the reserve for the answer, tool schemas and pinned texts"
"""For errors: what a window holds beside the view."""

FORCED_SHARE = 0.6
"""Target of a compression forced below the trigger, as a share of the view."""

WINDOW_REMEDY = "use a model with a larger window, raise context_window or lower output_reserve"


def usual_reserve(window: int) -> int:
    """Return the tokens left for an answer unless `output_reserve` is given."""
    return min(8_000, window // 4)


@dataclass(frozen=True)
class Budget:
    """Tokens of a view and its parts."""

    limit: int
    """Upper bound of the view's tokens: window - reserve - overhead, or the requested size."""
    trigger: int
    """A view of more tokens is compressed."""
    target: int
    """A compression brings the view down to this number of tokens."""
    tail_tokens: int
    """The requested tokens of the tail."""
    head_tokens: int
    prose_tokens: int | None
    """Tokens of prose asked of the model; None: 5 % of the segment, 750 to 8,000."""
    quote_tokens: int
    """Expected tokens of the next summary's quotes."""
    most_quote_tokens: int
    fold_tokens: int
    user_quote_tokens: int = 0
    """Each user message is quoted in at least this many tokens; 0: `most_quote_tokens` limits all
    quotes."""
    min_gain: float = 0.05
    """A compression that frees a smaller share of the view is skipped."""
    recent_turns: int = 0
    """Number of newest turns that belong to the tail if the turns fit."""
    mask_recent_tokens: int = 0
    """Tool outputs in this many newest tokens are not masked."""
    most_result_tokens: int | None = None
    """A tool result of more tokens is excerpted; None: no limit."""
    is_exact: bool = False
    """Whether the caller requested a size."""
    tail_share: float = TAIL_SHARE
    has_model: bool = False
    is_forced: bool = False
    """Whether to compress below the trigger too."""
    costs: Costs | None = None
    """Prices and pace; None: unknown."""
    tiny_tail_share: float | None = None
    """The tail's share if few tokens are free; None: `tail_share`."""
    bound: str = "context_window"
    """For errors: the option that limits the view."""
    beside: str = ""
    """For errors: what `bound` holds beside the view."""
    beside_tokens: int = 0
    """Tokens of `beside`; `limit` does not include them."""
    mask_reach: float = 0.5
    """Masks alone suffice if the view comes down to this place between target (0) and trigger
    (1). At a higher place masks would break the prefix cache repeatedly
    (tests/benchmarks/economy.py)."""

    @classmethod
    def of(cls, config: CompressorConfig, window: int, overhead: int = 0) -> Budget:
        """Return the budget for a window.

        Raises:
            BudgetTooSmall: reserve and overhead leave nothing.
        """
        reserve = config.output_reserve
        if reserve is None:
            reserve = usual_reserve(window)
        usable = window - reserve - overhead
        if usable <= 0:
            remedy = f"{WINDOW_REMEDY}, or send fewer tools"
            raise BudgetTooSmall(reserve + overhead, window, BESIDE_VIEW, remedy)
        floor = min(config.token_floor, usable)
        trigger = max(int(usable * config.trigger_ratio), floor)
        target = int(trigger * config.target_ratio)
        # The overhead is left out because it varies: a result that was sent whole must stay whole.
        without_reserve = window - reserve
        large = max(int(without_reserve * LARGE_SHARE), min(floor, without_reserve // 2))
        return replace(
            cls._with_target(config, usable, trigger, target),
            most_result_tokens=large,
            beside=BESIDE_VIEW,
            beside_tokens=reserve + overhead,
        )

    @classmethod
    def exactly(cls, config: CompressorConfig, size: int, beside: int = 0) -> Budget:
        """Return the budget of a requested size, in tokens.

        `beside`: tokens of `size` that the view does not get.
        """
        target = size - beside
        budget = replace(
            cls._with_target(config, target, target, target),
            is_exact=True,
            bound="target_tokens",
            beside_tokens=beside,
        )
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
        user_quote = LEAST_USER_QUOTE_TOKENS if quotes is None else 0
        if quotes is None:
            quotes = max(target // 10, min(LEAST_QUOTE_TOKENS, target // 8))
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
        """The limit of the view; 0 for a requested size."""
        return 0 if self.is_exact else self.limit

    def prose_for(self, source_tokens: int) -> int:
        """Return the tokens of prose for a segment of that size."""
        if self.prose_tokens is not None:
            return self.prose_tokens
        return min(8_000, max(750, source_tokens // 20))

    def too_small(self, view: View, needed: int) -> BudgetTooSmall:
        """Return the error for a view of at least `needed` tokens."""
        kept = "kept messages, " if view.user_kept else ""
        beside = f", beside {self.beside}," if self.beside else ""
        remedy = f"raise {self.bound}" if self.is_exact else WINDOW_REMEDY
        return BudgetTooSmall(
            needed + self.beside_tokens,
            self.limit + self.beside_tokens,
            f"head, {kept}newest turn and a short summary{beside}",
            f"keep fewer messages, or {remedy}" if kept else remedy,
            culprit=largest_fixed(view),
        )

    # ---------------------------------------------------------- the marks of one view

    def raise_marks(self, fixed: int) -> Budget:
        """Raise trigger and target if `fixed` tokens exceed `CROWDED_SHARE`."""
        if fixed <= CROWDED_SHARE * self.trigger:
            return self
        beside = min(int((1 - CROWDED_SHARE) * self.trigger), (self.limit - fixed) // 2)
        trigger = max(self.trigger, fixed + beside)
        target = max(self.target, fixed + int((trigger - fixed) * CROWDED_FILL_SHARE))
        return replace(self, trigger=trigger, target=target)

    def force_below(self, size: int) -> Budget:
        """Return the budget that compresses a view of `size` tokens."""
        if size > self.trigger:
            return replace(self, mask_reach=0.0)
        target = min(self.target, int(size * FORCED_SHARE))
        return replace(self, trigger=size - 1, target=target, mask_reach=0.0)

    def mark_at(self, share: float) -> int:
        """Return the target plus `share` of its distance to the trigger."""
        return self.target + int(share * (self.trigger - self.target))


# -------------------------------------------------------------- plans and jobs

SMALLEST_SUMMARY_TOKENS = 80
"""Tokens of a framed summary with one line of text."""

MAJOR_SHARE = 0.5
"""A small run has less than this share of the largest run (tests/view/test_plan.py)."""

PROSE_SHARE = 1 / 3
"""Largest share of a summary's tokens that is asked of the model. A weak model writes twice the
requested prose; the last third is for quotes (tests/benchmarks/oracle.py)."""


@dataclass(frozen=True)
class Job:
    """A run of the middle that one new summary replaces."""

    start: int
    end: int
    text_tokens: int
    """Tokens of the framed summary. Only the model's prose may exceed them, by `spare_tokens`."""
    quote_tokens: int
    """Upper bound of the tokens of quotes beside a model's prose."""
    spare_tokens: int = 0
    """Tokens beyond `text_tokens` for prose longer than asked."""
    prose_tokens: int = 0
    """Tokens of prose asked of the model; 0: no model is asked."""
    folds: tuple[Segment, ...] = ()

    @property
    def asks_model(self) -> bool:
        """Whether a model writes this summary."""
        return self.prose_tokens > 0


@dataclass(frozen=True)
class Plan:
    """What to shorten, mask and summarize, and where the tail starts."""

    tail_start: int
    expected: int
    """Upper bound of the view's tokens after the compression."""
    jobs: tuple[Job, ...] = ()
    masks: tuple[int, ...] = ()
    """Tool results to mask; a plan with masks has no jobs."""
    excerpts: tuple[int, ...] = ()

    @property
    def summarized(self) -> frozenset[int]:
        """The messages that the new summaries replace."""
        return frozenset(index for job in self.jobs for index in range(job.start, job.end))

    @property
    def excerpted(self) -> tuple[int, ...]:
        """The excerpts that the plan neither masks nor summarizes."""
        hidden = self.summarized.union(self.masks)
        return tuple(index for index in self.excerpts if index not in hidden)


class Scope(NamedTuple):
    """Which runs a compression replaces."""

    include_folds: bool
    """Include runs that have summaries."""
    include_small: bool
    """Include small runs (`MAJOR_SHARE`) and runs that are one summary."""


NEW_LARGE = Scope(include_folds=False, include_small=False)
NEW = Scope(include_folds=False, include_small=True)
FOLD_LARGE = Scope(include_folds=True, include_small=False)
ALL = Scope(include_folds=True, include_small=True)


def replaceable_runs(view: View, tail_start: int, scope: Scope) -> list[Run]:
    """Return the runs between head and tail that a scope includes."""
    alone = {(tile.start, tile.end) for tile in view.tiles}
    sizes: dict[Run, int] = {}
    for start, end in view.open_runs if scope.include_folds else view.new_runs:
        run = (start, min(end, tail_start))
        if start < tail_start and (scope.include_small or run not in alone):
            sizes[run] = view.shown_tokens(*run)
    least = 0 if scope.include_small else MAJOR_SHARE * max(sizes.values(), default=0)
    least = max(least, 2 * SMALLEST_SUMMARY_TOKENS)
    return [run for run, size in sizes.items() if size >= least]


def size_without(view: View, runs: Sequence[Run]) -> int:
    """Return the view's tokens without these runs.

    A bridge is counted for each run that follows a tool result.
    """
    bridges = sum(view.needs_bridge(start) for start, _ in runs)
    bridge_tokens = bridges * view.bridge.tokens if view.bridge is not None else 0
    return view.size() - sum(view.shown_tokens(*run) for run in runs) + bridge_tokens


class TextTokens(NamedTuple):
    """Tokens for the texts of a plan."""

    total: int
    prose: int
    """Tokens of prose asked of the model."""
    quotes: int
    """Upper bound of the tokens of quotes beside a model's prose."""
    needs: tuple[int, ...]
    """Tokens of the framed quotes of each run."""
    spare: int = 0
    """Tokens beyond `total` for prose longer than asked."""

    @property
    def needed(self) -> int:
        """The tokens of the prose and of the framed quotes."""
        return self.prose + sum(self.needs)


def jobs_for(view: View, runs: Sequence[Run], texts: TextTokens) -> tuple[Job, ...]:
    """Return the jobs of runs; only the largest run gets prose."""
    sizes = [view.original_tokens(*run) for run in runs]
    main = max(range(len(runs)), key=lambda n: (sizes[n], n), default=0)
    proses = [texts.prose if n == main else 0 for n in range(len(runs))]
    shares = _share_tokens(proses, texts.needs, sizes, texts.total)
    planned = zip(runs, shares, proses, strict=True)
    return tuple(_job_for(view, run, share, prose, texts) for run, share, prose in planned)


def _job_for(view: View, run: Run, share: int, prose: int, texts: TextTokens) -> Job:
    tokens = min(share, view.shown_tokens(*run) - 1)
    folds = view.summaries_in(run)
    # A fold replaces several summaries, so its prose may be twice as long.
    prose *= 2 if any(segment.method == "model" for segment in folds) else 1
    prose = max(1, min(prose, int(tokens * PROSE_SHARE))) if prose else 0
    return Job(*run, tokens, min(tokens, texts.quotes), texts.spare, prose, folds)


def _share_tokens(
    proses: Sequence[int], needs: Sequence[int], sizes: Sequence[int], total: int
) -> list[int]:
    """Give runs their minimum, prose and quotes; share the rest by size."""
    shares = [SMALLEST_SUMMARY_TOKENS for _ in sizes]
    for wanted in (proses, needs, sizes):
        left, whole = max(0, total - sum(shares)), max(1, sum(wanted))
        given = left if wanted is sizes else min(left, sum(wanted))
        shares = [own + given * want // whole for own, want in zip(shares, wanted, strict=True)]
    return shares
