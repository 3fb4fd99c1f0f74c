"""Plan what to shorten, mask and summarize, and the tail's start.

    view = head + summaries + tail

Pure: a view and a budget give a `Plan` or None; no model, clock or write. `plan` decides in this
order. Tool results that are too large are shortened to their ends. If the view then fits, nothing
more is planned. If one line per old tool output is enough, old outputs are masked. Otherwise the
middle is summarized. Each summary gets tokens for prose and quotes. The tail gets the requested
newest messages, as far as they fit, and the tokens that the quotes leave unused. Above the limit,
messages that a policy keeps are summarized too, oldest first.
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
    SMALLEST_SUMMARY,
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
"""If an exact size (`Budget.exactly`) leaves fewer free tokens than this, the head keeps no answer
to the task, and the tail gets `tiny_tail_share` (tests/benchmarks/exam, sessions 6 and 7)."""


def plan(view: View, budget: Budget, renderer: ResultRenderer) -> Plan | None:
    """Return the plan to make the view fit, or None.

    Raises:
        BudgetTooSmall: what cannot be dropped exceeds the limit.
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
    """Return the tokens of the smallest view with summaries."""
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
    """Return the plan to summarize every message not kept, or None.

    Messages outside the range stay, so the tail gets no share.
    """
    runs = replaceable_runs(view, len(view.tokens), ALL)
    wanted = budget.prose_for(sum(view.original_tokens(*run) for run in runs))
    users = sum(start <= n < end for start, end in runs for n in view.transcript.users)
    quotes = max(budget.most_quote_tokens, budget.user_quote_tokens * users)
    shown = sum(view.shown_tokens(*run) for run in runs)
    total = min(wanted + quotes, int(shown * FORCED_SHARE))
    if total < SMALLEST_SUMMARY * max(1, len(runs)):
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
    """Return the budget with the marks of this view.

    Raises:
        BudgetTooSmall: what cannot be dropped exceeds the limit.
    """
    fixed = view.fixed_tokens()
    if fixed > budget.limit:
        # With the least summary from the start: a budget of `needed` tokens then suffices.
        raise budget.too_small(view, _least_size(view, budget, renderer))
    budget = _adjust_trigger(view, budget.raise_marks(fixed))
    budget = budget.force_below(view.size()) if budget.is_forced else budget
    target = min(budget.limit, max(budget.target, fixed + SMALLEST_SUMMARY))
    return replace(budget, target=target)


RAISED_TRIGGER_SHARE = 0.75
"""While a loop with signed thinking runs, the trigger is raised by this share of the way to the
limit. The rest is a margin: providers may count more tokens than we do."""


LEAST_TRIGGER_SHARE = 0.2
"""Least trigger at a turn's start, as a share of the way from target to trigger; with a lower
trigger one of the next turns would be compressed again."""


def _adjust_trigger(view: View, budget: Budget) -> Budget:
    """Return the budget, with the trigger moved for signed thinking.

    A compression in a running loop makes the loop's thinking invalid: the trigger is higher there.
    At a turn's start old thinking may be dropped. The trigger is then lowered, but not below
    `LEAST_TRIGGER_SHARE`, until a turn as long as the last one fits below the raised trigger.
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
    """Return whether the view is above the mark for compression."""
    return view.size() > _adjust_trigger(view, budget.raise_marks(view.fixed_tokens())).trigger


# -------------------------------------------------------------- masks


MASK_WORTH = 0.75
"""Least ratio of freed tokens to tokens read again. Used if prices or pace are unknown
(tests/benchmarks/economy.py)."""


def _mask_plan(view: View, budget: Budget, masks: Mapping[int, int]) -> Plan | None:
    """Return the plan to mask all old outputs, or None if insufficient.

    Masks suffice if the view is then no larger than the target. Up to the mark at `mask_reach` they
    also suffice if the freed tokens pay for what the provider reads again: the prefix cache ends at
    the first mask. Otherwise a summary frees more for the same price.
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
    pays = gain >= MASK_WORTH * reread
    if budget.costs is not None and budget.costs.growth:
        pays = budget.costs.balance(gain, reread).pays
    is_worth = masking.expected <= budget.target or pays
    return reject_small_gain(masking, view.size(), budget) if is_worth else None


# -------------------------------------------------------------- what a policy keeps


def _summarize_kept(planner: SummaryPlanner) -> Plan | None:
    """Return the plan that summarizes the fewest kept messages, oldest first.

    Enough kept messages are summarized to reach the target; if only the limit were reached, each of
    the next turns would be compressed again. Summarizing more of them lowers the size, so bisection
    finds the fewest.
    """
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
