"""Extract: read a segment once and return the facts that must survive it."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..messages import Message, ToolCall
from .commands import attempt, call_outcome, command_fact, with_failing
from .corrections import said, sentences
from .files import Trail, effects_of, worked
from .identifiers import Classifier, excerpts_of, weighed
from .language import DECIDES, LEAVES_OPEN
from .model import (
    GENERAL,
    Attempt,
    CommandFact,
    Domain,
    Excerpt,
    Facts,
    Identifier,
    Note,
    Todo,
)
from .outcomes import Outcome, error_lines
from .passages import Passage, argument_values, arguments_of, key_of, passages, without_notes


def extract(messages: Sequence[Message], *, domain: Domain = GENERAL) -> Facts:
    """The facts of a segment; `domain` adds what no general vocabulary knows.

    >>> extract([{"role": "user", "content": "Use port 9090."}]).user[0].text
    'Use port 9090.'
    """
    reader = _Reader(domain)
    spoken = list(passages(messages, domain.host_prefixes))
    for passage in spoken:
        reader.read(passage)
    user = said(spoken)
    names = (
        Identifier(
            name, kind, reader.named[name], at[0], at[-1], len(at), min(crowd), frozenset(by)
        )
        for name, kind in reader.kinds.items()
        for at, by, crowd in [zip(*reader.places[name], strict=True)]
    )
    return Facts(
        messages=len(messages),
        user=user,
        files=reader.files.facts(),
        commands=with_failing(reader.commands.values(), reader.attempts),
        attempts=tuple(reader.attempts),
        errors=tuple(reader.errors.values()),
        decisions=tuple(reader.decisions.values()),
        open_work=tuple(reader.open.values()),
        todos=reader.todos.todos(),
        last_words=reader.last_words,
        identifiers=weighed(names, user, len(messages), domain.patterns),
        excerpts=tuple(sorted(reader.excerpts.values(), key=lambda item: item.index)),
        patterns=dict(domain.patterns),
    )


SHORT_ARGUMENT = 200


class _Reader:
    """One pass over the passages."""

    def __init__(self, domain: Domain) -> None:
        self.domain = domain
        self.classifier = Classifier(domain.patterns)
        self.kinds: dict[str, str] = {}
        self.named: Counter[str] = Counter()
        self.places: defaultdict[str, list[tuple[int, str, int]]] = defaultdict(list)
        """Of a name: the position and the source of a passage, and how many names that has."""
        self.excerpts: dict[str, Excerpt] = {}
        self.files = Trail()
        self.todos = TodoList()
        self.commands: dict[str, CommandFact] = {}
        self.attempts: list[Attempt] = []
        self.errors: dict[str, Note] = {}
        self.decisions: dict[str, Note] = {}
        self.open: dict[str, Note] = {}
        self.last_words: tuple[Note, ...] = ()

    def read(self, passage: Passage) -> None:
        self._identify(passage)
        if passage.source == "assistant":
            self._assistant(passage)
        elif passage.source == "call" and passage.call:
            self.todos.see(passage.call, passage.at)
        elif passage.source == "result":
            self._result(passage)

    def _identify(self, passage: Passage) -> None:
        found: dict[str, str] = {}
        for excerpt, names in excerpts_of(passage, self.classifier):
            found.update(names)
            # The same words again are the same fact: its newest place counts.
            self.excerpts.pop(excerpt.text, None)
            self.excerpts[excerpt.text] = excerpt
        for name, kind in found.items():
            self.kinds.setdefault(name, kind)
            self.places[name].append((passage.at, passage.source, len(found)))
        if passage.source == "call" and passage.call:
            values = argument_values(arguments_of(passage.call))
            short = [value for value in values if len(value) <= SHORT_ARGUMENT]
            named = {key for value in short for key in self.classifier.names(value)}
            self.named.update(named & found.keys())

    def _assistant(self, passage: Passage) -> None:
        self.last_words = last_words(passage)
        for kind, note in notes(passage):
            (self.decisions if kind == "decision" else self.open)[note.text] = note
        self.todos.see_text(passage.text, passage.at)

    def _result(self, passage: Passage) -> None:
        call = passage.call
        own = without_notes(passage.text, self.domain.host_prefixes)
        outcome = call_outcome(call, own)
        if call is not None:
            self._answered(call, passage, outcome)
        if outcome.is_bad:
            for line in error_lines(own):
                self.errors.pop(line, None)
                self.errors[line] = Note(line, passage.at)

    def _answered(self, call: ToolCall, passage: Passage, outcome: Outcome) -> None:
        found = effects_of(call, self.domain)
        came = [worked(effect, call, outcome, passage.text) for effect in found]
        self.attempts.append(attempt(call, found, outcome, all(came), passage.at))
        for effect, ok in zip(found, came, strict=True):
            self.files.add(effect, passage.at, ok=ok)
        fact = command_fact(call, passage.text, outcome, passage.at, self.domain)
        if fact is not None:
            self.commands.pop(fact.text, None)
            self.commands[fact.text] = fact


# -------------------------------------------------------------- notes


_LEAST_NOTE = 12
"""Bytes: four signs of Chinese say as much."""
_MAX_NOTE = 300


def notes(passage: Passage) -> Iterator[tuple[str, Note]]:
    """(`decision` or `open`, note) for the sentences of an assistant's text that say so."""
    for sentence in sentences(passage.text):
        if not _says_something(sentence) or len(sentence) > _MAX_NOTE:
            continue
        if DECIDES.search(sentence):
            # A question decides nothing, and what a colon announces is not in it.
            if not sentence.endswith(("?", ":", "？", "：")):
                yield "decision", Note(sentence, passage.at)
        elif LEAVES_OPEN.search(sentence):
            yield "open", Note(sentence, passage.at)


