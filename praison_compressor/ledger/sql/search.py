"""Search a store's archive by words, within a session or a namespace.

The index finds candidates by the query's rarest words. `words.find_hits` ranks their texts, as in
the memory store.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from sqlalchemy import ColumnElement, Row, Select, or_, select

from ...messages import Message, content_digest, is_result, text_of, tool_calls_of
from ...messages.shapes import result_blocks
from ...messages.speakers import SHELL_PROMPT, is_tool_output
from ..segments import skeleton_messages
from ..words import (
    MOST_PARTIAL_HITS,
    MOST_QUERY_WORDS,
    STOP_WORDS,
    Document,
    Hit,
    distinct_words,
    document_of,
    find_hits,
    query_phrases,
)
from .archive import SqlArchive, batches
from .index import KeyRange, merge_ranges
from .queries import EVERY_KEY, newest_entries, read_skeletons, require_session
from .schema import entries, links, messages, sessions, spans

_BATCH_MESSAGES = 200  # messages that are read at a time
_WIDE_RANGE_KEYS = 1 << 17  # keys; in a wider range reading is faster than a look-up
_MOST_RANKED = 400  # messages with all words that are ranked
_MOST_PAIRED = 100  # messages with a frequent word whose calls or results are read
_MOST_PARALLEL = 8  # parallel calls whose results are read


def search(
    archive: SqlArchive,
    namespace: str,
    query: str,
    session_id: str | None = None,
    limit: int = 10,
    *,
    archived_only: bool = False,
) -> list[Hit]:
    """See `Store.search`."""
    row = None if session_id is None else require_session(archive, namespace, session_id)
    asked = distinct_words(" ".join(query_phrases(query)))[:MOST_QUERY_WORDS]
    if not asked:
        return find_hits(query, {}, limit, ())  # no hits, or an error for the limit
    reader = _Reader(archive, _reach_of(archive, namespace, row), query)
    if not archived_only:
        reader.read_view(namespace, row)
    lists: list[_Postings] = []
    if (newest := _newest_without_index(archive, reader.reach, asked)) is not None:
        reader.read(newest)
    else:
        indexed = (word for word in asked if word not in STOP_WORDS)
        lists = [_Postings(archive, reader.reach, word) for word in indexed]
        reader.read_matches(sorted(lists, key=_Postings.rarity))
    hits = reader.hits(limit)
    if hits and hits[0].is_whole:
        return hits
    # Messages with some of the words count only if no message has all words.
    if reader.read(islice(_with_some_words(lists), MOST_PARTIAL_HITS)):
        hits = reader.hits(limit)
    return hits


class _Reader:
    """Read the messages that may match a query; rank them."""

    def __init__(self, archive: SqlArchive, reach: _Reach, query: str) -> None:
        self._archive = archive
        self.reach = reach
        self._query = query
        self._phrases = query_phrases(query)
        self._in_view: dict[str, Document] = {}  # digest -> document
        self._archived: dict[int, tuple[str, Document]] = {}  # key -> digest, document
        # Entry key -> ordinal -> digest of a message that was read.
        self._runs: defaultdict[int, dict[int, str]] = defaultdict(dict)
        self._whole: set[int] = set()  # keys of messages that alone have every phrase
        self._is_complete = True  # no message with every phrase is missing

    def hits(self, limit: int) -> list[Hit]:
        archived = (self._archived[key] for key in sorted(self._archived))
        runs = ([run[ordinal] for ordinal in sorted(run)] for run in self._runs.values())
        hits = find_hits(self._query, self._in_view | dict(archived), limit, runs)
        return [replace(hit, is_complete=self._is_complete) for hit in hits]

    # -------------------------------------------------------------- reading

    def read_view(self, namespace: str, row: Row[Any] | None) -> None:
        """Read messages of recorded transcripts that no segment holds."""
        key = row and row.key
        recorded = read_skeletons(self._archive, namespace=namespace, session_key=key)
        for session, skeleton in recorded:
            for message in skeleton_messages(skeleton):
                document = document_of(message, (session.id, "", 0))
                self._in_view[content_digest(message)] = document

    def read(self, keys: Iterable[int], most: int | None = None) -> int:
        """Read at most `most` new messages in reach; return their number."""
        count = 0
        for batch in batches(key for key in keys if key not in self._archived):
            places: dict[int, list[Row[Any]]] = {}
            for row in self._archive.execute(_select_places(batch, self.reach)).all():
                places.setdefault(row.message_key, []).append(row)
            for key in (key for key in batch if key in places):
                if count == most:
                    return count
                self._add(key, places[key])
                count += 1
        return count

    def _add(self, key: int, places: Sequence[Row[Any]]) -> None:
        """Add a message at these places, the newest first."""
        newest = places[0]
        message = self._archive.message_of(newest)
        digest = content_digest(message)
        document = document_of(message, (newest.id, newest.hash, newest.ordinal))
        self._archived[key] = digest, document
        for place in places:
            self._runs[place.entry_key][place.ordinal] = digest
        if all(phrase in document.text for phrase in self._phrases):
            self._whole.add(key)

    def read_matches(self, lists: Sequence[_Postings]) -> None:
        """Read the newest messages that have all words.

        `lists` has the rarest word first. A call may have some of the words, and its result the
        other words.
        """
        rarest, *others = lists
        floor = self._read_newest(rarest, others)
        is_complete = rarest.is_whole or self._read_older(lists, floor)
        self._is_complete = is_complete or not self._room()
        if self._room() and others:
            self._read_partners(islice(rarest, rarest.most if rarest.is_whole else _MOST_PAIRED))

    def _read_newest(self, rarest: _Postings, others: Sequence[_Postings]) -> int:
        """Read listed messages that may match; return the lowest key compared."""
        if rarest.is_cheap_to_read():
            for batch in batches(rarest.newest, _BATCH_MESSAGES):
                self.read(batch if self._room() else ())
            return rarest.newest[-1] if rarest.newest else 0
        floor = max(postings.newest[-1] for postings in (rarest, *others))
        shared = set(rarest.newest).intersection(*(postings.newest for postings in others))
        self.read(sorted((key for key in shared if key >= floor), reverse=True), _MOST_RANKED)
        return floor

    def _read_older(self, lists: Sequence[_Postings], floor: int) -> bool:
        """Read older messages with all words; return whether no match is missing."""
        room = self._room()
        words = [postings.word for postings in lists]
        older = self._archive.index.keys_with(words, _ranges_below(self.reach.ranges, floor))
        # With several words a match may be missing: older calls and results are not read.
        return room > 0 and self.read(older, room) < room and len(lists) == 1

    def _room(self) -> int:
        """Return how many messages with every phrase may still be ranked."""
        return max(0, _MOST_RANKED - len(self._whole))

    def _read_partners(self, keys: Iterable[int]) -> None:
        """Read the calls and results of messages that lack a phrase."""
        lacking = [key for key in keys if key not in self._whole]
        self.read(lacking[:_MOST_RANKED])
        self._is_complete &= len(lacking) <= _MOST_RANKED
        results: list[int] = []
        by_calls = defaultdict[int, list[int]](list)
        for key in lacking[:_MOST_RANKED]:
            message = self._message(key)
            if _has_result(message):
                results.append(key)
            elif message.get("role") == "assistant":
                # An agent without native calls writes a call as text.
                by_calls[len(tool_calls_of(message)) or 1].append(key)
        for count, callers in by_calls.items():
            self.read(_keys_beside(self._archive, callers, 1, count))
        for _ in range(_MOST_PARALLEL):
            # Results of parallel calls stand between a call and its last result.
            above = _keys_beside(self._archive, results, -1, -1)
            self.read(above)
            results = [key for key in above if _has_result(self._message(key))]

    def _message(self, key: int) -> Message:
        return self._archived[key][1].message if key in self._archived else {}


def _has_result(message: Message) -> bool:
    if is_result(message) or result_blocks(message):
        return True
    text = text_of(message) if message.get("role") == "user" else ""
    return is_tool_output(text) or SHELL_PROMPT.search(text[-60:]) is not None


def _keys_beside(archive: SqlArchive, keys: Iterable[int], first: int, last: int) -> list[int]:
    """Return the keys of messages `first` to `last` places after `keys`."""
    other = links.alias("other")
    is_near = other.c.ordinal.between(links.c.ordinal + first, links.c.ordinal + last)
    query = select(other.c.message_key).join(
        links, (other.c.entry_key == links.c.entry_key) & is_near
    )
    beside = archive.rows_with(query, links.c.message_key, keys)
    return list(dict.fromkeys(row.message_key for row in beside))


# ---------------------------------------------------------------- what a search reaches
@dataclass(frozen=True)
class _Reach:
    """The entries that a search reads, and their messages' key ranges."""

    entries: ColumnElement[bool]
    ranges: list[KeyRange]
    """Ranges of message keys, the newest first."""


