"""What is sent while a model writes and the whole is too much: as it was sent the turn before.

A text written anew each turn would cost its time and the provider's cache each turn. So what was
left out once stays left out by the same text, and the next turns add to it, as a ledger does; it is
kept in memory and nowhere else, and goes when the session is written to.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass

from .brief import Written
from .call import Call, Look
from .errors import BudgetTooSmall
from .executor import Executor
from .forks import renewed
from .ledger import Segment, Session
from .plan import Plan
from .projection import Projector
from .result import CompressResult

__all__ = ["Meanwhile"]

REMEMBERED_SESSIONS = 64


@dataclass(frozen=True)
class _Makeshift:
    """What stands for a part of a session that nobody has written to since."""

    session: Session
    segments: tuple[Segment, ...]
    untold: tuple[Written, ...] = ()
    """Its texts, until a result has told of them."""


class Meanwhile:
    """The texts that were sent uncommitted, for the newest sessions; thread-safe."""

    def __init__(self, projector: Projector, executor: Executor) -> None:
        self._projector = projector
        self._executor = executor
        self._lock = renewed(threading.Lock())
        self._sent: OrderedDict[tuple[str, str], _Makeshift] = OrderedDict()

    def again(self, call: Call, look: Look) -> CompressResult | None:
        """The view with what is at hand in its place; None where nothing is, where the whole is not
        too much, or where that is too much by now and cannot be added to."""
        with self._lock:
            found = self._sent.get(call.key)
        if found is None or not look.session.is_as(found.session):
            return None
        if look.layout.size() <= call.budget.limit:
            return None
        counted = [self._projector.recounted(segment) for segment in found.segments]
        shown = self._projector.with_segments(look, counted)
        if shown.layout.size() <= call.budget.limit:
            self._keep(call, shown)
            return self._executor.result(call, shown, found.untold)
        try:
            more = self._projector.plan(call, shown.layout)
        except BudgetTooSmall:
            return None
        return None if more is None else self.first(call, shown, more)

    def first(self, call: Call, look: Look, todo: Plan) -> CompressResult:
        """The view after what is to be done, without a model and recorded nowhere."""
        shown, written = self._executor.drafted(call, look, todo)
        self._keep(call, shown)
        return self._executor.result(call, shown, written)

    def prepare(self, call: Call, look: Look, todo: Plan) -> None:
        """Have the texts for a plan at hand, should a turn need them before the model's."""
        shown, written = self._executor.drafted(call, look, todo)
        self._keep(call, shown, tuple(written))

    def _keep(self, call: Call, shown: Look, untold: tuple[Written, ...] = ()) -> None:
        added = shown.layout.segments[len(shown.session.entries) :]
        laid = {id(tile.segment) for tile in shown.layout.tiles}
        laid.update(map(id, shown.layout.replaced.values()))
        with self._lock:
            used = tuple(segment for segment in added if id(segment) in laid)
            self._sent[call.key] = _Makeshift(shown.session, used, untold)
            self._sent.move_to_end(call.key)
            while len(self._sent) > REMEMBERED_SESSIONS:
                self._sent.popitem(last=False)
