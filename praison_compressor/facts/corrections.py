"""The user's words, verbatim; later words that replace earlier values or restore them."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from .language import APPROVES, UNSPACED
from .model import Excerpt, Note, Said
from .passages import Passage
from .values import Claim, alike, claim_of, topic_of

_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_UNSPACED_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+|(?<=[。！？])")
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
    own = own_text(passage.text)
    flat = passage.text if own is passage.text else " ".join(own.split())
    for number, sentence in enumerate(sentences(passage.text)):
        seen += len(sentence) + 1
        pasted = 0 if not long or number < OPENING_SENTENCES else 1 + (seen > PASTE_KEPT_CHARS)
        if pasted and sentence.count(" ") < 2 and sentence.isascii():
            continue
        quoted = flat is not passage.text and sentence not in flat
        yield Said(passage.at, sentence, pasted, quoted)


# -------------------------------------------------------------- the writer's own


MATERIAL = re.compile(
    r"^[ \t]*(?P<fence>```|~~~)[^\n]*\n(?:.*?^[ \t]*(?P=fence)[^\n]*$|.*\Z)|^[ \t]*>[^\n]*$|"
    r"^[ \t]*<(?P<tag>[a-zA-Z][\w-]*)\b[^>\n]*>.*?</(?P=tag)>",
    re.M | re.S,
)
"""Fenced, quoted and tagged text: what a person hands on."""
_HANDS_ON = re.compile(
    r"^[^\n]{0,200}\b(?:e?mail|page|article|log|output|ticket|message|document|text|snippet|code|"
    r"error|report|transcript|review|issue|readme|quote|content|says|said|wrote|writes|got this|"
    r"response|reply|result|website|post|comment|seite|text|página|correo)\b[^\n]{0,60}[:：][ "
    r"\t]*$",
    re.M | re.I,
)
"""A line that announces somebody else's words, down to the end of the message."""
RULES_BELOW = re.compile(
    r"\b(?:rules?|requirements?|constraints?|guidelines?|conventions?|do'?s|polic(?:y|ies)|"
    r"preferences?|regeln|anforderungen|règles|consignes|reglas|normas|requisitos)\b|\b(?:always|"
    r"must|please|should|important)\W*$|规则|要求|注意|ルール|条件",
    re.I,
)
BANS_BELOW = re.compile(
    r"\b(?:do not|don'?ts?|never|must not|avoid|forbidden|not allowed|niemals|verboten|jamais|"
    r"nunca|prohibid[oa])\b\W*$|(?:禁止|不要)\W*$",
    re.I,
)
_ITEM = re.compile(r"(?:[-*+•]|\(?\d{1,3}[.)]|\[[ xX]\])\s+")
_NUMBERED = re.compile(r"^[ \t]*\d+[ \t]*(?:→|\t|\||: )", re.M)
_ABBREVIATED = re.compile(
    r"\b(?:e\.g|i\.e|vs|etc|no|dr|mr|mrs|ms|approx|z\.b|bzw|ca|p\.ex|incl)\.$", re.I
)
WRAPPED_CHARS = 55
"""A line of as many that ends without a stop goes on in the next one."""


def own_text(text: str) -> str:
    """A message without what it hands on; the very same where that is nothing."""
    if any(mark in text for mark in ("```", "~~~", ">")):
        text = MATERIAL.sub("\n", text)
    given = _HANDS_ON.search(text)
    return text[: given.end()] if given and not RULES_BELOW.search(given[0]) else text


def own_sentences(text: str, *, written: bool = False) -> Iterator[tuple[str, str]]:
    """Each sentence of a message that is its writer's own, and what announced the list it is in.

    Left out is what is handed on: fenced, quoted and tagged text, what stands below a line that
    announces it, and of a long message all but its beginning and its lists of rules. `written`: the
    text is a document, all of which is its writer's.
    """
    text = MATERIAL.sub("\n", text) if written else own_text(text)
    long = not written and (len(text) > PASTE_CHARS or text.count("\n") > PASTE_LINES)
    lead, seen = "", 0
    for block, is_item in _blocks(text):
        lead = lead if is_item else ""
        if block.startswith("#"):
            lead = block.lstrip("# ")
            continue
        for sentence in _whole_sentences(block):
            seen += 1
            announced = bool(RULES_BELOW.search(lead) or BANS_BELOW.search(lead))
            if sentence.rstrip("*_ ").endswith((":", "：")):
                lead = sentence
            elif not long or announced or seen <= OPENING_SENTENCES:
                yield sentence, lead if is_item else ""


