"""The archive: every original once per namespace, compressed, checksummed, perhaps encrypted."""

from __future__ import annotations

import binascii
import hashlib
import hmac
import json
import secrets
import string
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from sqlalchemy import Connection, Row, Table, delete, insert, select, text
from sqlalchemy.dialects import postgresql, sqlite

from ...errors import ConfigError, LedgerCorrupt, StoreUnavailable
from ...messages import Message, content_digest
from ..segments import FORGOTTEN, Entry, Segment, Usage
from ..stores import ALL_MESSAGES
from ..words import LEAST_PREFIX_LETTERS, STOP_WORDS, distinct_words, searchable_text
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


def digest_of_name(name: bytes) -> str:
    """Return a name's content digest in an archive without cipher."""
    algorithm, _, raw = bytes(name).partition(b":")
    return f"{algorithm.decode()}:{raw.hex()}"


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


def packer_of(pepper: bytes, codec: Codec | None, place: str, *, accepts_plain: bool) -> Packer:
    """Return the packer of a store; its pepper proves the key.

    Raises:
        StoreUnavailable: the store needs another key, a key, or none.
    """
    if not pepper and (codec is None or accepts_plain):
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
def pack_entry(packer: Packer, entry: Entry) -> bytes:
    """Pack salt, archive digest and segment together: `forget` destroys them together."""
    lines = "\n".join((entry.salt, entry.archive, entry.segment.payload()))
    return packer.pack(lines.encode("utf-8", "surrogatepass"))


def unpack_entry(packer: Packer, row: Row[Any]) -> Entry:
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

_PARAMETERS = 500  # parameters of one statement


class MessageArchive:
    """The originals as one transaction sees them, with the transaction itself."""

    def __init__(self, connection: Connection, packer: Packer) -> None:
        self.execute = connection.execute
        self.is_sqlite = connection.dialect.name == "sqlite"
        """False: PostgreSQL."""
        self.packer = packer
        self.band = BAND_KEYS[self.is_sqlite]
        """Message keys among which a word's list is read at once."""

    def insert(self, table: Table) -> Any:
        """Return an INSERT that accepts `on_conflict_…`, which dialects define apart."""
        return sqlite.insert(table) if self.is_sqlite else postgresql.insert(table)

    def add(self, namespace: str, originals: Sequence[Message]) -> list[int]:
        """Archive the messages that are missing; return each message's key, in order."""
        named = [(self.packer.name(content_digest(message)), message) for message in originals]
        known = self._keys_of(namespace, [name for name, _ in named])
        fresh = {name: message for name, message in named if name not in known}
        if fresh:
            known |= self._insert(namespace, fresh)
        return [known[name] for name, _ in named]

    def _keys_of(self, namespace: str, names: Iterable[bytes]) -> dict[bytes, int]:
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
        insertion = self.insert(messages).on_conflict_do_nothing()
        added = self.execute(insertion.returning(messages.c.digest, messages.c.key), rows)
        known = {bytes(name): key for name, key in added}
        self._index(_ADD_WORDS, {key: fresh[name] for name, key in known.items()})
        # The others were archived by another writer at the same time.
        return known | self._keys_of(namespace, fresh.keys() - known.keys())

    def link(self, entry_key: int, keys: Sequence[int]) -> None:
        """Record which messages an entry covers, in order."""
        rows = [
            {"entry_key": entry_key, "ordinal": ordinal, "message_key": key}
            for ordinal, key in enumerate(keys)
        ]
        if rows:
            self.execute(insert(links), rows)

    def keys_of_entries(self, entry_keys: Iterable[int]) -> dict[int, list[int]]:
        """Return the keys of each entry's messages, in order."""
        found: dict[int, list[int]] = {key: [] for key in entry_keys}
        for some in batches(found):
            query = select(links).where(links.c.entry_key.in_(some))
            for row in self.execute(query.order_by(links.c.entry_key, links.c.ordinal)):
                found[row.entry_key].append(row.message_key)
        return found

    def messages_of_entries(
        self, entry_keys: Iterable[int], wanted: slice = ALL_MESSAGES
    ) -> dict[int, list[Message]]:
        """Return each entry's originals in order, `{}` for unwanted ones."""
        linked = self.keys_of_entries(entry_keys)
        found = self.messages_of(key for keys in linked.values() for key in keys[wanted])
        return {entry: [found.get(key, {}) for key in keys] for entry, keys in linked.items()}

    def messages_of(self, keys: Iterable[int]) -> dict[int, Message]:
        """Return messages by their keys."""
        found: dict[int, Message] = {}
        for some in batches(keys):
            query = select(messages.c.key, messages.c.body).where(messages.c.key.in_(some))
            found |= {row.key: self.message_of(row) for row in self.execute(query)}
        return found

    def message_of(self, row: Any) -> Message:
        """Return the message of a row."""
        try:
            return load(self.packer.unpack(row.body))
        except LedgerCorrupt as error:
            raise LedgerCorrupt(f"archived message {row.key}: {error}") from error

    def remove(self, keys: Iterable[int]) -> None:
        """Delete unlinked messages from archive and index."""
        for some in batches(keys):
            self._index(_REMOVE_WORDS, self.messages_of(some))
            self.execute(delete(messages).where(messages.c.key.in_(some)))
        if self.is_sqlite:
            # FTS5 keeps removed words until its index is merged into one piece.
            merge = "INSERT INTO compressor_search(compressor_search) VALUES ('optimize')"
            self.execute(text(merge))

    def _index(self, statements: tuple[str, str], found: Mapping[int, Message]) -> None:
        """Run the database's statement for the words of each message."""
        if self.packer.encrypts or not found:
            return
        join = " ".join if self.is_sqlite else list
        rows = [
            {
                "key": key,
                "words": join(
                    self.indexed_words(
                        distinct_words(searchable_text(found[key])), key // self.band
                    )
                ),
            }
            for key in sorted(found)  # FTS5 writes a piece of its index at each lower key
        ]
        self.execute(text(statements[not self.is_sqlite]), rows)

    def indexed_words(self, some: Iterable[str], band: int) -> list[str]:
        """Return words of a band's messages as they are indexed."""
        mark, each = self._band_mark(band), (word for word in some if word not in STOP_WORDS)
        if not self.is_sqlite:
            return [mark + word for word in each]
        # A shorter word of a query finds only words that begin with that many letters.
        n = LEAST_PREFIX_LETTERS
        return [mark + word if word[:n].isalpha() and len(word) >= n else word for word in each]

    def _band_mark(self, band: int) -> str:
        """Return a band's mark; distant bands may share one."""
        high, low = divmod(band, len(_BAND_MARKS))
        return (_BAND_MARKS[high % len(_BAND_MARKS)] if self.is_sqlite else "") + _BAND_MARKS[
            low % len(_BAND_MARKS)
        ]


