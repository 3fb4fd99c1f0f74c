"""What a search lists: the passages that match, best first, each with who said it and what came of
it. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..messages import Message, is_result, result_text, tool_calls_of
from ..messages.display import call_in_words, in_words, one_line
from .passages import WORTH, Passage, Term, lines_of, passages, wanted_in
from .references import Reference
from .words import words

__all__ = ["Found", "ends_of", "listed"]

A_MESSAGE = 3
"""Passages that are listed of one message at most."""
ALIKE = 0.8
"""Share of a passage's words that another has too, from which on one of them is enough."""
CALL_CHARS, RESULT_CHARS = 80, 160
SAVED_CHARS = 40
"""Fewer are not worth the words that say they are left out."""
RESULTS = 3
"""Results that are shown of a message with several calls."""

Found = tuple[int, int, Message]
"""A message that has something of a query, after its segment's number (from 1) and its place among
that segment's originals (from 0)."""


def listed(
    found: Sequence[Found],
    wanted: Sequence[Term],
    limit: int,
    originals: Callable[[int], Sequence[Message]],
) -> list[str]:
    """The passages of these messages that match, at most `limit`, and how many more there are;
    empty where none does. `originals` gives those of a segment."""
    matches, older = _apart(_ranked(found, wanted))
    shown = matches[:limit]
    held = {n: originals(n) for n in {match.segment for match in shown}}
    lines: list[str] = []
    for match in shown:
        lines += _told(match, held[match.segment], wanted, lines)
    if older:
        lines.append(f"({len(older)} older, much like these: {older[0].where} …)")
    if len(matches) > limit:
        lines.append(f"({len(matches) - limit} more: ask more exactly)")
    return lines


@dataclass(frozen=True)
class _Match:
    """A passage of an archived message."""

    segment: int
    ordinal: int
    passage: Passage
    lines: Sequence[str]

    @property
    def age(self) -> tuple[int, int]:
        """Larger for a newer one."""
        return self.segment, self.ordinal

    @property
    def where(self) -> Reference:
        """The lines of it, or the message where that is no more."""
        whole = Reference(self.segment, self.ordinal + 1)
        first, last = self.passage.first, self.passage.last
        return whole.lines(first, last) if last - first + 1 < len(self.lines) else whole

    @property
    def text(self) -> str:
        """The lines themselves."""
        return "\n".join(self.lines[self.passage.first - 1 : self.passage.last])


def _told(
    match: _Match, originals: Sequence[Message], wanted: Sequence[Term], above: Sequence[str]
) -> list[str]:
    """A match as it is listed: reference, who said it, in answer to what, the lines; without what
    stands `above`, and nothing where all of it does."""
    role, where = originals[match.ordinal].get("role"), match.where
    if _stands(where, match.text, above):
        return []
    if _is_begun(where.of_message(match.ordinal + 1), above):
        return [f"[{where}]\n{match.text}"]
    of = f" (of {len(match.lines)} lines)" if where.line is not None else ""
    called = _called(match.segment, originals, match.ordinal)
    came = _results(match, originals, wanted, above)
    return ["\n".join([f"[{where}]{of} {role}{called}", match.text, *came])]


def _ranked(found: Sequence[Found], wanted: Sequence[Term]) -> list[_Match]:
    """The passages of messages that were found, best first; of equal ones the newest."""
    texts = [in_words(message) for _, _, message in found]
    held = [wanted_in(text, wanted) for text in texts]
    rarity = {
        term.text: 1 + math.log((1 + len(held)) / (1 + sum(term.text in each for each in held)))
        for term in wanted
    }
    matches = []
    for (segment, ordinal, _), text in zip(found, texts, strict=True):
        lines = lines_of(text)
        best = passages(lines, wanted, A_MESSAGE, rarity)
        matches += [_Match(segment, ordinal, passage, lines) for passage in best]
    least = WORTH * max((match.passage.score for match in matches), default=0)
    matches = [match for match in matches if match.passage.score >= least]
    matches.sort(key=lambda match: (match.passage.score, *match.age), reverse=True)
    return matches


