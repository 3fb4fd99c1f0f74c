"""Define the values of a plan: `Budget`, `Plan` with its `Job`s. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from ..config import CompressorConfig
from ..errors import BudgetTooSmall
from ..ledger.segments import Segment
from .costs import Costs
from .view import Run, View, largest_fixed

LEAST_QUOTES = 3_000
"""Least tokens of quotes, but no more than an eighth of the target. A session's files and wishes do
not shrink with the window. An eighth is below half of `fold_ratio`, so that not every summary is a
fold."""

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
leaves tokens to a deeper summary."""

TINY_TAIL_SHARE = 0.6
"""Tail's share of the target less the head if few tokens are free; the rest holds a frame and twice
the requested prose (tests/benchmarks/exam). With recall the frame is longer, so the share is
`TAIL_SHARE`."""

CROWDED_SHARE = 0.75
"""Largest share of the trigger for fixed messages; above it trigger and target are raised.
Otherwise every few turns would compress and free little (tests/view/test_plan.py)."""

CROWDED_TARGET = 0.3
"""Share of the tokens between the fixed messages and a raised trigger that a compression fills.
Later turns fill the rest."""

BESIDE_VIEW = "the reserve for the answer, tool schemas and pinned texts"
"""Parts of a window beside the view, as errors name them."""

FORCED_SHARE = 0.6
"""A compression forced below the trigger leaves this share of the view."""

WINDOW_REMEDY = "use a model with a larger window, raise context_window or lower output_reserve"
"""What helps where the window is too small."""


