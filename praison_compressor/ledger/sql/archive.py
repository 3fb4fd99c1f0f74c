"""Archive each original once per namespace: compressed, checksummed, perhaps encrypted."""

from __future__ import annotations

import binascii
import hashlib
import hmac
import json
import logging
import secrets
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Protocol, TypeVar

from sqlalchemy import ColumnElement, Connection, Row, Select, delete, insert, select, text
from sqlalchemy.dialects import postgresql, sqlite

from ...errors import ConfigError, LedgerCorrupt, StoreUnavailable
from ...messages import Message
from ..segments import BLANK, Entry, Segment, Usage
from ..stores import ALL_MESSAGES
from .index import SearchSizes, WordIndex
from .schema import LAYOUT, links, messages

logger = logging.getLogger(__name__)


# ---------------------------------------------------------------- payloads and keys
class Codec(Protocol):
    """A cipher for payloads, as `cryptography.fernet.Fernet`."""

    def encrypt(self, data: bytes) -> bytes:
        """Encrypt the data."""

    def decrypt(self, token: bytes) -> bytes:
        """Decrypt the token; raise if the key is wrong."""


class Packer:
    """Pack and unpack payloads; compute stored digests."""

    def __init__(self, codec: Codec | None = None, pepper: bytes = b"") -> None:
        """Take a cipher, and the pepper: a secret key of stored digests."""
        self.encrypts = codec is not None
        self._codec = codec
        self._pepper = pepper

    def pack(self, data: bytes) -> bytes:
        """Return the bytes to store."""
        packed = zlib.compress(data, 6)
        if self._codec is not None:
            packed = self._codec.encrypt(packed)
        # Add a checksum: zlib alone does not notice changed bits at the end of a stream.
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

    def stored_digest(self, digest: str) -> bytes:
        """Return a content digest as it is stored: algorithm and raw bytes."""
        algorithm, _, digits = digest.partition(":")
        raw = bytes.fromhex(digits)
        if self._pepper:  # else a digest would confirm a guessed message
            raw = hmac.digest(self._pepper, raw, hashlib.sha256)
        return algorithm.encode() + b":" + raw


def dump(message: Mapping[str, Any]) -> bytes:
    """Return the message as one line of JSON."""
    line = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
    return line.encode("utf-8", "surrogatepass")


def load(line: bytes) -> Message:
    """Return the message of a line that `dump` made."""
    message: Message = json.loads(line.decode("utf-8", "surrogatepass"))
    return message


def codec_of(key: str) -> Codec:
    """Return the cipher of a Fernet key.

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
    """Return a new store's pepper, encrypted; empty without a codec."""
    return b"" if codec is None else Packer(codec).pack(secrets.token_bytes(32))


def packer_of(
    values: Mapping[str, bytes], codec: Codec | None, location: str, *, accepts_plain: bool
) -> Packer:
    """Return the packer for the values of `meta`.

    Raises:
        StoreUnavailable: the store has another layout, or needs another key, a key, or none.
    """
    if values.get("layout") != LAYOUT or "pepper" not in values:
        raise StoreUnavailable(
            f"{location} was written by another version, and its layout is unknown here "
            f"(expected {LAYOUT.decode()}); use the version that wrote it, or another store"
        )
    pepper = values["pepper"]
    if not pepper:
        if codec is not None and not accepts_plain:
            raise StoreUnavailable(
                f"{location} is not encrypted, but this agent's sessions are; use another store"
            )
        if codec is not None:
            logger.warning("%s is not encrypted and stays so: the key is not used", location)
        return Packer()
    if codec is None:
        raise StoreUnavailable(
            f"{location} is encrypted; open it with its key (store_key, PRAISONAI_SESSION_KEY)"
        )
    try:
        return Packer(codec, Packer(codec).unpack(pepper))
    except LedgerCorrupt as error:
        raise StoreUnavailable(f"{location} is encrypted with another key; use that key") from error


# ---------------------------------------------------------------- entries
def pack_entry(packer: Packer, entry: Entry) -> bytes:
    """Pack salt, archive digest and segment together: `forget` destroys them together."""
    lines = "\n".join((entry.salt, entry.archive, entry.segment.payload()))
    return packer.pack(lines.encode("utf-8", "surrogatepass"))


def unpack_entry(packer: Packer, row: Row[Any]) -> Entry:
    """Return the entry of a row, perhaps a tombstone."""
    if row.sealed is None:
        return Entry(BLANK, row.epoch, row.parent, "", row.commitment, row.hash)
    try:
        lines = packer.unpack(row.sealed).decode("utf-8", "surrogatepass")
        salt, archived, payload = lines.split("\n", 2)
        segment = _segment_of(payload)
    except (LedgerCorrupt, LookupError, ValueError, TypeError) as error:
        raise LedgerCorrupt(f"the entry of epoch {row.epoch}: {error}") from error
    return Entry(segment, row.epoch, row.parent, salt, row.commitment, row.hash, archive=archived)


def _segment_of(payload: str) -> Segment:
    fields = json.loads(payload)
    fields["run"] = tuple(fields["run"])
    fields["archived_as"] = tuple((at, digest) for at, digest in fields["archived_as"])
    fields["usage"] = Usage(**fields["usage"])
    return Segment(**fields)


