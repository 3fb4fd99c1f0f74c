"""Open work: todo lists in their last state, decisions with their reason, what comes next."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ..messages import ToolCall
from .corrections import sentences
from .language import DECIDES, LEAVES_OPEN
from .model import Note, Todo
from .passages import Passage, arguments_of, key_of

_TITLE_KEYS = ("content", "subject", "title", "text", "task", "description", "step", "name")
_CHECKBOX = re.compile(r"^\s*[-*]\s*\[([ xX~-])\]\s+(.{3,200})$", re.M)
_LIST_KEYS = ("todos", "todolist", "plan", "items", "tasklist", "tasks", "steps", "taskprogress")
_STATUS = {" ": "pending", "x": "completed", "~": "in_progress", "-": "in_progress"}
_LISTS = re.compile(r"todo|task|plan", re.I)
_LEAST_NOTE = 12
"""Bytes: four signs of Chinese say as much."""
_MAX_NOTE = 300


def notes(passage: Passage) -> Iterator[tuple[str, Note]]:
    """(`decision` or `open`, note) for the sentences of an assistant's text that say so."""
    for sentence in sentences(passage.text):
        if _bytes(sentence) < _LEAST_NOTE or len(sentence) > _MAX_NOTE:
            continue
        if sentence.endswith(("?", ":", "？", "：")) and DECIDES.search(sentence):
            continue  # a question decides nothing, and what a colon announces is not in it
        if DECIDES.search(sentence):
            yield "decision", Note(sentence, passage.at)
        elif LEAVES_OPEN.search(sentence):
            yield "open", Note(sentence, passage.at)


def last_words(passage: Passage) -> tuple[Note, ...]:
    """How an assistant's text begins: there it says what it found or did."""
    for sentence in sentences(passage.text):
        if _bytes(sentence) >= _LEAST_NOTE and any(char.isalpha() for char in sentence):
            return (Note(_cut(sentence), passage.at),)
    return ()


def _bytes(sentence: str) -> int:
    """Its length in bytes: a Chinese sentence says as much in a third of the characters."""
    return len(sentence.encode("utf-8", "surrogatepass"))


def _cut(sentence: str) -> str:
    return sentence if len(sentence) <= _MAX_NOTE else sentence[: _MAX_NOTE - 1] + "…"


class TodoList:
    """The newest state of the todo list, whether written whole or item by item."""

    def __init__(self) -> None:
        self._items: dict[str, Todo] = {}

    def see(self, call: ToolCall, index: int) -> None:
        """Read one call; tools that are no todo list change nothing."""
        arguments = arguments_of(call)
        if not isinstance(arguments, Mapping):
            return
        listed = _listed(arguments)
        if isinstance(listed, list) and arguments.get("merge") and self._merge(listed, index):
            return
        if isinstance(listed, list) and listed and self._is_list(call.name, listed):
            self._items = {_key(item, n): _todo(item, index) for n, item in enumerate(listed, 1)}
        elif isinstance(listed, str) and _CHECKBOX.search(listed):
            self.see_text(listed, index)
        elif re.search(r"task|todo", call.name, re.I):
            self._one(call.name, arguments, index)

    def _merge(self, listed: list[Any], index: int) -> bool:
        """Items that are told again by their key, perhaps with their new state only."""
        found = {_key(item, 0): item for item in listed if isinstance(item, Mapping)}
        if not found or "0" in found:
            return False
        for key, item in found.items():
            known = self._items.get(key)
            if known is not None:
                self._items[key] = _changed(known, item, index)
            elif _title(item):
                self._items[key] = _todo(item, index)
        return True

    def _is_list(self, name: str, listed: list[Any]) -> bool:
        """Whether those are a list's items; bare words only where the tool is named for it."""
        if any(isinstance(item, str) for item in listed) and not _LISTS.search(name):
            return False
        return all(map(_is_item, listed))

    def see_text(self, text: str, index: int) -> None:
        """A list written as check boxes replaces the one before."""
        found = _CHECKBOX.findall(text)
        if len(found) >= 2:
            self._items = {
                str(n): Todo(title.strip(), _STATUS[mark.lower()], index)
                for n, (mark, title) in enumerate(found, 1)
            }

    def _one(self, name: str, arguments: Mapping[str, Any], index: int) -> None:
        key = str(arguments.get("taskId") or arguments.get("id") or arguments.get("task_id") or "")
        if key in self._items:
            self._items[key] = _changed(self._items[key], arguments, index)
        elif _title(arguments) and re.search(r"create|add|new", name, re.I):
            self._items[key or str(len(self._items) + 1)] = _todo(arguments, index)

    def todos(self) -> tuple[Todo, ...]:
        """The items in order."""
        return tuple(self._items.values())


def _listed(arguments: Mapping[str, Any]) -> Any:
    """The list among a call's arguments, by the usual names for one."""
    found = {key_of(key): value for key, value in arguments.items()}
    return next((found[key] for key in _LIST_KEYS if found.get(key)), None)


def _key(item: Any, number: int) -> str:
    """By what an item is told again: its own key, else its place."""
    own = item.get("id") if isinstance(item, Mapping) else None
    return str(own or number)


def _is_item(item: Any) -> bool:
    return isinstance(item, (Mapping, str)) and bool(_title(item))


def _title(item: Mapping[str, Any] | str) -> str:
    if isinstance(item, str):
        return " ".join(item.split())[:_MAX_NOTE]
    for key in _TITLE_KEYS:
        value = item.get(key)
        if isinstance(value, str) and value.strip():
            return " ".join(value.split())[:_MAX_NOTE]
    return ""


def _changed(known: Todo, item: Mapping[str, Any], index: int) -> Todo:
    return Todo(_title(item) or known.text, _status(item) or known.status, index)


def _todo(item: Mapping[str, Any] | str, index: int) -> Todo:
    status = "" if isinstance(item, str) else _status(item)
    return Todo(_title(item), status or "pending", index)


def _status(item: Mapping[str, Any]) -> str:
    return str(item.get("status") or item.get("state") or "").replace("-", "_").lower()
