"""The ledger in a database: SQLite for one machine, PostgreSQL for many, one implementation."""

from __future__ import annotations

import os

from .audit import Fault
from .database import default_path
from .erasure import Erased, Export
from .pack import Codec
from .reading import SessionInfo
from .searching import Hit
from .sql import SqlStore

__all__ = [
    "Codec",
    "Erased",
    "Export",
    "Fault",
    "Hit",
    "SessionInfo",
    "SqlStore",
    "default_path",
    "open_store",
]


def open_store(
    url: str | os.PathLike[str] | None = None,
    *,
    codec: Codec | None = None,
    key: str | None = None,
    mask_secrets: bool = True,
) -> SqlStore:
    """The store at a path, `sqlite:///path` or `postgresql://…`; None: the platform's directory.

    With a `codec` it is encrypted or refused. With a `key` (Fernet) it is encrypted if it is new or
    was so before; a plain one stays plain. Without `mask_secrets` keys and tokens are archived too.

    Raises:
        StoreUnavailable: the URL cannot be read; the store itself is reached at first use.
        ConfigError: the key is none.
    """
    if codec is None and key is not None:
        from .keys import codec_of

        return SqlStore(url, codec=codec_of(key), plain_too=True, mask_secrets=mask_secrets)
    return SqlStore(url, codec=codec, mask_secrets=mask_secrets)
