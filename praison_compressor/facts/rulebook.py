"""The rules of a whole conversation: who may bind, and which later words lift what was said.

Who may bind: the user in words of their own, in any turn; the host and the system; and documents
that the agent loaded as instructions, because user, system or host named them, or because they are
the project's own (`AGENTS.md`). Everything else that a tool returns is data, whatever it claims.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from operator import is_

from ..messages import Message, ToolCall
from ..messages.forks import renewed
from .corrections import MATERIAL, supersede
from .files import Documents
from .language import ACTS, APPROVES, EVERYTHING, FORBIDS, LIFTS, ONE_ACT, REPORTED
from .model import GENERAL, Domain, Said
from .outcomes import outcome_of
from .passages import Passage, passages
from .rules import Rule, matter_of, statements, stems_of
from .values import ADDS, ALTERS, CORRECTS


def rules_in(messages: Sequence[Message], *, domain: Domain = GENERAL) -> tuple[Rule, ...]:
    """All rules of a transcript in the order in which they were said, lifted ones with `until`.

    >>> [rule.kind for rule in rules_in([{"role": "user", "content": "Never push to main."}])]
    ['must not']
    """
    return RuleReader().rules(messages, domain)


UNSETTLED = 8
"""Messages at the end that the next request may not have: an unfinished step, a reminder."""


class RuleReader:
    """Reads the rules of a transcript that grows: what it has read it does not read again.

    Thread-safe. Messages are known again as objects: whoever edits one in place needs a new reader.
    """

    def __init__(self) -> None:
        self._lock = renewed(threading.Lock())
        self._settled = _Reading((), GENERAL)

    def rules(self, messages: Sequence[Message], domain: Domain = GENERAL) -> tuple[Rule, ...]:
        """As `rules_in`."""
        with self._lock:
            settled = self._settled
            if not settled.goes_on(messages, domain):
                settled = _Reading(messages, domain)
            self._settled = _Reading((), GENERAL)  # whoever is interrupted here begins again
            settled.read(messages[:-UNSETTLED])
            self._settled, newest = settled, settled.copy()
        newest.read(messages)
        return newest.book.rules()


class _Reading:
    """What was read of a transcript so far."""

    def __init__(self, messages: Sequence[Message], domain: Domain) -> None:
        self.book = _Book()
        self._domain = domain
        self._documents = Documents(domain)
        self._calls: dict[str, ToolCall] = {}
        self._read: Sequence[Message] = ()
        roles = (message.get("role") for message in messages)
        other = (n for n, role in enumerate(roles) if role not in _SYSTEM)
        self._leading = next(other, len(messages))

    def copy(self) -> _Reading:
        """One that reads on without this."""
        other = copy(self)
        other.book = _Book([replace(entry) for entry in self.book.entries], [*self.book.said])
        other._documents, other._calls = self._documents.copy(), {**self._calls}
        return other

    def goes_on(self, messages: Sequence[Message], domain: Domain) -> bool:
        """Whether these are the messages that were read, and more."""
        old = self._read
        is_known = self._leading < len(old) <= len(messages) and domain == self._domain
        return is_known and all(map(is_, messages, old))

    def read(self, messages: Sequence[Message]) -> None:
        """Take in what is new of them."""
        start = len(self._read)
        for passage, source in self._binding(messages, start):
            self.book.read(passage, source)
        if start < len(messages):
            self._read = messages

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
        """All of them, those lifted whose values the user corrected. Then the book is closed."""
        if self.entries:
            self._correct()
        return tuple(entry.rule for entry in sorted(self.entries, key=lambda e: e.rule.since))

    def read(self, passage: Passage, source: str) -> None:
        """Take in one text."""
        text = passage.text
        if source != "user":
            for sentence, kind in statements(text, source):
                if kind and not self._known(sentence):
                    self._add(Rule(sentence, kind, source, passage.at))
            return
        for noted in _MEMORY.finditer(text):
            self.read(passage._replace(text=noted[2]), "memory")
        for sentence, kind in statements(text, source):
            self.said.append(Said(passage.at, sentence))
            self._hear(sentence, kind, passage.at)

    def _hear(self, sentence: str, kind: str | None, at: int) -> None:
        if not (kind or self.entries) or REPORTED.search(sentence):
            return
        lifts = LIFTS.search(sentence) is not None
        if lifts and (lifted := self._lifted(sentence, kind)):
            self._end(lifted, sentence, at)
            told = {word for entry in lifted for word in entry.matter}
            sets = kind not in (None, "approval", "ask first") and {*matter_of(sentence)} - told
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
        self.entries.append(_Entry(rule, matter_of(rule.text)))

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
        about = set(matter_of(sentence))
        if not about and _ASKING.search(sentence):
            return [entry for entry in mine if entry.rule.kind == "ask first"]
        if not about:
            return mine[-1:] if _THAT.search(sentence) else []
        permits = bool(APPROVES.search(sentence)) and not _FOR_GOOD.search(sentence)
        parts = (*_CLAUSE.split(sentence), sentence)
        if may := _MAY.search(sentence):
            # What stands beside a permission says nothing of what it permits.
            parts = tuple(part for part in parts if _MAY.search(part))
            held = [entry for entry in held if any(_permits(part, entry) for part in parts)]
            parts = tuple(_MAY.split(part)[-1] for part in parts)
        least = 0 if may else HALF
        found = (_meant(held, set(matter_of(part)), permits, least) for part in parts)
        return next(filter(None, found), [])

    # ---------------------------------------------------------- replaced

    def _replaced(self, new: Rule) -> list[_Entry]:
        """The rules of the same matter that a new one of the user's takes the place of."""
        if new.kind == "approval":
            return []
        about, words = matter_of(new.text), set(matter_of(new.text))
        # "From now on" alone changes nothing but what there is one of at a time.
        bare = new.text if _SINGLE.search(new.text) else _NOW.sub("", new.text)
        corrects = any(pattern.search(bare) for pattern in (CORRECTS, ALTERS))
        corrects = corrects and not ADDS.search(new.text)
        said = _INSTEAD.search(new.text)
        dropped = set(matter_of(said[1])) if said else set[str]()
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


