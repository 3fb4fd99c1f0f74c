"""What the user took back: older words with such a value are not told as if it held."""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterable
from typing import NamedTuple, Protocol, TypeVar

from .corrections import replaced_proposals
from .language import UNSPACED
from .model import Facts, Said
from .values import Claim, claim_of, topic_of, values_of

DISTINCTIVE_DIGITS = 4
"""A number of fewer is another one wherever no word stands beside it that says what it is."""
_QUOTES = "\"'`「」“”"


class Spoken(Protocol):
    """A text with the position of its message."""

    @property
    def index(self) -> int: ...

    @property
    def text(self) -> str: ...


S = TypeVar("S", bound=Spoken)


class _Old(NamedTuple):
    """A value that no longer holds: since when, and the words that say what it was for."""

    since: int
    topic: frozenset[str]
    only: frozenset[str]
    """Of them those by which it differs from another setting that has the same value."""


class Stale:
    """The values that no longer hold, and since when."""

    def __init__(self, facts: Facts) -> None:
        self._old = {**_proposals(facts), **_old_values(facts)}
        words = "|".join(map(re.escape, sorted(self._old, key=len, reverse=True)))
        # A sign of a script without spaces is no part of the value that it touches.
        edge = rf"[^\W{UNSPACED}]"
        self._any = re.compile(rf"(?<!{edge})(?:{words})(?!{edge}|\.\d)") if words else None

    def old_in(self, text: str, index: int) -> tuple[str, ...]:
        """The values in words of that message that were replaced after them."""
        if self._any is None:
            return ()
        found = dict.fromkeys(self._any.findall(text))
        words = topic_of(text) if found else frozenset[str]()
        return tuple(value for value in found if self._is_old(value, words, index))

    def _is_old(self, value: str, words: frozenset[str], index: int) -> bool:
        old = self._old[value]
        if index >= old.since:
            return False
        if old.only:
            return bool(words & old.only)
        return _is_distinctive(value) or bool(words & old.topic)

    def holds(self, text: str, index: int) -> bool:
        """Whether words of that message name a value that was replaced after them."""
        return bool(self.old_in(text, index))

    def marked(self, text: str, index: int) -> str:
        """The words, and behind them which of their values no longer hold."""
        old = self.old_in(text, index)
        return f"{text} (superseded: {', '.join(old)})" if old else text

    def without(self, items: Iterable[S]) -> list[S]:
        """Those of the items that hold no replaced value."""
        return [item for item in items if not self.holds(item.text, item.index)]


def _is_distinctive(value: str) -> bool:
    """Whether a value means the same wherever it stands."""
    kind = values_of(value).get(value)
    if kind == "number":
        return sum(map(str.isdigit, value)) >= DISTINCTIVE_DIGITS
    return kind is not None


def _old_values(facts: Facts) -> dict[str, _Old]:
    out: dict[str, _Old] = {}
    current = _settings(facts)
    for said in facts.user:
        for value in said.old_values if said.superseded_at is not None else ():
            bare = value.strip(_QUOTES)
            known = out.get(bare)
            since = max(said.superseded_at or 0, known.since if known else 0)
            topic = frozenset(said.about) | (known.topic if known else frozenset())
            out[bare] = _Old(since, topic, topic - current.get(value, topic))
    return out


def _settings(facts: Facts) -> dict[str, frozenset[str]]:
    """The replaced values that the user set for something else, where they hold, and for what."""
    out: dict[str, frozenset[str]] = {}
    replaced = {value for said in facts.user for value in said.old_values}
    for said in facts.user:
        named = [value for value in replaced if value in said.text and not said.pasted]
        claim = claim_of(said.index, said.text) if named else None
        for value in claim.sets if claim else ():
            if value in replaced and value not in said.old_values:
                out[value] = out.get(value, frozenset()) | topic_of(said.text, [value])
    return out


def _proposals(facts: Facts) -> dict[str, _Old]:
    """What the assistant had decided or planned itself when the user corrected it."""
    out: dict[str, _Old] = {}
    corrections = _corrections(facts.user)
    if not corrections:
        return out
    replies = sorted({item.index for item in facts.user})
    about = frozenset(word for claim in corrections for word in claim.topic)
    for note in (*facts.decisions, *facts.open_work, *facts.last_words):
        at = bisect.bisect_right(replies, note.index)
        reply = replies[at] if at < len(replies) else -1
        brief = any(claim.message == reply and not claim.topic for claim in corrections)
        if reply < 0 or not (brief or about & topic_of(note.text)):
            continue
        for value, by in replaced_proposals(note.text, note.index, reply, corrections):
            if _holds_since(value, by, facts.user):
                continue
            topic = topic_of(note.text, [value]) | by.topic
            out[value.strip(_QUOTES)] = _Old(by.message, topic, frozenset())
    return out


def _holds_since(value: str, correction: Claim, said: Iterable[Said]) -> bool:
    """Whether the user came back to a value after having corrected it."""
    return any(
        item.index > correction.message and value in item.text and value not in item.old_values
        for item in said
    )


def _corrections(said: Iterable[Said]) -> list[Claim]:
    claims = (claim_of(item.index, item.text) for item in said if not item.pasted)
    return [claim for claim in claims if claim and (claim.corrects or claim.changes)]
