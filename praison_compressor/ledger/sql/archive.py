"""The archive: every original once per namespace, compressed, checksummed, perhaps encrypted."""

from __future__ import annotations

import binascii
import hashlib
import hmac
import json
import secrets
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Any, Protocol, TypeVar

from sqlalchemy import Connection, Row, Table, delete, insert, select, text
from sqlalchemy.dialects import postgresql, sqlite

from ...errors import ConfigError, LedgerCorrupt, StoreUnavailable
from ...messages import Message, content_digest
from ..segments import EVERY, FORGOTTEN, Entry, Segment, Usage
from ..words import goes_on, readable, words
from .schema import links, messages


# ---------------------------------------------------------------- payloads and keys
class Codec(Protocol):
    """A cipher for payloads; `cryptography.fernet.Fernet` is one as it is."""

    def encrypt(self, data: bytes) -> bytes:
        """Encrypt the data."""

    def decrypt(self, token: bytes) -> bytes:
        """Decrypt the token; raise where the key does not fit."""


class Packer:
    """Packs and unpacks payloads, and names archived messages."""

    def __init__(self, codec: Codec | None = None, pepper: bytes = b"") -> None:
        """Take the cipher and the secret that keeps names from guesses."""
        self.encrypts = codec is not None
        self._codec = codec
        self._pepper = pepper

    def pack(self, data: bytes) -> bytes:
        """Return the bytes to store."""
        packed = zlib.compress(data, 6)
        if self._codec is not None:
            packed = self._codec.encrypt(packed)
        # Nothing reads the last bits of a deflate or base64 stream. Without a checksum of the
        # stored bytes a flip there would go unnoticed.
        return packed + binascii.crc32(packed).to_bytes(4, "big")

    def unpack(self, stored: bytes) -> bytes:
        """Return the data of stored bytes, or raise `LedgerCorrupt`."""
        packed, checksum = bytes(stored[:-4]), bytes(stored[-4:])
        if binascii.crc32(packed).to_bytes(4, "big") != checksum:
            raise LedgerCorrupt("its bytes were changed (the checksum disagrees)")
        if self._codec is not None:
            try:
                packed = self._codec.decrypt(packed)
            except Exception as error:  # the caller's object may raise anything
                raise LedgerCorrupt("it cannot be decrypted: the key does not fit") from error
        return zlib.decompress(packed)

    def name(self, digest: str) -> bytes:
        """Return the archive's name of a content digest: algorithm and raw bytes."""
        algorithm, _, digits = digest.partition(":")
        raw = bytes.fromhex(digits)
        if self._pepper:
            raw = hmac.digest(self._pepper, raw, hashlib.sha256)
        return algorithm.encode() + b":" + raw


def dump(message: Mapping[str, Any]) -> bytes:
    """Return the message as one line of JSON, keys in order."""
    line = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
    return line.encode("utf-8", "surrogatepass")


def load(line: bytes) -> Message:
    """Return the message of a line that `dump` made."""
    message: Message = json.loads(line.decode("utf-8", "surrogatepass"))
    return message


def codec_of(key: str) -> Codec:
    """Return the cipher of a Fernet key; no error shows it.

    Raises:
        ConfigError: the key is no Fernet key, or `cryptography` is not installed.
    """
    try:
        from cryptography.fernet import Fernet
    except ImportError as error:
        raise ConfigError(
            "an encrypted store needs the cryptography package: "
            "pip install 'praison-compressor[encryption]'"
        ) from error
    try:
        return Fernet(key.strip())
    except (ValueError, TypeError) as error:
        raise ConfigError(
            "the store's key (store_key, PRAISONAI_SESSION_KEY) is no Fernet key; expected what "
            "praisonaiagents.session.generate_session_key() makes"
        ) from error


def new_pepper(codec: Codec | None) -> bytes:
    """Return a new store's pepper: encrypted with the codec, empty without one."""
    return b"" if codec is None else Packer(codec).pack(secrets.token_bytes(32))


