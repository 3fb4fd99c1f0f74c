"""The user's own words, verbatim; a later correction overrides an earlier value and says so."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from .model import Said
from .reading import Passage
from .tongues import ADDS, CORRECTS, FILLER, SETS, SETTER_ENDS, STANDING, UNSPACED

_LETTER = rf"[^\W{UNSPACED}]"
_VALUE = re.compile(
    rf"https?://[^\s\"'<>{UNSPACED}、。，]+|[\"'`][^\"'`\n]{{1,60}}[\"'`]|[「“][^」”\n]{{1,60}}[」”]"
    rf"|(?:[~./@#:+%-]|{_LETTER})*{_LETTER}%?"
)
_NUMBER = re.compile(r"v?\d+(?:\.\d+)*(?:[a-zA-Z%]{1,3})?")
_ENDING = re.compile(r"\.\w{1,5}$")
_NAME = re.compile(r"[_\d-]|[a-z][A-Z]")
# Of scripts without spaces two neighbouring signs stand for a word.
_WORD = re.compile(rf"[^\W\d_{UNSPACED}]{{3,}}|[\u30a0-\u30ff]{{3,}}|(?=([\u3400-\u9fff]{{2}}))")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_UNSPACED_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+|(?<=[。！？])")


CLAIM_CHARS = 300
LOOK_BACK = 60
PASTE_CHARS = 1_500
PASTE_LINES = 15
PASTE_KEPT_CHARS = 2_000
OPENING_SENTENCES = 4


def sentences(text: str) -> list[str]:
    """The text's sentences and lines, whitespace flattened, empty ones left out."""
    ending = _SENTENCE if text.isascii() else _UNSPACED_SENTENCE
    parts = (" ".join(part.split()) for part in ending.split(text))
    return [part for part in parts if part]


def said(passages: Iterable[Passage]) -> tuple[Said, ...]:
    """One record per sentence of the user's, superseded ones marked."""
    out = [
        record for passage in passages if passage.source == "user" for record in _records(passage)
    ]
    return supersede(out)


def _records(passage: Passage) -> Iterator[Said]:
    """A long paste is the user's material, not the user's words: it comes after them."""
    long = len(passage.text) > PASTE_CHARS or passage.text.count("\n") > PASTE_LINES
    seen = 0
    for number, sentence in enumerate(sentences(passage.text)):
        seen += len(sentence) + 1
        pasted = 0 if not long or number < OPENING_SENTENCES else 1 + (seen > PASTE_KEPT_CHARS)
        if pasted and sentence.count(" ") < 2 and sentence.isascii():
            continue
        standing = not pasted and bool(STANDING.search(sentence))
        yield Said(passage.at, sentence, standing, pasted)


class _Claim(NamedTuple):
    """What a sentence sets: its values with their kinds, what it is about, whether it corrects."""

    position: int
    message: int
    values: dict[str, str]
    topic: frozenset[str]
    corrects: bool
    sets: frozenset[str]
    """The values that stand behind the word that sets them: before it stands what is set."""
    frame: str
    """The sentence with those values left out."""


def supersede(records: Sequence[Said]) -> tuple[Said, ...]:
    """Mark each sentence whose value a later sentence replaced."""
    out = list(records)
    recent: deque[_Claim] = deque(maxlen=LOOK_BACK)
    for position, record in enumerate(out):
        claim = _claim(position, record)
        if claim is None:
            continue
        for earlier, old in _taken_back(recent, claim):
            known = out[earlier.position]
            out[earlier.position] = replace(
                known,
                superseded_by=record.text,
                superseded_at=record.index,
                old_values=tuple(dict.fromkeys(known.old_values + old)),
            )
        recent.append(claim)
    return tuple(out)


