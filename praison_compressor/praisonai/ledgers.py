"""Open an agent's ledger; select what recall reads of it; forget a part of it."""

from __future__ import annotations

import functools
import logging
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from ..compressor.projection import default_store
from ..config import CompressorConfig
from ..errors import CompressorError, ConfigError, LedgerError, StoreUnavailable
from ..ledger.memory import MemoryStore
from ..ledger.segments import EVERY, Entry, Session, Store
from ..ledger.sql.database import default_path
from ..ledger.sql.maintenance import Erased
from ..ledger.sql.store import SqlStore, open_store
from ..ledger.words import Hit
from ..messages import Message, digest

log = logging.getLogger(__name__)


def session_id_of(agent: Any) -> str | None:
    """Return the session id that the host or `context=` gives, or None."""
    found = hosts_session_id(agent)
    given = getattr(agent._context_param, "session_for", None)
    return found if found is not None or given is None else given(agent)


def hosts_session_id(agent: Any) -> str | None:
    """Return the session id that the host has for the agent, or None."""
    for name in ("_history_session_id", "_session_id"):
        given = getattr(agent, name, None)
        if isinstance(given, str) and given:
            return given
    return None


def new_session_id() -> str:
    """Return a random id, so that two agents never share a session."""
    return f"agent-{secrets.token_hex(8)}"


def host_session(agent: Any) -> tuple[Any, str] | None:
    """Return the host's store on this disk and the agent's session, or None.

    A database adapter (`db=`) or a store without a directory may be on another machine: its
    conversations are not written to a disk here.
    """
    session_id, nothing = hosts_session_id(agent), object()
    store = getattr(agent, "_session_store", nothing)
    if session_id is None or store is nothing or getattr(agent, "_db", nothing) is not None:
        return None
    if store is None:
        if getattr(agent, "_session_store_initialized", False):
            return None  # the host tried and gave it up
        # The host looks for its store in the first turn; this is the one that it will find.
        try:
            from praisonaiagents.session import get_default_session_store
        except ImportError:
            return None  # `install` said so
        store = get_default_session_store()
    directory, database = getattr(store, "session_dir", None), getattr(store, "db_path", None)
    on_disk = isinstance(directory, str) and database != ":memory:"
    return (store, session_id) if on_disk else None


def is_encrypted(store: Any) -> bool:
    """Return whether a session store encrypts what it keeps."""
    return any("encrypt" in kind.__name__.lower() for kind in type(store).__mro__)


def ledger_of(config: CompressorConfig, agent: Any) -> Store:
    """Return the store for an agent's ledger; log its place.

    Where the store cannot be opened (a wrong URL or key, a path that is not writable), the ledger
    is in memory, and the log says why. A store that could not be reached is tried again.
    """
    name = getattr(agent, "display_name", None)
    memory = MemoryStore()
    try:
        store = _opened(config, agent)
        if isinstance(store, SqlStore):
            memory = StandIn(store)
            store.check()
    except (ConfigError, LedgerError) as error:
        store = memory if isinstance(error, StoreUnavailable) else MemoryStore()
        log.error(_FOR_NOW if isinstance(store, StandIn) else _FOR_GOOD, name, error)
    log.info("agent %s: its ledger is in %s", name, place_of(store))
    return store


_FOR_GOOD = "agent %s: its ledger stays in memory and ends with this process: %s"
_FOR_NOW = (
    "agent %s: its ledger stays in memory for now, and ends with this process if this is not "
    "mended before the first compression: %s"
)


class StandIn(MemoryStore):
    """The ledger in memory in the place of a store that could not be reached."""

    def __init__(self, store: SqlStore) -> None:
        super().__init__()
        self._store: SqlStore | None = store
        """None once nothing is waited for."""
        self._is_relieved = False

    def relieved(self) -> SqlStore | None:
        """Return the store once, if it can be opened by now.

        None after the first compression and while one is being written: only before that the
        change costs nothing. The store decides how often it is tried: it rests after failures.
        """
        store = self._store
        if store is None or self._is_in_use():
            return None
        try:
            store.check()
        except StoreUnavailable:
            return None
        except CompressorError as error:  # it is there, and cannot be used
            self._store = None
            log.error("its store was reached, and the ledger stays in memory for good: %s", error)
            return None
        with self._lock:
            if self._store is None or self._is_in_use():
                return None
            self._store, self._is_relieved = None, True
        return store

    def _is_in_use(self) -> bool:
        return bool(self._sessions or self._leases)

    def claim(self, session: Session, holder: str, seconds: float) -> bool:
        """Take the lease of a session, unless the store can be opened again."""
        with self._lock:
            if self._is_relieved:  # nobody would find what its holder is about to pay for
                raise StoreUnavailable("the ledger is no longer in memory: its store can be opened")
            return super().claim(session, holder, seconds)


