"""Read the newest state of an agent's todo list. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..messages import calls, results, shapes
from ..messages.shortening import cut_line
from .output_lines import deciding_line, is_failure
from .rendering import PLAN, QuoteEntry, Section

LIST, ITEM, LOOK, REMOVAL = "list", "item", "look", "removal"
_TOOL_NAMES = {
    LIST: "createtodolist managetodolist plan setplan settodolist tasktracker todo todos "
    "todowrite updateplan updatetodolist writetodos",
    ITEM: "addtask addtodo completetask completetodo createtodo edittodo marktodo marktodoasdone "
    "taskcreate taskupdate todoadd todocomplete todoupdate updatetask updatetodo",
    LOOK: "gettodos listtodos readtodos tasklist todolist todoread",
    REMOVAL: "deletetodo removetodo taskdelete tododelete todoremove",
}
TODO_TOOLS = {name: kind for kind, names in _TOOL_NAMES.items() for name in names.split()}
"""Normalized tool name -> kind of its call."""
_PLAN_KEYS = ("todos", "todolist", "plan", "items", "tasklist", "tasks", "steps")
_TITLE_KEYS = ("content", "subject", "title", "text", "task", "description", "step", "name")
_ID_KEYS = ("todoid", "taskid", "id")
_NEW = "new "  # begins the key of an item without an id
_ITEM_NUMBER = re.compile(r"(?:task|todo)(?: item)? #?(\w*\d[\w-]*)", re.I)
ITEM_CHARS = 300


class Todo(NamedTuple):
    """One item as it was given."""

    key: str
    title: str
    status: str
    at: int
    titled_at: int
    """Index of the call that gave the title."""

    def line(self) -> str:
        """Return the item with its id and its state."""
        key = "" if self.key.startswith(_NEW) else f"{self.key}. "
        status = f"[{self.status}] " if self.status else ""
        return f"{key}{status}{cut_line(self.title, ITEM_CHARS)}"


@dataclass
class TodoList:
    """The newest state of the todo list."""

    items: dict[str, Todo] = field(default_factory=dict)
    text: str = ""
    """The list, if it was given as text."""
    at: int = -1
    failure: str = ""
    """The newest result's line of failure, or ""."""

    def section(self) -> Section:
        """Return the section of the plan; each item is a line."""
        rows = [(item.at, item.titled_at, item.line()) for item in self.items.values()]
        lines = [line for line in self.text.splitlines() if line.strip()]
        if self.failure:
            lines.append(f"result of the newest call: {self.failure}")
        rows += [(self.at, self.at, line) for line in lines]
        entries = [QuoteEntry(at, (n,), row, also=also) for n, (at, also, row) in enumerate(rows)]
        return Section(PLAN, entries)

    def read_call(self, record: results.CallRecord) -> None:
        """Read one call of a todo tool, and its result."""
        kind = TODO_TOOLS[calls.normalize_key(record.call.name)]
        self.at, result = record.at, shapes.parse_json(record.text)
        self._read_arguments(kind, record, result)
        if isinstance(result, Mapping):
            lists = (value for key, value in calls.members_of(result).items() if key in _PLAN_KEYS)
            result = next(lists, None)
        if kind == LOOK and isinstance(result, list) and result:
            self._read_list(result, record.answered_at, merge=True)
        line = deciding_line(record.call, record.text)
        self.failure = line if is_failure(line) else ""

    def _read_arguments(self, kind: str, record: results.CallRecord, result: Any) -> None:
        arguments = calls.arguments_by_name(record.call)
        listed = next((arguments[key] for key in _PLAN_KEYS if arguments.get(key)), None)
        listed = (shapes.parse_json(listed) or listed) if isinstance(listed, str) else listed
        if kind == REMOVAL:
            self.items.pop(_first_value(arguments, _ID_KEYS), None)
        elif kind == ITEM:
            key = _id_in_result(result, record.text) or f"{_NEW}{len(self.items) + 1}"
            self._merge_item(_parse_item(arguments, key, record.at))
        elif isinstance(listed, list):
            self._read_list(listed, record.at, merge=arguments.get("merge") is True)
        elif isinstance(listed, str) and kind == LIST:
            self.items, self.text = {}, listed

    def _read_list(self, listed: list[Any], at: int, *, merge: bool) -> None:
        self.items, self.text = (self.items if merge else {}), ""
        for n, entry in enumerate(listed, 1):
            self._merge_item(_parse_item(entry, str(n), at))

    def _merge_item(self, item: Todo | None) -> None:
        if item is not None:
            known = self.items.get(item.key, item)
            if not item.title:
                item = item._replace(title=known.title, titled_at=known.titled_at)
            self.items[item.key] = item._replace(status=item.status or known.status)


def _parse_item(entry: Any, key: str, at: int) -> Todo | None:
    if isinstance(entry, str):
        return Todo(key, entry, "", at, at) if entry.strip() else None
    if not isinstance(entry, Mapping):
        return None
    members = calls.members_of(entry)
    titles = (members.get(name) for name in _TITLE_KEYS)
    title = next((title for title in titles if isinstance(title, str) and title), "")
    status = str(members.get("status") or members.get("state") or "")
    done = members.get("completed", members.get("done"))
    if not status and isinstance(done, bool):
        status = f"completed: {str(done).lower()}"
    key = _first_value(members, _ID_KEYS) or key
    return Todo(key, title, status, at, at) if title or status else None


def _first_value(members: Mapping[str, Any], keys: tuple[str, ...]) -> str:
    return next((str(members[key]) for key in keys if members.get(key) not in (None, "")), "")


def _id_in_result(result: Any, text: str) -> str:
    if not isinstance(result, Mapping):
        number = _ITEM_NUMBER.search(text[:200])
        return number[1] if number else ""
    inner = next((value for value in result.values() if isinstance(value, Mapping)), {})
    return _first_value({**calls.members_of(inner), **calls.members_of(result)}, _ID_KEYS)