def _reach_of(archive: SqlArchive, namespace: str, row: Row[Any] | None) -> _Reach:
    if row is None:
        held = select(sessions.c.key).where(sessions.c.namespace == namespace)
        within = sessions.c.namespace == namespace
    else:
        newest = newest_entries(archive, row)
        held = select(sessions.c.key).where(sessions.c.key.in_(newest))
        within = or_(
            *((entries.c.session_key == key) & (entries.c.key <= n) for key, n in newest.items())
        )
    query = select(spans.c.first, spans.c.last).where(spans.c.session_key.in_(held))
    ranges = ((first, last) for first, last in archive.execute(query))
    return _Reach(within, merge_ranges(ranges, archive.index.sizes.gap_keys)[::-1])


def _select_places(keys: Sequence[int], reach: _Reach) -> Select[Any]:
    # Materialized: otherwise the planner may begin with all messages of all entries.
    held = select(links).where(links.c.message_key.in_(keys)).cte().prefix_with("MATERIALIZED")
    return (
        select(held, entries.c.hash, sessions.c.id, messages.c.key, messages.c.body)
        .join(entries, entries.c.key == held.c.entry_key)
        .join(sessions, sessions.c.key == entries.c.session_key)
        .join(messages, messages.c.key == held.c.message_key)
        .where(reach.entries)
        .order_by(held.c.entry_key.desc(), held.c.ordinal)
    )


