"""Plan what to shorten, mask and summarize, and the tail's start.

    view = head + summaries + tail

`plan` decides in this order:

1. Replace tool results that are too large by excerpts.
2. Above the trigger, mask old tool outputs if that is enough.
3. Otherwise summarize the middle.
4. If that is not enough, summarize the oldest messages with the policy "keep" too.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import chain

from ..errors import BudgetTooSmall
from .budget import (
    ALL,
    FORCED_SHARE,
    PROSE_SHARE,
    SMALLEST_SUMMARY_TOKENS,
    Budget,
    Plan,
    TextTokens,
    jobs_for,
    replaceable_runs,
    size_without,
)
from .renderer import ResultRenderer
from .splits import SummaryPlanner, choose_cut, reject_small_gain
from .view import View

FEW_TOKENS = 500
"""If a view of a requested size has fewer free tokens, its head omits the first answer, and its
tail gets `tiny_tail_share` (tests/benchmarks/exam, sessions 6 and 7)."""


def plan(view: View, budget: Budget, renderer: ResultRenderer) -> Plan | None:
    """Return the plan to make the view fit, or None.

    Raises:
        BudgetTooSmall: the smallest possible view exceeds the limit.
    """
    excerpts = renderer.measure_excerpts(view, budget)
    view = view.with_segments(excerpts.values())
    budget = _adjust_marks(view, budget, renderer)
    chosen = None
    if view.size() > budget.trigger:
        masking = _mask_plan(view, budget, renderer.measure_masks(view, budget))
        chosen = masking or _summary_plan(view, budget, renderer)
    if chosen is None and excerpts:
        chosen = Plan(len(view.tokens), view.size())
    return chosen and replace(chosen, excerpts=tuple(excerpts))


def _least_size(view: View, budget: Budget, renderer: ResultRenderer) -> int:
    if budget.tiny_tail_share is not None:
        view = view.without_first_step()
    least = replace(view.without_earlier_thinking(), kept_out=frozenset())
    return SummaryPlanner(least, budget, renderer).least_size()


def _summary_plan(view: View, budget: Budget, renderer: ResultRenderer) -> Plan | None:
    share = budget.tiny_tail_share
    if share is not None and budget.target - view.fixed_tokens() < FEW_TOKENS:
        view, budget = view.without_first_step(), replace(budget, tail_share=share)
    afterwards = view.without_earlier_thinking()
    planned = _summarize_kept(SummaryPlanner(afterwards, budget, renderer))
    if planned is None and afterwards is not view:
        planned = _summarize_kept(SummaryPlanner(view, budget, renderer))
    return planned


def plan_range(view: View, budget: Budget, renderer: ResultRenderer) -> Plan | None:
    """Return the plan to summarize all but `view.kept_out`, or None."""
    runs = replaceable_runs(view, len(view.tokens), ALL)
    wanted = budget.prose_for(sum(view.original_tokens(*run) for run in runs))
    users = sum(start <= n < end for start, end in runs for n in view.transcript.users)
    quotes = max(budget.most_quote_tokens, budget.user_quote_tokens * users)
    shown = sum(view.shown_tokens(*run) for run in runs)
    total = min(wanted + quotes, int(shown * FORCED_SHARE))
    if total < SMALLEST_SUMMARY_TOKENS * max(1, len(runs)):
        return None
    texts = TextTokens(
        total=total,
        prose=min(wanted, int(total * PROSE_SHARE)) if budget.has_model else 0,
        quotes=total if budget.user_quote_tokens else quotes,
        needs=tuple(renderer.measure_quotes(view, run, total, budget) for run in runs),
    )
    jobs = jobs_for(view, runs, texts)
    range_plan = Plan(runs[-1][1], size_without(view, runs) + total, jobs)
    return reject_small_gain(range_plan, view.size(), budget)


def _adjust_marks(view: View, budget: Budget, renderer: ResultRenderer) -> Budget:
    fixed = view.fixed_tokens()
    if fixed > budget.limit:
        # The error names a size that suffices. Such a size has tokens for a summary too.
        raise budget.too_small(view, _least_size(view, budget, renderer))
    budget = _adjust_trigger(view, budget.raise_marks(fixed))
    budget = budget.force_below(view.size()) if budget.is_forced else budget
    target = min(budget.limit, max(budget.target, fixed + SMALLEST_SUMMARY_TOKENS))
    return replace(budget, target=target)


RAISED_TRIGGER_SHARE = 0.75
"""Where the raised trigger lies between trigger (0) and limit (1). Providers may count more tokens
than we do."""

LEAST_TRIGGER_SHARE = 0.2
"""Where the lowest trigger lies between target (0) and trigger (1). With a lower trigger, the next
turns would be compressed again."""


def _adjust_trigger(view: View, budget: Budget) -> Budget:
    """Return the budget with the trigger moved for signed thinking.

    A compression inside a loop makes the loop's thinking invalid. So the trigger is raised inside a
    loop. At a turn's start, a turn as long as the last turn must fit below the raised trigger.
    """
    if not view.signed_tokens or budget.limit <= budget.trigger:
        return budget
    raised = budget.trigger + int(RAISED_TRIGGER_SHARE * (budget.limit - budget.trigger))
    if view.has_running_thinking:
        return replace(budget, trigger=raised)
    users = view.transcript.users
    last_turn = view.span_tokens(users[-2], users[-1]) if len(users) > 1 else 0
    lowered = max(budget.mark_at(LEAST_TRIGGER_SHARE), raised - last_turn)
    return replace(budget, trigger=min(budget.trigger, lowered))


def is_due(view: View, budget: Budget) -> bool:
    """Return whether the view is above its trigger."""
    return view.size() > _adjust_trigger(view, budget.raise_marks(view.fixed_tokens())).trigger


# -------------------------------------------------------------- masks

MASK_GAIN_RATIO = 0.75
"""If prices are unknown, masks pay from this ratio of freed tokens to tokens read again
(tests/benchmarks/economy.py)."""


def _mask_plan(view: View, budget: Budget, masks: Mapping[int, int]) -> Plan | None:
    """Return the plan to mask all old outputs, or None.

    Masks are enough if they reach the target, or if they reach `mask_reach` and pay. The provider
    reads all messages after the first mask again.
    """
    recent = choose_cut(view, budget.mask_recent_tokens)
    gains = {
        index: view.message_tokens(index) - tokens
        for index, tokens in masks.items()
        if view.head_end <= index < recent
        and view.replaceable[index]
        and index not in view.covered
        and index not in view.kept_out
        and tokens < view.message_tokens(index)
    }
    if not gains:
        return None
    gain = sum(gains.values())
    masking = Plan(recent, view.size() - gain, masks=tuple(gains))
    if masking.expected > budget.mark_at(budget.mask_reach):
        return None
    reread = masking.expected - view.shown_tokens(0, masking.masks[0])
    pays = gain >= MASK_GAIN_RATIO * reread
    if budget.costs is not None and budget.costs.growth:
        pays = budget.costs.balance(gain, reread).pays
    is_worth = masking.expected <= budget.target or pays
    return reject_small_gain(masking, view.size(), budget) if is_worth else None


# -------------------------------------------------------------- what a policy keeps


def _summarize_kept(planner: SummaryPlanner) -> Plan | None:
    """Return the plan that reaches the target with the fewest kept messages."""
    view = planner.view
    if not view.kept_out:
        return planner.plan()
    steps = (step for step in view.transcript.steps if step.start in view.kept_out)
    kept = [step for step in steps if view.covered.isdisjoint(step)]

    def without_oldest(count: int) -> SummaryPlanner:
        left = frozenset(chain.from_iterable(kept[count:]))
        return replace(planner, view=replace(view, kept_out=left))

    def is_enough(count: int) -> bool:
        with suppress(BudgetTooSmall):
            split = without_oldest(count).split()
            return split is None or split.goal <= planner.budget.target
        return False

    return without_oldest(bisect_left(range(len(kept)), True, key=is_enough)).plan()
