"""The index of words: FTS5 on SQLite, GIN on PostgreSQL.

The index has words and message keys, but no positions. A *band* is a range of message keys. A word
is indexed with its band's *mark* in front: on SQLite "price" in band 11 becomes "0bprice". A search
for "price*" then reads the newest bands first, not all messages. On SQLite only words that such a
search may find have a mark.
"""

from __future__ import annotations

import json
import string
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from sqlalchemy import text

from ...messages import Message
from ..words import LEAST_PREFIX_LETTERS, STOP_WORDS, distinct_words, finds_longer, searchable_text

TERM_CHARS = 16
"""Number of a word's first characters that are indexed."""
_MOST_RANGES = 64  # ranges of one statement
_MARKS = string.digits + string.ascii_lowercase

KeyRange = tuple[int, int]
"""First and last key."""


@dataclass(frozen=True)
class SearchSizes:
    """The amounts that a search reads at a time."""

    sqlite_band_keys: int = 1 << 14
    """Keys of a band on SQLite; a smaller band is read faster and takes more bytes."""
    postgresql_band_keys: int = 1 << 17
    gap_keys: int = 500
    """Largest gap between two ranges of keys that are read as one."""
    first_span_keys: int = 2_000
    """Newest keys among which a word is looked up first."""
    widening_factor: int = 8
    """Each further statement reads this many times more keys."""
    most_listed: int = 1_000
    """Newest messages of each word that are read at first."""
    most_without_index: int = 400
    """An archive of at most this many messages is read without the index."""


# ---------------------------------------------------------------- statements of one dialect
# Key: whether the database is SQLite.
_ADD = {
    True: "INSERT INTO compressor_search(rowid, words) VALUES (:key, :words)",
    False: "INSERT INTO compressor_search VALUES (:key, array_to_tsvector(CAST(:words AS text[])))",
}
_REMOVE = {
    # FTS5 removes a message only by the words that were indexed for the message.
    True: "INSERT INTO compressor_search(compressor_search, rowid, words) "
    "VALUES ('delete', :key, :words)",
    False: "DELETE FROM compressor_search WHERE message_key = :key",
}
_SELECT = {
    # Each range has a query: FTS5 would compare each message with the words of all bands.
    True: "SELECT found.rowid FROM json_each(:parts) AS part CROSS JOIN compressor_search AS found "
    "WHERE found.compressor_search MATCH json_extract(part.value, '$[0]') AND found.rowid "
    "BETWEEN json_extract(part.value, '$[1]') AND json_extract(part.value, '$[2]')",
    # The mode decides for the planner: few rows are compared one by one, many rows are looked up.
    False: "WITH found AS {mode} (SELECT message_key AS key FROM compressor_search "
    "WHERE words @@ CAST(:query AS tsquery)) SELECT key FROM found WHERE {within}",
}


