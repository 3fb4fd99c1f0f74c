"""Quote the newest list that a todo tool, known by its exact name, was given."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..messages.calls import AnsweredCall, arguments_by_name, normalize_key, parse_json
from ..messages.shortening import cut_line
from .rendering import TITLES, QuoteEntry, Section
from .telling import is_failure, telling_line

WHOLE, ONE, SHOWN, GONE = "whole", "one", "shown", "gone"
_TOOL_NAMES = {
    WHOLE: "createtodolist managetodolist plan setplan settodolist tasktracker todo todos "
    "todowrite updateplan updatetodolist writetodos",
    ONE: "addtask addtodo completetask completetodo createtodo edittodo marktodo marktodoasdone "
    "taskcreate taskupdate todoadd todocomplete todoupdate updatetask updatetodo",
    SHOWN: "gettodos listtodos readtodos tasklist todolist todoread",
    GONE: "deletetodo removetodo taskdelete tododelete todoremove",
}
TODO_TOOLS = {name: kind for kind, names in _TOOL_NAMES.items() for name in names.split()}
"""Normalized tool name -> what its call gives: the list, an item, a look, a removal."""
_LISTS = ("todos", "todolist", "plan", "items", "tasklist", "tasks", "steps")
_TITLES = ("content", "subject", "title", "text", "task", "description", "step", "name")
_IDS = ("todoid", "taskid", "id")
_NEW = "new "  # begins the key of an item whose id is not known
_ITEM_NUMBER = re.compile(r"(?:task|todo)(?: item)? #?(\w*\d[\w-]*)", re.I)
ITEM_CHARS = 300


@dataclass(eq=False)
class Todo:
    """One item as it was given."""

    key: str
    title: str
    status: str
    at: int
    titled_at: int
    """Position of the call that gave the title."""

    def line(self) -> str:
        """Return the item with its id and its state."""
        key = "" if self.key.startswith(_NEW) else f"{self.key}. "
        return (
            f"{key}{f'[{self.status}] ' if self.status else ''}{cut_line(self.title, ITEM_CHARS)}"
        )


@dataclass
class TodoList:
    """The newest state of the todo list."""

    items: dict[str, Todo] = field(default_factory=dict)
    text: str = ""
    """A list that was given as text."""
    at: int = -1
    failed: str = ""
    """Words of the newest result, where they have an error's form."""

    def section(self) -> Section:
        """Return the section of the plan, an item a line."""
        found = [(item.at, item.titled_at, item.line()) for item in self.items.values()]
        own = [line for line in self.text.splitlines() if line.strip()]
        own += [f"result of the newest call: {self.failed}"] if self.failed else []
        found += [(self.at, self.at, line) for line in own]
        lines = [QuoteEntry(at, (n,), text, also=also) for n, (at, also, text) in enumerate(found)]
        return Section(TITLES["plan"], lines, 0.1, noun="items of the plan")

    def read_call(self, one: AnsweredCall) -> None:
        """Take in one call of a todo tool, and its result."""
        given, kind, self.at = (
            arguments_by_name(one.call),
            TODO_TOOLS[normalize_key(one.call.name)],
            one.at,
        )
        listed = next((given[key] for key in _LISTS if given.get(key)), None)
        listed = (parse_json(listed) or listed) if isinstance(listed, str) else listed
        answer = parse_json(one.text)
        if kind == GONE:
            self.items.pop(_first_value(given, _IDS), None)
        elif kind == ONE:
            key = _id_in_result(answer, one.text) or f"{_NEW}{len(self.items) + 1}"
            self._merge_item(_parse_item(given, key, one.at))
        elif isinstance(listed, list):
            self._read_list(listed, one.at, merge=given.get("merge") is True)
        elif isinstance(listed, str) and kind == WHOLE:
            self.items, self.text = {}, listed
        if isinstance(answer, Mapping):
            answer = next(
                (answer[key] for key in answer if normalize_key(str(key)) in _LISTS), None
            )
        if kind == SHOWN and isinstance(answer, list) and answer:
            self._read_list(answer, one.answered_at, merge=True)
        said = telling_line(one.call, one.text)
        # A result that repeats the list has words of failure in its items.
        repeats = any(item.title and item.title in one.text for item in self.items.values())
        self.failed = said if is_failure(said) and not repeats else ""

    def _read_list(self, listed: list[Any], at: int, *, merge: bool) -> None:
        self.items, self.text = (self.items if merge else {}), ""
        for n, entry in enumerate(listed, 1):
            self._merge_item(_parse_item(entry, str(n), at))

    def _merge_item(self, item: Todo | None) -> None:
        """Set an item; keep the members that were not given again."""
        if item is not None:
            known = self.items.get(item.key, item)
            if not item.title:
                item.title, item.titled_at = known.title, known.titled_at
            item.status = item.status or known.status
            self.items[item.key] = item


def _parse_item(entry: Any, key: str, at: int) -> Todo | None:
    if isinstance(entry, str):
        return Todo(key, entry, "", at, at) if entry.strip() else None
    if not isinstance(entry, Mapping):
        return None
    given = {normalize_key(str(name)): value for name, value in entry.items()}
    title = next((given[k] for k in _TITLES if isinstance(given.get(k), str) and given[k]), "")
    status = str(given.get("status") or given.get("state") or "")
    done = given.get("completed", given.get("done"))
    if not status and isinstance(done, bool):
        status = f"completed: {str(done).lower()}"
    return (
        Todo(_first_value(given, _IDS) or key, title, status, at, at) if title or status else None
    )


def _first_value(given: Mapping[str, Any], keys: tuple[str, ...]) -> str:
    return next((str(given[key]) for key in keys if given.get(key) not in (None, "")), "")


def _id_in_result(value: Any, text: str) -> str:
    """Return the id that a result gives a new item."""
    if not isinstance(value, Mapping):
        found = _ITEM_NUMBER.search(text[:200])
        return found[1] if found else ""
    inner = next((held for held in value.values() if isinstance(held, Mapping)), {})
    return _first_value(
        {normalize_key(str(k)): v for k, v in (*inner.items(), *value.items())}, _IDS
    )
