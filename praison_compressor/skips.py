"""Tells that a compression is due and is not done, and why: once, not every turn."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable

from .call import Call, Look
from .events import Event
from .plan import fixed_tokens, is_due

__all__ = ["Skips"]

logger = logging.getLogger(__name__)

TOLD_SESSIONS = 64

FIXED, NO_GAIN = "fixed part", "no gain"


class Skips:
    """Remembers what it told of the newest sessions; thread-safe."""

    def __init__(self, emit: Callable[[Event], None]) -> None:
        self._emit = emit
        self._lock = threading.Lock()
        self._told: OrderedDict[tuple[tuple[str, str], str], str] = OrderedDict()

    def see(self, call: Call, look: Look) -> None:
        """Tell what this look is not followed by: again only when the session was compressed since.

        That the fixed part alone is above the trigger is told once for good, as a warning too: no
        compression will mend it.
        """
        if not call.extends or look.layout.size() <= call.budget.trigger:
            return
        fixed = fixed_tokens(look.layout)
        if fixed > call.budget.trigger:
            if self._is_news(call, FIXED, ""):
                logger.warning(
                    "session %s: what cannot be dropped takes %d tokens, compression begins at %d: "
                    "views stay above it; raise context_window or trigger_ratio, or send fewer "
                    "tools",
                    call.key[1],
                    fixed,
                    call.budget.trigger,
                )
                self._skipped(call, look, FIXED)
            return
        is_skipped = look.plan is None and is_due(look.layout, call.budget)
        if is_skipped and self._is_news(call, NO_GAIN, look.session.tip):
            logger.info("session %s: compressing it now would free too little", call.key[1])
            self._skipped(call, look, NO_GAIN)

    def _skipped(self, call: Call, look: Look, reason: str) -> None:
        numbers = {"tokens": look.layout.size(), "trigger": call.budget.trigger}
        self._emit(Event("skipped", look.session.id, {"reason": reason, **numbers}))

    def _is_news(self, call: Call, reason: str, since: str) -> bool:
        key = call.key, reason
        with self._lock:
            if self._told.get(key) == since:
                return False
            self._told[key] = since
            self._told.move_to_end(key)
            while len(self._told) > TOLD_SESSIONS:
                self._told.popitem(last=False)
        return True