# ---------------------------------------------------------------- the index of words
# FTS5 on SQLite, GIN on PostgreSQL: words and message keys, no positions. FTS5 reads the whole list
# of each word that a shorter one may begin, GIN that of every word: a million messages take too
# long. So these words are indexed behind the mark of their message's band.
BAND_KEYS = {True: 1 << 13, False: 1 << 17}
"""Keys of a band, on SQLite and on PostgreSQL; smaller ones are read faster and take more bytes."""
_BAND_MARKS = string.digits + string.ascii_lowercase

_ADD_WORDS = (
    "INSERT INTO compressor_search(rowid, words) VALUES (:key, :words)",
    "INSERT INTO compressor_search VALUES (:key, array_to_tsvector(CAST(:words AS text[])))",
)
_REMOVE_WORDS = (
    # FTS5 removes a message only by the words that were indexed for the message.
    "INSERT INTO compressor_search(compressor_search, rowid, words) "
    "VALUES ('delete', :key, :words)",
    "DELETE FROM compressor_search WHERE message_key = :key",
)


def batches(items: Iterable[T]) -> Iterator[list[T]]:
    """Yield the distinct items in lists that one statement can name."""
    everything = list(dict.fromkeys(items))
    for start in range(0, len(everything), _PARAMETERS):
        yield everything[start : start + _PARAMETERS]


_RANGE_GAP = 500  # keys between two ranges that are read as one


def merge_ranges(ranges: Iterable[tuple[int, int]], gap: int = _RANGE_GAP) -> list[tuple[int, int]]:
    """Return ranges of keys in order, neighbours as one."""
    found: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if found and first - found[-1][1] <= gap:
            found[-1] = found[-1][0], max(last, found[-1][1])
        else:
            found.append((first, last))
    return found