def _taken_back(recent: Iterable[_Claim], later: _Claim) -> list[tuple[_Claim, tuple[str, ...]]]:
    """The claims that `later` replaces, with their values that no longer hold."""
    earlier = [one for one in _replaceable(recent, later) if one.message < later.message]
    if later.corrects:
        # "Use 9090 instead of 8080" says itself what no longer holds, wherever it was said.
        named = [(one, old) for one in earlier if (old := _named(one, later))]
        if named:
            return named
    # Of those in the same matter the newest, else the newest of all.
    for one in sorted(earlier, key=lambda one: (bool(one.topic & later.topic), one.position))[::-1]:
        old = _outdated(one, later)
        if old:
            again = [
                (other, old)
                for other in earlier
                if other is not one and set(old) <= other.values.keys() and other.topic & one.topic
            ]
            return [(one, old), *again]
    return []


def _claim(position: int, record: Said) -> _Claim | None:
    if record.pasted or len(record.text) > CLAIM_CHARS:
        return None
    values = values_of(record.text)
    if not values:
        return None
    topic = _topic(record.text, values)
    corrects = bool(CORRECTS.search(record.text))
    sets, frame = _set_values(record.text, values)
    return _Claim(position, record.index, values, topic, corrects, sets, frame)


def _set_values(text: str, values: Iterable[str]) -> tuple[frozenset[str], str]:
    """What a sentence sets, and its words without that."""
    # "Look at part 3" and "look at part 4" are two requests; only what was *set* can be set anew.
    if not SETS.search(text) or ADDS.search(text):
        return frozenset(), text
    setter = max((found.end() for found in SETTER_ENDS.of(text).finditer(text)), default=len(text))
    found = frozenset(value for value in values if text.rfind(value) >= setter)
    for value in found:
        text = text.replace(value, " ")
    words = (word for word in re.findall(r"\w+", text.lower()) if word not in FILLER)
    return found, " ".join(words)


def _replaceable(recent: Iterable[_Claim], later: _Claim) -> list[_Claim]:
    """At a glance, for the many that cannot: without a correction the same must be set anew."""
    if later.corrects:
        return list(recent)
    if not later.sets:
        return []
    return [one for one in recent if _sets_the_same(one, later)]


def _named(earlier: _Claim, later: _Claim) -> tuple[str, ...]:
    """The values of `earlier` that a correction names beside what it sets in their place."""
    old, new = earlier.values, later.values
    named = tuple(value for value in old if value in new)
    kinds = {old[value] for value in named}
    fresh = [value for value in new if value not in old and new[value] in kinds]
    return tuple(value for value in named if old[value] in {new[one] for one in fresh})


def _outdated(earlier: _Claim, later: _Claim) -> tuple[str, ...]:
    """The values of `earlier` for which `later` has another of their kind in the same matter."""
    old, new = earlier.values, later.values
    fresh = {kind for value, kind in new.items() if value not in old}
    gone = tuple(value for value, kind in old.items() if value not in new and kind in fresh)
    return gone if gone and _same_matter(earlier, later) else ()


def _same_matter(earlier: _Claim, later: _Claim) -> bool:
    shared = len(earlier.topic & later.topic)
    return not later.corrects or len(later.topic) <= 2 or shared * 2 >= len(later.topic)


def _sets_the_same(earlier: _Claim, later: _Claim) -> bool:
    """Without a word of correction only the very same sentence sets the same thing anew."""
    return bool(earlier.sets and later.sets and later.frame) and earlier.frame == later.frame


def _topic(text: str, values: Iterable[str]) -> frozenset[str]:
    for value in values:
        text = text.replace(value, " ")
    words = (found[1] or found[0] for found in _WORD.finditer(text.lower()))
    return frozenset(word for word in words if word not in FILLER)


def values_of(text: str) -> dict[str, str]:
    """The values of a sentence with their kind: what a correction can replace."""
    out: dict[str, str] = {}
    for found in _VALUE.finditer(text):
        value = found.group().rstrip(".,;:!?")
        kind = _value_kind(value)
        if kind:
            out[value] = kind
    return out


def _value_kind(value: str) -> str | None:
    if value[0] in "\"'`「“":
        return "quoted"
    if "://" in value:
        return "url"
    if _NUMBER.fullmatch(value):
        return "number"
    if "/" in value or _ENDING.search(value):
        return "path"
    return "name" if _NAME.search(value) or (value.isupper() and len(value) > 2) else None