def packer_of(pepper: bytes, codec: Codec | None, place: str, *, plain_too: bool) -> Packer:
    """Return the packer of a store; its pepper proves the key.

    Raises:
        StoreUnavailable: the store needs another key, a key, or none.
    """
    if not pepper and (codec is None or plain_too):
        return Packer()
    if not pepper:
        raise StoreUnavailable(
            f"{place} is not encrypted; use another store for an agent whose sessions are"
        )
    if codec is None:
        raise StoreUnavailable(
            f"{place} is encrypted; open it with its key (store_key, PRAISONAI_SESSION_KEY)"
        )
    try:
        return Packer(codec, Packer(codec).unpack(pepper))
    except LedgerCorrupt as error:
        said = f"{place} is encrypted with another key than the one given"
        raise StoreUnavailable(said) from error


# ---------------------------------------------------------------- entries
def sealed(packer: Packer, entry: Entry) -> bytes:
    """Pack salt, archive digest and segment together: `forget` destroys them together."""
    lines = "\n".join((entry.salt, entry.archive, entry.segment.payload()))
    return packer.pack(lines.encode("utf-8", "surrogatepass"))


def unsealed(packer: Packer, row: Row[Any]) -> Entry:
    """Return the entry of a row; a tombstone where it was forgotten."""
    if row.sealed is None:
        return Entry(FORGOTTEN, row.epoch, row.parent, "", row.commitment, row.hash)
    try:
        lines = packer.unpack(row.sealed).decode("utf-8", "surrogatepass")
        salt, archived, payload = lines.split("\n", 2)
        segment = _segment_of(payload)
    except (LedgerCorrupt, LookupError, ValueError, TypeError) as error:
        raise LedgerCorrupt(f"the entry of epoch {row.epoch}: {error}") from error
    return Entry(segment, row.epoch, row.parent, salt, row.commitment, row.hash, archive=archived)


def _segment_of(payload: str) -> Segment:
    """Return the segment of its JSON."""
    found = json.loads(payload)
    found["run"] = tuple(found["run"])
    found["archived_as"] = tuple((at, name) for at, name in found["archived_as"])
    found["usage"] = Usage(**found["usage"])
    return Segment(**found)


# ---------------------------------------------------------------- originals
T = TypeVar("T")

_AT_ONCE = 500  # parameters of one statement