def _blocks(text: str) -> Iterator[tuple[str, bool]]:
    """Paragraphs, headings and items of lists, each on one line; whether it is an item."""
    current, is_item, last = "", False, ""
    for raw in _NUMBERED.sub("", text).split("\n"):
        line = raw.strip()
        item = _ITEM.match(line)
        if (
            current
            and line
            and not item
            and not line.startswith(("#", "|"))
            and _goes_on(last, line)
        ):
            current, last = f"{current} {line}", line
            continue
        if current:
            yield current, is_item
        current, last = line[item.end() :] if item else line, line
        is_item = bool(item) or (is_item and raw[:1] in " \t" and bool(line))
        if line.startswith("|") or set(line) <= set("-=*_ "):
            current = ""
    if current:
        yield current, is_item


def _goes_on(line: str, following: str) -> bool:
    ended = line.endswith((".", "!", "?", ":", "。", "！", "？", "："))
    return not ended and (len(line) >= WRAPPED_CHARS or following[:1].islower())


def _whole_sentences(block: str) -> Iterator[str]:
    held = ""
    for part in sentences(block):
        held = f"{held} {part}".strip()
        if not _ABBREVIATED.search(held):
            yield held
            held = ""
    if held:
        yield held


# -------------------------------------------------------------- corrections


CLAIM_CHARS = 300
LOOK_BACK = 60
PHRASE_WORDS = 2
"""So many neighbouring words may be what two sentences differ by: "web server", "admin page"."""
_NAMES_IT = re.compile(r"\b(?:the|our|its|their) (\w+)", re.I)


@dataclass(eq=False)
class _Held:
    """A claim, the matter it belongs to, and which of its values were replaced by what."""

    claim: Claim
    matter: frozenset[str]
    gone: dict[str, Claim] = field(default_factory=dict)

    def current(self) -> dict[str, str]:
        """The values that hold, with their kinds."""
        return {value: kind for value, kind in self.claim.values.items() if value not in self.gone}


def supersede(records: Sequence[Said]) -> tuple[Said, ...]:
    """Mark each sentence with its values that a later one replaced and none has set again since."""
    recent: deque[_Held] = deque(maxlen=LOOK_BACK)
    held: list[_Held | None] = []
    for record in records:
        typed = not (record.pasted or record.quoted)
        short = typed and len(record.text) <= CLAIM_CHARS
        claim = claim_of(record.index, record.text) if short else None
        held.append(_heard(claim, recent) if claim else None)
    return tuple(_marked(record, one) for record, one in zip(records, held, strict=True))


def _marked(record: Said, held: _Held | None) -> Said:
    if held is None or not held.gone:
        return record
    newest = max(held.gone.values(), key=lambda claim: claim.message)
    return replace(
        record,
        superseded_by=newest.text,
        superseded_at=newest.message,
        old_values=tuple(held.gone),
        about=tuple(sorted(held.matter)),
    )


def _heard(later: Claim, recent: deque[_Held]) -> _Held:
    """Take in one claim: what it replaces is gone, what it sets in that matter holds again."""
    known = _Held(later, later.topic)
    for one, old in _taken_back(recent, later):
        one.gone.update(dict.fromkeys(old, later))
        known.matter |= one.matter
    for one in recent:
        for value in later.values if one.matter & known.matter else ():
            one.gone.pop(value, None)
    recent.append(known)
    return known


def _taken_back(recent: Iterable[_Held], later: Claim) -> list[tuple[_Held, tuple[str, ...]]]:
    """What a claim replaces, and which values of it."""
    earlier = [one for one in recent if one.claim.message < later.message]
    if not (later.corrects or later.changes):
        # Without a word of correction only the very same sentence sets the same thing anew.
        same = [one for one in earlier if one.claim.sets and one.claim.frame == later.frame]
        return _of_the_best(same if later.sets and later.frame else [], later, earlier)
    if later.drops:
        # "Use 9090 instead of 8080" says itself what no longer holds, wherever it was said.
        named = [(one, old) for one in earlier if (old := _named(one, later))]
        most = max((_nearness(one, later) for one, _ in named), default=0)
        return [(one, old) for one, old in named if _nearness(one, later) == most]
    if APPROVES.search(later.text):
        return []  # What is allowed takes the place of nothing.
    fitting = [one for one in earlier if _same_matter(one, later, earlier)]
    return _of_the_best(fitting, later, earlier)


def _of_the_best(
    fitting: list[_Held], later: Claim, earlier: Iterable[_Held]
) -> list[tuple[_Held, tuple[str, ...]]]:
    """Of those in the same matter the newest, with all that say the same as it."""
    for one in sorted(fitting, key=lambda one: (_nearness(one, later), one.claim.message))[::-1]:
        old = _outdated(one, later)
        if old:
            again = [o for o in earlier if o is not one and _says_the_same(o, one, old)]
            return [(o, tuple(v for v in old if v in o.current())) for o in (one, *again)]
    return []


