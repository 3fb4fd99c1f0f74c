"""Open an agent's ledger; find and forget its stored sessions."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..compressor.projection import default_store
from ..config import CompressorConfig
from ..errors import ConfigError, LedgerError, StoreUnavailable
from ..ledger.memory_store import MemoryStore
from ..ledger.segments import Session
from ..ledger.sql.database import default_path
from ..ledger.sql.store import open_store
from ..ledger.stores import Erased, Store, as_durable_store
from ..messages import digest

log = logging.getLogger(__name__)


def title_of(agent: Any) -> str:
    """Return the agent's name for a log line."""
    return str(getattr(agent, "display_name", "(gone)"))


def session_id_of(agent: Any) -> str | None:
    """Return the session id from the host, else from `context=`, or None."""
    given = getattr(agent._context_param, "session_for", lambda agent: None)
    return hosts_session_id(agent) or given(agent)


def hosts_session_id(agent: Any) -> str | None:
    """Return the host's session id of the agent, or None."""
    given = (getattr(agent, name, None) for name in ("_history_session_id", "_session_id"))
    return next((each for each in given if isinstance(each, str) and each), None)


def host_session(agent: Any) -> tuple[Any, str] | None:
    """Return the host's store on disk and the agent's session id.

    A database adapter (`db=`) or a store without a directory may be on another machine, whose
    conversations must not be written to a disk here.
    """
    session_id, nothing = hosts_session_id(agent), object()
    store = getattr(agent, "_session_store", nothing)
    if session_id is None or store is nothing or getattr(agent, "_db", nothing) is not None:
        return None
    if store is None:
        if getattr(agent, "_session_store_initialized", False):
            return None  # the host found none
        # The host opens its store in the first turn: this one.
        try:
            from praisonaiagents.session import get_default_session_store
        except ImportError:
            return None  # `install` has logged it
        store = get_default_session_store()
    directory, database = getattr(store, "session_dir", None), getattr(store, "db_path", None)
    on_disk = isinstance(directory, str) and database != ":memory:"
    return (store, session_id) if on_disk else None


def ledger_of(config: CompressorConfig, agent: Any) -> Store:
    """Return the store for an agent's ledger; log its place.

    If the store cannot be opened, the ledger is in memory; the reason is logged.
    """
    name = title_of(agent)
    try:
        store = _opened(config, agent)
        if (kept := as_durable_store(store)) is not None:
            kept.check()
    except (ConfigError, LedgerError) as error:
        store = MemoryStore()
        said = "agent %s: its ledger stays in memory and ends with this process: %s"
        log.error(said, name, error)
    log.info("agent %s: its ledger is in %s", name, place_of(store))
    return store


def _opened(config: CompressorConfig, agent: Any) -> Store:
    session = host_session(agent)
    if config.store_url is None and session is None:
        return MemoryStore()
    url, codec = config.store_url, None
    hosts = session[0] if session is not None else getattr(agent, "_session_store", None)
    if any("encrypt" in kind.__name__.lower() for kind in type(hosts).__mro__):
        codec, url = _codec_of(hosts), url or str(default_path(encrypted=True))
    elif url is not None:
        return default_store(config)
    return open_store(url, codec=codec, mask_secrets=config.redact_secrets is not False)


def _codec_of(hosts: Any) -> Any:
    """Return the codec of the host's encrypted store."""
    codec = getattr(hosts, "_fernet", None)
    if hasattr(codec, "encrypt") and hasattr(codec, "decrypt"):
        return codec
    kind = type(hosts).__name__
    raise ConfigError(
        f"the agent's sessions are encrypted by a {kind}, which has no usable key; name store_url"
    )


def place_of(store: Store) -> str:
    """Return the place of a ledger in words without a secret."""
    return str(getattr(store, "place", "memory"))


@dataclass(frozen=True)
class Forgotten:
    """What was removed from the ledger, and what the host still has."""

    erased: Erased
    left: tuple[str, ...] = ()
    """One sentence for each session that the host still has."""


def forget(ledger: Store, namespace: str, target: str, host: Any = None) -> Forgotten:
    """Remove a session or a message (by its digest) from the ledger.

    `host` is the host's session store, whose sessions are only reported.

    Raises:
        SessionNotFound: no such session or message in this namespace.
        StoreUnavailable: the ledger cannot be reached, or it is this process's memory.
    """
    kept = as_durable_store(ledger)
    if kept is None:
        raise StoreUnavailable(
            "the ledger is in memory: nothing of it is kept, and it ends with this process"
        )
    erased = kept.forget(namespace, target)
    there = () if host is None else (name for name in erased.sessions if _is_there(host, name))
    said = "the host's own session {} has its transcript; delete it there"
    return Forgotten(erased, tuple(said.format(name) for name in there))


def _is_there(host: Any, session_id: str) -> bool:
    try:
        return bool(host.session_exists(session_id))
    except Exception:
        log.warning("the host's session %s cannot be looked up", session_id, exc_info=True)
        return True


def default_host() -> Any:
    """Return the host's session store of this user, or None."""
    try:
        from praisonaiagents.paths import get_sessions_dir
        from praisonaiagents.session import get_default_session_store
    except ImportError:
        return None
    # The store would make the directory.
    return get_default_session_store() if get_sessions_dir().is_dir() else None


LOOKED_AT = 8
"""Newest stored sessions under one host id that are compared with a request."""


def stored_under(store: Store, namespace: str, key: str) -> Iterator[Session]:
    """Yield a ledger's sessions under a host's id, the newest first."""
    kept = as_durable_store(store)
    below = [] if kept is None else kept.ids_with_prefix(namespace, f"{key}~", LOOKED_AT)
    for name in (*below, key):
        session = store.open(namespace, name)
        if session.entries or store.transcript(session):
            yield session


def has_one_of(store: Store, session: Session, sent: Sequence[str]) -> bool:
    """Return whether a stored session has one of the later messages."""
    known = {name for entry in session.entries for name in entry.segment.run}
    known.update(map(digest, store.transcript(session)))
    return not known.isdisjoint(sent[1:])
