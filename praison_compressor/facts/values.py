"""The values of a sentence, and what a sentence does with them: it sets some, it drops others."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from .language import (
    ADDS,
    ALTERS,
    CHANGES,
    CORRECTS,
    DROPS,
    DROPS_BEFORE_IT,
    FILLER,
    PLACES,
    SETS,
    SETTER_ENDS,
    TO,
    UNSPACED,
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
    """It opens or ends as an answer to what was said: "no", "I meant", "instead"."""
    changes: bool
    """It orders a change, of whatever it names: "rename", "switch to", "should be"."""
    sets: frozenset[str]
    """The value behind the word that sets it: before it stands what is set, behind it where."""
    frame: str
    """The sentence with that value left out."""


def claim_of(message: int, text: str) -> Claim | None:
    """What a sentence says of values, or None if it names none."""
    named = values_of(text)
    if not named:
        return None
    corrects = bool(CORRECTS.search(text))
    changes = bool(ALTERS.search(text)) and not ADDS.search(text)
    drops = _dropped(text, named) if corrects or changes else frozenset[str]()
    values = {value: kind for value, kind in named.items() if value not in drops}
    sets, frame = _set_value(text, values, changes)
    topic = topic_of(text, named)
    return Claim(message, text, values, drops, topic, corrects, changes, sets, frame)


def _set_value(text: str, values: Iterable[str], changes: bool) -> tuple[frozenset[str], str]:
    """What a sentence sets, and its words without that."""
    # "Look at part 3" and "look at part 4" are two requests; only what was *set* can be set anew.
    if not (changes or SETS.search(text)) or ADDS.search(text) or text.endswith("?"):
        return frozenset(), text
    setter = max((found.end() for found in SETTER_ENDS.finditer(text)), default=len(text))
    at, value = min(
        (pair for value in values if (pair := (text.rfind(value), value))[0] >= setter),
        default=(setter, ""),
    )
    if not value or PLACES.search(text[setter:at]):
        return frozenset(), text
    words = re.findall(r"\w+", f"{text[:at]} {text[at + len(value) :]}".lower())
    return frozenset([value]), " ".join(word for word in words if word not in FILLER)


def _dropped(text: str, values: Mapping[str, str]) -> frozenset[str]:
    """The values that a correction names as what shall no longer be."""
    places = sorted((text.find(value), value) for value in values)
    out: set[str] = set()
    last = 0
    for number, (start, value) in enumerate(places):
        end = start + len(value)
        before = text[max(last, start - NEAR_CHARS) : start]
        last_one = number + 1 == len(places)
        behind = text[end : len(text) if last_one else places[number + 1][0]]
        becomes = not last_one and _begins(TO, behind) and not _ends(TO, before)
        changed = becomes and CHANGES.search(text[:start])
        if changed or _ends(DROPS, before) or _begins(DROPS_BEFORE_IT, behind):
            out.add(value)
        last = end
    # "Change TIMEOUT to 45" drops no name: what comes in its place is a number.
    kept = {kind for value, kind in values.items() if value not in out}
    return frozenset(value for value in out if not kept or values[value] in kept)


def _ends(words: re.Pattern[str], text: str) -> bool:
    """Whether one of the words stands at the end of the text, or a few words before it."""
    ends = [found.end() for found in words.finditer(text)]
    return bool(ends) and re.fullmatch(r"(?:[^ ,;:]* ?){0,4}", text[ends[-1] :]) is not None


def _begins(words: re.Pattern[str], text: str) -> bool:
    found = words.search(text)
    return found is not None and not text[: found.start()].strip()


def topic_of(text: str, values: Iterable[str] = ()) -> frozenset[str]:
    """The words that say what a sentence is about, its values left out."""
    for value in values:
        text = text.replace(value, " ")
    words = (found[1] or found[0] for found in _WORD.finditer(text.lower()))
    return frozenset(word for word in words if word not in FILLER)


def alike(one: str, other: str) -> bool:
    """Whether two values of one kind are written alike: a port is no percentage.

    >>> alike("8080", "9090"), alike("8080", "5"), alike("30s", "8080")
    (True, False, True)
    """
    words = not (_NUMBER.fullmatch(one) and _NUMBER.fullmatch(other))
    return words or abs(len(one) - len(other)) <= 1


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