def usual_reserve(window: int) -> int:
    """Return the tokens left for an answer unless `output_reserve` is given."""
    return min(8_000, window // 4)


@dataclass(frozen=True)
class Budget:
    """Tokens of a view and its parts."""

    limit: int
    """The provider refuses a view above it: window - reserve - overhead."""
    trigger: int
    """A view above it is compressed."""
    target: int
    """A compression brings the view down to it."""
    tail_tokens: int
    """Tokens of the newest messages that stay verbatim, as far as they fit."""
    head_tokens: int
    """Tokens of the first exchange, at most."""
    prose_tokens: int | None
    """Asked of the model; None: 5 % of the segment, 750 to 8,000."""
    quote_tokens: int
    """Set aside for quotes."""
    most_quote_tokens: int
    """Most tokens of quotes once the tail has `tail_tokens`."""
    fold_tokens: int
    """Most tokens of a fold. Summaries are folded once they exceed it by more than the tokens of
    the next summary."""
    user_quote_tokens: int = 0
    """Least tokens to quote each user message; 0: `most_quote_tokens` limits all quotes."""
    min_gain: float = 0.05
    """Least share of the view that a compression frees."""
    recent_turns: int = 0
    """Newest turns that stay verbatim, as far as they fit."""
    mask_recent_tokens: int = 0
    """Newest tokens whose tool outputs are not masked."""
    most_result_tokens: int | None = None
    """Most for one tool result; a larger one is archived at once. None: no bound."""
    is_exact: bool = False
    """Whether a size was requested, whatever the window."""
    tail_share: float = TAIL_SHARE
    """The tail's share of the target less the head."""
    has_model: bool = False
    """Whether a model writes prose; without one the quotes take its tokens."""
    is_forced: bool = False
    """Whether to compress below the trigger too."""
    costs: Costs | None = None
    """Prices and pace, which decide whether a plan pays. None: `MASK_WORTH` decides for masks."""
    tiny_tail_share: float | None = None
    """The tail's share of an exact size where head and newest step leave few tokens."""
    bound: str = "context_window"
    """The option that bounds the view, as errors name it."""
    beside: str = ""
    """What `bound` holds beside the view, as errors name it."""
    beside_tokens: int = 0
    """Tokens of `beside`, which `limit` does not include."""
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
            remedy = f"{WINDOW_REMEDY}, or send fewer tools"
            raise BudgetTooSmall(reserve + overhead, window, BESIDE_VIEW, remedy)
        floor = min(config.token_floor, usable)
        trigger = max(int(usable * config.trigger_ratio), floor)
        target = int(trigger * config.target_ratio)
        # The overhead varies and is left out: a result sent whole must stay whole.
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

        `beside` is the part of `size` that the view does not get. A reader without recall gets more
        quotes and less tail.
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
        """Raise trigger and target if `fixed` tokens crowd the budget."""
        if fixed <= CROWDED_SHARE * self.trigger:
            return self
        beside = min(int((1 - CROWDED_SHARE) * self.trigger), (self.limit - fixed) // 2)
        trigger = max(self.trigger, fixed + beside)
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
        """Return the target plus `share` of its distance to the trigger."""
        return self.target + int(share * (self.trigger - self.target))


# -------------------------------------------------------------- plans and jobs

SMALLEST_SUMMARY = 80
"""Tokens of a framed summary with one line of text: below it a summary says nothing."""

MAJOR_SHARE = 0.5
"""Runs below this share of the largest stay unchanged while texts fit
(tests/view/test_keeping.py)."""

PROSE_SHARE = 1 / 3
"""Largest share of a summary's tokens requested as prose. A weak model writes twice the requested
length; a third is then still left for quotes (tests/benchmarks/oracle.py)."""


@dataclass(frozen=True)
class Job:
    """A run of the middle that one new summary replaces."""

    start: int
    end: int
    text_tokens: int
    """Tokens of the framed message, at most."""
    quote_tokens: int
    """Tokens of quotes beside a model's prose, at most."""
    spare_tokens: int = 0
    """Tokens beyond `text_tokens` that a prose longer than asked may take."""
    prose_tokens: int = 0
    """Tokens of prose asked of the model; 0: no model is asked for this run."""
    folds: tuple[Segment, ...] = ()
    """Summaries that the new one replaces; their prose is carried on."""

    @property
    def asks_model(self) -> bool:
        """Whether a model is asked."""
        return self.prose_tokens > 0


@dataclass(frozen=True)
class Plan:
    """What to shorten, mask and summarize, and where the tail starts."""

    tail_start: int
    expected: int
    """Tokens of the view afterwards, at most."""
    jobs: tuple[Job, ...] = ()
    """Summaries to write."""
    masks: tuple[int, ...] = ()
    """Tool results to replace by one line each; then there are no jobs."""
    excerpts: tuple[int, ...] = ()
    """Tool results that are too large, to replace by their first and last lines."""

    @property
    def summarized(self) -> frozenset[int]:
        """The messages that the new summaries replace."""
        return frozenset(index for job in self.jobs for index in range(job.start, job.end))

    @property
    def excerpted(self) -> tuple[int, ...]:
        """The excerpts that no mask or summary of the plan hides."""
        hidden = self.summarized.union(self.masks)
        return tuple(index for index in self.excerpts if index not in hidden)


class Scope(NamedTuple):
    """Which runs a compression replaces."""

    include_folds: bool
    """Include runs that summaries already replace."""
    include_small: bool
    """Include runs much smaller than another, and a run of only one summary."""


NEW_LARGE = Scope(include_folds=False, include_small=False)
NEW = Scope(include_folds=False, include_small=True)
FOLD_LARGE = Scope(include_folds=True, include_small=False)
ALL = Scope(include_folds=True, include_small=True)


def replaceable_runs(view: View, tail_start: int, scope: Scope) -> list[Run]:
    """Return the runs between head and tail to replace, as index pairs."""
    alone = {(tile.start, tile.end) for tile in view.tiles}
    sizes: dict[Run, int] = {}
    for start, end in view.open_runs if scope.include_folds else view.new_runs:
        run = (start, min(end, tail_start))
        if start < tail_start and (scope.include_small or run not in alone):
            sizes[run] = view.shown_tokens(*run)
    least = 0 if scope.include_small else MAJOR_SHARE * max(sizes.values(), default=0)
    least = max(least, 2 * SMALLEST_SUMMARY)
    return [run for run, size in sizes.items() if size >= least]


def size_without(view: View, runs: Sequence[Run]) -> int:
    """Return the view's tokens without these runs, plus the bridges they need."""
    bridges = sum(view.needs_bridge(start) for start, _ in runs)
    bridge_tokens = bridges * view.bridge.tokens if view.bridge is not None else 0
    return view.size() - sum(view.shown_tokens(*run) for run in runs) + bridge_tokens


class TextTokens(NamedTuple):
    """Tokens for the texts of a plan."""

    total: int
    """All texts together."""
    prose: int
    """Asked of the model."""
    quotes: int
    """Quotes beside a prose, at most."""
    needs: tuple[int, ...]
    """Measured quotes of each run, framed."""
    spare: int = 0
    """Beyond a text's own tokens, for prose longer than asked."""

    @property
    def needed(self) -> int:
        """The tokens of prose and measured quotes."""
        return self.prose + sum(self.needs)


def jobs_for(view: View, runs: Sequence[Run], texts: TextTokens) -> tuple[Job, ...]:
    """Return the jobs of runs, which share the tokens by need.

    Only the largest run gets prose, the newest of equal ones: one compression asks a model for
    one summary.
    """
    sizes = [view.original_tokens(*run) for run in runs]
    main = max(range(len(runs)), key=lambda n: (sizes[n], n), default=0)
    proses = [texts.prose if n == main else 0 for n in range(len(runs))]
    shares = _share_tokens(proses, texts.needs, sizes, texts.total)
    planned = zip(runs, shares, proses, strict=True)
    return tuple(_job_for(view, run, share, prose, texts) for run, share, prose in planned)


def _job_for(view: View, run: Run, share: int, prose: int, texts: TextTokens) -> Job:
    """Return a run's job; without `prose` no model is asked."""
    tokens = min(share, view.shown_tokens(*run) - 1)
    folds = view.summaries_in(run)
    # A fold's prose carries more than one segment's did.
    prose *= 2 if any(segment.method == "model" for segment in folds) else 1
    prose = max(1, min(prose, int(tokens * PROSE_SHARE))) if prose else 0
    return Job(*run, tokens, min(tokens, texts.quotes), texts.spare, prose, folds)


def _share_tokens(
    proses: Sequence[int], needs: Sequence[int], sizes: Sequence[int], total: int
) -> list[int]:
    """Share the tokens: minimum, then prose, then quotes, then by size."""
    shares = [SMALLEST_SUMMARY for _ in sizes]
    for wanted in (proses, needs, sizes):
        left, whole = max(0, total - sum(shares)), max(1, sum(wanted))
        given = left if wanted is sizes else min(left, sum(wanted))
        shares = [own + given * want // whole for own, want in zip(shares, wanted, strict=True)]
    return shares
