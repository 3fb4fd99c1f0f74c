"""The rules of a conversation: what the agent must, must not, asks first, prefers, takes for a fact
and was allowed once; who said it, since when, and which later words lifted it.

Who may bind: the user in words of their own, in any turn; the host and the system; and documents
that the agent loaded as instructions, because user, system or host named them, or because they are
the project's own (`AGENTS.md`). Everything else that a tool returns is data, whatever it claims.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from operator import is_

from ..messages import Message, ToolCall
from ..messages.forks import renewed
from .corrections import (
    BANS_BELOW,
    MATERIAL,
    RULES_BELOW,
    own_sentences,
    supersede,
)
from .files import Documents
from .language import (
    APPROVES,
    ASKS_FIRST,
    EVERYTHING,
    FORBIDS,
    IMPERATIVE,
    LIFTS,
    NO_FACT,
    NO_RULE,
    PREFERS,
    REPORTED,
    REQUIRES,
    RULE_WORDS,
    STATES,
    UNSPACED,
)
from .model import GENERAL, Domain, Said
from .outcomes import outcome_of
from .passages import Passage, passages
from .values import ADDS, ALTERS, CORRECTS, FILLER

KINDS = ("must", "must not", "ask first", "approval", "preference", "fact")


@dataclass(frozen=True)
class Rule:
    """What binds, verbatim."""

    text: str
    kind: str
    """ "must", "must not", "ask first", "approval" (of what it names, that once), "preference", or
    "fact" (of the domain: "prices are net")."""
    source: str
    """Who said it: "user", "system", "memory", or the document that was loaded."""
    since: int
    """The position of its message in the transcript."""
    until: int | None = None
    """The position of the message that lifted or replaced it; None: it holds."""
    lifted_by: str = ""
    """The words that did."""

    @property
    def holds(self) -> bool:
        """Whether nothing has lifted it."""
        return self.until is None


def rules_in(messages: Sequence[Message], *, domain: Domain = GENERAL) -> tuple[Rule, ...]:
    """All rules of a transcript in the order in which they were said, lifted ones with `until`.

    >>> [rule.kind for rule in rules_in([{"role": "user", "content": "Never push to main."}])]
    ['must not']
    """
    return RuleReader().rules(messages, domain)


class RuleReader:
    """Reads the rules of a transcript that grows: what it has read it does not read again.

    Thread-safe. Messages are known again as objects: whoever edits one in place needs a new reader.
    """

    def __init__(self) -> None:
        self._lock = renewed(threading.Lock())
        self._read: list[Message] = []
        self._leading = 0
        self._begin((), GENERAL)

    def rules(self, messages: Sequence[Message], domain: Domain = GENERAL) -> tuple[Rule, ...]:
        """As `rules_in`."""
        with self._lock:
            read, before = self._read, len(self._read)
            goes_on = before > self._leading and len(messages) >= before
            if not (goes_on and domain == self._domain and all(map(is_, messages, read))):
                self._begin(messages, domain)
                before = 0
            self._read = []  # whoever is interrupted here begins again
            for passage, source in self._binding(messages, before):
                self._book.read(passage, source)
            self._read = list(messages)
            return self._book.rules()

    def _begin(self, messages: Sequence[Message], domain: Domain) -> None:
        self._domain = domain
        self._book = _Book()
        self._documents = Documents(domain)
        self._calls: dict[str, ToolCall] = {}
        self._read = []
        roles = (message.get("role") for message in messages)
        other = (n for n, role in enumerate(roles) if role not in _SYSTEM)
        self._leading = next(other, len(messages))

    # ---------------------------------------------------------- who may bind

    def _binding(self, messages: Sequence[Message], start: int) -> Iterator[tuple[Passage, str]]:
        """Each text from there on that may bind, with its source; results are among them where
        they are documents."""
        documents, prefixes = self._documents, self._domain.host_prefixes
        answer = -1
        for passage in passages(messages, prefixes, start=start, calls=self._calls):
            if passage.source == "result":
                answer = passage.at
                source = passage.call and documents.source(passage.call)
                if source and outcome_of(passage.text).status != "failed":
                    yield passage, source
            elif passage.source == "call" and passage.call:
                documents.called(passage.call)
            elif passage.source == "user":
                documents.hear(MATERIAL.sub("", passage.text))
                yield passage, "user"
            elif passage.source == "host" and passage.at != answer:
                # What a tool prints may look like a host's note: none of those stands in a result.
                is_system = messages[passage.at].get("role") in _SYSTEM
                source = "system" if is_system else _note_of(passage.text)
                if is_system or source:
                    documents.hear(passage.text)
                if source and not (is_system and passage.at < self._leading):
                    yield passage._replace(text=_WRAPPING.sub("", passage.text)), source


_SYSTEM = ("system", "developer")
_NOTES = (
    ("AGENTS.md", re.compile(r"\s*(?:# AGENTS\.md instructions|<user_instructions)")),
    ("CLAUDE.md", re.compile(r"\s*<system-reminder.*?(?:CLAUDE\.md|claudeMd)", re.S)),
    ("skill", re.compile(r"\s*Base directory for this skill")),
    ("memory", re.compile(r"\s*<system-reminder.{0,200}\bmemor(?:y|ies)\b", re.S | re.I)),
)


_WRAPPING = re.compile(r"\A\s*<[^>\n]*>|</[\w-]+>\s*\Z")


def _note_of(text: str) -> str:
    """The source of a host's note that is instructions or memory; "" of any other."""
    return next((name for name, opens in _NOTES if opens.match(text)), "")


