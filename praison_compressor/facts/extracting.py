"""Reads a segment once and returns the facts that must survive it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..messages import Message, ToolCall
from .commands import command_fact
from .excerpts import excerpts_of
from .files import Ledger, effects_of
from .identifiers import Classifier
from .model import CommandFact, ErrorFact, Excerpt, Facts, Identifier, Note
from .outcomes import error_lines, outcome_of
from .reading import Passage, arguments_of, passages
from .user import said
from .worklist import TodoList, notes


@dataclass
class _Tally:
    """Mutable while reading; frozen into an `Identifier` at the end."""

    kind: str
    first: int
    last: int
    last_call: int = -1
    counts: dict[str, int] = field(default_factory=dict)


class _Reader:
    """One pass over the passages."""

    def __init__(self, vocabulary: Mapping[str, str] | None) -> None:
        self.vocabulary = vocabulary
        self.classifier = Classifier()
        self.tallies: dict[str, _Tally] = {}
        self.excerpts: dict[str, Excerpt] = {}
        self.files = Ledger()
        self.todos = TodoList()
        self.commands: dict[str, CommandFact] = {}
        self.errors: dict[str, ErrorFact] = {}
        self.unanswered: list[str] = []
        self.decisions: dict[str, Note] = {}
        self.open: dict[str, Note] = {}

    def read(self, passage: Passage) -> None:
        self._identify(passage)
        if passage.source == "assistant":
            self._assistant(passage)
        elif passage.source == "call" and passage.call:
            self.todos.see(passage.call, passage.index)
        elif passage.source == "result":
            self._result(passage)

    def _identify(self, passage: Passage) -> None:
        for key, kind, _, _ in self.classifier.keys(passage.text):
            tally = self.tallies.get(key)
            if tally is None:
                tally = self.tallies[key] = _Tally(kind, passage.index, passage.index)
            tally.last = passage.index
            tally.counts[passage.source] = tally.counts.get(passage.source, 0) + 1
            if passage.source == "call":
                tally.last_call = passage.index
        for excerpt in excerpts_of(passage, self.classifier):
            # The same line again is the same fact: its newest place counts.
            self.excerpts.pop(excerpt.text, None)
            self.excerpts[excerpt.text] = excerpt

    def _assistant(self, passage: Passage) -> None:
        first = " ".join(passage.text.split())[:200]
        for text in self.unanswered:
            known = self.errors[text]
            self.errors[text] = ErrorFact(text, known.index, first, known.times)
        self.unanswered.clear()
        for kind, note in notes(passage):
            (self.decisions if kind == "decision" else self.open)[note.text] = note
        self.todos.see_text(passage.text, passage.index)

    def _result(self, passage: Passage) -> None:
        call = passage.call
        failed = outcome_of(passage.text).status == "failed"
        if call is not None:
            self._answered(call, passage, failed)
        if failed:
            for line in error_lines(passage.text):
                known = self.errors.pop(line, None)
                times = known.times + 1 if known else 1
                self.errors[line] = ErrorFact(line, passage.index, "", times)
                self.unanswered.append(line)

    def _answered(self, call: ToolCall, passage: Passage, failed: bool) -> None:
        for effect in effects_of(call, self.vocabulary):
            self.files.add(effect, passage.index, ok=not failed)
        fact = command_fact(call, passage.text, passage.index)
        if fact is not None:
            known = self.commands.pop(fact.text, None)
            runs = known.runs + 1 if known else 1
            self.commands[fact.text] = CommandFact(
                fact.text, fact.outcome, fact.detail, fact.index, runs, fact.kind
            )

    def identifiers(self) -> tuple[Identifier, ...]:
        return tuple(
            Identifier(
                text,
                tally.kind,
                tally.counts.get("call", 0),
                tally.counts.get("user", 0),
                tally.counts.get("assistant", 0),
                tally.counts.get("result", 0) + tally.counts.get("host", 0),
                tally.first,
                tally.last,
                tally.last_call,
            )
            for text, tally in self.tallies.items()
        )


def extract(messages: Sequence[Message], *, vocabulary: Mapping[str, str] | None = None) -> Facts:
    """The facts of a segment; `vocabulary` maps tool names to what they do to a file.

    >>> extract([{"role": "user", "content": "Use port 9090."}]).user[0].text
    'Use port 9090.'
    """
    reader = _Reader(vocabulary)
    spoken = list(passages(messages))
    for passage in spoken:
        reader.read(passage)
    return Facts(
        messages=len(messages),
        user=said(spoken),
        files=reader.files.facts(),
        commands=tuple(reader.commands.values()),
        errors=tuple(reader.errors.values()),
        decisions=tuple(reader.decisions.values()),
        open_work=tuple(reader.open.values()),
        todos=reader.todos.todos(),
        identifiers=reader.identifiers(),
        excerpts=tuple(sorted(reader.excerpts.values(), key=lambda item: item.index)),
    )


__all__ = ["arguments_of", "extract"]
