"""In which store an agent's ledger is: where its own session is kept, or where it was told."""

from __future__ import annotations

import logging
from typing import Any, NamedTuple

from ..config import CompressorConfig
from ..defaults import default_store
from ..errors import ConfigError, LedgerError
from ..ledger import Store
from ..memory import MemoryStore

__all__ = ["HostSession", "host_session", "is_encrypted", "ledger_of", "place_of"]

log = logging.getLogger(__name__)


class HostSession(NamedTuple):
    """An agent's session in a store of the host that writes to this machine's disk."""

    store: Any
    id: str


def host_session(agent: Any) -> HostSession | None:
    """The agent's persistent session; None where the host forgets it, or keeps it elsewhere.

    A database adapter (`db=`) or a store without a directory may be on another machine: what is
    said there is no reason to write it to a disk here.
    """
    session_id = getattr(agent, "_session_id", None) or getattr(agent, "_history_session_id", None)
    if not isinstance(session_id, str) or getattr(agent, "_db", None) is not None:
        return None
    store = getattr(agent, "_session_store", None)
    if store is None:
        if getattr(agent, "_session_store_initialized", False):
            return None  # the host tried and gave it up
        # The host looks for its store in the first turn; this is the one that it will find.
        from praisonaiagents.session import get_default_session_store

        store = get_default_session_store()
    return HostSession(store, session_id) if _on_disk(store) else None


def _on_disk(store: Any) -> bool:
    directory, database = getattr(store, "session_dir", None), getattr(store, "db_path", None)
    return isinstance(directory, str) and database != ":memory:"


def is_encrypted(store: Any) -> bool:
    """Whether a store of the host, or of anyone else, encrypts what it keeps."""
    return any("encrypt" in kind.__name__.lower() for kind in type(store).__mro__)


def ledger_of(config: CompressorConfig, agent: Any) -> Store:
    """The store for an agent's ledger; which one it is, is logged.

    One that can never be opened (a wrong URL, a wrong key) costs an agent what outlives its
    process, not its compression: the ledger is in memory then, and the log says why.
    """
    store = _chosen(config, host_session(agent), getattr(agent, "_session_store", None))
    log.info("agent %s: its ledger is in %s", getattr(agent, "display_name", None), place_of(store))
    return store


def place_of(store: Store) -> str:
    """Where a ledger is, in words that hold no secret."""
    return str(getattr(store, "place", "memory"))


def _chosen(config: CompressorConfig, session: HostSession | None, given: Any) -> Store:
    keeper = session.store if session is not None else given
    if config.store_url is None and session is None:
        return MemoryStore()
    if keeper is not None and is_encrypted(keeper):
        return _encrypted(config, keeper)
    if config.store_url is None:
        return _reached(config, None, None)
    try:
        return default_store(config)
    except (ConfigError, LedgerError) as error:
        return _in_memory(error)


def _encrypted(config: CompressorConfig, keeper: Any) -> Store:
    """With the key of the host's store; never plain beside it."""
    codec = getattr(keeper, "_fernet", None)
    if not (hasattr(codec, "encrypt") and hasattr(codec, "decrypt")):
        log.error(
            "the agent's sessions are encrypted by a %s whose key cannot be used; its ledger "
            "stays in memory",
            type(keeper).__name__,
        )
        return MemoryStore()
    from ..store import default_path

    url = config.store_url or str(default_path(encrypted=True))
    return _reached(config, url, codec)


def _reached(config: CompressorConfig, url: str | None, codec: Any) -> Store:
    """A store that nobody named must not cost an agent its compression when it fails."""
    from ..store import open_store

    try:
        store = open_store(url, codec=codec, mask_secrets=config.redact_archive)
        store.check()
    except LedgerError as error:
        return _in_memory(error)
    return store


def _in_memory(error: Exception) -> Store:
    log.error("the ledger stays in memory and ends with this process: %s", error)
    return MemoryStore()