# -------------------------------------------------------------- kinds


MOST_CHARS = 600
LEAST_CHARS = 9
LEAST_UNSPACED = 4
_NO_SENTENCE = re.compile(r"[#\"`{<|$/}]|\w+[{(]|.*(?:</|;$|\[…|\"\) |\)\) ?\})|should ")


def _statements(text: str, source: str) -> Iterator[tuple[str, str | None]]:
    """Each sentence of a text in its writer's own words, with the kind of rule that it is."""
    written, is_skill = source != "user", _SKILL.search(source) is not None
    for sentence, lead in own_sentences(text, written=written):
        kind = kind_of(sentence, written=written and not is_skill)
        if BANS_BELOW.search(lead):
            yield f"{lead} {sentence}", "must not"
        elif is_skill:  # it tells how to do one thing: of that only what it stresses binds
            yield sentence, kind if kind in ("must", "must not", "ask first") else None
        elif RULES_BELOW.search(lead) and sentence.count(" ") >= 2:
            yield sentence, kind or "must"
        else:
            yield sentence, kind


_SKILL = re.compile(r"\bskill\b", re.I)


@lru_cache(maxsize=4096)
def kind_of(sentence: str, *, written: bool = False) -> str | None:
    """The kind of rule that a sentence is; None where it is none.

    >>> kind_of("Ask me before you delete anything."), kind_of("You must be kidding.")
    ('ask first', None)
    """
    if _NO_SENTENCE.match(sentence):
        return None
    least = LEAST_CHARS if sentence.isascii() or " " in sentence else LEAST_UNSPACED
    if not least <= len(sentence) <= MOST_CHARS or (sentence.isascii() and " " not in sentence):
        return None
    asks = sentence.endswith(("?", "？"))
    if asks and not _POLITE.search(sentence):
        return None
    if not _told(_LEADS.sub("", sentence), asks, written):
        return None
    # Most sentences are no rule by any word in them: turns of speech are looked for in the others.
    text = _LEADS.sub("", NO_RULE.sub("", sentence))
    if (not written and REPORTED.search(text)) or not _matter(sentence):
        return None
    return _told(text, asks, written)


def _told(text: str, asks: bool, written: bool) -> str | None:
    for kind, pattern in _PATTERNS:
        if pattern.search(text):
            return kind
    if not asks and STATES.search(text) and not NO_FACT.search(text):
        return "fact"
    return "must" if written and text.count(" ") > 2 and IMPERATIVE.match(text) else None


_LEADS = re.compile(
    r"^(?:(?:by the way|btw|also|oh|and|so|well|ok|okay|hey|just so you know|for the record|"
    r"one more thing|correction|sorry|no(?=\s*[,;:.—])|actually|nein|doch|übrigens|au fait|"
    r"por cierto)\b\W+)+",
    re.I,
)
_POLITE = re.compile(
    r"\b(?:can|could|would|will) you (?:please )?(?:always|never|only|not|stop|avoid|make sure|"
    r"keep|ask)\b|\bkönnt?est? (?:du|Sie) (?:bitte )?(?:immer|nie|nur)|peux-tu (?:toujours|ne)",
    re.I,
)
_PATTERNS = (
    ("ask first", ASKS_FIRST),
    ("must not", FORBIDS),
    ("approval", APPROVES),
    ("preference", PREFERS),
    ("must", REQUIRES),
)


# -------------------------------------------------------------- what holds


_MEMORY = re.compile(
    r"^[ \t]*<(?P<tag>(?:user_|agent_)?(?:memor(?:y|ies)|instructions|rules|guidelines|polic(?:y|"
    r"ies)|preferences))>(.*?)</(?P=tag)>",
    re.M | re.S | re.I,
)
"""What an application puts into a prompt as the user's."""


