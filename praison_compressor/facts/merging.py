"""Facts of two segments made one, without a model: counts add, the last word wins."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TypeVar

from .corrections import supersede
from .model import CommandFact, ErrorFact, Excerpt, Facts, FileFact, Identifier, Note, shifted
from .spellings import Spellings

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
