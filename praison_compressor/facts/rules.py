"""Which sentences are rules, and of what kind: what the agent must, must not, asks first, prefers,
takes for a fact and was allowed once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from .corrections import (
    BANS_BELOW,
    RULES_BELOW,
    own_sentences,
)
from .language import (
    APPROVES,
    ASKS_FIRST,
    FORBIDS,
    IMPERATIVE,
    NO_FACT,
    NO_RULE,
    PREFERS,
    REPORTED,
    REQUIRES,
    RULE_WORDS,
    STATES,
    UNSPACED,
)
from .values import FILLER

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


# -------------------------------------------------------------- kinds


MOST_CHARS = 600
LEAST_CHARS = 9
LEAST_UNSPACED = 4
_NO_SENTENCE = re.compile(r"[#\"`{<|$/}]|\w+[{(]|.*(?:</|;$|\[…|\"\) |\)\) ?\})|should ")


def statements(text: str, source: str) -> Iterator[tuple[str, str | None]]:
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
    if (not written and REPORTED.search(text)) or not matter_of(sentence):
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


# -------------------------------------------------------------- what they are about


_WORD = re.compile(rf"[^\W_{UNSPACED}]+|(?=([{UNSPACED}]{{2}}))")


def matter_of(text: str) -> tuple[str, ...]:
    """The stems of the words that say what a rule is about, in their order."""
    return _stems(w for w in _words(text) if w not in FILLER and w not in RULE_WORDS)


def stems_of(text: str) -> tuple[str, ...]:
    """The stems of all words, also of those that say nothing of a rule's matter."""
    return _stems(_words(text))


def _words(text: str) -> Iterator[str]:
    return (match[1] or match[0] for match in _WORD.finditer(text.lower()))


def _stems(words: Iterable[str]) -> tuple[str, ...]:
    stems = (_ENDING.sub("", w)[:5] if w.isascii() and w[:1].isalpha() else w[:5] for w in words)
    return tuple(dict.fromkeys(w for w in stems if _tells(w)))


_ENDING = re.compile(r"(?<=\w{3})(?:ning|ting|ing|ed|es|e|s)$")
_GRAMMAR = re.compile(r"[\u3040-\u309f]+")


def _tells(stem: str) -> bool:
    if not stem.isascii():
        return not _GRAMMAR.fullmatch(stem)
    return len(stem) >= 3 or stem[:1].isdigit()
