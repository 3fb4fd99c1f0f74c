"""Decide whether to compress a view now, by which plan, and why.

Pure: the request carries the budget, the session's prices and pace, and the cache's state.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ..ledger.segments import Session
from ..summaries.protocol import SegmentText
from ..view.budget import Budget
from ..view.jobs import Measures, Plan
from ..view.plan import is_due, plan, plan_range
from ..view.view import View
from .choices import new_keeps, new_references, requested_references, resolve_choices
from .prices import balance_of
from .request import Mode, Request

SOFT_RATIO = 0.85
"""Share of the trigger; the background prepares a summary above it."""

FITS, DUE, ASKED, COLD = "fits", "due", "asked", "cold cache"
"""Reasons for no compression, and for one."""

FIXED, NO_GAIN, PRICE, VETO = "fixed part", "no gain", "price", "veto"
"""Reasons against a compression that is due."""

SKIP_WORDS: Mapping[str, str] = {
    FIXED: "what cannot be dropped takes more than the trigger",
    NO_GAIN: "a compression would free too little",
    PRICE: "a compression costs more than it saves yet",
    VETO: "a hook refused the compression",
}
"""The same reasons in words."""


@dataclass(frozen=True)
class Decision:
    """Whether a view is compressed now, and why.

    A preview remembers its decision. The next compression of the same request commits it.
    """

    request: Request
    """In a preview, the user's choices are indices in the caller's list."""
    view: View
    is_compression: bool
    """False: the view is sent as it is, and the plan is empty."""
    plan: Plan
    reason: str
    """FITS, DUE, ASKED, COLD, FIXED, NO_GAIN or PRICE."""
    texts: tuple[SegmentText, ...] = ()
    """The plan's summaries; () if they are not written yet."""
    is_archived: bool = False
    """Whether the originals are archived: only then a text may name a reference."""
    unarchived: frozenset[int] = frozenset()
    """Indices, in the caller's list, of messages that the archive has no room for."""
    references: Mapping[str, int] = field(default_factory=dict)
    """In a preview: future reference -> index of its message in the transcript."""

    def is_valid_for(self, view: View) -> bool:
        """Return whether the transcript only grew on an unchanged ledger."""
        before = self.view
        is_same = (
            view.session.is_unchanged_since(before.session) and view.session.id == before.session.id
        )
        return is_same and view.digests[: len(before.digests)] == before.digests

    def references_in(self, view: View) -> Mapping[str, int]:
        """Return the references that this decision showed for the view."""
        return self.references if self.is_valid_for(view) else {}

    def is_committed_by(self, request: Request, view: View) -> bool:
        """Return whether the request commits what this decision showed."""
        if request.mode is not Mode.COMMIT or not self.is_valid_for(view):
            return False
        shown, asked = (
            (replace(r.budget, costs=None), r.force, r.instructions_digest, r.pinned)
            for r in (self.request, request)
        )
        if shown != asked or not request.has_choices:
            return shown == asked
        return resolve_choices(request, view, self.references).choices == self.request.choices

    def for_preview(self, texts: tuple[SegmentText, ...], before: Decision | None) -> Decision:
        """Return the decision as a preview shows it, with texts and references."""
        request, view = self.request, self.view
        shown = {} if before is None else before.references_in(view)
        resolved = resolve_choices(request, view, shown)
        names = new_references(view, self.plan) | requested_references(request, resolved, view)
        return replace(self, request=resolved, texts=texts, references=names)


def decide(
    request: Request, view: View, measures: Measures, previewed: Decision | None = None
) -> Decision:
    """Return the decision, or `previewed` if the request commits it."""
    if previewed is not None and previewed.is_committed_by(request, view):
        return replace(previewed, request=request, view=view)
    budget = _plan_budget(request, view)
    new_plan, plan_reason = _find_plan(request, view, budget, measures)
    has_keeps = new_plan is None and any(new_keeps(view))
    is_compression = has_keeps or new_plan is not None
    is_fixed = not is_compression and view.fixed_tokens() > budget.trigger
    reason = FIXED if is_fixed else ASKED if has_keeps else plan_reason
    empty = Plan(len(view.tokens), view.size())
    return Decision(request, view, is_compression, new_plan or empty, reason)


def _plan_budget(request: Request, view: View) -> Budget:
    """Return the request's budget with trigger, prices and force for this view."""
    budget = request.budget
    trigger = budget.limit if view.session.was_undone else budget.trigger
    is_for_cold_cache = trigger >= view.size() > trigger_of(request, view.session)
    return replace(
        budget,
        trigger=trigger,
        costs=None if request.is_requested else budget.costs,
        is_forced=request.force or is_for_cold_cache,
    )


def _find_plan(
    request: Request, view: View, budget: Budget, measures: Measures
) -> tuple[Plan | None, str]:
    new_plan = (plan_range if request.has_range else plan)(view, budget, measures)
    if new_plan is None:
        return None, NO_GAIN if is_due(view, budget) else FITS
    # Above the midpoint of trigger and limit, compress at any price: counts may be too low.
    can_wait = view.size() <= (budget.trigger + budget.limit) // 2 and not new_plan.excerpts
    if can_wait and budget.costs is not None and not balance_of(view, new_plan, budget.costs).pays:
        return None, PRICE
    is_for_cold_cache = budget.is_forced and not request.force
    return new_plan, ASKED if request.is_requested else COLD if is_for_cold_cache else DUE


def trigger_of(request: Request, session: Session, share: float = 1.0) -> int:
    """Return the tokens above which a view is compressed.

    The mark is `share` of the trigger, lower with a cold cache. After an undo it is the limit, or
    the next turn would reverse the undo.
    """
    budget, config = request.budget, request.config
    if session.was_undone:
        return budget.limit
    trigger = int(budget.trigger * share)
    cold = max(int(budget.trigger * config.idle_trigger_ratio), config.token_floor)
    return min(trigger, cold) if request.is_cold else trigger


def quiet_limit(request: Request, session: Session, *, is_busy: bool) -> int:
    """Return the tokens below which appended messages need no full read."""
    if is_busy:  # while a summary is written, send the whole as long as it fits
        return request.budget.limit
    return trigger_of(request, session, SOFT_RATIO if request.mode is Mode.BACKGROUND else 1.0)
