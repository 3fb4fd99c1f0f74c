"""What is remembered of sessions between turns: placeholder summaries, owed usage, skips that were
told.

A text written anew each turn would cost its time and the provider's cache each turn. So what was
left out once stays left out by the same text, and the next turns add to it, as a ledger does; it is
kept in memory and nowhere else, and goes when the session is written to.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass

from ..errors import BudgetTooSmall
from ..events import Event
from ..ledger.segments import Segment, Session, Usage
from ..messages.forks import renewed
from ..summaries.protocol import Written
from ..view.plan import Plan, fixed_tokens, is_due
from .call import CompressCall, Look
from .executor import Executor
from .projection import Projector
from .result import CompressResult

__all__ = [
    "Bills",
    "Meanwhile",
    "Skips",
]

logger = logging.getLogger(__name__)


# -------------------------------------------------------------- bills


REMEMBERED_BILLS = 1_024
"""Sessions that nobody came back to are forgotten, the oldest first: their ledgers have it too."""


class Bills:
    """By session; thread-safe."""

    def __init__(self) -> None:
        self._lock = renewed(threading.Lock())
        self._owed: OrderedDict[Hashable, Usage] = OrderedDict()

    def owe(self, key: Hashable, usage: Usage) -> None:
        """Have it on the bill of the session's next result."""
        with self._lock:
            self._owed[key] = self._owed.pop(key, Usage()) + usage
            while len(self._owed) > REMEMBERED_BILLS:
                self._owed.popitem(last=False)

    def take(self, key: Hashable) -> Usage | None:
        """What is owed, once; None where nothing is."""
        if key not in self._owed:
            return None
        with self._lock:
            return self._owed.pop(key, None)


# -------------------------------------------------------------- meanwhile


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

    def again(self, call: CompressCall, look: Look) -> CompressResult | None:
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

    def first(self, call: CompressCall, look: Look, todo: Plan) -> CompressResult:
        """The view after what is to be done, without a model and recorded nowhere."""
        shown, written = self._executor.drafted(call, look, todo)
        self._keep(call, shown)
        return self._executor.result(call, shown, written)

    def prepare(self, call: CompressCall, look: Look, todo: Plan) -> None:
        """Have the texts for a plan at hand, should a turn need them before the model's."""
        shown, written = self._executor.drafted(call, look, todo)
        self._keep(call, shown, tuple(written))

    def _keep(self, call: CompressCall, shown: Look, untold: tuple[Written, ...] = ()) -> None:
        added = shown.layout.segments[len(shown.session.entries) :]
        laid = {id(tile.segment) for tile in shown.layout.tiles}
        laid.update(map(id, shown.layout.replaced.values()))
        with self._lock:
            used = tuple(segment for segment in added if id(segment) in laid)
            self._sent[call.key] = _Makeshift(shown.session, used, untold)
            self._sent.move_to_end(call.key)
            while len(self._sent) > REMEMBERED_SESSIONS:
                self._sent.popitem(last=False)


# -------------------------------------------------------------- skips


TOLD_SESSIONS = 64


FIXED, NO_GAIN = "fixed part", "no gain"


class Skips:
    """Remembers what it told of the newest sessions; thread-safe."""

    def __init__(self, emit: Callable[[Event], None]) -> None:
        self._emit = emit
        self._lock = renewed(threading.Lock())
        self._told: OrderedDict[tuple[tuple[str, str], str], str] = OrderedDict()

    def fixed(self, call: CompressCall, look: Look) -> None:
        """Tell once, as a warning too, that what cannot be dropped is above the trigger by itself:
        no compression will mend it."""
        fixed = fixed_tokens(look.layout)
        if fixed <= call.budget.trigger or not self._is_news(call, FIXED, ""):
            return
        logger.warning(
            "session %s: what cannot be dropped takes %d tokens, compression begins at %d: views "
            "stay above it; raise context_window or trigger_ratio, or send fewer tools",
            call.key[1],
            fixed,
            call.budget.trigger,
        )
        self._skipped(call, look, FIXED)

    def planned(self, call: CompressCall, look: Look) -> None:
        """Tell that a compression is due and not planned: again only when there was one since."""
        if look.plan is not None or not is_due(look.layout, call.budget):
            return
        mendable = fixed_tokens(look.layout) <= call.budget.trigger  # else it was told already
        if mendable and self._is_news(call, NO_GAIN, look.session.tip):
            logger.info("session %s: compressing it now would free too little", call.key[1])
            self._skipped(call, look, NO_GAIN)

    def _skipped(self, call: CompressCall, look: Look, reason: str) -> None:
        numbers = {"tokens": look.layout.size(), "trigger": call.budget.trigger}
        self._emit(Event("skipped", look.session.id, {"reason": reason, **numbers}))

    def _is_news(self, call: CompressCall, reason: str, since: str) -> bool:
        if not call.extends:
            return False
        key = call.key, reason
        with self._lock:
            if self._told.get(key) == since:
                return False
            self._told[key] = since
            self._told.move_to_end(key)
            while len(self._told) > TOLD_SESSIONS:
                self._told.popitem(last=False)
        return True
