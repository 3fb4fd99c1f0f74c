"""Calls paired with their results: ids are used again, and a result may be missing."""

from __future__ import annotations

from dataclasses import dataclass

from ..messages import Message, ToolCall, tool_calls_of

NO_RESULT = "no result was recorded"


@dataclass(eq=False)
class Exchange:
    """One call and its result."""

    at: int
    call: ToolCall
    text: str = ""
    """The result's text, with its `is_error` flag in words where that is set."""
    answered_at: int = -1

    @property
    def is_answered(self) -> bool:
        """Return whether a result was recorded."""
        return self.answered_at >= 0


class Pairing:
    """Finds the call that a result answers: the first open one of its id, else the newest."""

    def __init__(self) -> None:
        self.made: list[Exchange] = []
        self._open: dict[str, list[Exchange]] = {}
        self._newest: dict[str, Exchange] = {}

    def calls(self, message: Message, at: int) -> None:
        """Take in the calls of an assistant's message."""
        made = [Exchange(at, call) for call in tool_calls_of(message)]
        if made:
            self._open = {}
        for one in made:
            for key in {one.call.id, one.call.name} - {""}:
                self._open.setdefault(key, []).append(one)
                self._newest[key] = one
        self.made += made

    def answer(self, key: str, text: str, at: int) -> Exchange | None:
        """Return the exchange that a result completes; None where no call has its id."""
        waiting = [one for one in self._open.get(key, ()) if not one.is_answered]
        one = waiting[0] if waiting else self._newest.get(key)
        if one is not None:
            one.text, one.answered_at = text, at
        return one
