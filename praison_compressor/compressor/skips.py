"""`SkipReports`: report once why a due compression is not done."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from ..events import Event
from ..view.view import View
from .decision import FIXED, SKIP_WORDS, Decision
from .session_state import SessionStates

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class SkipReports:
    """The reports of one compressor; thread-safe."""

    sessions: SessionStates
    emit: Callable[[Event], None]

    def report_missing(self, decision: Decision) -> None:
        """Report once why a due compression is not done or not enough."""
        words = SKIP_WORDS.get(decision.reason)
        if words is not None and self.report(decision, decision.reason):
            logger.info("session %s is not compressed: %s", decision.view.session.id, words)
        if not decision.plan.excerpts:  # an excerpt makes a fixed message smaller
            self._warn_of_fixed_part(decision.view, decision.request.budget.trigger)

    def _warn_of_fixed_part(self, view: View, trigger: int) -> None:
        fixed, session = view.fixed_tokens(), view.session
        if fixed > trigger and self.sessions.report_once(session.key, "trigger", ""):
            logger.warning(
                "session %s: fixed messages take %d tokens, above the trigger of %d: no compression"
                " can reach it; raise context_window or trigger_ratio, or send fewer tools",
                session.id,
                fixed,
                trigger,
            )

    def report(self, decision: Decision, reason: str) -> bool:
        """Emit "skipped" once per reason and epoch; return whether it was emitted."""
        view = decision.view
        epoch = "" if reason == FIXED else view.session.tip  # FIXED: once in a session
        is_new = self.sessions.report_once(view.session.key, reason, epoch)
        if is_new:
            numbers = {"tokens": view.size(), "trigger": decision.request.budget.trigger}
            self.emit(Event("skipped", view.session.id, {"reason": reason, **numbers}))
        return is_new
