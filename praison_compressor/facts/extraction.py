"""Extract: read a segment once and return the facts that must survive it; merge the facts of two
segments.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from ..messages import Message, ToolCall
from .commands import command_fact, is_piped
from .corrections import said, supersede
from .domain import GENERAL, Domain
from .files import Ledger, Spellings, effects_of, told_of, worked
from .identifiers import Classifier, excerpts_of
from .model import CommandFact, ErrorFact, Excerpt, Facts, FileFact, Identifier, Note, shifted
from .outcomes import Outcome, error_lines, outcome_of
from .passages import Passage, argument_values, arguments_of, passages, without_notes
from .worklist import TodoList, last_words, notes

# -------------------------------------------------------------- merging


T = TypeVar("T")


def merge(earlier: Facts, later: Facts) -> Facts:
    """`earlier` followed by `later`, whose positions move up by the messages before it."""
    by = earlier.messages

    def moved(items: Iterable[T]) -> list[T]:
        return [shifted(item, by) for item in items]

    return Facts(
        messages=earlier.messages + later.messages,
        user=supersede([*earlier.user, *moved(later.user)]),
        files=_files(earlier.files, moved(later.files)),
        commands=_commands(earlier.commands, moved(later.commands)),
        errors=_errors([*earlier.errors, *moved(later.errors)]),
        decisions=_notes([*earlier.decisions, *moved(later.decisions)]),
        open_work=_notes([*earlier.open_work, *moved(later.open_work)]),
        todos=tuple(moved(later.todos)) or earlier.todos,
        last_words=tuple(moved(later.last_words)) or earlier.last_words,
        identifiers=_identifiers(earlier.identifiers, moved(later.identifiers)),
        excerpts=_excerpts([*earlier.excerpts, *moved(later.excerpts)]),
        patterns={**earlier.patterns, **later.patterns},
    )


def _files(earlier: Iterable[FileFact], later: Iterable[FileFact]) -> tuple[FileFact, ...]:
    ledger = {item.path: item for item in earlier}
    spellings = Spellings(ledger)
    for item in later:
        path = spellings.of(item.path)
        known = ledger.pop(path, None)
        ledger[path] = _file(known, replace(item, path=path)) if known else item
    return tuple(ledger.values())


def _file(known: FileFact, item: FileFact) -> FileFact:
    counts = dict(known.counts)
    for action, times in item.counts.items():
        counts[action] = counts.get(action, 0) + times
    if not item.ok or (item.action == "read" and known.action not in ("read", "deleted")):
        return replace(known, counts=counts)
    created_again = item.action == "created" and known.ok and known.action != "deleted"
    return replace(item, counts=counts, action="edited" if created_again else item.action)


def _commands(
    earlier: Iterable[CommandFact], later: Iterable[CommandFact]
) -> tuple[CommandFact, ...]:
    out = {item.text: item for item in earlier}
    for item in later:
        known = out.pop(item.text, None)
        out[item.text] = replace(item, runs=item.runs + known.runs) if known else item
    return tuple(out.values())


def _errors(items: Iterable[ErrorFact]) -> tuple[ErrorFact, ...]:
    out: dict[str, ErrorFact] = {}
    for item in items:
        known = out.pop(item.text, None)
        out[item.text] = replace(item, times=item.times + known.times) if known else item
    return tuple(out.values())


def _notes(items: Iterable[Note]) -> tuple[Note, ...]:
    return tuple({item.text: item for item in items}.values())


def _identifiers(
    earlier: Iterable[Identifier], later: Iterable[Identifier]
) -> tuple[Identifier, ...]:
    out = {item.text: item for item in earlier}
    for item in later:
        known = out.get(item.text)
        out[item.text] = _identifier(known, item) if known else item
    return tuple(out.values())


def _identifier(known: Identifier, item: Identifier) -> Identifier:
    return replace(
        item,
        named=known.named + item.named,
        bodies=known.bodies + item.bodies,
        user=known.user + item.user,
        assistant=known.assistant + item.assistant,
        results=known.results + item.results,
        first=known.first,
        spread=known.spread + item.spread,
        crowd=min(known.crowd, item.crowd),
    )


def _excerpts(items: Iterable[Excerpt]) -> tuple[Excerpt, ...]:
    return tuple({(item.source, item.text): item for item in items}.values())


# -------------------------------------------------------------- extracting


SHORT_ARGUMENT = 200
FOLLOWED_CHARS = 200
_SOURCES = {"call": 0, "user": 1, "assistant": 2, "result": 3, "host": 4}


class _Tally:
    """Counts of one identifier while reading; frozen into an `Identifier` at the end."""

    __slots__ = ("crowd", "first", "kind", "last", "named", "sources", "spread")

    def __init__(self, kind: str, index: int, crowd: int) -> None:
        self.kind = kind
        self.first = self.last = index
        self.crowd = crowd
        self.named = self.spread = 0
        self.sources = [0] * len(_SOURCES)

    def frozen(self, text: str) -> Identifier:
        calls, user, assistant, results, host = self.sources
        return Identifier(
            text,
            self.kind,
            named=self.named,
            bodies=calls - self.named,
            user=user,
            assistant=assistant,
            results=results + host,
            first=self.first,
            last=self.last,
            spread=self.spread,
            crowd=self.crowd,
        )


class _Reader:
    """One pass over the passages."""

    def __init__(self, domain: Domain) -> None:
        self.domain = domain
        self.classifier = Classifier(domain.patterns)
        self.tallies: dict[str, _Tally] = {}
        self.excerpts: dict[str, Excerpt] = {}
        self.files = Ledger()
        self.todos = TodoList()
        self.commands: dict[str, CommandFact] = {}
        self.errors: dict[str, ErrorFact] = {}
        self.unanswered: list[str] = []
        self.decisions: dict[str, Note] = {}
        self.open: dict[str, Note] = {}
        self.last_words: tuple[Note, ...] = ()

    def read(self, passage: Passage) -> None:
        self._identify(passage)
        if passage.source == "assistant":
            self._assistant(passage)
        elif passage.source == "call" and passage.call:
            self._follows(passage.text)
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
        named = self._named(passage) if passage.call and passage.source == "call" else ()
        at, crowd, source, get = passage.at, len(found), _SOURCES[passage.source], self.tallies.get
        for key, kind in found.items():
            tally = get(key)
            if tally is None:
                tally = self.tallies[key] = _Tally(kind, at, crowd)
            elif crowd < tally.crowd:
                tally.crowd = crowd
            tally.last = at
            tally.spread += 1
            tally.sources[source] += 1
        for key in named:
            if key in found:
                self.tallies[key].named += 1

    def _named(self, passage: Passage) -> set[str]:
        values = argument_values(arguments_of(passage.call)) if passage.call else ()
        return {
            key
            for value in values
            if len(value) <= SHORT_ARGUMENT
            for key in self.classifier.names(value)
        }

    def _assistant(self, passage: Passage) -> None:
        self._follows(passage.text)
        self.last_words = last_words(passage)
        for kind, note in notes(passage):
            (self.decisions if kind == "decision" else self.open)[note.text] = note
        self.todos.see_text(passage.text, passage.at)

    def _follows(self, text: str) -> None:
        """What an agent says next, or does without a word, is what follows an error."""
        first = " ".join(text[: 4 * FOLLOWED_CHARS].split())[:FOLLOWED_CHARS]
        for error in self.unanswered:
            known = self.errors[error]
            self.errors[error] = ErrorFact(error, known.index, first, known.times)
        self.unanswered.clear()

    def _result(self, passage: Passage) -> None:
        call = passage.call
        own = without_notes(passage.text, self.domain.host_prefixes)
        outcome = outcome_of(own, piped=call is not None and is_piped(call))
        if call is not None:
            self._answered(call, passage, outcome)
        if outcome.status == "failed":
            for line in error_lines(own):
                known = self.errors.pop(line, None)
                times = known.times + 1 if known else 1
                self.errors[line] = ErrorFact(line, passage.at, "", times)
                self.unanswered.append(line)

    def _answered(self, call: ToolCall, passage: Passage, outcome: Outcome) -> None:
        for effect in effects_of(call, self.domain) or told_of(call, passage.text):
            ok = worked(effect, call, outcome, passage.text)
            self.files.add(effect, passage.at, ok=ok)
        fact = command_fact(call, passage.text, outcome, passage.at, self.domain)
        if fact is not None:
            known = self.commands.pop(fact.text, None)
            runs = known.runs + 1 if known else 1
            self.commands[fact.text] = CommandFact(
                fact.text, fact.outcome, fact.detail, fact.index, runs, fact.kind
            )

    def identifiers(self) -> tuple[Identifier, ...]:
        return tuple(tally.frozen(text) for text, tally in self.tallies.items())


def extract(messages: Sequence[Message], *, domain: Domain = GENERAL) -> Facts:
    """The facts of a segment; `domain` adds what no general vocabulary knows.

    >>> extract([{"role": "user", "content": "Use port 9090."}]).user[0].text
    'Use port 9090.'
    """
    reader = _Reader(domain)
    spoken = list(passages(messages, domain.host_prefixes))
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
        last_words=reader.last_words,
        identifiers=reader.identifiers(),
        excerpts=tuple(sorted(reader.excerpts.values(), key=lambda item: item.index)),
        patterns=dict(domain.patterns),
    )