# ---------------------------------------------------------------- originals
T = TypeVar("T")

_MOST_PARAMETERS = 500  # parameters of one statement


class SqlArchive:
    """Read and write archived messages in one transaction, in either database."""

    def __init__(self, connection: Connection, packer: Packer, sizes: SearchSizes) -> None:
        self.execute = connection.execute
        self.is_sqlite = connection.dialect.name == "sqlite"
        self.insert: Any = sqlite.insert if self.is_sqlite else postgresql.insert
        """The dialect's INSERT, which has ON CONFLICT."""
        self.packer = packer
        self.index = WordIndex(self.execute, sizes, is_sqlite=self.is_sqlite)
        """The index of the originals' words; empty in an encrypted store."""

    def rows_with(
        self, query: Select[Any], column: ColumnElement[Any], values: Iterable[Any]
    ) -> Iterator[Row[Any]]:
        """Yield a query's rows in which `column` has one of the values."""
        for batch in batches(values):
            yield from self.execute(query.where(column.in_(batch))).all()

    def time(self) -> float:
        """Return the database's time, because the machines' clocks differ."""
        if self.is_sqlite:
            return time.time()
        clock = text("SELECT extract(epoch FROM clock_timestamp())")
        return float(self.execute(clock).scalar_one())

    def block_commits(self) -> None:
        """Block commits, which could link a message while it is removed."""
        if not self.is_sqlite:  # SQLite has one writer
            self.execute(text("LOCK TABLE compressor_sessions IN EXCLUSIVE MODE"))

    def file_faults(self) -> list[str]:
        """Return the faults that the database finds in its own file."""
        if not self.is_sqlite:
            return []
        lines = self.execute(text("PRAGMA integrity_check")).scalars()
        return [line for line in lines if line != "ok"]

    def add(
        self, namespace: str, originals: Sequence[Message], content_digests: Iterable[str]
    ) -> list[int]:
        """Archive the messages that are missing; return each message's key, in order."""
        digests = list(map(self.packer.stored_digest, content_digests))
        keys = self._keys_of(namespace, digests)
        missing = {d: m for d, m in zip(digests, originals, strict=True) if d not in keys}
        if missing:
            keys |= self._insert(namespace, missing)
        return [keys[digest] for digest in digests]

    def _keys_of(self, namespace: str, digests: Iterable[bytes]) -> dict[bytes, int]:
        query = select(messages.c.digest, messages.c.key)
        query = query.where(messages.c.namespace == namespace)
        found = self.rows_with(query, messages.c.digest, digests)
        return {bytes(row.digest): row.key for row in found}

    def _insert(self, namespace: str, missing: Mapping[bytes, Message]) -> dict[bytes, int]:
        rows = [
            {"namespace": namespace, "digest": digest, "body": self.packer.pack(dump(message))}
            # Sorted, so that two writers of the same messages cannot deadlock.
            for digest, message in sorted(missing.items())
        ]
        insertion = self.insert(messages).on_conflict_do_nothing()
        added = self.execute(insertion.returning(messages.c.digest, messages.c.key), rows)
        keys = {bytes(digest): key for digest, key in added}
        if not self.packer.encrypts:
            self.index.add({key: missing[digest] for digest, key in keys.items()})
        # Another writer archived the other messages at the same time.
        return keys | self._keys_of(namespace, missing.keys() - keys.keys())

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
        keys: dict[int, list[int]] = {key: [] for key in entry_keys}
        query = select(links).order_by(links.c.entry_key, links.c.ordinal)
        for row in self.rows_with(query, links.c.entry_key, list(keys)):
            keys[row.entry_key].append(row.message_key)
        return keys

    def messages_of_entries(
        self, entry_keys: Iterable[int], wanted: slice = ALL_MESSAGES
    ) -> dict[int, list[Message]]:
        """Return each entry's originals in order; `{}` for messages outside `wanted`."""
        keys_of = self.keys_of_entries(entry_keys)
        read = self.messages_of(key for keys in keys_of.values() for key in keys[wanted])
        return {entry: [read.get(key, {}) for key in keys] for entry, keys in keys_of.items()}

    def messages_of(self, keys: Iterable[int]) -> dict[int, Message]:
        """Return messages by their keys."""
        query = select(messages.c.key, messages.c.body)
        found = self.rows_with(query, messages.c.key, keys)
        return {row.key: self.message_of(row) for row in found}

    def message_of(self, row: Any) -> Message:
        """Return the message of a row."""
        try:
            return load(self.packer.unpack(row.body))
        except LedgerCorrupt as error:
            raise LedgerCorrupt(f"archived message {row.key}: {error}") from error

    def remove(self, keys: Iterable[int]) -> None:
        """Delete unlinked messages from archive and index."""
        for batch in batches(keys):
            if not self.packer.encrypts:
                self.index.remove(self.messages_of(batch))
            self.execute(delete(messages).where(messages.c.key.in_(batch)))
        self.index.merge()


def batches(items: Iterable[T], size: int = _MOST_PARAMETERS) -> Iterator[list[T]]:
    """Yield lists of at most `size` items, for one statement each."""
    remaining = iter(items)
    while batch := list(islice(remaining, size)):
        yield batch
