"""Search by words, the same in memory, on SQLite and on PostgreSQL.

The databases split words differently, so words are split here. A *phrase* is the text between two
spaces of a query. Its words match side by side and in order: `kestrel-9` does not find "9". A tool
call and its result are matched as one.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..errors import ConfigError
from ..messages import Message, result_text, tool_calls_of
from ..messages.calls import arguments_of
from ..messages.results import pair_calls

# Scripts without spaces: each character is a word.
UNSPACED_SCRIPTS = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_WORD_PATTERN = re.compile(r"([^\W_]{1,64})[^\W_]*")  # cut to 64 characters


@dataclass(frozen=True)
class Hit:
    """A message that a search found."""

    session_id: str
    """The session that has the message."""
    entry: str
    """Hash of the newest entry that has the message; "" if none has."""
    ordinal: int
    """Index of the message among the originals of that entry."""
    digest: str
    """Content digest, as `forget` takes it."""
    message: Message
    """The message itself."""
    score: float
    """Higher is better; comparable within one search."""
    is_whole: bool = True
    """Whether the message, with its calls or results, has every phrase of the query."""
    is_complete: bool = True
    """Whether the search read every message that may have every phrase."""


HitPlace = tuple[str, str, int]
"""Session, entry and ordinal of a hit."""

LEAST_PREFIX_LETTERS = 4
"""Letters that a query's word needs to find longer words too."""
STOP_WORDS = frozenset(
    "a about after all also an and any are as at be before both but by can did do does each for "
    "from had has have how i in into is it its just more most my no not of on only or other our "
    "over so some such than that the their then there they this to very was we were what when "
    "where which who why will with would you your".split()
)
MOST_QUERY_WORDS = 32
"""Further words of a query are ignored: models paste whole messages."""
MOST_PARTIAL_HITS = 100
"""Upper limit of hits if no message has all phrases of the query."""
PARTNER_SHARE = 0.5
"""Part of a phrase's weight if only the message's call or result has the phrase."""


class Document(NamedTuple):
    """A message with its words and place."""

    message: Message
    text: str
    place: HitPlace


def document_of(message: Message, place: HitPlace) -> Document:
    """Return a message with the words of its text, calls and arguments."""
    return Document(message, _spaced_words(searchable_text(message)), place)


def find_hits(
    query: str, documents: Mapping[str, Document], limit: int, runs: Iterable[Sequence[str]]
) -> list[Hit]:
    """Return the best matches among `documents`, by content digest.

    If no document has all phrases, return at most MOST_PARTIAL_HITS documents with some of the
    phrases. Each of `runs` has digests of neighbouring messages: a call is paired with its result
    in the same run.

    Raises:
        ConfigError: a limit below 1.
    """
    if limit < 1:
        raise ConfigError(f"limit={limit}: expected a whole number, 1 or more")
    phrases = query_phrases(query)
    own = _phrases_in(documents, phrases)
    if not own:
        phrases = query_phrases(_SEPARATORS.sub(" ", query))
        own = _phrases_in(documents, phrases)
    of_partner = _partner_phrases(own, documents, runs)
    whole = {digest for digest in own if len(own[digest] | of_partner[digest]) == len(phrases)}
    ranked = _rank(query, own, of_partner, documents, list(whole or own))
    most = limit if whole else min(limit, MOST_PARTIAL_HITS)
    return [
        Hit(*documents[digest].place, digest, documents[digest].message, score, digest in whole)
        for score, digest in ranked[:most]
    ]


_SEPARATORS = re.compile(r"[:=,;()|&]+")
"""Splits phrases such as `src/cart.py:118` if no phrase occurs."""


def query_phrases(query: str) -> list[str]:
    """Return a query's distinct phrases.

    Stop words are left out if the query has other words. "price" also finds "prices", but "9" does
    not find "90".
    """
    phrases = [words for chunk in query.split() if (words := _spaced_words(chunk)).strip()]
    rare = [phrase for phrase in phrases if phrase.strip() not in STOP_WORDS] or phrases
    open_ended = (
        phrase.rstrip() if finds_longer(phrase.split()[-1]) else phrase
        for phrase in rare[:MOST_QUERY_WORDS]
    )
    return list(dict.fromkeys(open_ended))


