"""The archive: every original once per namespace, many to a compressed, checksummed, perhaps
encrypted block.

Messages of one commit are compressed together, which makes them a third smaller than one by one.
A block is JSON lines; the line of a message that was removed is empty.
"""

from __future__ import annotations

import binascii
import hashlib
import hmac
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from sqlalchemy import Connection, delete, insert, select, update
from sqlalchemy.dialects import postgresql, sqlite

from ...errors import ConfigError, LedgerCorrupt
from ...messages import Message, content_digest
from ..words import readable, words
from .index import add_words, remove_words
from .schema import blocks, links, messages

__all__ = [
    "Archive",
    "Codec",
    "Packer",
    "codec_of",
    "dump",
    "load",
]


# -------------------------------------------------------------- pack


class Codec(Protocol):
    """A cipher for payloads; `cryptography.fernet.Fernet` is one as it is."""

    def encrypt(self, data: bytes) -> bytes:
        """The data so that only the holder of the key can read it."""

    def decrypt(self, token: bytes) -> bytes:
        """The data again; raises where the key does not fit."""


class Packer:
    """Packs and unpacks payloads, and names archived messages.

    `pepper` is a secret of this store: with it a message's name in an encrypted archive cannot be
    guessed by hashing a likely message.
    """

    def __init__(self, codec: Codec | None = None, pepper: bytes = b"") -> None:
        self._codec = codec
        self._pepper = pepper

    @property
    def encrypts(self) -> bool:
        """Whether payloads are encrypted."""
        return self._codec is not None

    def pack(self, data: bytes) -> bytes:
        """The bytes to store."""
        packed = zlib.compress(data, 6)
        if self._codec is not None:
            packed = self._codec.encrypt(packed)
        # The last bits of a deflate or base64 stream are read by nobody: without a checksum of
        # what is really stored, a flip there would go unnoticed.
        return packed + binascii.crc32(packed).to_bytes(4, "big")

    def unpack(self, stored: bytes) -> bytes:
        """The data again.

        Raises:
            LedgerCorrupt: the bytes are not what was stored, or the key does not fit.
        """
        packed, checksum = bytes(stored[:-4]), bytes(stored[-4:])
        if binascii.crc32(packed).to_bytes(4, "big") != checksum:
            raise LedgerCorrupt("its bytes were changed (the checksum disagrees)")
        if self._codec is not None:
            packed = _decrypted(self._codec.decrypt, packed)
        try:
            return zlib.decompress(packed)
        except zlib.error as error:
            raise LedgerCorrupt(f"it cannot be decompressed: {error}") from error

    def name(self, digest: str) -> bytes:
        """By which a message of that content digest is archived: algorithm and raw bytes."""
        algorithm, _, digits = digest.partition(":")
        raw = bytes.fromhex(digits)
        if self._pepper:
            raw = hmac.digest(self._pepper, raw, hashlib.sha256)
        return algorithm.encode() + b":" + raw


def _decrypted(decrypt: Callable[[bytes], bytes], token: bytes) -> bytes:
    # A codec is the caller's object and raises what it likes.
    try:
        return decrypt(token)
    except Exception as error:
        raise LedgerCorrupt("it cannot be decrypted: the key does not fit") from error


def dump(message: Mapping[str, Any] | Sequence[Any]) -> bytes:
    """One line of JSON, in the order of the caller's keys."""
    text = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass")


def load(line: bytes) -> Message:
    """The message of a line.

    Raises:
        LedgerCorrupt: the line holds none.
    """
    try:
        message = json.loads(line.decode("utf-8", "surrogatepass"))
    except ValueError as error:
        raise LedgerCorrupt("a line of it is not JSON") from error
    if not isinstance(message, dict):
        raise LedgerCorrupt("a line of it is not a message")
    return message


# -------------------------------------------------------------- keys


