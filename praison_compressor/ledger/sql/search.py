"""Search a store's archive by words, within a session or a namespace.

The index names the newest messages that have the words; texts and phrases are compared on these
messages alone.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import groupby, islice
from typing import Any

from sqlalchemy import ColumnElement, Row, or_, select, text

from ...messages import Message, content_digest
from ..words import (
    MOST_QUERY_WORDS,
    STOP_WORDS,
    Hit,
    HitPlace,
    distinct_words,
    find_hits,
    finds_longer,
    query_names,
)
from .archive import MessageArchive, batches, digest_of_name, merge_ranges
from .queries import SESSION_ROWS, outline_messages, read_outlines, require_session
from .schema import entries, links, messages, sessions, spans

NEIGHBOURS = 8
"""Messages before and after a message among which its call or its results are looked for."""
_NEIGHBOURS_OF_MOST = (
    40  # newest messages whose neighbours are searched, if the list of keys is incomplete
)
_NEAR_BANDS = 16  # newest bands whose messages are searched for neighbours
_MOST_BANDS = 64  # bands in which a second word's keys are read
_RANKED = 400  # candidates that a search reads and ranks
_IN_PART = 100  # the same if no message has all words
_FEW = 400  # up to this many messages are read without the index
_FEW_BESIDE = 100  # the same beside messages with the rarest word
_UNINDEXED = 1_000  # the same if no word is indexed
_MOST_LISTED = 1_000  # newest keys of a word
_FIRST_SPAN = 4 * _MOST_LISTED  # keys
_WIDER = 8  # factor of the keys that each further statement reads


def search(
    archive: MessageArchive,
    namespace: str,
    query: str,
    session_id: str | None = None,
    limit: int = 10,
    *,
    archived_only: bool = False,
) -> list[Hit]:
    """Return messages with words of the query, best first.

    Raises:
        SessionNotFound: no such session in this namespace.
    """
    asked = distinct_words(" ".join(query_names(query)))[:MOST_QUERY_WORDS]
    if not asked:
        return []
    row = None if session_id is None else require_session(archive, namespace, session_id)
    standing = {} if archived_only else _messages_in_view(archive, namespace, row)
    pool = {digest: message for digest, (_, message) in standing.items()}
    places: dict[str, HitPlace] = {name: (id, "", 0) for name, (id, _) in standing.items()}
    found: list[Hit] = []
    for placed in _candidates(archive, _reach_of(archive, namespace, row), asked):
        named = _read_messages(archive, placed)
        for key, (name, message) in named.items():
            newest = placed[key][0]
            pool[name], places[name] = message, (newest.id, newest.hash, newest.ordinal)
        found = find_hits(query, pool, limit, places.__getitem__, _entry_runs(placed, named))
        if found and found[0].is_whole:  # messages with some of the words only where none has all
            return found
    return found[:_IN_PART]


def _messages_in_view(
    archive: MessageArchive, namespace: str, row: Row[Any] | None
) -> dict[str, tuple[str, Message]]:
    """Return messages of recorded transcripts that no segment holds, with their session."""
    found = {}
    for session, recorded in read_outlines(
        archive, namespace=namespace, session_key=row and row.key
    ):
        for message in outline_messages(recorded):
            found[content_digest(message)] = session.id, message
    return found


PlacesByKey = dict[int, list[Row[Any]]]
"""Message key -> its places in reach: entry, ordinal, hash and session; the newest entry first."""


def _read_messages(archive: MessageArchive, placed: PlacesByKey) -> dict[int, tuple[str, Message]]:
    """Return digest and message of each key, in order."""
    found: dict[int, tuple[str, Message]] = {}
    query = select(messages.c.key, messages.c.digest, messages.c.body)
    for some in batches(sorted(placed)):
        for row in archive.execute(query.where(messages.c.key.in_(some)).order_by(messages.c.key)):
            message = archive.message_of(row)
            # The archive's names of an encrypted store are no digests.
            is_digest = not archive.packer.encrypts
            name = digest_of_name(row.digest) if is_digest else content_digest(message)
            found[row.key] = name, message
    return found


def _entry_runs(placed: PlacesByKey, named: Mapping[int, tuple[str, Message]]) -> list[list[str]]:
    """Return the messages of each entry, in order."""
    return [[named[key][0] for *_, key in run if key in named] for run in _places_by_entry(placed)]


def _places_by_entry(placed: PlacesByKey) -> list[list[tuple[int, int, int]]]:
    """Return the places of each entry in order: entry, ordinal, message key."""
    each = sorted((p.entry_key, p.ordinal, key) for key, found in placed.items() for p in found)
    return [list(run) for _, run in groupby(each, key=lambda place: place[0])]


# ---------------------------------------------------------------- what a search reaches
_EVERY_KEY = 1 << 62  # each key


@dataclass(frozen=True)
class _Reach:
    """The entries of a search, and ranges of their messages' keys."""

    entries: ColumnElement[bool]
    ranges: list[tuple[int, int]]
    """The newest first."""