def finds_longer(word: str) -> bool:
    """Return whether a word of a query also finds longer words."""
    return len(word) >= LEAST_PREFIX_LETTERS and word.isascii() and word.isalpha()


def missing_chunks(query: str, texts: Sequence[str]) -> list[str]:
    """Return the parts between a query's spaces that no text has."""
    forms = [form(text) for text in texts for form in (_spaced_words, str.casefold)]
    chunks = [chunk.strip(",;") for chunk in query.split()[:MOST_QUERY_WORDS]]
    phrases = {chunk: query_phrases(chunk) for chunk in chunks}
    return [
        chunk
        for chunk, phrase in phrases.items()
        if phrase and not any(phrase[0] in form or chunk.casefold() in form for form in forms)
    ]


def _spaced_words(text: str) -> str:
    return f" {' '.join(_WORD_PATTERN.findall(_fold(text)))} "


def _phrases_in(
    documents: Mapping[str, Document], phrases: Sequence[str]
) -> dict[str, frozenset[str]]:
    phrases_of = {
        digest: frozenset(phrase for phrase in phrases if phrase in document.text)
        for digest, document in documents.items()
    }
    return {digest: held for digest, held in phrases_of.items() if held}


def _partner_phrases(
    own: Mapping[str, frozenset[str]],
    documents: Mapping[str, Document],
    runs: Iterable[Sequence[str]],
) -> dict[str, frozenset[str]]:
    """Return the phrases in each document's call or result."""
    of_partner = dict.fromkeys(own, frozenset[str]())
    for run in runs:
        near = [digest for digest in run if digest in own]
        if len(near) < 2:
            continue
        for pair in pair_calls([documents[digest].message for digest in near]):
            if pair.is_answered:
                call, result = near[pair.at], near[pair.answered_at]
                of_partner[call] |= own[result]
                of_partner[result] |= own[call]
    return of_partner


def _rank(
    query: str,
    own: Mapping[str, frozenset[str]],
    of_partner: Mapping[str, frozenset[str]],
    documents: Mapping[str, Document],
    chosen: Sequence[str],
) -> list[tuple[float, str]]:
    """Return (score, digest) pairs, the best first.

    A rare phrase counts more. The whole query in order doubles the score.
    """
    frequency = Counter(phrase for held in own.values() for phrase in held)
    weight = {phrase: math.log(1 + len(documents) / n) for phrase, n in frequency.items()}
    in_order = _spaced_words(query)
    scored = []
    for digest in chosen:
        # `sum` would depend on the order of a set, which differs between processes.
        score = math.fsum(weight[phrase] for phrase in own[digest])
        added = of_partner[digest] - own[digest]
        score += PARTNER_SHARE * math.fsum(weight[phrase] for phrase in added)
        score *= 2 if len(frequency) > 1 and in_order in documents[digest].text else 1
        scored.append((score, digest))
    order = {digest: number for number, digest in enumerate(documents)}
    return sorted(scored, key=lambda pair: (-pair[0], -order[pair[1]]))


def distinct_words(text: str) -> list[str]:
    """Return a text's distinct words in order, casefolded and split at underscores."""
    return list(dict.fromkeys(_WORD_PATTERN.findall(_fold(text))))


def _fold(text: str) -> str:
    """Casefold a text; separate characters of scripts without spaces."""
    if text.isascii():
        return text.lower()
    return UNSPACED_SCRIPTS.sub(r" \g<0> ", unicodedata.normalize("NFKC", text).casefold())


def searchable_text(message: Mapping[str, Any]) -> str:
    """Return a message's text, and its tool calls with their arguments."""
    lines = [result_text(message)]
    for call in tool_calls_of(message):
        lines += [call.name, *_strings(arguments_of(call))]
    return "\n".join(line for line in lines if line)


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield str(key)
            yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
    elif value is not None:
        yield str(value)