def codec_of(key: str) -> Codec:
    """The cipher of a key. The key itself is in no message.

    Raises:
        ConfigError: it is no key, or the package that encrypts is missing.
    """
    try:
        from cryptography.fernet import Fernet
    except ImportError as error:
        raise ConfigError(
            "an encrypted store needs the cryptography package: pip install cryptography"
        ) from error
    try:
        return Fernet(key.strip())
    except (ValueError, TypeError) as error:
        raise ConfigError(
            "the store's key (store_key, PRAISONAI_SESSION_KEY) is no Fernet key; expected what "
            "praisonaiagents.session.generate_session_key() makes"
        ) from error


# -------------------------------------------------------------- archive


T = TypeVar("T")


_BLOCK_BYTES = 128 * 1024


_AT_ONCE = 500  # parameters of one statement


class Archive:
    """The originals, as one transaction sees them; it carries what else the transaction needs."""

    def __init__(self, connection: Connection, packer: Packer, *, indexed: bool) -> None:
        self.connection = connection
        self.packer = packer
        self.indexed = indexed

    # -------------------------------------------------------------- writing

    def add(self, namespace: str, originals: Sequence[Message]) -> list[int]:
        """Archive what is not there yet; the key of each message, in order."""
        names = [self.packer.name(content_digest(message)) for message in originals]
        known = self._keys(namespace, names)
        fresh = {
            name: message
            for name, message in zip(names, originals, strict=True)
            if name not in known
        }
        if fresh:
            known |= self._insert(namespace, fresh)
        return [known[name] for name in names]

    def _keys(self, namespace: str, names: Sequence[bytes]) -> dict[bytes, int]:
        found: dict[bytes, int] = {}
        for some in _batches(dict.fromkeys(names), _AT_ONCE):
            query = select(messages.c.digest, messages.c.key).where(
                messages.c.namespace == namespace, messages.c.digest.in_(some)
            )
            found |= {bytes(row.digest): row.key for row in self.connection.execute(query)}
        return found

    def _insert(self, namespace: str, fresh: Mapping[bytes, Message]) -> dict[bytes, int]:
        rows: list[dict[str, Any]] = []
        lines: dict[int, list[bytes]] = {}
        for group in _blocks_of(fresh):
            block_key = self._new_block([line for _, line in group])
            lines[block_key] = [line for _, line in group]
            rows += [
                {"namespace": namespace, "digest": name, "block_key": block_key, "line": number}
                for number, (name, _) in enumerate(group)
            ]
        # In one order for everybody: two writers of the same messages must not wait in a circle.
        rows.sort(key=lambda row: row["digest"])
        self._insert_new(rows)
        known = self._keys(namespace, list(fresh))
        self._drop_lost(lines, rows)
        if self.indexed:
            mine = [(known[name], words(readable(m))) for name, m in fresh.items()]
            self._index(mine, set(lines))
        return known

    def _new_block(self, lines: Sequence[bytes]) -> int:
        result = self.connection.execute(
            insert(blocks).values(body=self.packer.pack(b"\n".join(lines)))
        )
        assert result.inserted_primary_key is not None
        return int(result.inserted_primary_key[0])

    def _insert_new(self, rows: list[dict[str, Any]]) -> None:
        dialect = self.connection.dialect.name
        make = postgresql.insert if dialect == "postgresql" else sqlite.insert
        self.connection.execute(make(messages).on_conflict_do_nothing(), rows)

    def _drop_lost(self, lines: dict[int, list[bytes]], rows: list[dict[str, Any]]) -> None:
        """Empty the lines that another writer archived first: one copy only can be forgotten."""
        query = select(messages.c.block_key, messages.c.line).where(
            messages.c.block_key.in_(list(lines))
        )
        won = {(row.block_key, row.line) for row in self.connection.execute(query)}
        for block_key, each in lines.items():
            kept = [line if (block_key, n) in won else b"" for n, line in enumerate(each)]
            if kept != each:
                self._keep(block_key, kept)

    def _index(self, found: list[tuple[int, list[str]]], mine: set[int]) -> None:
        query = select(messages.c.key).where(messages.c.block_key.in_(mine))
        won = set(self.connection.execute(query).scalars())
        add_words(self.connection, [(key, each) for key, each in found if key in won])

    def link(self, entry_key: int, keys: Sequence[int]) -> None:
        """Say which messages, in which order, an entry stands for."""
        rows = [
            {"entry_key": entry_key, "ordinal": ordinal, "message_key": key}
            for ordinal, key in enumerate(keys)
        ]
        if rows:
            self.connection.execute(insert(links), rows)

    # -------------------------------------------------------------- reading

    def of_entry(self, entry_key: int) -> list[Message]:
        """The originals of an entry, in order."""
        query = (
            select(links.c.message_key)
            .where(links.c.entry_key == entry_key)
            .order_by(links.c.ordinal)
        )
        keys = list(self.connection.execute(query).scalars())
        found = self.get(keys)
        return [found[key] for key in keys]

    def get(self, keys: Iterable[int]) -> dict[int, Message]:
        """Messages by their keys.

        Raises:
            LedgerCorrupt: one cannot be read.
        """
        found: dict[int, Message] = {}
        bodies: dict[int, list[bytes]] = {}
        for some in _batches(dict.fromkeys(keys), _AT_ONCE):
            query = select(messages).where(messages.c.key.in_(some))
            rows = self.connection.execute(query).all()
            self._read_blocks({row.block_key for row in rows} - bodies.keys(), bodies)
            for row in rows:
                found[row.key] = self._line(row, bodies[row.block_key])
        return found

    def _line(self, row: Any, lines: list[bytes]) -> Message:
        if not 0 <= row.line < len(lines) or not lines[row.line]:
            raise LedgerCorrupt(f"archived message {row.key}: its line of the block is missing")
        return load(lines[row.line])

    def _read_blocks(self, keys: set[int], into: dict[int, list[bytes]]) -> None:
        query = select(blocks.c.key, blocks.c.body).where(blocks.c.key.in_(keys))
        for row in self.connection.execute(query):
            try:
                into[row.key] = self.packer.unpack(row.body).split(b"\n")
            except LedgerCorrupt as error:
                raise LedgerCorrupt(f"archive block {row.key}: {error}") from error
        missing = keys - into.keys()
        if missing:
            raise LedgerCorrupt(f"archive block {min(missing)} is missing")

    # -------------------------------------------------------------- removing

    def remove(self, keys: Iterable[int]) -> None:
        """Take messages that no entry links any more out of archive and index."""
        for some in _batches(dict.fromkeys(keys), _AT_ONCE):
            query = select(messages).where(messages.c.key.in_(some))
            rows = self.connection.execute(query).all()
            if self.indexed:
                found = self.get(row.key for row in rows)
                gone = [(key, words(readable(message))) for key, message in found.items()]
                remove_words(self.connection, gone)
            lost: dict[int, set[int]] = {}
            for row in rows:
                lost.setdefault(row.block_key, set()).add(row.line)
            self.connection.execute(delete(messages).where(messages.c.key.in_(some)))
            self._empty_lines(lost)

    def _empty_lines(self, lost: dict[int, set[int]]) -> None:
        bodies: dict[int, list[bytes]] = {}
        self._read_blocks(set(lost), bodies)
        for block_key, lines in bodies.items():
            kept = [b"" if n in lost[block_key] else line for n, line in enumerate(lines)]
            self._keep(block_key, kept)

    def _keep(self, block_key: int, lines: Sequence[bytes]) -> None:
        """Write the block anew, or remove it with its last line."""
        if any(lines):
            body = self.packer.pack(b"\n".join(lines))
            change = update(blocks).where(blocks.c.key == block_key).values(body=body)
            self.connection.execute(change)
        else:
            self.connection.execute(delete(blocks).where(blocks.c.key == block_key))


def _blocks_of(fresh: Mapping[bytes, Message]) -> Iterator[list[tuple[bytes, bytes]]]:
    group: list[tuple[bytes, bytes]] = []
    size = 0
    for name, message in fresh.items():
        line = dump(message)
        if group and size + len(line) > _BLOCK_BYTES:
            yield group
            group, size = [], 0
        group.append((name, line))
        size += len(line)
    if group:
        yield group


def _batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    everything = list(items)
    for start in range(0, len(everything), size):
        yield everything[start : start + size]