# ---------------------------------------------------------------- candidates
def _newest_without_index(
    archive: SqlArchive, reach: _Reach, asked: Sequence[str]
) -> list[int] | None:
    """Return the newest keys in reach, or None to ask the index."""
    is_indexed = not archive.packer.encrypts and not STOP_WORDS.issuperset(asked)
    most = EVERY_KEY if archive.packer.encrypts else archive.index.sizes.most_without_index + 1
    newest = _newest_keys(archive, reach, most)
    return None if is_indexed and len(newest) == most else newest


def _newest_keys(archive: SqlArchive, reach: _Reach, most: int) -> list[int]:
    newest: list[int] = []
    for first, last in reach.ranges:
        query = select(messages.c.key).where(messages.c.key.between(first, last))
        query = query.order_by(messages.c.key.desc()).limit(most - len(newest))
        newest += archive.execute(query).scalars()
        if len(newest) >= most:
            break
    return newest


class _Postings:
    """The keys of the messages with a word, newest first."""

    def __init__(self, archive: SqlArchive, reach: _Reach, word: str) -> None:
        self._index = archive.index
        self._ranges = reach.ranges
        self.word = word
        self.most = self._index.sizes.most_listed
        self.newest = list(islice(self._index.keys_with([word], reach.ranges), self.most))
        self.is_whole = len(self.newest) < self.most

    def rarity(self) -> tuple[int, int]:
        return len(self.newest), self.newest[-1] if self.newest else 0

    def __iter__(self) -> Iterator[int]:
        yield from self.newest
        if not self.is_whole:
            older = _ranges_below(self._ranges, self.newest[-1])
            yield from self._index.keys_with([self.word], older)

    def is_cheap_to_read(self) -> bool:
        """Return whether reading these messages costs less than another look-up."""
        return self.is_whole or self.newest[0] - self.newest[-1] > _WIDE_RANGE_KEYS


def _ranges_below(ranges: Iterable[KeyRange], key: int) -> list[KeyRange]:
    return [(first, min(last, key - 1)) for first, last in ranges if first < key]


def _with_some_words(lists: Iterable[_Postings]) -> Iterator[int]:
    """Yield messages with any of the words, rare words first."""
    weights: Counter[int] = Counter()
    for postings in lists:
        weight = math.log(1 + postings.most / max(1, len(postings.newest)))
        weights.update(dict.fromkeys(postings.newest, weight))
    yield from sorted(weights, key=lambda key: (-weights[key], -key))
