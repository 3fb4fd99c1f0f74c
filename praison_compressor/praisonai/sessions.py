"""Under which session id an agent's conversation is kept."""

from __future__ import annotations

import secrets
from typing import Any

__all__ = ["SessionName"]


class SessionName:
    """The agent's own session id, unless a command set another; random where it has none.

    Random and not its name: agents of one name in one process must not meet in a ledger.
    """

    def __init__(self) -> None:
        self._random = _new()
        self._taken: str | None = None

    def of(self, agent: Any) -> str:
        """The id in force."""
        if self._taken is not None:
            return self._taken
        for name in ("_history_session_id", "_session_id"):
            given = getattr(agent, name, None)
            if isinstance(given, str) and given:
                return given
        return self._random

    def take(self, session_id: str) -> str:
        """Go on under that id."""
        self._taken = session_id
        return session_id

    def renew(self) -> str:
        """Go on under a new random one."""
        return self.take(_new())


def _new() -> str:
    return f"agent-{secrets.token_hex(8)}"