class MessageArchive:
    """The originals as one transaction sees them, with the transaction itself."""

    def __init__(self, connection: Connection, packer: Packer) -> None:
        self.execute = connection.execute
        self.is_sqlite = connection.dialect.name == "sqlite"
        """False: PostgreSQL."""
        self.packer = packer

    def insert(self, table: Table) -> Any:
        """Return an INSERT that accepts `on_conflict_…`, which dialects define apart."""
        return sqlite.insert(table) if self.is_sqlite else postgresql.insert(table)

    def add(self, namespace: str, originals: Sequence[Message]) -> list[int]:
        """Archive the messages that are missing; return each message's key, in order."""
        named = [(self.packer.name(content_digest(message)), message) for message in originals]
        known = self._keys(namespace, [name for name, _ in named])
        fresh = {name: message for name, message in named if name not in known}
        if fresh:
            known |= self._insert(namespace, fresh)
        return [known[name] for name, _ in named]

    def _keys(self, namespace: str, names: Iterable[bytes]) -> dict[bytes, int]:
        found: dict[bytes, int] = {}
        for some in batches(names):
            query = select(messages.c.digest, messages.c.key).where(
                messages.c.namespace == namespace, messages.c.digest.in_(some)
            )
            found |= {bytes(row.digest): row.key for row in self.execute(query)}
        return found

    def _insert(self, namespace: str, fresh: Mapping[bytes, Message]) -> dict[bytes, int]:
        rows = [
            {"namespace": namespace, "digest": name, "body": self.packer.pack(dump(fresh[name]))}
            # Sorted, so that two writers of the same messages cannot deadlock.
            for name in sorted(fresh)
        ]
        self.execute(self.insert(messages).on_conflict_do_nothing(), rows)
        known = self._keys(namespace, fresh)
        self._index({known[name]: message for name, message in fresh.items()})
        return known

    def link(self, entry_key: int, keys: Sequence[int]) -> None:
        """Record which messages an entry covers, in order."""
        rows = [
            {"entry_key": entry_key, "ordinal": ordinal, "message_key": key}
            for ordinal, key in enumerate(keys)
        ]
        if rows:
            self.execute(insert(links), rows)

    def linked(self, entry_keys: Iterable[int]) -> dict[int, list[int]]:
        """Return the keys of each entry's messages, in order."""
        found: dict[int, list[int]] = {key: [] for key in entry_keys}
        for some in batches(found):
            query = select(links).where(links.c.entry_key.in_(some))
            for row in self.execute(query.order_by(links.c.entry_key, links.c.ordinal)):
                found[row.entry_key].append(row.message_key)
        return found

    def of_entries(
        self, entry_keys: Iterable[int], wanted: slice = EVERY
    ) -> dict[int, list[Message]]:
        """Return each entry's originals in order, `{}` for unwanted ones."""
        linked = self.linked(entry_keys)
        found = self.get(key for keys in linked.values() for key in keys[wanted])
        return {entry: [found.get(key, {}) for key in keys] for entry, keys in linked.items()}

    def get(self, keys: Iterable[int]) -> dict[int, Message]:
        """Return messages by their keys."""
        found: dict[int, Message] = {}
        for some in batches(keys):
            query = select(messages.c.key, messages.c.body).where(messages.c.key.in_(some))
            found |= {row.key: self.read(row) for row in self.execute(query)}
        return found

    def read(self, row: Any) -> Message:
        """Return the message of a row."""
        try:
            return load(self.packer.unpack(row.body))
        except LedgerCorrupt as error:
            raise LedgerCorrupt(f"archived message {row.key}: {error}") from error

    def remove(self, keys: Iterable[int]) -> None:
        """Delete unlinked messages from archive and index."""
        for some in batches(keys):
            self._index(self.get(some), remove=True)
            self.execute(delete(messages).where(messages.c.key.in_(some)))
        if self.is_sqlite:
            # FTS5 keeps removed words until its index is merged into one piece.
            merge = "INSERT INTO compressor_search(compressor_search) VALUES ('optimize')"
            self.execute(text(merge))

    # -------------------------------------------------------------- the full-text index
    # FTS5 on SQLite, a GIN index on PostgreSQL: words and message keys, no positions. Phrases are
    # checked on the messages themselves. An encrypted archive has no index.

    def _index(self, found: Mapping[int, Message], *, remove: bool = False) -> None:
        """Add the messages to the index, or remove them."""
        if self.packer.encrypts:
            return
        join = " ".join if self.is_sqlite else list
        # FTS5 removes a message only by the words that were indexed for the message.
        rows = [
            {"key": key, "words": join(words(readable(message)))} for key, message in found.items()
        ]
        if rows:
            self.execute(text(_INDEXING[self.is_sqlite, remove]), rows)

    def candidates(
        self,
        namespace: str,
        asked: Sequence[str],
        linked: Mapping[int, Sequence[int]] | None,
    ) -> Iterator[dict[int, Message]]:
        """Yield messages with all words, then with any, the newest of many.

        `linked` limits the search to the messages of these entries; words of neighbours count as a
        message's own, because a call and its result are one document. Without an index all messages
        in reach are yielded once.
        """
        if self.packer.encrypts:
            every = select(messages.c.key).where(messages.c.namespace == namespace)
            within = None if linked is None else [key for keys in linked.values() for key in keys]
            yield self.get(self.execute(every).scalars() if within is None else within)
        elif linked is None:
            for link in _LINKS[self.is_sqlite]:
                values = {"namespace": namespace, "query": link.join(map(self._quoted, asked))}
                query = text(_FINDING[self.is_sqlite])
                yield self.get(self.execute(query, {**values, "limit": _RANKED}).scalars())
        else:
            held = self._with_each(asked, linked)
            near = sorted(_near(held, linked, 2 ** len(asked) - 1), reverse=True)
            yield self.get(near[:_RANKED])
            most = sorted(held, key=lambda key: (-held[key].bit_count(), -key))
            yield self.get(most[:_IN_PART])

    def _quoted(self, word: str) -> str:
        # Words are letters and digits only, so a quote cannot end early.
        quote, more = ('"', "*") if self.is_sqlite else ("'", ":*")
        return f"{quote}{word}{quote}{more if goes_on(word) else ''}"

    def _with_each(
        self, asked: Sequence[str], linked: Mapping[int, Sequence[int]]
    ) -> dict[int, int]:
        """Return the entries' messages with any word: key -> bits of its words."""
        among = {key for keys in linked.values() for key in keys}
        ranges, query = [*_ranges(sorted(among))], text(_WITHIN[self.is_sqlite])
        found: dict[int, int] = {}
        for place, word in enumerate(asked):
            for first, last in ranges:
                values = {"query": self._quoted(word), "first": first, "last": last}
                for key in self.execute(query, values).scalars():
                    if key in among:
                        found[key] = found.get(key, 0) | 1 << place
        return found


