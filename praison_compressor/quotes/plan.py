"""The plan: the newest list that a todo tool was given, by the tool's exact name."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..messages import ToolCall
from .passages import arguments_of, cut, key_of

WHOLE, ONE, SHOWN, GONE = "whole", "one", "shown", "gone"

TOOLS = {
    **dict.fromkeys(
        "todowrite updateplan writetodos managetodolist updatetodolist settodolist tasktracker todo "
        "todos createtodolist setplan plan todowritetool maketodolist".split(),
        WHOLE,
    ),
    **dict.fromkeys(
        "todoadd todoupdate addtodo updatetodo taskcreate taskupdate createtodo edittodo "
        "completetodo marktodo marktodoasdone todocomplete addtask updatetask completetask".split(),
        ONE,
    ),
    **dict.fromkeys("todolist listtodos todoread tasklist readtodos gettodos".split(), SHOWN),
    **dict.fromkeys("todoremove tododelete deletetodo removetodo taskdelete".split(), GONE),
}
"""Tools that are todo lists, and what a call of each gives: the list, an item, a look, a removal."""

_LISTS = ("todos", "todolist", "plan", "items", "tasklist", "tasks", "steps")
_TITLES = ("content", "subject", "title", "text", "task", "description", "step", "name")
_IDS = ("todoid", "taskid", "id")
_ITEM_CHARS = 300


@dataclass(eq=False)
class Item:
    """One item as it was given."""

    key: str
    title: str
    status: str
    at: int


@dataclass
class Plan:
    """The newest state of the todo list."""

    items: dict[str, Item] = field(default_factory=dict)
    text: str = ""
    """A list that was given as text."""
    at: int = -1
    _waiting: dict[int, Item] = field(default_factory=dict)
    """Items whose id the result of their call names, by the call's identity."""

    def see(self, call: ToolCall, at: int) -> None:
        """Take in one call of a todo tool."""
        given = arguments_of(call)
        given = {key_of(str(k)): v for k, v in given.items()} if isinstance(given, Mapping) else {}
        kind = TOOLS[key_of(call.name)]
        listed = next((given[key] for key in _LISTS if given.get(key)), None)
        if isinstance(listed, str) and kind != SHOWN:
            listed = _loaded(listed) or listed
        if isinstance(listed, list):
            self._list(listed, at, merge=given.get("merge") is True)
        elif isinstance(listed, str) and kind == WHOLE:
            self.items, self.text, self.at = {}, listed, at
        elif kind == ONE and given:
            self._one(given, call, at)
        elif kind == GONE and (key := _first(given, _IDS)) in self.items:
            del self.items[key]

    def answer(self, call: ToolCall, text: str, at: int) -> None:
        """Take in what the result of a todo tool's call adds: an id, or the list itself."""
        value = _loaded(text)
        waiting = self._waiting.pop(id(call), None)
        if waiting is not None and (key := _told_id(value, text)):
            self.items = {key if i is waiting else k: i for k, i in self.items.items()}
            waiting.key = key
        if TOOLS[key_of(call.name)] != SHOWN or not isinstance(value, (Mapping, list)):
            return
        listed = (
            value
            if isinstance(value, list)
            else next((value[key] for key in value if key_of(str(key)) in _LISTS), None)
        )
        if isinstance(listed, list) and listed:
            self._list(listed, at, merge=True)

    def _list(self, listed: list[Any], at: int, *, merge: bool) -> None:
        found = [_item(entry, str(n), at) for n, entry in enumerate(listed, 1)]
        if not merge:
            self.items = {}
        for item in filter(None, found):
            self._put(item)
        self.text, self.at = "", at

    def _one(self, given: Mapping[str, Any], call: ToolCall, at: int) -> None:
        item = _item(given, "", at)
        if item is None:
            return
        if not item.key:
            item.key = f"new {len(self.items) + 1}"
            self._waiting[id(call)] = item
        self._put(item)
        self.at = at

    def _put(self, item: Item) -> None:
        """Set an item; a member that was not given again stays as it was given."""
        known = self.items.get(item.key)
        if known is not None:
            item.title, item.status = item.title or known.title, item.status or known.status
        self.items[item.key] = item

    def lines(self) -> list[tuple[int, str]]:
        """Return (position, line) of each item in order."""
        if self.text:
            return [(self.at, line) for line in self.text.splitlines() if line.strip()]
        return [(item.at, _line(item)) for item in self.items.values()]


def is_plan_tool(name: str) -> bool:
    """Return whether a tool is a todo list, by its exact name."""
    return key_of(name) in TOOLS


def _line(item: Item) -> str:
    status = f"[{item.status}] " if item.status else ""
    key = "" if item.key.startswith("new ") else f"{item.key}. "
    return f"{key}{status}{cut(item.title, _ITEM_CHARS)}".rstrip()


def _item(entry: Any, key: str, at: int) -> Item | None:
    if isinstance(entry, str):
        return Item(key, entry, "", at) if entry.strip() else None
    if not isinstance(entry, Mapping):
        return None
    given = {key_of(str(name)): value for name, value in entry.items()}
    title = next((str(given[k]) for k in _TITLES if isinstance(given.get(k), str) and given[k]), "")
    status = str(given.get("status") or given.get("state") or "")
    if not status and isinstance(given.get("completed", given.get("done")), bool):
        status = "completed" if given.get("completed", given.get("done")) else "pending"
    named = _first(given, _IDS) or key
    return Item(named, title, status, at) if title or status else None


def _first(given: Mapping[str, Any], keys: tuple[str, ...]) -> str:
    return next((str(given[key]) for key in keys if given.get(key) not in (None, "")), "")


_NUMBERED = re.compile(r"(?:[Tt]ask|[Tt]odo)(?: item)? #?(\w[\w-]*)\b")


def _told_id(value: Any, text: str) -> str:
    """Return the id that a result gives a new item."""
    if isinstance(value, Mapping):
        inner = next((v for v in value.values() if isinstance(v, Mapping)), {})
        flat = {key_of(str(k)): v for k, v in (*inner.items(), *value.items())}
        return _first(flat, _IDS)
    found = _NUMBERED.search(text[:200])
    return found[1] if found and any(map(str.isdigit, found[1])) else ""


def _loaded(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
