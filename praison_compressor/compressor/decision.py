"""Decide whether a view is compressed now, and why.

Pure: the request has the budget, the prices and the state of the provider's cache.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from ..config import HOUR_SECONDS, CompressorConfig
from ..ledger.segments import Session
from ..summaries.protocol import SegmentText
from ..tokens.models import Prices, bare_names, prices_of
from ..view.budget import Budget, Plan
from ..view.costs import Balance, Costs
from ..view.plan import is_due, plan, plan_range
from ..view.renderer import ResultRenderer
from ..view.view import View
from .choices import new_keeps, new_references, requested_references, resolve_choices
from .request import Request

SOFT_RATIO = 0.85
"""Share of the trigger above which the background begins a summary."""

Cause = Literal["due", "asked", "cold cache"]
"""Why a view is compressed."""

SkipReason = Literal["fits", "fixed part", "no gain", "price", "veto"]
"""Why a view is not compressed; "fits": no compression is due."""

Reason = Cause | SkipReason

SKIP_WORDS: Mapping[Reason, str] = {
    "fixed part": "what cannot be dropped takes more than the trigger",
    "no gain": "a compression would free too little",
    "price": "a compression does not yet save what it costs",
    "veto": "a hook refused the compression",
}
"""Why a due compression is not done, in words."""


@dataclass(frozen=True)
class Decision:
    """Whether a view is compressed now, by which plan, and why."""

    request: Request
    view: View
    plan: Plan
    """The plan is empty without a compression."""
    reason: Reason
    """A `Cause` if the view is compressed, else a `SkipReason`."""
    texts: tuple[SegmentText, ...] = ()
    """The plan's summaries; () until they are written."""
    dropped: frozenset[int] | None = None
    """The caller's indices of messages that the archive will drop. Texts must not reference these
    messages. None: nothing is archived."""

    @property
    def is_compression(self) -> bool:
        """Whether the view is compressed now."""
        return self.reason in get_args(Cause)

    @classmethod
    def without(cls, request: Request, view: View, reason: SkipReason) -> Decision:
        """Return the decision not to compress."""
        return cls(request, view, empty_plan(view), reason)


def empty_plan(view: View) -> Plan:
    """Return a plan that replaces no message."""
    return Plan(len(view.tokens), view.size())


@dataclass(frozen=True)
class RememberedPreview:
    """A shown preview; the next compression of the same request commits it."""

    decision: Decision
    """The decision that was shown. In its request, choices are indices in the caller's list."""
    references: Mapping[str, int]
    """Future reference -> index of its message in the transcript."""

    @classmethod
    def of(cls, decision: Decision, earlier: RememberedPreview | None) -> RememberedPreview:
        """Return a decision's preview; `earlier` is the session's previous preview."""
        request, view = decision.request, decision.view
        resolved = resolve_choices(request, view, earlier.references_in(view) if earlier else {})
        references = new_references(view, decision.plan)
        references |= requested_references(request, resolved, view)
        return cls(replace(decision, request=resolved), references)

    def _is_valid_for(self, view: View) -> bool:
        """Return whether the transcript only grew and the ledger is unchanged."""
        previewed, session = self.decision.view, view.session
        if session.id != previewed.session.id or not session.is_unchanged_since(previewed.session):
            return False
        return view.digests[: len(previewed.digests)] == previewed.digests

    def references_in(self, view: View) -> Mapping[str, int]:
        """Return the references that the preview showed; none if outdated."""
        return self.references if self._is_valid_for(view) else {}

    def is_committed_by(self, request: Request, view: View) -> bool:
        """Return whether the request commits what the preview showed."""
        if request.mode != "commit" or not self._is_valid_for(view):
            return False
        previewed = self.decision.request
        previewed_options, options = (
            (replace(r.budget, costs=None), r.force, r.instructions_digest, r.pinned)
            for r in (previewed, request)
        )
        if previewed_options != options or not request.has_choices:
            return previewed_options == options
        return resolve_choices(request, view, self.references).choices == previewed.choices


def decide(
    request: Request,
    view: View,
    renderer: ResultRenderer,
    previewed: RememberedPreview | None = None,
) -> Decision:
    """Return the decision, or the previewed one if the request commits it."""
    if previewed is not None and previewed.is_committed_by(request, view):
        return replace(previewed.decision, request=request, view=view)
    trigger = trigger_of(replace(request, is_cold=False), view.session)
    is_only_cold = trigger >= view.size() > trigger_of(request, view.session)
    budget = replace(
        request.budget,
        trigger=trigger,
        costs=None if request.wants_compression else request.budget.costs,
        is_forced=request.force or is_only_cold,
    )
    planned = (plan_range if request.has_range else plan)(view, budget, renderer)
    if planned is not None and _is_worth_its_price(view, planned, budget):
        cause: Cause = "cold cache" if is_only_cold else "due"
        return Decision(request, view, planned, "asked" if request.wants_compression else cause)
    if any(new_keeps(view)):  # a commit records the user's choice
        return Decision(request, view, empty_plan(view), "asked")
    return Decision.without(request, view, _reason_without_plan(view, budget, planned))


