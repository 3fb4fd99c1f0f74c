"""The values of a sentence, and what a sentence does with them: it sets some, it drops others."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from .tongues import (
    ADDS,
    CHANGES,
    CORRECTS,
    DROPS,
    DROPS_BEFORE_IT,
    FILLER,
    SETS,
    SETTER_ENDS,
    TO,
    UNSPACED,
    Words,
)

_LETTER = rf"[^\W{UNSPACED}]"
_VALUE = re.compile(
    rf"https?://[^\s\"'<>{UNSPACED}、。，]+|(?<!\w)([\"'`])[^\"'`\n]{{1,60}}\1(?!\w)|[「“][^」”\n]{{1,60}}[」”]"
    rf"|(?<![\w.])\d{{1,3}}(?:,\d{{3}})+(?:\.\d+)?(?!\w|,\d)|(?:[~./@#:+%-]|{_LETTER})*{_LETTER}%?"
)
_NUMBER = re.compile(r"v?\d+(?:[.,]\d+)*(?:[a-zA-Z%]{1,3})?")
_ENDING = re.compile(r"\.\w{1,5}$")
_NAME = re.compile(r"[_\d-]|[a-z][A-Z]")
# Of scripts without spaces two neighbouring signs stand for a word.
_WORD = re.compile(rf"[^\W\d_{UNSPACED}]{{3,}}|[\u30a0-\u30ff]{{3,}}|(?=([\u3400-\u9fff]{{2}}))")
NEAR_CHARS = 30
"""How far from a value the words may stand that say what it is."""


class Claim(NamedTuple):
    """What a sentence says of values."""

    message: int
    text: str
    values: Mapping[str, str]
    """What it sets or names, with their kinds."""
    drops: frozenset[str]
    """What it names as no longer wanted."""
    topic: frozenset[str]
    """The words that say what it is about."""
    corrects: bool
    sets: frozenset[str]
    """The values that stand behind the word that sets them: before it stands what is set."""
    frame: str
    """The sentence with those values left out."""


def claim_of(message: int, text: str) -> Claim | None:
    """What a sentence says of values, or None if it names none."""
    named = values_of(text)
    if not named:
        return None
    corrects = bool(CORRECTS.search(text))
    drops = _dropped(text, named) if corrects else frozenset[str]()
    values = {value: kind for value, kind in named.items() if value not in drops}
    sets, frame = _set_values(text, values)
    return Claim(message, text, values, drops, topic_of(text, named), corrects, sets, frame)


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


def _dropped(text: str, values: Iterable[str]) -> frozenset[str]:
    """The values that a correction names as what shall no longer be."""
    places = sorted((text.find(value), value) for value in values)
    out: set[str] = set()
    last = 0
    for number, (start, value) in enumerate(places):
        end = start + len(value)
        before = text[max(last, start - NEAR_CHARS) : start]
        behind = text[end : places[number + 1][0] if number + 1 < len(places) else len(text)]
        changed = CHANGES.search(text[:start]) and _begins(TO, behind) and not _ends(TO, before)
        if changed or _ends(DROPS, before) or _begins(DROPS_BEFORE_IT, behind):
            out.add(value)
        last = end
    return frozenset(out)


def _ends(words: Words, text: str) -> bool:
    """Whether one of the words stands at the end of the text, or a few words before it."""
    ends = [found.end() for found in words.of(text).finditer(text)]
    return bool(ends) and text[ends[-1] :].count(" ") <= 3


def _begins(words: Words, text: str) -> bool:
    found = words.search(text)
    return found is not None and not text[: found.start()].strip()


def topic_of(text: str, values: Iterable[str] = ()) -> frozenset[str]:
    """The words that say what a sentence is about, its values left out."""
    for value in values:
        text = text.replace(value, " ")
    words = (found[1] or found[0] for found in _WORD.finditer(text.lower()))
    return frozenset(word for word in words if word not in FILLER)


def words_near(text: str, value: str) -> frozenset[str]:
    """The words of the topic beside a value: in "port 8080 with 3 workers" each has its own."""
    at = text.find(value)
    others = [text.find(other) for other in values_of(text) if other != value]
    left = max([other for other in others if other < at], default=-1)
    right = min([other for other in others if other > at], default=len(text))
    before = text[max(left, at - NEAR_CHARS, 0) : at]
    behind = text[at + len(value) : min(right, at + len(value) + NEAR_CHARS)]
    return topic_of(before, values_of(before)) | frozenset(list(_ordered(behind))[:1])


def _ordered(text: str) -> Iterable[str]:
    words = (found[1] or found[0] for found in _WORD.finditer(text.lower()))
    return (word for word in words if word not in FILLER)


def alike(one: str, other: str) -> bool:
    """Whether two values of one kind are written alike: a port is no percentage.

    >>> alike("8080", "9090"), alike("8080", "5"), alike("30s", "8080")
    (True, False, False)
    """
    if not (_NUMBER.fullmatch(one) and _NUMBER.fullmatch(other)):
        return True
    shapes = [(value[0] == "v", "." in value, value[-1].isdigit()) for value in (one, other)]
    digits = [sum(map(str.isdigit, value)) for value in (one, other)]
    return shapes[0] == shapes[1] and abs(digits[0] - digits[1]) <= 1


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