def _reach_of(archive: MessageArchive, namespace: str, row: Row[Any] | None) -> _Reach:
    """Return the reach of a namespace, or a session with ancestors."""
    if row is None:
        held = select(sessions.c.key).where(sessions.c.namespace == namespace)
        within = sessions.c.namespace == namespace
    else:
        newest = dict(_lineage(archive, row))
        held = select(sessions.c.key).where(sessions.c.key.in_(newest))
        within = or_(
            *((entries.c.session_key == key) & (entries.c.key <= n) for key, n in newest.items())
        )
    query = select(spans.c.first, spans.c.last).where(spans.c.session_key.in_(held))
    ranges = ((first, last) for first, last in archive.execute(query))
    return _Reach(within, merge_ranges(ranges)[::-1])


def _lineage(archive: MessageArchive, row: Row[Any]) -> Iterator[tuple[int, int]]:
    """Yield session and ancestors, each with its newest reachable entry."""
    yield row.key, _EVERY_KEY
    while row.base_key is not None:
        head = select(entries.c.key).where(
            entries.c.namespace == row.namespace, entries.c.hash == row.base_head
        )
        yield row.base_key, archive.execute(head).scalar() or 0
        row = archive.execute(SESSION_ROWS.where(sessions.c.key == row.base_key)).one()


def _find_places(
    archive: MessageArchive, reach: _Reach, keys: Iterable[int], most: int | None = None
) -> PlacesByKey:
    """Return the places of the first `most` messages that are in reach."""
    found: PlacesByKey = {}
    for some in batches(keys):
        # First the messages: a planner may begin with all entries in reach and all their messages.
        held = select(links).where(links.c.message_key.in_(some)).cte().prefix_with("MATERIALIZED")
        query = (
            select(held, entries.c.hash, sessions.c.id)
            .join(entries, entries.c.key == held.c.entry_key)
            .join(sessions, sessions.c.key == entries.c.session_key)
            .where(reach.entries)
            .order_by(held.c.entry_key.desc(), held.c.ordinal)
        )
        here: PlacesByKey = {}
        for place in archive.execute(query):
            here.setdefault(place.message_key, []).append(place)
        found |= {key: here[key] for key in some if key in here}
        if most is not None and len(found) >= most:
            return dict(islice(found.items(), most))
    return found


# ---------------------------------------------------------------- candidates
def _candidates(
    archive: MessageArchive, reach: _Reach, asked: Sequence[str]
) -> Iterator[PlacesByKey]:
    """Yield messages that may have all words, then any.

    Each comes with its call or results.
    """
    indexed = [word for word in asked if word not in STOP_WORDS]
    most = _FEW + 1 if indexed else _UNINDEXED
    newest = _newest_keys(archive, reach, _EVERY_KEY if archive.packer.encrypts else most)
    if archive.packer.encrypts or not indexed or len(newest) < most:
        yield _find_places(archive, reach, newest)
        return
    lists = [_Postings(archive, word, reach) for word in indexed]
    yield _with_all_words(archive, reach, sorted(lists, key=_Postings.rarity))
    weights: Counter[int] = Counter()
    for each in lists:
        weight = math.log(1 + _MOST_LISTED / max(1, len(each.newest)))
        weights.update(dict.fromkeys(each.newest, weight))
    in_part = sorted(weights, key=lambda key: (-weights[key], -key))
    yield _find_places(archive, reach, in_part, _IN_PART)


