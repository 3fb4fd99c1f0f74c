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
    mask_secrets: bool = True,
) -> SqlStore:
    """The store at a path, `sqlite:///path` or `postgresql://…`; None: the platform's directory.

    With a `codec` payloads are encrypted; without `mask_secrets` keys and tokens are archived too.

    Raises:
        StoreUnavailable: the URL cannot be read; the store itself is reached at first use.
    """
    return SqlStore(url, codec=codec, mask_secrets=mask_secrets)