NEAR = 8
"""Messages before and after a message among which its call or its results are looked for."""


def _near(
    held: Mapping[int, int], linked: Mapping[int, Sequence[int]], all_words: int
) -> Iterator[int]:
    """Yield the messages that have all words together with their neighbours."""
    if reduce(or_, held.values(), 0) != all_words:
        return
    for keys in linked.values():
        places = [place for place, key in enumerate(keys) if key in held]
        words = [held[keys[place]] for place in places]
        first = last = 0
        for place in places:
            while places[first] < place - NEAR:
                first += 1
            while last < len(places) and places[last] <= place + NEAR:
                last += 1
            if reduce(or_, words[first:last]) == all_words:
                yield keys[place]


_RANKED = 400  # candidates of a search that are read and ranked
_IN_PART = 100  # ... where none has all words
_GAP = 500

# By whether the database is SQLite, and whether words are removed.
_INDEXING = {
    (True, False): "INSERT INTO compressor_search(rowid, words) VALUES (:key, :words)",
    (True, True): "INSERT INTO compressor_search(compressor_search, rowid, words) "
    "VALUES ('delete', :key, :words)",
    # A conflict: another writer archived the message at the same time.
    (False, False): "INSERT INTO compressor_search "
    "VALUES (:key, array_to_tsvector(CAST(:words AS text[]))) ON CONFLICT DO NOTHING",
    (False, True): "DELETE FROM compressor_search WHERE message_key = :key",
}
_FOUND = (
    "SELECT m.key FROM compressor_search f {join} JOIN compressor_messages m ON m.key = f.{key} "
    "WHERE m.namespace = :namespace AND {matches} ORDER BY m.key DESC LIMIT :limit"
)
_LINKS = {True: (" AND ", " OR "), False: (" & ", " | ")}
_IN_RANGE = (
    "SELECT {key} FROM compressor_search f WHERE {matches} AND {key} BETWEEN :first AND :last"
)
_BY_DIALECT = {
    # CROSS: else SQLite's planner may begin with the messages and ask FTS5 once for each.
    True: {"join": "CROSS", "key": "rowid", "matches": "f.compressor_search MATCH :query"},
    False: {"join": "", "key": "message_key", "matches": "f.words @@ CAST(:query AS tsquery)"},
}
_FINDING = {is_sqlite: _FOUND.format(**each) for is_sqlite, each in _BY_DIALECT.items()}
_WITHIN = {is_sqlite: _IN_RANGE.format(**each) for is_sqlite, each in _BY_DIALECT.items()}


def _ranges(keys: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield ranges that hold the keys; keys of one commit are neighbours.

    FTS5 reads a range of its lists at once, but takes a millisecond for every single key.
    """
    start = 0
    for place in range(1, len(keys) + 1):
        if place == len(keys) or keys[place] - keys[place - 1] > _GAP:
            yield keys[start], keys[place - 1]
            start = place


def batches(items: Iterable[T]) -> Iterator[list[T]]:
    """Yield the distinct items in lists that one statement can name."""
    everything = list(dict.fromkeys(items))
    for start in range(0, len(everything), _AT_ONCE):
        yield everything[start : start + _AT_ONCE]