class _Postings:
    """The messages with a word: newest known, others looked up."""

    def __init__(self, archive: MessageArchive, word: str, reach: _Reach) -> None:
        self._archive, self._word, self._ranges = archive, word, reach.ranges
        self.newest = dict.fromkeys(
            islice(_keys_with_word(archive, word, reach.ranges), _MOST_LISTED)
        )
        self.is_whole = len(self.newest) < _MOST_LISTED
        self._floor = 0 if self.is_whole else min(self.newest)

    def rarity(self) -> tuple[int, int]:
        """Return what sorts rare words first."""
        return len(self.newest), self._floor

    def __iter__(self) -> Iterator[int]:
        """Yield the messages, the newest first."""
        yield from self.newest
        if not self.is_whole:
            yield from _keys_with_word(
                self._archive, self._word, _ranges_below(self._ranges, self._floor)
            )

    def among(self, keys: Iterable[int]) -> set[int]:
        """Return those of the messages that have the word."""
        asked = set(keys)
        found = asked & self.newest.keys()
        if not self.is_whole and (older := {key for key in asked if key < self._floor}):
            found |= _keys_among(self._archive, self._word, older)
        return found


def _with_all_words(
    archive: MessageArchive, reach: _Reach, lists: Sequence[_Postings]
) -> PlacesByKey:
    """Return the newest messages that have all words, alone or with neighbours."""
    rarest, *others = lists
    bands = {key // archive.band for key in rarest.newest}
    is_few = len(rarest.newest) <= _RANKED or (rarest.is_whole and len(bands) > _MOST_BANDS)
    found: PlacesByKey = {}
    for some in _chunks(rarest):
        own = set(some)
        for each in () if is_few else others:  # a few are compared themselves
            own = each.among(own)
        found |= _find_places(archive, reach, sorted(own, reverse=True), _RANKED - len(found))
        if len(found) == _RANKED:
            return found
    if not others:
        return found
    # A call and its result are one document: one has the rarest word, the other stands beside it.
    lacking = (key for key in rarest if is_few or key not in found)
    is_known = all(each.is_whole for each in lists)
    beside = _with_neighbours(archive, islice(lacking, None if is_known else _NEIGHBOURS_OF_MOST))
    if len(beside) > _FEW_BESIDE:
        beside = _complete_with_neighbours(archive, reach, lists, beside)
    return found | _find_places(
        archive, reach, sorted(beside - found.keys(), reverse=True), _RANKED
    )


def _chunks(keys: Iterable[int]) -> Iterator[list[int]]:
    """Yield keys in lists, in order."""
    each = iter(keys)
    while some := list(islice(each, _RANKED)):
        yield some


def _with_neighbours(archive: MessageArchive, keys: Iterable[int]) -> set[int]:
    """Return the messages and their neighbours in each entry."""
    other = links.alias("other")
    is_near = other.c.ordinal.between(links.c.ordinal - NEIGHBOURS, links.c.ordinal + NEIGHBOURS)
    query = select(other.c.message_key).join(
        links, (other.c.entry_key == links.c.entry_key) & is_near
    )
    found: set[int] = set()
    for some in batches(keys):
        found.update(archive.execute(query.where(links.c.message_key.in_(some))).scalars())
    return found


def _complete_with_neighbours(
    archive: MessageArchive, reach: _Reach, lists: Sequence[_Postings], keys: Collection[int]
) -> set[int]:
    """Return messages that have all words together with their neighbours."""
    held: Counter[int] = Counter()
    bands = sorted({key // archive.band for key in keys})[-_NEAR_BANDS:]
    keys = [key for key in keys if key // archive.band >= bands[0]]
    for place, each in enumerate(lists):
        held.update(dict.fromkeys(each.among(keys), 1 << place))
    found = set()
    for run in _places_by_entry(_find_places(archive, reach, held)):
        first = last = 0
        for _, ordinal, key in run:
            while run[first][1] < ordinal - NEIGHBOURS:
                first += 1
            while last < len(run) and run[last][1] <= ordinal + NEIGHBOURS:
                last += 1
            bits = reduce(int.__or__, (held[other] for *_, other in run[first:last]))
            if bits == 2 ** len(lists) - 1:
                found.add(key)
    return found


# ---------------------------------------------------------------- the index
_RANGES = 64  # ranges of one statement
KeyRange = tuple[int, int]
"""First and last key."""

# By whether the database is SQLite.
_SELECT_WITH_WORD = {
    True: "SELECT rowid FROM compressor_search WHERE compressor_search MATCH :query "
    "AND rowid BETWEEN :first AND :last AND ({within}) ORDER BY rowid DESC LIMIT :most",
    # The planner knows nothing of words: a few rows are compared one by one, many are looked up.
    False: "WITH found AS {kept} (SELECT message_key AS key FROM compressor_search "
    "WHERE words @@ CAST(:query AS tsquery)) SELECT key FROM found "
    "WHERE key BETWEEN :first AND :last AND ({within}) ORDER BY key DESC LIMIT :most",
}
_SELECT_AMONG = {
    True: "SELECT rowid FROM compressor_search WHERE compressor_search MATCH :query "
    "AND +rowid IN (SELECT value FROM json_each(:keys))",
    False: "SELECT message_key FROM compressor_search "
    "WHERE message_key = ANY(:keys) AND words @@ CAST(:query AS tsquery)",
}


def _keys_with_word(
    archive: MessageArchive, word: str, ranges: Sequence[KeyRange]
) -> Iterator[int]:
    """Yield messages with a word, by range, newest first."""
    key = "+rowid" if archive.is_sqlite else "key"
    for part in _widening_parts(ranges):
        is_few = sum(last - first for first, last in part) < _FIRST_SPAN
        kept = "NOT MATERIALIZED" if is_few else "MATERIALIZED"
        size = archive.band
        bands = [b for first, last in part for b in range(first // size, last // size + 1)]
        while part:
            within = " OR ".join(f"{key} BETWEEN {first} AND {last}" for first, last in part)
            statement = text(_SELECT_WITH_WORD[archive.is_sqlite].format(within=within, kept=kept))
            values = {
                "query": _match_query(archive, word, bands),
                "first": part[-1][0],
                "last": part[0][1],
                "most": _MOST_LISTED,
            }
            found = archive.execute(statement, values).scalars().all()
            yield from found
            part = _ranges_below(part, found[-1]) if len(found) == _MOST_LISTED else []


def _ranges_below(ranges: Iterable[KeyRange], key: int) -> list[KeyRange]:
    """Return the parts of ranges below a key."""
    return [(first, min(last, key - 1)) for first, last in ranges if first < key]


def _keys_among(archive: MessageArchive, word: str, keys: set[int]) -> set[int]:
    """Return those of the messages that have a word."""
    query = _match_query(archive, word, {key // archive.band for key in keys})
    asked: Any = json.dumps([*keys]) if archive.is_sqlite else [*keys]
    statement = text(_SELECT_AMONG[archive.is_sqlite])
    return set(archive.execute(statement, {"query": query, "keys": asked}).scalars())


def _widening_parts(ranges: Iterable[KeyRange]) -> Iterator[list[KeyRange]]:
    """Yield the ranges of each statement, in wider and wider parts."""
    room = width = _FIRST_SPAN
    part: list[KeyRange] = []
    for first, last in ranges:
        while first <= last:
            start = max(first, last - room + 1)
            part.append((start, last))
            room -= last - start + 1
            last = start - 1
            if not room or len(part) == _RANGES:
                yield part
                width *= _WIDER
                part, room = [], width
    if part:
        yield part


def _match_query(archive: MessageArchive, word: str, bands: Iterable[int]) -> str:
    """Return the query for a word in bands."""
    # Words are letters and digits only, so a quote cannot end early.
    quote, more, either = ('"', "*", " OR ") if archive.is_sqlite else ("'", ":*", " | ")
    end = quote + (more if finds_longer(word) else "")
    marked = {each for band in bands for each in archive.indexed_words([word], band)}
    return either.join(f"{quote}{each}{end}" for each in sorted(marked))


def _newest_keys(archive: MessageArchive, reach: _Reach, most: int) -> list[int]:
    """Return the newest keys in reach."""
    found: list[int] = []
    for first, last in reach.ranges:
        query = select(messages.c.key).where(messages.c.key.between(first, last))
        query = query.order_by(messages.c.key.desc()).limit(most - len(found))
        found += archive.execute(query).scalars()
        if len(found) >= most:
            break
    return found
