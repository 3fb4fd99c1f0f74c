"""Search by words: the same in memory, on SQLite and on PostgreSQL.

The databases' tokenizers disagree (stemming, underscores, Chinese), so words are split here. A
*name* is the text between two spaces of a query. Its words match only side by side and in order:
`kestrel-9` finds no other 9. A call and its result are one document.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..errors import ConfigError
from ..messages import Message, result_text, tool_calls_of
from ..quotes import read_calls

# Scripts without spaces: each character is a word.
_UNSPACED_SCRIPTS = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_WORD_PATTERN = re.compile(r"([^\W_]{1,64})[^\W_]*")  # cut to 64 characters


@dataclass(frozen=True)
class Hit:
    """A message that a search found."""

    session_id: str
    entry: str
    """Hash of the newest entry that covers the message; "" where none does."""
    ordinal: int
    """The message's place among that entry's originals, from 0."""
    digest: str
    """Content digest, as `forget` takes it."""
    message: Message
    score: float
    is_whole: bool = True
    """Whether the message, with its calls or results, has every name of the query."""
    is_complete: bool = True
    """Whether the search looked at every message that may have every name."""


HitPlace = tuple[str, str, int]
"""Session, entry and ordinal of a hit."""


LEAST_PREFIX_LETTERS = 4
"""Shorter words of a query do not find longer words."""
STOP_WORDS = frozenset(
    "a about after all also an and any are as at be before both but by can did do does each for "
    "from had has have how i in into is it its just more most my no not of on only or other our "
    "over so some such than that the their then there they this to very was we were what when "
    "where which who why will with would you your".split()
)
MOST_QUERY_WORDS = 32
"""Later words of a query are ignored: models paste whole messages."""
PARTNER_SHARE = 0.5
"""Share of a name's weight if only the message's call or result has the name."""


class Document(NamedTuple):
    """A message as a search compares it."""

    message: Message
    text: str
    """All words in order, between spaces."""


def document_of(message: Message) -> Document:
    """Return a message with its words: text, calls and arguments."""
    return Document(message, _spaced_words(searchable_text(message)))


def find_hits(
    query: str,
    pool: Mapping[str, Document],
    limit: int,
    place: Callable[[str], HitPlace],
    runs: Iterable[Sequence[str]] = (),
) -> list[Hit]:
    """Return the best messages of a pool, which has them by digest.

    If no document has all names of the query, return documents with some names. `place` is called
    for returned messages only. `runs` are digests of neighbouring messages, in order: a call is
    paired with its result inside a run.

    Raises:
        ConfigError: a limit below 1.
    """
    if limit < 1:
        raise ConfigError(f"limit={limit}: expected a whole number, 1 or more")
    wanted = query_names(query)
    own = _names_in(wanted, pool)
    if not own and (looser := query_names(_SEPARATORS.sub(" ", query))) != wanted:
        wanted, own = looser, _names_in(looser, pool)
    beside = _names_beside(own, pool, runs)
    whole = {digest for digest in own if len(own[digest] | beside[digest]) == len(wanted)}
    ranked = _rank(query, own, beside, pool, list(whole or own))
    return [
        Hit(*place(name), name, pool[name].message, score, name in whole)
        for score, name in ranked[:limit]
    ]


_SEPARATORS = re.compile(r"[:=,;()|&]+")
"""Where a name that occurs nowhere is split: src/cart.py:118."""


def query_names(query: str) -> list[str]:
    """Return a query's distinct names, each as words behind a space.

    A name that ends in a word of letters also matches longer words: "price" matches "prices", but
    "9" does not match "90". Stop words are names only in a query that has no other words.
    """
    names = [name for chunk in query.split() if (name := _spaced_words(chunk)).strip()]
    content = [name for name in names if name.strip() not in STOP_WORDS] or names
    open_ended = (
        name.rstrip() if finds_longer(name.split()[-1]) else name
        for name in content[:MOST_QUERY_WORDS]
    )
    return list(dict.fromkeys(open_ended))


def finds_longer(word: str) -> bool:
    """Return whether a word of a query also finds longer words."""
    return len(word) >= LEAST_PREFIX_LETTERS and word.isascii() and word.isalpha()


def missing_chunks(query: str, texts: Sequence[str]) -> list[str]:
    """Return the query's chunks that occur in no text."""
    forms = [form(text) for text in texts for form in (_spaced_words, str.casefold)]
    names = {chunk: query_names(chunk) for chunk in query.split()[:MOST_QUERY_WORDS]}
    return [
        chunk
        for chunk, name in names.items()
        if name and not any(name[0] in form or chunk.casefold() in form for form in forms)
    ]


def _spaced_words(text: str) -> str:
    """Return all words of a text in order, between spaces."""
    return f" {' '.join(_WORD_PATTERN.findall(_fold(text)))} "


def _names_in(wanted: Sequence[str], pool: Mapping[str, Document]) -> dict[str, frozenset[str]]:
    """Return the wanted names that each message has; only messages with any."""
    names_of = {
        digest: frozenset(name for name in wanted if name in text)
        for digest, (_, text) in pool.items()
    }
    return {digest: names for digest, names in names_of.items() if names}


def _names_beside(
    own: Mapping[str, frozenset[str]], pool: Mapping[str, Document], runs: Iterable[Sequence[str]]
) -> dict[str, frozenset[str]]:
    """Return the names in each message's call or result."""
    beside = dict.fromkeys(own, frozenset[str]())
    for run in runs:
        near = [digest for digest in run if digest in own]
        for pair in read_calls([pool[digest].message for digest in near]) if near[1:] else ():
            if pair.is_answered:
                call, result = near[pair.at], near[pair.answered_at]
                beside[call] |= own[result]
                beside[result] |= own[call]
    return beside


def _rank(
    query: str,
    own: Mapping[str, frozenset[str]],
    beside: Mapping[str, frozenset[str]],
    pool: Mapping[str, Document],
    chosen: Sequence[str],
) -> list[tuple[float, str]]:
    """Return scores and digests, best first, then later first.

    A rare name counts more than a common one; the query as a phrase doubles the score.
    """
    frequency = Counter(name for names in own.values() for name in names)
    weight = {name: math.log(1 + len(pool) / times) for name, times in frequency.items()}
    phrase = _spaced_words(query)
    scored = []
    for digest in chosen:
        more = beside[digest] - own[digest]
        # A plain sum depends on the order of a set, which is another in each process.
        score = math.fsum(weight[name] for name in own[digest])
        score += PARTNER_SHARE * math.fsum(weight[name] for name in more)
        score *= 2 if len(frequency) > 1 and phrase in pool[digest].text else 1
        scored.append((score, digest))
    order = {digest: number for number, digest in enumerate(pool)}
    return sorted(scored, key=lambda pair: (-pair[0], -order[pair[1]]))


def distinct_words(text: str) -> list[str]:
    """Return a text's distinct words in order, without case and underscores."""
    return list(dict.fromkeys(_WORD_PATTERN.findall(_fold(text))))


def _fold(text: str) -> str:
    """Casefold a text; separate characters of scripts without spaces."""
    if text.isascii():
        return text.lower()
    return _UNSPACED_SCRIPTS.sub(r" \g<0> ", unicodedata.normalize("NFKC", text).casefold())


def searchable_text(message: Mapping[str, Any]) -> str:
    """Return a message's text, and its tool calls with their arguments."""
    lines = [result_text(message)]
    for call in tool_calls_of(message):
        try:
            arguments = json.loads(call.arguments)
        except (ValueError, RecursionError):
            arguments = call.arguments
        lines += [call.name, *_strings(arguments)]
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
