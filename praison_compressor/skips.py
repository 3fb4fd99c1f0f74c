"""Tells that a compression is due and is not done, and why: once, not every turn."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable

from .call import Call, Look
from .events import Event
from .forks import renewed
from .plan import fixed_tokens, is_due

__all__ = ["Skips"]

logger = logging.getLogger(__name__)

TOLD_SESSIONS = 64

FIXED, NO_GAIN = "fixed part", "no gain"


class Skips:
    """Remembers what it told of the newest sessions; thread-safe."""

    def __init__(self, emit: Callable[[Event], None]) -> None:
        self._emit = emit
        self._lock = renewed(threading.Lock())
        self._told: OrderedDict[tuple[tuple[str, str], str], str] = OrderedDict()

    def fixed(self, call: Call, look: Look) -> None:
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

    def planned(self, call: Call, look: Look) -> None:
        """Tell that a compression is due and not planned: again only when there was one since."""
        if look.plan is not None or not is_due(look.layout, call.budget):
            return
        mendable = fixed_tokens(look.layout) <= call.budget.trigger  # else it was told already
        if mendable and self._is_news(call, NO_GAIN, look.session.tip):
            logger.info("session %s: compressing it now would free too little", call.key[1])
            self._skipped(call, look, NO_GAIN)

    def _skipped(self, call: Call, look: Look, reason: str) -> None:
        numbers = {"tokens": look.layout.size(), "trigger": call.budget.trigger}
        self._emit(Event("skipped", look.session.id, {"reason": reason, **numbers}))

    def _is_news(self, call: Call, reason: str, since: str) -> bool:
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
