"""The newest run of each command and call, with the words of its result that decide."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

from ..messages.calls import ACTS, LISTS, AnsweredCall, command_of, exit_code, kind_of, opened
from ..messages.excerpts import cut
from .passages import ROLE, call_line, without_notes
from .rendering import TITLES, Entry, Section
from .telling import telling_line

T = TypeVar("T")
NO_RESULT = "no result was recorded"
AGENT = "assistant"  # the name of a call that an agent without native calls wrote in its text
COMMAND_CHARS = 200


class Newest(NamedTuple):
    """The newest of equal calls, and how many there were."""

    exchange: AnsweredCall
    times: int

    def quoted(self) -> str:
        """Return the words of its result that decide, else the result's size."""
        call = self.exchange.call
        if not self.exchange.is_answered:
            return NO_RESULT
        output = without_notes(self.exchange.text)
        said, kind = telling_line(call, output), kind_of(call)
        if not said or (kind == LISTS and "\n" in output.strip()):
            said = f"{said} {size(output)}".lstrip()
        if kind == ACTS and "exit" not in said and exit_code(opened(output)) == "0":
            said = f"exit code 0: {said}"
        return f"{ROLE}: {said}" if call.name == AGENT and not call.id else said

    def often(self) -> str:
        """Return how many equal calls it is the last of, in words."""
        return f" (newest of {self.times})" if self.times > 1 else ""


def size(output: str) -> str:
    """Return an output's size in words."""
    lines = output.strip().count("\n") + 1
    size = f"{lines:,} line{'s' * (lines > 1)}, {len(output):,} characters"
    return f"({size})" if output.strip() else "(no output)"


def note(found: dict[str, Newest], name: str, one: AnsweredCall) -> None:
    """Make a call the newest of its name."""
    known = found.pop(name, None)
    found[name] = Newest(one, known.times + 1 if known else 1)


def section(found: Sequence[Newest], budget: int) -> Section:
    """Return the section of commands and calls; those that only look rank last."""
    others, best = parted(sorted(found, key=_rank, reverse=True), budget)
    lines = [
        Entry(one.exchange.where, _rank(one), one.quoted(), f"{_said(one)} -> ")
        for one in sorted(best, key=lambda one: one.exchange.at)
    ]
    left = [one.exchange.where for one in others]
    return Section(TITLES["commands"], lines, 0.15, least=80, noun="calls", unlisted=left)


def parted(entries: Sequence[T], budget: int) -> tuple[Sequence[T], Sequence[T]]:
    """Return the entries before the last, and as many of the last as a budget can hold."""
    most = max(8, budget // 24)
    return entries[:-most], entries[-most:]


def _rank(one: Newest) -> tuple[int, ...]:
    return kind_of(one.exchange.call) != ACTS, -one.exchange.at


def _said(one: Newest) -> str:
    line, call = command_of(one.exchange.call), one.exchange.call
    return (cut(line, COMMAND_CHARS) if line else call_line(call, COMMAND_CHARS)) + one.often()
