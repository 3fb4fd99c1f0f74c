"""Calls with their results; the newest run of each command or call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..messages import Message, ToolCall, tool_calls_of
from .passages import call_line, call_text, command_of, cut, without_notes
from .rendering import TITLES, Line, Section
from .telling import lists, looks, telling_line

NO_RESULT = "no result was recorded"
COMMAND_CHARS = 200


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
    """Finds the call that a result answers: ids are used again, and a result may be missing."""

    def __init__(self) -> None:
        self.made: list[Exchange] = []
        self._open: dict[str, list[Exchange]] = {}
        self._newest: dict[str, Exchange] = {}

    def calls(self, message: Message, at: int) -> bool:
        """Take in the calls of an assistant's message; return whether it makes any."""
        made = [Exchange(at, call) for call in tool_calls_of(message)]
        if made:
            self._open = {}
        for one in made:
            for key in {one.call.id, one.call.name} - {""}:
                self._open.setdefault(key, []).append(one)
                self._newest[key] = one
        self.made += made
        return bool(made)

    def answer(self, key: str, text: str, at: int) -> Exchange | None:
        """Complete the first open call of an id, else the newest; None where none has it."""
        waiting = (one for one in self._open.get(key, ()) if not one.is_answered)
        one = next(waiting, None) or self._newest.get(key)
        if one is not None:
            one.text, one.answered_at = text, at
        return one


@dataclass(frozen=True)
class Newest:
    """The newest of equal calls, and how many there were."""

    exchange: Exchange
    times: int
    host_prefixes: tuple[str, ...]

    def quoted(self) -> str:
        """Return the words of its result that decide, with the exit code where there is one."""
        one = self.exchange
        if not one.is_answered:
            return NO_RESULT
        output = without_notes(one.text, self.host_prefixes)
        said = telling_line(one.call, output)
        if not said:
            return size(output)
        return f"{said} {size(output)}" if lists(one.call) and "\n" in output.strip() else said


def size(output: str) -> str:
    """Return an output's size in words.

    >>> size("a\\nb")
    '(2 lines, 3 characters)'
    """
    lines = output.strip().count("\n") + 1
    return f"({lines:,} lines, {len(output):,} characters)" if output.strip() else "(no output)"


def note(found: dict[str, Newest], name: str, one: Exchange, prefixes: tuple[str, ...]) -> None:
    """Make a call the newest of its name."""
    known = found.pop(name, None)
    found[name] = Newest(one, known.times + 1 if known else 1, prefixes)


def run_key(call: ToolCall) -> str:
    """Return what makes two calls runs of one command."""
    return command_of(call).strip() or call_text(call)


def section(found: Sequence[Newest], budget: int) -> Section:
    """Return the section of commands and calls; those that only look rank last."""
    ranked = sorted(found, key=_rank)
    chosen = sorted(ranked[: most_entries(budget)], key=lambda one: one.exchange.at)
    lines = [
        Line(
            one.exchange.at, _rank(one), f"{_said(one.exchange.call)}{times(one)} -> {one.quoted()}"
        )
        for one in chosen
    ]
    left = len(found) - len(chosen)
    return Section(TITLES["commands"], lines, 0.15, least=80, noun="calls", unlisted=left)


def most_entries(budget: int) -> int:
    """Return how many entries of calls a budget can hold at most."""
    return max(8, budget // 24)


def times(one: Newest) -> str:
    """Return how many equal calls the newest is the last of, in words."""
    return f" (newest of {one.times})" if one.times > 1 else ""


def _rank(one: Newest) -> tuple[int, ...]:
    return int(looks(one.exchange.call)), -one.exchange.at


def _said(call: ToolCall) -> str:
    return cut(command_of(call), COMMAND_CHARS) or call_line(call, COMMAND_CHARS)