def _nearness(one: _Held, later: Claim) -> int:
    return len(one.matter & later.topic)


def _named(one: _Held, later: Claim) -> tuple[str, ...]:
    """The values that hold and that a correction says to drop."""
    return tuple(value for value in one.current() if value in later.drops)


def _outdated(one: _Held, later: Claim) -> tuple[str, ...]:
    """The values for which a later claim has another of their kind."""
    old = {value: kind for value, kind in one.current().items() if value not in later.values}
    fresh = {value: kind for value, kind in later.values.items() if value not in one.current()}
    if len({*fresh.values()}) > 1 or not (later.corrects or later.sets & fresh.keys()):
        return ()  # "7070 in admin.yaml" after "9090 in web.yaml" is another port
    out: list[str] = []
    for value in fresh:
        ranked = sorted(
            (candidate for candidate, kind in old.items() if kind == later.values[value]),
            key=lambda candidate: alike(candidate, value),
        )
        if ranked and (one.matter & later.topic or alike(ranked[-1], value)):
            out.append(ranked[-1])
    return tuple(dict.fromkeys(out))


def _same_matter(one: _Held, later: Claim, earlier: Iterable[_Held]) -> bool:
    """Half of what a correction speaks of, or so little that it can mean only what was said."""
    named = {found.lower() for found in _NAMES_IT.findall(later.text)} & later.topic
    if named - one.matter:
        return False
    shared = _nearness(one, later)
    if later.topic and shared * 2 >= len(later.topic):
        return True
    if shared or len(later.topic) > 2:
        return False
    # It names what was named elsewhere: it speaks of that.
    elsewhere = later.values.keys() - one.claim.values.keys()
    if any(elsewhere & other.current().keys() for other in earlier):
        return False
    return later.corrects or bool(one.claim.sets and not later.topic)


def _says_the_same(other: _Held, one: _Held, old: Iterable[str]) -> bool:
    """Whether another claim holds one of the values for the same thing."""
    if not other.current().keys() & set(old) or _are_two(other.claim, one.claim):
        return False
    return bool(other.matter & one.matter)


def _are_two(one: Claim, other: Claim) -> bool:
    """Whether two claims set two things alike: "port 8080 for web", "port 8080 for admin"."""
    if one.message == other.message:
        return True
    first, second = _words(one), _words(other)
    if len(first) != len(second):
        return False
    apart = [n for n, (a, b) in enumerate(zip(first, second, strict=True)) if a != b]
    return bool(apart) and apart[-1] - apart[0] < PHRASE_WORDS


def _words(claim: Claim) -> list[str]:
    text = claim.text.lower()
    for value in claim.values:
        text = text.replace(value.lower(), " ")
    return re.findall(r"\w+", text)


# -------------------------------------------------------------- what no longer holds


DISTINCTIVE_SIGNS = 4
"""A value of fewer, "30s", is another one where no word beside it says what it is."""
_QUOTES = "\"'`「」“”"


T = TypeVar("T", Note, Excerpt)


class Stale:
    """The values that the user took back, and since when: older words have them as if they held."""

    def __init__(self, user: Sequence[Said]) -> None:
        self._since: dict[str, int] = {}
        topic: set[str] = set()
        for said in user:
            for value in said.old_values if said.superseded_at is not None else ():
                bare = value.strip(_QUOTES)
                self._since[bare] = max(said.superseded_at or 0, self._since.get(bare, 0))
                topic.update(said.about)
        self._topic = frozenset(topic)
        words = "|".join(map(re.escape, sorted(self._since, key=len, reverse=True)))
        # A sign of a script without spaces is no part of the value that it touches.
        edge = rf"[^\W{UNSPACED}]"
        self._any = re.compile(rf"(?<!{edge})(?:{words})(?!{edge}|\.\d)") if words else None

    def marked(self, text: str, index: int) -> str:
        """The words of that message, and behind them which of their values no longer hold."""
        old = self._old_in(text, index)
        return f"{text} (superseded: {', '.join(old)})" if old else text

    def without(self, items: Iterable[T]) -> list[T]:
        """Those of the items that hold no replaced value."""
        return [item for item in items if not self._old_in(item.text, item.index)]

    def _old_in(self, text: str, index: int) -> tuple[str, ...]:
        if self._any is None:
            return ()
        found = dict.fromkeys(self._any.findall(text))
        told = bool(found) and bool(topic_of(text) & self._topic)
        return tuple(
            value
            for value in found
            if index < self._since[value]
            and (told or sum(map(str.isalnum, value)) >= DISTINCTIVE_SIGNS)
        )
