"""Open work: todo lists in their last state, decisions with their reason, what comes next."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ..messages import ToolCall
from .model import Note, Todo
from .reading import Passage, arguments_of
from .user import sentences

_DECISION = re.compile(
    r"\b(?:decided|decision|because|instead of|rather than|root cause|the (?:issue|problem|bug|fix|"
    r"cause) (?:is|was)|turns out|chose|will use|going with|the reason|so that|"
    r"trade-?off)\b",
    re.I,
)
_OPEN = re.compile(
    r"\b(?:next(?: step)?s?\b|still (?:failing|need|missing|to do|open)|remaining\b|todo\b|"
    r"to do\b|not yet|follow-?up|left to|blocked|pending\b|now (?:i|let me|let's)|let me now|"
    r"i'll now|need to|needs to)",
    re.I,
)
_TITLE_KEYS = ("content", "subject", "title", "text", "task", "description", "step", "name")
_CHECKBOX = re.compile(r"^\s*[-*]\s*\[([ xX~-])\]\s+(.{3,200})$", re.M)
_STATUS = {" ": "pending", "x": "completed", "~": "in_progress", "-": "in_progress"}
_LISTS = re.compile(r"todo|task|plan", re.I)
_LEAST_NOTE = 12
_MAX_NOTE = 300


def notes(passage: Passage) -> Iterator[tuple[str, Note]]:
    """(`decision` or `open`, note) for the sentences of an assistant's text that say so."""
    for sentence in sentences(passage.text):
        if not _LEAST_NOTE <= len(sentence) <= _MAX_NOTE:
            continue
        if sentence.endswith(("?", ":")) and _DECISION.search(sentence):
            continue  # a question decides nothing, and what a colon announces is not in it
        if _DECISION.search(sentence):
            yield "decision", Note(sentence, passage.at)
        elif _OPEN.search(sentence):
            yield "open", Note(sentence, passage.at)


def last_words(passage: Passage) -> tuple[Note, ...]:
    """How an assistant's text begins: there it says what it found or did."""
    for sentence in sentences(passage.text):
        if len(sentence) >= _LEAST_NOTE and any(char.isalpha() for char in sentence):
            return (Note(_cut(sentence), passage.at),)
    return ()


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
        listed = arguments.get("todos") or arguments.get("plan") or arguments.get("items")
        if isinstance(listed, list) and listed and self._is_list(call.name, listed):
            self._items = {str(n): _todo(item, index) for n, item in enumerate(listed, 1)}
        elif isinstance(listed, str) and _CHECKBOX.search(listed):
            self.see_text(listed, index)
        elif re.search(r"task|todo", call.name, re.I):
            self._one(call.name, arguments, index)

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
            known = self._items[key]
            status = str(arguments.get("status") or known.status)
            self._items[key] = Todo(_title(arguments) or known.text, status, index)
        elif _title(arguments) and re.search(r"create|add|new", name, re.I):
            self._items[key or str(len(self._items) + 1)] = _todo(arguments, index)

    def todos(self) -> tuple[Todo, ...]:
        """The items in order."""
        return tuple(self._items.values())


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


def _todo(item: Mapping[str, Any] | str, index: int) -> Todo:
    status = "" if isinstance(item, str) else str(item.get("status") or "")
    return Todo(_title(item), status or "pending", index)
