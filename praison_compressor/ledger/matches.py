"""A search's list: matching passages, each with its role, its call or its results. Pure."""

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
"""Most passages listed of one message."""
ALIKE = 0.8
"""Of two passages that share this part of their words only one is listed."""
CALL_CHARS, RESULT_CHARS = 80, 160
SAVED_CHARS = 40
"""A cut that saves fewer characters costs more than it saves."""
RESULTS = 3
"""Most results shown of a message with several calls."""

Found = tuple[int, int, Message]
"""Segment's number (from 1), place among its originals (from 0), and the message there."""


def listed(
    found: Sequence[Found],
    wanted: Sequence[Term],
    limit: int,
    originals: Callable[[int], Sequence[Message]],
) -> list[str]:
    """Return at most `limit` matching passages, and the number of more.

    `originals` returns the messages of a segment.
    """
    matches, older = _apart(_ranked(found, wanted))
    shown = matches[:limit]
    held = {n: originals(n) for n in {match.segment for match in shown}}
    lines: list[str] = []
    for match in shown:
        lines += _shown(match, held[match.segment], wanted, lines)
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
        """Sort key: newer is larger."""
        return self.segment, self.ordinal

    @property
    def where(self) -> Reference:
        """Reference of the passage, or of a message that is no larger."""
        whole = Reference(self.segment, self.ordinal + 1)
        first, last = self.passage.first, self.passage.last
        return whole.lines(first, last) if last - first + 1 < len(self.lines) else whole

    @property
    def text(self) -> str:
        """The passage's lines."""
        return "\n".join(self.lines[self.passage.first - 1 : self.passage.last])


def _shown(
    match: _Match, originals: Sequence[Message], wanted: Sequence[Term], above: Sequence[str]
) -> list[str]:
    """Return a match as listed: reference, role, call, lines, results.

    Lines that stand `above` are not repeated.
    """
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
    """Return the messages' passages, best first, then newest first."""
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
    """Return distinct matches, and older ones much like one of these.

    An agent reads a file again after an edit; a message is archived masked and again folded.
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
    """Return the call that a result answers, with its reference."""
    id = originals[ordinal].get("tool_call_id") if is_result(originals[ordinal]) else None
    for before in range(ordinal - 1, -1, -1) if id else ():
        for call in tool_calls_of(originals[before]):
            if call.id == id:
                said = _shortened(f"{call.name}({call.arguments})", CALL_CHARS)
                return f", of [s{segment}.{before + 1}] {said}"
    return ""


def _stands(where: Reference, text: str, above: Sequence[str]) -> bool:
    """Return whether this place is quoted above, alone or below its call."""
    return any(each.startswith(f"[{where}]") or f"=> [{where}] {text}" in each for each in above)


def _is_begun(message: Reference, above: Sequence[str]) -> bool:
    """Return whether lines of this message are quoted above."""
    return any(each.startswith((f"[{message}]", f"[{message}:")) for each in above)


def _results(
    match: _Match, originals: Sequence[Message], wanted: Sequence[Term], above: Sequence[str]
) -> list[str]:
    """Return a passage's call results: their matching lines, else their ends."""
    calls = _calls_in(match, originals[match.ordinal], wanted)
    shown_results = []
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
            shown_results.append(f"=> [{where}] {shown}")
    more = [f"=> {len(shown_results) - RESULTS} more"] if len(shown_results) > RESULTS else []
    return shown_results[:RESULTS] + more


def _calls_in(match: _Match, message: Message, wanted: Sequence[Term]) -> set[str]:
    """Return the ids of a passage's calls, matching ones alone if any."""
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
    """Return a text on one line, a long one as two ends."""
    line = one_line(text)
    return line if len(line) <= keep + SAVED_CHARS else ends_of(line, keep)


def ends_of(line: str, keep: int) -> str:
    """Return the two ends of a long line, `keep` characters of it."""
    if keep >= len(line):
        return line
    left_out = len(line) - 2 * (keep // 2)
    half = keep // 2
    return f"{line[:half]} … {left_out} characters … {line[-half:] if half else ''}"
