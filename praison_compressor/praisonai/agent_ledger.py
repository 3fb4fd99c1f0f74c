"""Open an agent's ledger; find and forget its stored sessions."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import Any

from ..compressor.stored_sessions import default_store
from ..config import CompressorConfig
from ..errors import ConfigError, LedgerError
from ..ledger.memory_store import MemoryStore
from ..ledger.segments import Session
from ..ledger.sql.database import default_path
from ..ledger.sql.store import open_store
from ..ledger.stores import DurableStore, Store
from ..messages import digest

logger = logging.getLogger(__name__)


def agent_title(agent: Any) -> str:
    """Return the agent's name for a log line."""
    return str(getattr(agent, "display_name", "(gone)"))


def session_id_of(agent: Any) -> str | None:
    """Return the agent's session id from the host or `context=`, or None."""
    from_context = getattr(agent._context_param, "claim_session", lambda agent: None)
    return _host_session_id(agent) or from_context(agent)


def _host_session_id(agent: Any) -> str | None:
    ids = (getattr(agent, name, None) for name in ("_history_session_id", "_session_id"))
    return next((name for name in ids if isinstance(name, str) and name), None)


def host_store(agent: Any) -> Any:
    """Return the host's store of the session if on disk, else None."""
    # A database (`db=`) may be on another machine: its conversations must not reach this disk.
    is_known = hasattr(agent, "_session_store") and hasattr(agent, "_db")
    if _host_session_id(agent) is None or not is_known or agent._db is not None:
        return None
    store = agent._session_store
    if store is None:
        if getattr(agent, "_session_store_initialized", False):
            return None
        # Open the store now: the host opens it only in its first turn.
        try:
            from praisonaiagents.session import get_default_session_store
        except ImportError:
            return None
        store = get_default_session_store()
    directory, database = getattr(store, "session_dir", None), getattr(store, "db_path", None)
    on_disk = isinstance(directory, str) and database != ":memory:"
    return store if on_disk else None


def open_agent_ledger(config: CompressorConfig, agent: Any) -> Store:
    """Return the store of an agent's ledger, in memory after a failure."""
    name = agent_title(agent)
    try:
        store = _open_store(config, agent)
        if isinstance(store, DurableStore):
            store.check()
    except (ConfigError, LedgerError) as error:
        store = MemoryStore()
        warning = "agent %s: its ledger stays in memory and ends with this process: %s"
        logger.error(warning, name, error)
    logger.info("agent %s: its ledger is in %s", name, store_place(store))
    return store


def _open_store(config: CompressorConfig, agent: Any) -> Store:
    url, on_disk = config.store_url, host_store(agent)
    if url is None and on_disk is None:
        return MemoryStore()
    sessions = getattr(agent, "_session_store", None) if on_disk is None else on_disk
    codec = None
    if any("encrypt" in kind.__name__.lower() for kind in type(sessions).__mro__):
        codec = _codec_of(sessions)
        url = url or str(default_path(encrypted=True))
    elif url is not None:
        return default_store(config)
    return open_store(url, codec=codec, redact_secrets=config.redact_secrets is not False)


def _codec_of(store: Any) -> Any:
    codec = getattr(store, "_fernet", None)
    if hasattr(codec, "encrypt") and hasattr(codec, "decrypt"):
        return codec
    name = type(store).__name__
    raise ConfigError(
        f"the agent's sessions are encrypted by a {name}, which has no usable key; name store_url"
    )


def store_place(store: Store) -> str:
    """Return where a ledger is, without secrets."""
    return store.location if isinstance(store, DurableStore) else "memory"


def host_leftovers(host: Any, sessions: Sequence[str]) -> tuple[str, ...]:
    """Return a sentence for each session that the host still has."""
    left = [name for name in sessions if host is not None and _is_stored(host, name)]
    sentence = "the host's own session {} has its transcript; delete it there"
    return tuple(map(sentence.format, left))


def _is_stored(host: Any, session_id: str) -> bool:
    try:
        return bool(host.session_exists(session_id))
    except Exception:
        logger.warning("the host's session %s cannot be looked up", session_id, exc_info=True)
        return True


def default_host_store() -> Any:
    """Return the host's session store of this user, or None."""
    try:
        from praisonaiagents.paths import get_sessions_dir
        from praisonaiagents.session import get_default_session_store
    except ImportError:
        return None
    # Open no missing store: opening would make the directory.
    return get_default_session_store() if get_sessions_dir().is_dir() else None


MOST_SESSIONS_COMPARED = 8
"""Newest sessions under one host id that are compared with a request."""


def stored_sessions(store: Store, namespace: str, host_id: str) -> Iterator[Session]:
    """Yield a ledger's sessions under a host id, the newest first."""
    below: list[str] = []
    if isinstance(store, DurableStore):
        below = store.ids_with_prefix(namespace, f"{host_id}~", MOST_SESSIONS_COMPARED)
    for name in (*below, host_id):
        session = store.open(namespace, name)
        if session.entries or store.transcript(session):
            yield session


def has_any_message(store: Store, session: Session, sent: Sequence[str]) -> bool:
    """Return whether a session has a message of `sent[1:]`, by digest."""
    digests = {name for entry in session.entries for name in entry.segment.run}
    digests.update(map(digest, store.transcript(session)))
    return not digests.isdisjoint(sent[1:])