def _opened(config: CompressorConfig, agent: Any) -> Store:
    session = host_session(agent)
    if config.store_url is None and session is None:
        return MemoryStore()
    url, codec = config.store_url, None
    keeper = session[0] if session is not None else getattr(agent, "_session_store", None)
    if is_encrypted(keeper):
        codec, url = _codec_of(keeper), url or str(default_path(encrypted=True))
    elif url is not None:
        return default_store(config)
    return open_store(url, codec=codec, mask_secrets=config.redact_secrets is not False)


def _codec_of(keeper: Any) -> Any:
    """Return the codec of the host's encrypted store, for the ledger too."""
    codec = getattr(keeper, "_fernet", None)
    if hasattr(codec, "encrypt") and hasattr(codec, "decrypt"):
        return codec
    kind = type(keeper).__name__
    raise ConfigError(f"the agent's sessions are encrypted by a {kind} whose key cannot be used")


def place_of(store: Store) -> str:
    """Return the place of a ledger in words without a secret."""
    return str(getattr(store, "place", "memory"))


@dataclass(frozen=True)
class Forgotten:
    """What was removed, and what remains for the caller to remove."""

    erased: Erased
    """Of the ledger."""
    left: tuple[str, ...] = ()
    """What the host still holds, one sentence each."""


def forget(ledger: Store, namespace: str, target: str, host: Any = None) -> Forgotten:
    """Remove a session or a message (by its digest) from the ledger.

    `host` is the host's session store; `left` names the sessions that it still has.

    Raises:
        SessionNotFound: no such session or message in this namespace.
        StoreUnavailable: the ledger cannot be reached, or it is this process's memory.
    """
    if not isinstance(ledger, SqlStore):
        raise StoreUnavailable(
            "the ledger is in memory: nothing of it is kept, and it ends with this process"
        )
    erased = ledger.forget(namespace, target)
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


# ------------------------------------------------------------ what recall reads


@dataclass(frozen=True)
class Archive:
    """A ledger's store as recall reads it: without what the conversation took back."""

    store: Store
    hidden: frozenset[str]
    """Hashes of the entries that are left out."""

    def originals(
        self, session: Session, entry: Entry, wanted: slice = EVERY
    ) -> list[Message] | None:
        """Return an entry's archived messages, or None if left out."""
        return None if entry.hash in self.hidden else self.store.originals(session, entry, wanted)

    def search(self, *asked: Any, **options: Any) -> list[Hit]:
        """Return the messages that match, best first."""
        found = self.store.search(*asked, **options)
        return [hit for hit in found if hit.entry not in self.hidden]


def archive_of(
    store: Store, namespace: str, session_id: str, reads: Callable[[Entry], bool]
) -> Store:
    """Return a session's archive, without the entries that recall may not read."""
    entries = store.open(namespace, session_id).entries
    archive = Archive(store, frozenset(e.hash for e in entries if not reads(e)))
    return cast("Store", archive)  # all of a store that recall asks


@dataclass(frozen=True)
class Stored:
    """A session of the ledger that may be a conversation's."""

    id: str
    digests: Callable[[], frozenset[str]]
    """Of all messages that the ledger has of it."""

    def carries(self, sent: Sequence[str]) -> bool:
        """Return whether the session has more of these messages than the first one."""
        return len(sent) > 1 and not self.digests().isdisjoint(sent[1:])


LOOKED_AT = 8
"""Stored sessions under one host id that are compared with a request, the newest."""


def stored_under(store: Store, namespace: str, key: str) -> Iterator[Stored]:
    """Yield the sessions that a ledger has under a host's id, the newest first."""
    below = getattr(store, "names_below", None)  # memory ends with the process: nothing to list
    names = () if below is None else below(namespace, f"{key}~", LOOKED_AT)
    for each in (*names, key):
        session = store.open(namespace, each)
        if session.entries or store.transcript(session):
            yield Stored(session.id, functools.partial(_digests_of, store, session))


def _digests_of(store: Store, session: Session) -> frozenset[str]:
    runs = {found for entry in session.entries for found in entry.segment.run}
    return frozenset(runs.union(map(digest, store.transcript(session))))
