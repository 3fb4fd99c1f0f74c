"""The user's own words, verbatim; a later correction overrides an earlier value and says so."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from .model import Said
from .reading import Passage

_STANDING = re.compile(
    r"\b(?:always|never|must(?:n't)?|don'?t|do not|from now on|make sure|only use|no need to|"
    r"remember|important|require[ds]?|prefer|please keep|avoid|without)\b",
    re.I,
)
_CUE = re.compile(
    r"^(?:no\b|nope\b|actually\b|sorry\b|wait\b|correction\b|scratch that\b|rather\b|hmm\b|oops\b)"
    r"|\b(?:instead|change (?:it|that|the)|switch to|not .{1,40} but|i meant|forget|"
    r"make (?:it|that)|should be|is now|no longer|replace|update (?:it|that|the)|rename)\b",
    re.I,
)
_VALUE = re.compile(r"https?://[^\s\"'<>]+|[\"'`][^\"'`\n]{1,60}[\"'`]|[\w~./@#:+%-]*\w%?")
_WORD = re.compile(r"[a-z]{3,}")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_FILLER = frozenset(
    "the and for use with you can that this please now not but from have set should make are was "
    "will just instead actually sorry change switch let want need use using into its our your no "
    "rather wait correction meant forget update replace now longer".split()
)


def sentences(text: str) -> list[str]:
    """The text's sentences and lines, whitespace flattened, empty ones left out."""
    parts = (" ".join(part.split()) for part in _SENTENCE.split(text))
    return [part for part in parts if part]


def said(passages: Iterable[Passage]) -> tuple[Said, ...]:
    """One record per sentence of the user's, superseded ones marked."""
    out = [
        Said(passage.index, sentence, bool(_STANDING.search(sentence)))
        for passage in passages
        if passage.source == "user"
        for sentence in sentences(passage.text)
    ]
    return supersede(out)


def supersede(records: Sequence[Said]) -> tuple[Said, ...]:
    """Mark each sentence whose value a later sentence replaced."""
    out = list(records)
    recent: list[int] = []
    for position, record in enumerate(out):
        values = values_of(record.text)
        if not values or len(record.text) > 300:
            continue
        for earlier in reversed(recent):
            old = replaced(out[earlier], record)
            if old:
                out[earlier] = replace(
                    out[earlier],
                    superseded_by=record.text,
                    superseded_at=record.index,
                    old_values=tuple(dict.fromkeys(out[earlier].old_values + old)),
                )
                break
        recent.append(position)
        # A correction answers something recent; an unbounded look-back would be quadratic.
        del recent[:-60]
    return tuple(out)


def replaced(earlier: Said, later: Said) -> tuple[str, ...]:
    """The values of `earlier` that `later` takes back; empty if it takes back none."""
    if earlier.index >= later.index:
        return ()
    old, new = values_of(earlier.text), values_of(later.text)
    shared_words = _topic(earlier.text) & _topic(later.text)
    cue = bool(_CUE.search(later.text))
    named = [value for value in old if value in new]
    gone = tuple(
        value
        for value, kind in old.items()
        if value not in new and any(kind == k and v not in old for v, k in new.items())
    )
    if named and cue and len(new) > len(named):
        # "use 9090 instead of 8080" names both.
        return tuple(v for v in named if any(new[n] == old[v] for n in new if n not in named))
    if not gone:
        return ()
    short = len(_topic(later.text)) <= 2
    same_topic = len(shared_words) >= 1 and len(shared_words) * 2 >= len(_topic(later.text))
    if (cue and (short or shared_words)) or (same_topic and _same_frame(earlier, later)):
        return gone
    return ()


def _same_frame(earlier: Said, later: Said) -> bool:
    one, two = _topic(earlier.text), _topic(later.text)
    return len(one & two) * 5 >= len(one | two) * 4


def _topic(text: str) -> set[str]:
    values = values_of(text)
    bare = text
    for value in values:
        bare = bare.replace(value, " ")
    return {word for word in _WORD.findall(bare.lower()) if word not in _FILLER}


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
    if not value:
        return None
    if value[0] in "\"'`":
        return "quoted"
    if value.startswith("http"):
        return "url"
    if re.fullmatch(r"v?\d+(?:\.\d+)*(?:[a-zA-Z%]{1,3})?", value):
        return "number"
    if "/" in value or re.search(r"\.\w{1,5}$", value):
        return "path"
    if re.search(r"[_\d-]|[a-z][A-Z]", value) or value.isupper() and len(value) > 2:
        return "name"
    return None
