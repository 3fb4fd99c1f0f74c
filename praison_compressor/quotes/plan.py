"""The plan: the newest list that a todo tool was given; tools are known by their exact names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..messages import ToolCall
from ..messages.calls import key_of, loaded, named_arguments
from .passages import cut
from .rendering import TITLES, Line, Section
from .telling import is_bad, telling_line

WHOLE, ONE, SHOWN, GONE = "whole", "one", "shown", "gone"
TOOLS = {
    **dict.fromkeys(
        "createtodolist managetodolist plan setplan settodolist tasktracker todo todos todowrite "
        "updateplan updatetodolist writetodos".split(),
        WHOLE,
    ),
    **dict.fromkeys(
        "addtask addtodo completetask completetodo createtodo edittodo marktodo marktodoasdone "
        "taskcreate taskupdate todoadd todocomplete todoupdate updatetask updatetodo".split(),
        ONE,
    ),
    **dict.fromkeys("gettodos listtodos readtodos tasklist todolist todoread".split(), SHOWN),
    **dict.fromkeys("deletetodo removetodo taskdelete tododelete todoremove".split(), GONE),
}
"""What a call of a todo tool gives: the list, an item, a look, a removal. Names as by `key_of`."""
_LISTS = ("todos", "todolist", "plan", "items", "tasklist", "tasks", "steps")
_TITLES = ("content", "subject", "title", "text", "task", "description", "step", "name")
_IDS = ("todoid", "taskid", "id")
ITEM_CHARS = 300


def is_plan_tool(name: str) -> bool:
    """Return whether a tool is a todo list."""
    return key_of(name) in TOOLS


@dataclass(eq=False)
class Item:
    """One item as it was given."""

    key: str
    title: str
    status: str
    at: int

    def line(self) -> str:
        """Return the item with its id and its state."""
        key = "" if self.key.startswith(_NEW) else f"{self.key}. "
        return f"{key}{f'[{self.status}] ' if self.status else ''}{cut(self.title, ITEM_CHARS)}"


_NEW = "new "
"""Begins the key of an item whose id is not known."""


@dataclass
class Plan:
    """The newest state of the todo list."""

    items: dict[str, Item] = field(default_factory=dict)
    text: str = ""
    """A list that was given as text."""
    at: int = -1
    failed: str = ""
    """Words of the newest result, where they have an error's form."""

    def section(self) -> Section:
        """Return the section of the plan, an item a line."""
        found = [(item.at, item.line()) for item in self.items.values()]
        found += [(self.at, line) for line in self.text.splitlines() if line.strip()]
        if self.failed:
            found.append((self.at, f"result of the newest call: {self.failed}"))
        lines = [Line(at, (n,), text) for n, (at, text) in enumerate(found)]
        return Section(TITLES["plan"], lines, 0.1, noun="items of the plan")

    def see(self, call: ToolCall, at: int) -> None:
        """Take in one call of a todo tool."""
        given, kind = named_arguments(call), TOOLS[key_of(call.name)]
        listed = next((given[key] for key in _LISTS if given.get(key)), None)
        listed = (loaded(listed) or listed) if isinstance(listed, str) else listed
        if kind == GONE:
            self.items.pop(_first(given, _IDS), None)
        elif kind == ONE:
            self._put(_item(given, f"{_NEW}{len(self.items) + 1}", at))
        elif isinstance(listed, list):
            self._list(listed, at, merge=given.get("merge") is True)
        elif isinstance(listed, str) and kind == WHOLE:
            self.items, self.text = {}, listed
        self.at = at

    def answer(self, call: ToolCall, text: str, at: int) -> None:
        """Take in what a result adds: the id of a new item, or the list itself."""
        value = loaded(text)
        said, kind = telling_line(call, text), TOOLS[key_of(call.name)]
        # A result that repeats the list has words of failure in its items.
        repeats = any(item.title and item.title in text for item in self.items.values())
        self.failed = said if is_bad(said) and not repeats else ""
        newest = next(reversed(self.items), "")
        if kind == ONE and newest.startswith(_NEW) and (key := _told_id(value, text)):
            item = self.items.pop(newest)
            item.key = key
            self._put(item)
        if isinstance(value, Mapping):
            value = next((value[key] for key in value if key_of(str(key)) in _LISTS), None)
        if kind == SHOWN and isinstance(value, list) and value:
            self._list(value, at, merge=True)

    def _list(self, listed: list[Any], at: int, *, merge: bool) -> None:
        self.items, self.text = (self.items if merge else {}), ""
        for n, entry in enumerate(listed, 1):
            self._put(_item(entry, str(n), at))

    def _put(self, item: Item | None) -> None:
        """Set an item; a member that was not given again stays as it was given."""
        if item is not None:
            known = self.items.get(item.key, item)
            item.title, item.status = item.title or known.title, item.status or known.status
            self.items[item.key] = item


def _item(entry: Any, key: str, at: int) -> Item | None:
    if isinstance(entry, str):
        return Item(key, entry, "", at) if entry.strip() else None
    if not isinstance(entry, Mapping):
        return None
    given = {key_of(str(name)): value for name, value in entry.items()}
    title = next((given[k] for k in _TITLES if isinstance(given.get(k), str) and given[k]), "")
    status = str(given.get("status") or given.get("state") or "")
    done = given.get("completed", given.get("done"))
    if not status and isinstance(done, bool):
        status = "completed" if done else "not completed"
    return Item(_first(given, _IDS) or key, title, status, at) if title or status else None


def _first(given: Mapping[str, Any], keys: tuple[str, ...]) -> str:
    return next((str(given[key]) for key in keys if given.get(key) not in (None, "")), "")


_NUMBERED = re.compile(r"(?:task|todo)(?: item)? #?(\w*\d[\w-]*)", re.I)


def _told_id(value: Any, text: str) -> str:
    """Return the id that a result gives a new item."""
    if not isinstance(value, Mapping):
        found = _NUMBERED.search(text[:200])
        return found[1] if found else ""
    inner = next((held for held in value.values() if isinstance(held, Mapping)), {})
    return _first({key_of(str(k)): v for k, v in (*inner.items(), *value.items())}, _IDS)
