"""Quote the user's words, hosts' texts and the agent's reports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import chain
from typing import NamedTuple

from ..messages.shortening import cut_line
from ..messages.speakers import TYPED_COMMAND
from . import rendering
from .rendering import QuoteEntry, Section

FIRST, STATES, ASKS, REPEATED = range(4)
"""Ranks: the first text, the newest and words in results; statements; questions; repetitions."""
NEWEST = 3  # the user's newest texts that rank first
OTHERS_CHARS = 400
WHOLE_TOKENS = 90  # a text of at most this many tokens is not cut
RARE = 2  # a word in at most this many texts is rare
WORDS_CHARS = 240  # characters of a text whose words are compared
ANSWER_CHARS = 16  # an answer of at most this many characters needs its question
ASKED_CHARS = 100
LEAST_TEXT_CHARS = 160  # characters of a quoted text of the agent within a turn
_ASKS = ("?", "？", "؟", "?)", '?"')


class UserText(NamedTuple):
    """A text of a speaker in the user's role."""

    at: int
    text: str
    origin: str = ""
    """Where the protocol put the text, if not in a message of the user's own."""
    by_user: bool = True
    question_at: int = -1
    """The position of the agent's question, if `origin` quotes one."""


def with_question(at: int, text: str, origin: str, asked_at: int, before: str) -> UserText:
    """Return a text; a short one with the question before it."""
    if not origin and len(text.strip()) <= ANSWER_CHARS:
        lines = (line.strip(" *_") for line in reversed(before.splitlines()))
        if question := next((line for line in lines if line.endswith(_ASKS)), ""):
            answering = f'answering "{cut_line(question, ASKED_CHARS)}"'
            return UserText(at, text, answering, question_at=asked_at)
    return UserText(at, text, origin)


def user_section(texts: Sequence[UserText], budget: int) -> Section:
    """Return the section of the user's words."""
    own = [text for text in texts if text.by_user]
    entries = [
        QuoteEntry(at, rank, text.strip(), origin and f"{origin}: ", question_at)
        for (at, text, origin, _, question_at), rank in zip(own, _text_ranks(own), strict=True)
    ]
    least = min(WHOLE_TOKENS, max(50, budget // 27))
    return Section(rendering.USER._replace(least=least), entries)


def others_section(texts: Sequence[UserText]) -> Section:
    """Return the section of other speakers in the user's role."""
    newest = {text.text: text for text in texts if not text.by_user}
    entries = [
        QuoteEntry(text.at, (-text.at,), cut_line(text.text, OTHERS_CHARS), f"{text.origin}: ")
        for text in sorted(newest.values())
    ]
    return Section(rendering.OTHERS, entries)


def _text_ranks(texts: Sequence[UserText]) -> Iterator[tuple[int, ...]]:
    """Yield each text's rank: by kind, then rare words, then length."""
    words = [set(text.text[:WORDS_CHARS].lower().split()) for text in texts]
    times = Counter(chain.from_iterable(words))
    common = {word for word in times if times[word] > RARE}
    newest = {text.text: n for n, text in enumerate(texts)}
    for n, (_, text, origin, _, question_at) in enumerate(texts):
        size, rare = len(words[n]), len(words[n] - common)
        is_in_result = origin not in ("", TYPED_COMMAND) and question_at < 0
        if n == 0 or n >= len(texts) - NEWEST or is_in_result:
            kind = FIRST
        elif newest[text] != n:
            kind = REPEATED
        else:
            kind = ASKS if text.rstrip().endswith(_ASKS) else STATES
        yield kind, -(10 * rare // max(5, size)), len(text) // 200, -n


def reports_section(texts: Mapping[int, str], reports: Set[int]) -> Section:
    """Return the section of the agent's texts: reports first, then long ones.

    A short text beside a call announces the call; it is only counted.
    """
    long = {at for at, text in texts.items() if len(text) >= LEAST_TEXT_CHARS}
    quoted = [at for at in texts if at in long | reports]
    entries = [QuoteEntry(at, (at not in reports, -at), texts[at].strip()) for at in quoted]
    return Section(rendering.REPORTS, entries, sorted(texts.keys() - quoted))


def counts_section(roles: Mapping[str, int], tools: Counter[str]) -> Section:
    """Return the number of messages by role and of calls by tool."""
    by_role = ", ".join(f"{n:,} {role}" for role, n in roles.items())
    by_tool = ", ".join(f"{name} {n:,}" for name, n in tools.most_common())
    text = f"{sum(roles.values()):,} messages: {by_role}"
    text += f"; calls: {by_tool}" if by_tool else ""
    return Section(rendering.COUNTS, [QuoteEntry(-1, (0,), text)] if roles else [])