@dataclass(eq=False)
class _Entry:
    rule: Rule
    matter: tuple[str, ...]
    """What it is about: the stems of its words, in their order."""

    def share(self, about: Iterable[str]) -> float:
        """How much of it is among those words."""
        own = set(self.matter)
        return len(own & set(about)) / max(1, len(own))


@dataclass
class _Book:
    """Rules as they are read; what was said later lifts what was said before."""

    entries: list[_Entry] = field(default_factory=list)
    said: list[Said] = field(default_factory=list)

    def rules(self) -> tuple[Rule, ...]:
        """All of them, those lifted whose values the user corrected; the book may be read on."""
        told = _Book([replace(entry) for entry in self.entries], self.said)
        if told.entries:
            told._correct()
        return tuple(entry.rule for entry in sorted(told.entries, key=lambda e: e.rule.since))

    def read(self, passage: Passage, source: str) -> None:
        """Take in one text."""
        text = passage.text
        if source != "user":
            for sentence, kind in _statements(text, source):
                if kind and not self._known(sentence):
                    self._add(Rule(sentence, kind, source, passage.at))
            return
        for noted in _MEMORY.finditer(text):
            self.read(passage._replace(text=noted[2]), "memory")
        for sentence, kind in _statements(text, source):
            self.said.append(Said(passage.at, sentence))
            self._hear(sentence, kind, passage.at)

    def _hear(self, sentence: str, kind: str | None, at: int) -> None:
        if not (kind or self.entries) or REPORTED.search(sentence):
            return
        lifts = LIFTS.search(sentence) is not None
        if lifts and (lifted := self._lifted(sentence, kind)):
            self._end(lifted, sentence, at)
            told = {word for entry in lifted for word in entry.matter}
            sets = kind not in (None, "approval", "ask first") and {*_matter(sentence)} - told
            if not (sets and CORRECTS.search(sentence)):
                return
        elif lifts and kind not in ("must not", "approval", "preference"):
            return
        if kind is None or self._known(sentence):
            return
        rule = Rule(sentence, kind, "user", at)
        self._end(self._replaced(rule), sentence, at)
        self._add(rule)

    def _add(self, rule: Rule) -> None:
        self.entries.append(_Entry(rule, _matter(rule.text)))

    def _end(self, entries: Iterable[_Entry], by: str, at: int) -> None:
        for entry in entries:
            entry.rule = replace(entry.rule, until=at, lifted_by=by)

    def _held(self) -> list[_Entry]:
        return [entry for entry in self.entries if entry.rule.holds]

    def _known(self, text: str) -> bool:
        return any(entry.rule.text == text for entry in self._held())

    # ---------------------------------------------------------- lifted

    def _lifted(self, sentence: str, kind: str | None) -> list[_Entry]:
        """The rules that a sentence with words of lifting means."""
        held = [e for e in self._held() if not (kind == "must not" and _forbids(e.rule))]
        mine = [entry for entry in held if entry.rule.source == "user"]
        if EVERYTHING.search(sentence):
            return mine
        about = set(_matter(sentence))
        if not about and _ASKING.search(sentence):
            return [entry for entry in mine if entry.rule.kind == "ask first"]
        if not about:
            return mine[-1:] if _THAT.search(sentence) else []
        permits = bool(APPROVES.search(sentence)) and not _FOR_GOOD.search(sentence)
        parts = (*_CLAUSE.split(sentence), sentence)
        found = (_meant(held, set(_matter(part)), permits) for part in parts)
        return next(filter(None, found), [])

    # ---------------------------------------------------------- replaced

    def _replaced(self, new: Rule) -> list[_Entry]:
        """The rules of the same matter that a new one of the user's takes the place of."""
        if new.kind == "approval":
            return []
        about, words = _matter(new.text), set(_matter(new.text))
        # "From now on" alone changes nothing but what there is one of at a time.
        bare = new.text if _SINGLE.search(new.text) else _NOW.sub("", new.text)
        corrects = any(pattern.search(bare) for pattern in (CORRECTS, ALTERS))
        corrects = corrects and not ADDS.search(new.text)
        said = _INSTEAD.search(new.text)
        dropped = set(_matter(said[1])) if said else set[str]()
        found: list[_Entry] = []
        for entry in self._held():
            old, theirs = entry.rule, set(entry.matter)
            if not words & theirs or old.kind == "approval" or old.since == new.since:
                continue
            if _forbids(old) != _forbids(new) and "ask first" not in (old.kind, new.kind):
                is_meant = len(words & theirs) >= MOSTLY * len(words | theirs)
            else:
                is_meant = (corrects and _is_same_matter(entry.matter, about, new)) or (
                    bool(dropped) and dropped <= theirs and entry.share(about) >= MOSTLY
                )
            if is_meant:
                found.append(entry)
        return found

    def _correct(self) -> None:
        """Rules of which the user replaced a value, by words that need be no rule themselves."""
        for said in supersede(self.said):
            by, at = said.superseded_by, said.superseded_at
            if at is None or by is None or by.endswith(("?", "？")):
                continue
            old = [
                e for e in self._held() if e.rule.text == said.text and e.rule.since == said.index
            ]
            if old and not self._known(by) and not LIFTS.search(by):
                self._add(Rule(by, old[0].rule.kind, "user", at))
            self._end(old, by, at)