HALF = 0.5
MOSTLY = 0.6
NARROWS = 0.3
"""Share of words that a rule lacks, from which on a permission is about something narrower."""
_CLAUSE = re.compile(r"[,;:—–]\s| because | since | as | weil | parce | porque ")
_FOR_GOOD = re.compile(
    r"\bafter all\b|any ?more|\bagain\b|from now on|no longer|in general|\b(?:wieder|doch|"
    r"de nouveau|de nuevo|de novo|ya)\b",
    re.I,
)
_MAY = re.compile(
    r"\b(?:(?:you|we) (?:may|can)|(?:ok|okay|fine|allowed)(?: now| again)? "
    r"(?:if you|for you to|to))(?! (?:no|not|never|only)\b)"
    r"(?: (?:also|now|again|always|just|still|safely|go ahead and|stop|skip|forget|ignore)\b)*",
    re.I,
)
"""Words of a permission: behind them stand the act and its object."""
_ACT = re.compile(rf"\b{ACTS}\b", re.I)
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
_NEGATIVE = re.compile(
    r"\b(?:not?|never|nothing|avoid|stop|without)\b|n['’]t\b|\b(?:nicht|kein\w*|nie|niemals|ne|"
    r"pas|jamais|nunca|não|sin|sem)\b|不|别|禁|ない|なく",
    re.I,
)


def _permits(part: str, entry: _Entry) -> bool:
    """Whether a permission is for what a rule is about: more of its words are the rule's than not.

    Half of them do where the rule lacks no more than it shares, and shares more than its verb:
    "You may ship on Fridays" is about "Never deploy on Fridays". Another known act never does.
    """
    permitted, rule = _MAY.split(part)[-1], entry.rule.text
    if _forbids(entry.rule):
        bans = " ".join(clause for clause in _CLAUSE.split(rule) if FORBIDS.search(clause))
        rule = bans if len(matter_of(bans)) > 1 else rule
    for verbs, verb in ONE_ACT:
        permitted, rule = verbs.sub(verb, permitted), verbs.sub(verb, rule)
    first = " ".join(permitted.split()[:1])
    own, act = matter_of(rule), {*stems_of(first)}
    words = {*matter_of(permitted)} | act
    shared = words & {*stems_of(rule)}
    if not act <= shared and _ACT.match(first) and _ACT.search(rule):
        return False
    rest, lacks = len(words - shared), len({*own} - words)
    objects = shared - act - {*own[:1]}
    return len(shared) > rest or (len(shared) == rest == lacks and bool(objects))


def _meant(held: Sequence[_Entry], about: set[str], permits: bool, least: float) -> list[_Entry]:
    """Those of the rules that words of lifting are about: the most of their matter. Where half of
    the words are of a rule, they are at least that share of it.
    """
    found = []
    for entry in held:
        shared, share = len(about & set(entry.matter)), entry.share(about)
        # "You may delete branch x now" is about that branch, not about all.
        is_narrow = permits and (share < MOSTLY or len(about) - shared > NARROWS * len(about))
        is_most = shared * 2 > len(about) or (shared * 2 == len(about) and share >= least)
        if shared and not is_narrow and (is_most or share >= MOSTLY):
            found.append((shared, share, entry))
    best = max((pair[:2] for pair in found), default=None)
    return [entry for *pair, entry in found if tuple(pair) == best]


def _forbids(rule: Rule) -> bool:
    return rule.kind == "must not" or (
        rule.kind == "preference" and _NEGATIVE.search(rule.text) is not None
    )


def _is_same_matter(old: Sequence[str], about: Sequence[str], new: Rule) -> bool:
    """Whether a correction speaks of an earlier rule: the same verb, and half of its words."""
    is_plain = CORRECTS.search(new.text) is not None
    is_same = old[:1] == about[:1] or (is_plain and old[-1:] == about[-1:])
    # Prohibitions add up: "from now on never edit tests either".
    adds_up = new.kind == "must not" and not is_plain
    return is_same and not adds_up and 2 * len({*old} & {*about}) >= max(len(old), len(about))
