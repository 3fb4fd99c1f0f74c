"""`Decider`: look and decide by ledger and by what a session remembers."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from ..events import Event
from ..ledger.segments import Session
from ..tokens.counter import TokenCounter
from ..view.view import View
from .decision import FIXED, SKIP_WORDS, Decision, Previewed, decide
from .projection import Projector
from .quiet_turn import last_turn_of
from .request import Request
from .result import CompressResult, result_of
from .session_state import SessionStates

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Decider:
    """Look and decide for one compressor; thread-safe."""

    tokens: TokenCounter
    sessions: SessionStates
    projector: Projector
    emit: Callable[[Event], None]

    def look(self, request: Request, session: Session) -> tuple[View, Previewed | None]:
        """Return the request's view by the session's ledger, and the newest preview."""
        previewed = self.sessions.state(session.key).previewed
        return self.projector.look(request, session, previewed), previewed

    def decide(self, request: Request, view: View, previewed: Previewed | None = None) -> Decision:
        """Return the decision about the view."""
        return decide(request, view, self.projector.renderer, previewed)

    def decide_again(self, request: Request, view: View) -> Decision:
        """Return the decision about the view by the newest ledger and preview."""
        session = self.projector.open(request)
        previewed = self.sessions.state(session.key).previewed
        return self.decide(request, self.projector.look_again(view, session), previewed)

    def find_due(
        self, request: Request, view: View, previewed: Previewed | None = None
    ) -> Decision | None:
        """Return the compression that is due; report once why one is missing."""
        decision = self.decide(request, view, previewed)
        self._report_missing(decision)
        return decision if decision.is_compression else None

    # -------------------------------------------------------------- without a compression

    def remember_view(self, request: Request, view: View) -> CompressResult:
        """Remember the view for the next turn; return its result."""
        result = result_of(request, view, self.tokens)
        turn = last_turn_of(request, view, result, self.tokens)
        if turn is not None:
            self.sessions.remember_turn(turn)
        return result

    def _report_missing(self, decision: Decision) -> None:
        """Report once why a due compression is not done or not enough."""
        reason = decision.reason
        if reason in SKIP_WORDS and self.report_skip(decision, reason):
            name = decision.view.session.id
            logger.info("session %s is not compressed: %s", name, SKIP_WORDS[reason])
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

    def report_skip(self, decision: Decision, reason: str) -> bool:
        """Emit "skipped" once per reason and epoch; return whether it was emitted."""
        view = decision.view
        epoch = "" if reason == FIXED else view.session.tip  # FIXED: once in a session
        is_new = self.sessions.report_once(view.session.key, reason, epoch)
        if is_new:
            numbers = {"tokens": view.size(), "trigger": decision.request.budget.trigger}
            self.emit(Event("skipped", view.session.id, {"reason": reason, **numbers}))
        return is_new