def _apart(matches: Sequence[_Match]) -> tuple[list[_Match], list[_Match]]:
    """The matches that say something of their own, and older ones that are much like one of them.

    A file is read again after an edit, a message is archived masked first and folded later.
    """
    apart: list[tuple[_Match, set[str]]] = []
    older: dict[str, _Match] = {}
    for match in matches:
        held = set(words(match.text))
        alike = (n for n, (_, each) in enumerate(apart) if _are_alike(held, each))
        place = next(alike, None)
        if place is None:
            apart.append((match, held))
            continue
        newest, oldest = sorted((apart[place][0], match), key=lambda each: each.age, reverse=True)
        apart[place] = (newest, set(words(newest.text)))
        older.setdefault(oldest.text, oldest)
    shown = {match.text for match, _ in apart}
    return [match for match, _ in apart], [older[text] for text in older if text not in shown]


def _are_alike(one: set[str], other: set[str]) -> bool:
    return len(one & other) >= ALIKE * min(len(one), len(other))


def _called(segment: int, originals: Sequence[Message], ordinal: int) -> str:
    """By which call a result came."""
    id = originals[ordinal].get("tool_call_id") if is_result(originals[ordinal]) else None
    for before in range(ordinal - 1, -1, -1) if id else ():
        for call in tool_calls_of(originals[before]):
            if call.id == id:
                said = _shortened(f"{call.name}({call.arguments})", CALL_CHARS)
                return f", of [s{segment}.{before + 1}] {said}"
    return ""


def _stands(where: Reference, text: str, above: Sequence[str]) -> bool:
    """Whether this place is quoted above, of its own or as what came of a call."""
    return any(each.startswith(f"[{where}]") or f"=> [{where}] {text}" in each for each in above)


def _is_begun(message: Reference, above: Sequence[str]) -> bool:
    """Whether lines of this message are quoted above."""
    return any(each.startswith((f"[{message}]", f"[{message}:")) for each in above)


def _results(
    match: _Match, originals: Sequence[Message], wanted: Sequence[Term], above: Sequence[str]
) -> list[str]:
    """For each result of the calls in a passage its lines on what is wanted, else its ends."""
    calls = _calls_in(match, originals[match.ordinal], wanted)
    told = []
    for after in range(match.ordinal + 1, len(originals)) if calls else ():
        if not is_result(originals[after]):
            break
        where, text = Reference(match.segment, after + 1), in_words(originals[after])
        if originals[after].get("tool_call_id") not in calls or _is_begun(where, above):
            continue
        lines = lines_of(text)
        found = next(iter(passages(lines, wanted, 1)), None)
        shown = _shortened(text, RESULT_CHARS)
        if len(text) > len(shown) and found and found.score >= WORTH * match.passage.score:
            where = where.lines(found.first, found.last)
            shown = "\n".join(lines[found.first - 1 : found.last])
        if not _stands(where, shown, above):
            told.append(f"=> [{where}] {shown}")
    return told[:RESULTS] + ([f"=> {len(told) - RESULTS} more"] if len(told) > RESULTS else [])


def _calls_in(match: _Match, message: Message, wanted: Sequence[Term]) -> set[str]:
    """The ids of the calls of which a passage has lines; where some of these have what is wanted,
    theirs alone."""
    said = result_text(message)
    first = len(lines_of(said)) + 1 if said else 1
    found, holding = set(), set()
    for call in tool_calls_of(message):
        text = call_in_words(call)
        last = first + len(lines_of(text)) - 1
        if first <= match.passage.last and last >= match.passage.first:
            found.add(call.id)
            if wanted_in(text, wanted):
                holding.add(call.id)
        first = last + 1
    return holding or found


def _shortened(text: str, keep: int) -> str:
    """A text on one line, its two ends where it is much longer than that: the name of a file stands
    at the end of its path."""
    line = one_line(text)
    return line if len(line) <= keep + SAVED_CHARS else ends_of(line, keep)


def ends_of(line: str, keep: int) -> str:
    if keep >= len(line):
        return line
    left_out = len(line) - 2 * (keep // 2)
    half = keep // 2
    return f"{line[:half]} … {left_out} characters … {line[-half:] if half else ''}"
