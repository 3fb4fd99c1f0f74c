"""The newest run of each command and call, with the words of its result that decide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..messages.calls import ACTS, LISTS, AnsweredCall, exit_code, kind_of, opened
from ..messages.excerpts import cut
from .passages import ROLE, without_notes
from .rendering import TITLES, Entry, Section
from .telling import telling_line

NO_RESULT = "no result was recorded"
AGENT = "assistant"  # the name of a call that an agent without native calls wrote in its text
COMMAND_CHARS = 200
CHANGED_HERE = "(here: the newest call of the section Files)"


class Newest(NamedTuple):
    """The newest of equal calls, and how many there were."""

    exchange: AnsweredCall
    times: int

    def quoted(self) -> tuple[str, str]:
        """Return what is said of its result, which no cut tears, and the words that decide."""
        call = self.exchange.call
        if not self.exchange.is_answered:
            return NO_RESULT, ""
        output = without_notes(self.exchange.text)
        said, kind = telling_line(call, output), kind_of(call)
        about = [f"{ROLE}:"] if call.name == AGENT and not call.id else []
        if not said or (kind == LISTS and "\n" in output.strip()):
            about.append(size(output))
        if kind == ACTS and "exit" not in said and exit_code(opened(output)) == "0":
            about.append("exit code 0:")
        return " ".join(about), said

    def entry(self, rank: tuple[int, ...], what: str, path: str = "") -> Entry:
        """Return its entry; the words name the path, if given, only as "…"."""
        about, said = self.quoted()
        lead = f"{what} -> {about}{' ' if about and said else ''}"
        return Entry(self.exchange.where, rank, said.replace(path, "…") if path else said, lead)

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


def section(found: Mapping[str, Newest], changed: Mapping[str, Newest], budget: int) -> Section:
    """Return the section of commands and calls; those that only look rank last.

    A line among them marks the place of the newest call that names a file to change.
    """
    others, best = parted(sorted(found.items(), key=_rank, reverse=True), budget)
    lines = [
        one.entry(_rank((line, one)), cut(line, COMMAND_CHARS) + one.often())
        for line, one in sorted(best, key=lambda item: item[1].exchange.at)
    ]
    at = max((one.exchange.at for one in changed.values()), default=-1)
    before = sum(one.exchange.at < at for _, one in best)
    if before and _rank(best[-1])[0] == 0:
        lines.insert(before, Entry(at, (0, -at), CHANGED_HERE))
    left = [one.exchange.where for _, one in others]
    return Section(TITLES["commands"], lines, 0.15, least=80, noun="calls", unlisted=left)


def parted(entries: Sequence[Any], budget: int) -> tuple[Sequence[Any], Sequence[Any]]:
    """Return the entries before the last, and as many of the last as a budget can hold."""
    most = max(8, budget // 24)
    return entries[:-most], entries[-most:]


def _rank(item: tuple[str, Newest]) -> tuple[int, ...]:
    return kind_of(item[1].exchange.call) != ACTS, -item[1].exchange.at