def last_words(passage: Passage) -> tuple[Note, ...]:
    """How an assistant's text begins: there it says what it found or did."""
    told = (sentence for sentence in sentences(passage.text) if _says_something(sentence))
    first = next(told, "")
    cut = first if len(first) <= _MAX_NOTE else first[: _MAX_NOTE - 1] + "…"
    return (Note(cut, passage.at),) if cut else ()


def _says_something(sentence: str) -> bool:
    long = len(sentence.encode("utf-8", "surrogatepass")) >= _LEAST_NOTE
    return long and any(map(str.isalpha, sentence))


# -------------------------------------------------------------- todo lists


_LIST_KEYS = ("todos", "todolist", "plan", "items", "tasklist", "tasks", "steps")
_TITLE_KEYS = ("content", "subject", "title", "text", "task", "description", "step", "name")
_CHECKBOX = re.compile(r"^\s*[-*]\s*\[([ xX~-])\]\s+(.{3,200})$", re.M)
_STATUS = {" ": "pending", "x": "completed", "~": "in_progress", "-": "in_progress"}


class TodoList:
    """The newest state of the todo list, whether written whole or item by item."""

    def __init__(self) -> None:
        self._items: dict[str, Todo] = {}

    def see(self, call: ToolCall, index: int) -> None:
        """Read one call; tools that are no todo list change nothing."""
        arguments = arguments_of(call)
        if not isinstance(arguments, Mapping):
            return
        given = {key_of(key): value for key, value in arguments.items()}
        listed = next((given[key] for key in _LIST_KEYS if given.get(key)), None)
        if isinstance(listed, list) and all(map(_title, listed)):
            keyed = {str(item.get("id") or n): item for n, item in enumerate(listed, 1)}
            self._items = {key: _todo(item, index) for key, item in keyed.items()}
        elif isinstance(listed, str):
            self.see_text(listed, index)
        elif re.search(r"task|todo", call.name, re.I):
            key = str(given.get("taskid") or given.get("id") or "")
            if key in self._items:
                self._items[key] = _todo(arguments, index, self._items[key])
            elif _title(arguments) and re.search(r"create|add|new", call.name, re.I):
                self._items[key or str(len(self._items) + 1)] = _todo(arguments, index)

    def see_text(self, text: str, index: int) -> None:
        """A list written as check boxes replaces the one before."""
        found = _CHECKBOX.findall(text)
        if len(found) >= 2:
            self._items = {
                str(n): Todo(title.strip(), _STATUS[mark.lower()], index)
                for n, (mark, title) in enumerate(found, 1)
            }

    def todos(self) -> tuple[Todo, ...]:
        """The items in order."""
        return tuple(self._items.values())


def _title(item: Any) -> str:
    values = (item.get(key) for key in _TITLE_KEYS) if isinstance(item, Mapping) else ()
    found = (" ".join(value.split())[:_MAX_NOTE] for value in values if isinstance(value, str))
    return next(filter(None, found), "")


def _todo(item: Mapping[str, Any], index: int, known: Todo | None = None) -> Todo:
    """The item as it is told; what is not told again is as it was known."""
    status = str(item.get("status") or item.get("state") or "").replace("-", "_").lower()
    text = _title(item) or (known.text if known else "")
    return Todo(text, status or (known.status if known else "pending"), index)
