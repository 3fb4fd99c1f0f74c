"""Name the calls that no section quotes: tool, arguments and place."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from ..messages import ToolCall, calls
from ..messages.display import pluralize, truncate_line
from ..messages.shortening import cut_line
from .rendering import HEADING, OUTLINE, CountText, left_out_note
from .work import call_rank

NAME_CHARS = 48
PLACE_TOKENS = 5  # of a call's reference
TOOLS_IN_NOTE = 4  # tools named among the calls left out
_FOLDERS = [re.compile(".*/(?=%s[^/]+$)" % ("[^/]+/" * kept)) for kept in range(3)]
Records = Sequence[calls.CallRecord]


@dataclass(frozen=True)
class Outline:
    """Prints a line for each tool: what its calls were given, and where."""

    count: CountText
    reference: Callable[[int], str]

    def text(self, records: Iterable[calls.CallRecord], room: int) -> str:
        """Return as many calls as fit the room, and count the others by tool."""
        ranked = sorted(records, key=call_rank)
        shown = ranked[: max(0, room) // PLACE_TOKENS]
        while shown:
            lines = [HEADING + OUTLINE, *self._tool_lines(shown)]
            text = "\n".join(filter(None, (*lines, self._note(ranked[len(shown) :]))))
            tokens = self.count(text)
            if tokens <= room:
                return text
            del shown[min(len(shown) - 1, len(shown) * room // tokens) :]
        notes = (self._note(ranked, tools) for tools in (TOOLS_IN_NOTE, 0))
        return next((note for note in notes if self.count(note) <= room), "")

    def _tool_lines(self, records: Records) -> Iterator[str]:
        places: dict[str, dict[str, str]] = {}
        by_place = sorted(records, key=lambda record: record.where)
        for name, record in zip(_names(by_place), by_place, strict=True):
            names = places.setdefault(record.call.name, {})
            names[name] = f"{names.get(name, name)} {self.reference(record.where)}".strip()
        for tool, names in places.items():
            yield f"- {tool}: {', '.join(names.values())}"

    def _note(self, records: Records, most_tools: int = TOOLS_IN_NOTE) -> str:
        if not records:
            return ""
        tools = Counter(record.call.name for record in records).most_common(most_tools)
        named = ", ".join(f"{name} {n:,}" for name, n in tools)
        places = [record.where for record in records]
        text = f"{pluralize(len(records), 'more call')} not shown" + (
            f" ({named})" if named else ""
        )
        return left_out_note([text], map(self.reference, (min(places), max(places))))


def _names(records: Records) -> list[str]:
    """Return what each call was given, its paths with no more folders than tell them apart."""
    given = [_given(record.call) for record in records]
    names: dict[tuple[str, ...], str] = {}
    for folders in _FOLDERS:
        times = Counter(names.values())
        for values, paths in given:
            if times[names.get(values, "")] != 1:
                shorter = (
                    folders.sub("…/", value) if value in paths else value for value in values
                )
                names[values] = truncate_line(" ".join(shorter), NAME_CHARS)
    return [names[values] for values, _ in given]


def _given(call: ToolCall) -> tuple[tuple[str, ...], Sequence[str]]:
    """Return a call's command, paths to change or arguments, and the paths among these."""
    if line := calls.command_of(call):
        return (cut_line(line, NAME_CHARS),), ()
    if changed := calls.paths_changed(call):
        return tuple(changed), changed
    return tuple(calls.argument_values(calls.arguments_of(call))), calls.paths_in(call)