MOSTLY = 0.6
NARROWS = 0.3
"""Share of words that a rule lacks, from which on a permission is about something narrower."""
_CLAUSE = re.compile(r"[,;:—–]\s| because | since | as | weil | parce | porque ")
_FOR_GOOD = re.compile(
    r"\bafter all\b|any ?more|\bagain\b|from now on|no longer|in general|\b(?:wieder|doch|"
    r"de nouveau|de nuevo|de novo|ya)\b",
    re.I,
)
_NOW = re.compile(r"\bfrom now on\b", re.I)
_SINGLE = re.compile(
    r"\b(?:(?:call|address) (?:me|us)|answer|reply|respond|write|speak|talk|antworte|nenn|réponds|"
    r"répondez|responde|responda)\b|回答|で(?:答|返)|叫我|と呼んで",
    re.I,
)
"""Orders of which one holds at a time."""
_ASKING = re.compile(r"\b(?:ask|fragen|demander|preguntar|perguntar)\b|问|聞", re.I)
_THAT = re.compile(r"\b(?:scratch|forget|drop|never ?mind|take) (?:that|it)\b|忘掉|取り消", re.I)
_INSTEAD = re.compile(
    r"\b(?:instead of|rather than|(?<=, )not|statt|anstatt|au lieu d\w*|en (?:lugar|vez) de|"
    r"em vez de) ([\w .-]{2,40})",
    re.I,
)
_WORD = re.compile(rf"[^\W_{UNSPACED}]+|(?=([{UNSPACED}]{{2}}))")
_NEGATIVE = re.compile(
    r"\b(?:not?|never|nothing|avoid|stop|without)\b|n['’]t\b|\b(?:nicht|kein\w*|nie|niemals|ne|"
    r"pas|jamais|nunca|não|sin|sem)\b|不|别|禁|ない|なく",
    re.I,
)


def _meant(held: Sequence[_Entry], about: set[str], permits: bool) -> list[_Entry]:
    """Those of the rules that words of lifting are about: the most of their matter."""
    found = []
    for entry in held:
        shared, share = len(about & set(entry.matter)), entry.share(about)
        # "You may delete branch x now" is about that branch, not about all.
        is_narrow = permits and (share < MOSTLY or len(about) - shared > NARROWS * len(about))
        if shared and not is_narrow and (shared * 2 >= len(about) or share >= MOSTLY):
            found.append((shared, share, entry))
    best = max((pair[:2] for pair in found), default=None)
    return [entry for *pair, entry in found if tuple(pair) == best]


def _forbids(rule: Rule) -> bool:
    return rule.kind == "must not" or (
        rule.kind == "preference" and _NEGATIVE.search(rule.text) is not None
    )


def _matter(text: str) -> tuple[str, ...]:
    """The stems of the words that say what a rule is about, in their order."""
    found = (match[1] or match[0] for match in _WORD.finditer(text.lower()))
    words = (w for w in found if w not in FILLER and w not in RULE_WORDS)
    stems = (_ENDING.sub("", w)[:5] if w.isascii() and w[:1].isalpha() else w[:5] for w in words)
    return tuple(dict.fromkeys(w for w in stems if _tells(w)))


_ENDING = re.compile(r"(?<=\w{3})(?:ning|ting|ing|ed|es|e|s)$")
_GRAMMAR = re.compile(r"[\u3040-\u309f]+")


def _tells(stem: str) -> bool:
    if not stem.isascii():
        return not _GRAMMAR.fullmatch(stem)
    return len(stem) >= 3 or stem[:1].isdigit()


def _is_same_matter(old: Sequence[str], about: Sequence[str], new: Rule) -> bool:
    """Whether a correction speaks of an earlier rule: the same verb, and half of its words."""
    is_plain = CORRECTS.search(new.text) is not None
    is_same = old[:1] == about[:1] or (is_plain and old[-1:] == about[-1:])
    # Prohibitions add up: "from now on never edit tests either".
    adds_up = new.kind == "must not" and not is_plain
    return is_same and not adds_up and 2 * len({*old} & {*about}) >= max(len(old), len(about))