def _is_worth_its_price(view: View, planned: Plan, budget: Budget) -> bool:
    # Above the midpoint of trigger and limit, compress at any price: counts may be too low.
    is_urgent = view.size() > (budget.trigger + budget.limit) // 2 or bool(planned.excerpts)
    return is_urgent or budget.costs is None or balance_of(view, planned, budget.costs).pays


def _reason_without_plan(view: View, budget: Budget, planned: Plan | None) -> SkipReason:
    if view.fixed_tokens() > budget.trigger:
        return "fixed part"
    if planned is not None:
        return "price"
    return "no gain" if is_due(view, budget) else "fits"


def trigger_of(request: Request, session: Session, share: float = 1.0) -> int:
    """Return the tokens above which a view is compressed.

    With a warm cache the result is `share` of the trigger.
    """
    budget, config = request.budget, request.config
    if session.was_undone:  # a lower mark would let the next turn reverse the undo
        return budget.limit
    trigger = int(budget.trigger * share)
    cold = max(int(budget.trigger * config.idle_trigger_ratio), config.token_floor)
    return min(trigger, cold) if request.is_cold else trigger


def quiet_limit(request: Request, session: Session, *, is_busy: bool) -> int:
    """Return the tokens up to which a growing view needs no decision."""
    if is_busy:  # while a summary is written, send all messages that fit
        return request.budget.limit
    return trigger_of(request, session, SOFT_RATIO if request.mode == "background" else 1.0)


# -------------------------------------------------------------- prices

FREE = Prices(0.0, None, None, None, 0.0)
"""Prices of a static summary, for which no model is asked."""


def costs_of(request: Request, *, is_cached: bool) -> Costs | None:
    """Return a request's prices; None without a known price.

    `is_cached` says whether the provider caches the session's prompts.
    """
    reader = prices_of(request.config.model)
    writer = prices_of(request.writer) if request.budget.has_model else FREE
    if reader.input is None or writer.input is None or writer.output is None:
        return None
    read = written = reader.input
    if is_cached:
        listed = reader.written_1h if request.config.mark_ttl else reader.written
        read = reader.input if reader.cached is None else reader.cached
        written = reader.input if listed is None else listed
    return Costs(read, written, writer.input, writer.output, is_cold=request.is_cold)


def balance_of(view: View, plan: Plan, costs: Costs) -> Balance:
    """Return what a plan costs now, and saves in each later request."""
    changed = [*(job.start for job in plan.jobs), *plan.masks, *plan.excerpted]
    again = plan.expected - view.shown_tokens(0, min(changed, default=0))
    prose = sum(job.prose_tokens for job in plan.jobs)
    # For a fold the model reads the summaries that the fold replaces, not the originals.
    read = sum(view.shown_tokens(job.start, job.end) for job in plan.jobs if job.asks_model)
    return costs.balance(view.size() - plan.expected, max(0, again), read, prose)


# -------------------------------------------------------------- the cache

DEFAULT_SECONDS = 300.0
"""Anthropic's default lifetime, and the shortest lifetime that OpenAI documents."""

_CACHE_SECONDS_BY_MODEL = (
    # "Active for 5 to 10 minutes of inactivity."
    (re.compile(r"(chatgpt|gpt|o\d)\b"), 600.0),
    # "A few hours to a few days."
    (re.compile(r"deepseek"), 2 * HOUR_SECONDS),
)
"""Documented lifetime in seconds of an unused prompt cache, by model name."""


def is_cold(request: Request, last_request: float, now: float) -> bool:
    """Return whether the cache is cold `now`; `last_request` 0: unknown."""
    seconds = now - last_request
    if not last_request or seconds <= cache_seconds(request.config):
        return False
    is_kept = request.config.cache_ttl_seconds is None and seconds <= HOUR_SECONDS
    is_marked = is_kept and any(m.get("ttl") == "1h" for m in _cache_marks(request.messages))
    return not is_marked


def cache_seconds(config: CompressorConfig) -> float:
    """Return the seconds that the provider's cache lives without a request."""
    if config.cache_ttl_seconds is not None:
        return config.cache_ttl_seconds
    names = bare_names(config.model)
    seconds = (
        s for pattern, s in _CACHE_SECONDS_BY_MODEL if any(pattern.match(name) for name in names)
    )
    return next(seconds, DEFAULT_SECONDS)


def _cache_marks(messages: Sequence[Any]) -> Iterator[Mapping[str, Any]]:
    for message in messages:
        content = message.get("content") if isinstance(message, Mapping) else None
        for part in (message, *(content if isinstance(content, list) else ())):
            mark = part.get("cache_control") if isinstance(part, Mapping) else None
            if isinstance(mark, Mapping):
                yield mark