class WordIndex:
    """Read and write the index in one transaction."""

    def __init__(self, execute: Callable[..., Any], sizes: SearchSizes, *, is_sqlite: bool) -> None:
        self._execute = execute
        self._is_sqlite = is_sqlite
        self.sizes = sizes
        self.band_keys = sizes.sqlite_band_keys if is_sqlite else sizes.postgresql_band_keys

    def add(self, messages: Mapping[int, Message]) -> None:
        """Index the words of messages, given as key -> message."""
        self._write(_ADD, messages)

    def remove(self, messages: Mapping[int, Message]) -> None:
        """Remove the words of messages, given as key -> message."""
        self._write(_REMOVE, messages)

    def merge(self) -> None:
        """Destroy removed words."""
        if self._is_sqlite:
            # FTS5 keeps removed words until its index is merged into one piece.
            merge = "INSERT INTO compressor_search(compressor_search) VALUES ('optimize')"
            self._execute(text(merge))

    def _write(self, statements: Mapping[bool, str], messages: Mapping[int, Message]) -> None:
        join = " ".join if self._is_sqlite else list
        # Sorted, because FTS5 begins a new piece at each lower key.
        rows = [
            {"key": key, "words": join(self.marked(_words_of(message), key // self.band_keys))}
            for key, message in sorted(messages.items())
        ]
        if rows:
            self._execute(text(statements[self._is_sqlite]), rows)

    def marked(self, words: Iterable[str], band: int) -> list[str]:
        """Return words as they are indexed for a band."""
        # Distant bands may share a mark.
        high, low = divmod(band, len(_MARKS))
        mark = _MARKS[low]
        if not self._is_sqlite:
            return [mark + word for word in words]
        mark = _MARKS[high % len(_MARKS)] + mark
        # Only words that begin with `n` letters are found by a prefix: see `finds_longer`.
        n = LEAST_PREFIX_LETTERS
        return [mark + word if word[:n].isalpha() and len(word) >= n else word for word in words]

    def keys_with(self, words: Sequence[str], ranges: Iterable[KeyRange]) -> Iterator[int]:
        """Yield the messages in ranges that have all words, newest first."""
        for searched in self._widening_parts(ranges):
            parts = list(self._parts(words, searched))
            if self._is_sqlite:
                statement, values = _SELECT[True], {"parts": json.dumps(parts)}
            else:
                is_few = sum(last - first for first, last in searched) < self.sizes.first_span_keys
                within = " OR ".join(f"key BETWEEN {first} AND {last}" for first, last in searched)
                mode = "NOT MATERIALIZED" if is_few else "MATERIALIZED"
                statement = _SELECT[False].format(mode=mode, within=within)
                values = {"query": " | ".join({query: None for query, *_ in parts})}
            yield from sorted(self._execute(text(statement), values).scalars().all(), reverse=True)

    def _widening_parts(self, ranges: Iterable[KeyRange]) -> Iterator[list[KeyRange]]:
        room = width = self.sizes.first_span_keys
        part: list[KeyRange] = []
        for first, last in ranges:
            while first <= last:
                start = max(first, last - room + 1)
                part.append((start, last))
                room -= last - start + 1
                last = start - 1
                if not room or len(part) == _MOST_RANGES:
                    yield part
                    width *= self.sizes.widening_factor
                    part, room = [], width
        if part:
            yield part

    def _parts(
        self, words: Sequence[str], ranges: Iterable[KeyRange]
    ) -> Iterator[tuple[str, int, int]]:
        """Yield (query, first key, last key) for the bands in ranges."""
        size = self.band_keys
        for first, last in ranges:
            bands = range(first // size, last // size + 1)
            for query, run in groupby(bands, key=lambda band: self._query(words, band)):
                joined = list(run)
                yield query, max(first, joined[0] * size), min(last, (joined[-1] + 1) * size - 1)

    def _query(self, words: Sequence[str], band: int) -> str:
        # Words are letters and digits only, so a quote cannot end early.
        cut = [word[:TERM_CHARS] for word in words]
        quote, prefix, conjunction = ('"', "*", " AND ") if self._is_sqlite else ("'", ":*", " & ")
        terms = (
            f"{quote}{marked}{quote}{prefix if finds_longer(word) else ''}"
            for word, marked in zip(words, self.marked(cut, band), strict=True)
        )
        return f"({conjunction.join(terms)})"


def _words_of(message: Message) -> list[str]:
    words = distinct_words(searchable_text(message))
    return list(dict.fromkeys(word[:TERM_CHARS] for word in words if word not in STOP_WORDS))


def merge_ranges(ranges: Iterable[KeyRange], gap_keys: int) -> list[KeyRange]:
    """Return ranges of keys in order; join ranges with a small gap."""
    merged: list[KeyRange] = []
    for first, last in sorted(ranges):
        if merged and first - merged[-1][1] <= gap_keys:
            merged[-1] = merged[-1][0], max(last, merged[-1][1])
        else:
            merged.append((first, last))
    return merged
