"""Quote the user's words, host texts and the agent's reports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from ..messages.shortening import cut_line
from .rendering import TITLES, QuoteEntry, Section
from .speakers import TYPED_COMMAND

FIRST, STATES, ASKS, GOES_ON = range(4)
"""Ranks: the first, the newest and words in results; statements; questions; "go on"."""
USER_SHARE = 0.65  # of the quotes, for the user's words
GO_ON_WORDS = 3  # at most, and each in other messages too
NEWEST = 3  # the user's newest texts that rank first
OTHERS_CHARS = 400
WHOLE_TOKENS = 90  # up to which a message is not cut
RARE = 2  # texts that hold a word at most, so that it counts as rare
WORDS_CHARS = 240  # characters of a text whose words are compared
ANSWER_CHARS = 16  # an answer of at most this many characters needs its question
QUESTION_CHARS = 100
TOOLS_IN_COUNTS = 12
_ASKS = ("?", "？", "؟", "?)", '?"')


@dataclass(frozen=True)
class UserText:
    """One text of a speaker in the user's role."""

    at: int
    text: str
    origin: str = ""
    """Where the protocol put it, if not in a message of the user's own."""
    by_user: bool = True
    question_at: int = -1
    """The position of the agent's question, where `how` has one."""


def with_question(at: int, text: str, how: str, asked_at: int, before: str) -> UserText:
    """Return a text; a short one with the question before it.

    >>> answering(3, "1", "", 2, "There are two.\\nWhich one?\\n1. a\\n2. b").how
    'answering "Which one?"'
    """
    if not how and len(text.strip()) <= ANSWER_CHARS:
        lines = (line.strip(" *_") for line in reversed(before.splitlines()))
        if asked := next((line for line in lines if line.endswith(_ASKS)), ""):
            how = f'answering "{cut_line(asked, QUESTION_CHARS)}"'
            return UserText(at, text, how, question_at=asked_at)
    return UserText(at, text, how)


def user_section(said: Sequence[UserText], budget: int) -> Section:
    """Return the section of the user's words."""
    least = min(WHOLE_TOKENS, max(50, budget // 27))
    own = [one for one in said if one.by_user]
    lines = [
        QuoteEntry(
            one.at, rank, one.text.strip(), one.origin and f"{one.origin}: ", one.question_at
        )
        for one, rank in zip(own, _text_ranks(own), strict=True)
    ]
    return Section(TITLES["user"], lines, USER_SHARE, least, noun="messages of the user")


def others_section(said: Sequence[UserText]) -> Section:
    """Return the section of other speakers in the user's role."""
    newest = {one.text: one for one in said if not one.by_user}
    lines = [
        QuoteEntry(one.at, (-one.at,), cut_line(one.text, OTHERS_CHARS), f"{one.origin}: ")
        for one in sorted(newest.values(), key=lambda one: one.at)
    ]
    return Section(TITLES["others"], lines, 0.08, noun="texts in the user's role")


def _text_ranks(said: Sequence[UserText]) -> Iterator[tuple[int, ...]]:
    """Yield each text's rank: by kind, then rare words, then length."""
    words = [set(one.text[:WORDS_CHARS].lower().split()) for one in said]
    spoken = Counter(chain.from_iterable(words))
    common = {word for word, times in spoken.items() if times > RARE}
    last = {one.text: n for n, one in enumerate(said)}
    for n, one in enumerate(said):
        size, rare = len(words[n]), len(words[n] - common)
        kind = ASKS if one.text.rstrip().endswith(_ASKS) else STATES
        if (
            n == 0
            or n >= len(said) - NEWEST
            or (one.origin not in ("", TYPED_COMMAND) and one.question_at < 0)
        ):
            kind = FIRST
        elif last[one.text] != n or (size <= GO_ON_WORDS and not rare):
            kind = GOES_ON
        yield kind, -(10 * rare // max(5, size)), len(one.text) // 200, -n


# -------------------------------------------------------------- the agent's words, and counts


def reports_section(found: Sequence[tuple[int, str]], others: Sequence[int]) -> Section:
    """Return the section of what the agent said at turns' ends."""
    lines = [QuoteEntry(at, (-at,), text.strip()) for at, text in found]
    return Section(TITLES["reports"], lines, 0.2, 60, "texts of the assistant", others)


def outline_section(outline: Sequence[str]) -> Section:
    """Return the outline's section; its newest lines rank first."""
    lines = [QuoteEntry(-1, (-n,), line) for n, line in enumerate(outline)]
    return Section(TITLES["outline"], lines, 0.08, least=60, noun="")


def counts_section(roles: Mapping[str, int], tools: Counter[str]) -> Section:
    """Return the number of messages by role and of calls by tool."""
    said = ", ".join(f"{n:,} {role}" for role, n in roles.items())
    used = ", ".join(f"{name} {n:,}" for name, n in tools.most_common(TOOLS_IN_COUNTS))
    more = f", {len(tools) - TOOLS_IN_COUNTS} more tools" if len(tools) > TOOLS_IN_COUNTS else ""
    text = f"{sum(roles.values()):,} messages: {said}" + (f"; calls: {used}{more}" if used else "")
    lines = [QuoteEntry(-1, (0,), text)] if roles else []
    return Section(TITLES["counts"], lines, 0.04, least=100, noun="")
