"""What is written to a payload column: compressed, encrypted with a codec, checksummed."""

from __future__ import annotations

import binascii
import hashlib
import hmac
import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from ..errors import LedgerCorrupt
from ..messages import Message

__all__ = ["Codec", "Packer", "dump", "load"]


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
