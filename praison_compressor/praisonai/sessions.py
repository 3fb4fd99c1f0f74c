"""Where an agent's ledger is kept, what recall reads of it, its compressions in the host's own
session store, and `forget` through to there.
"""

from __future__ import annotations

import functools
import logging
import secrets
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from ..compressor.context_compressor import default_store
from ..compressor.result import CompressResult
from ..config import CompressorConfig
from ..errors import CompressorError, ConfigError, LedgerError, StoreUnavailable
from ..ledger.memory import MemoryStore
from ..ledger.segments import EVERY, Entry, Epoch, Session, Store, in_force
from ..ledger.sql.database import default_path
from ..ledger.sql.erasure import Erased
from ..ledger.sql.store import SqlStore, open_store
from ..ledger.words import Hit
from ..messages import Message, digest, text_of
from ..messages.forks import renewed
from ..view.frame import unframe

log = logging.getLogger(__name__)


def session_id_of(agent: Any) -> str | None:
    """Return the session id that the host or the agent's `context=` gives; None without one."""
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


def restored_at_most(agent: Any) -> int:
    """Return the number of messages that the host restores of a session; 0: unknown."""
    most = getattr(getattr(agent, "_session_store", None), "max_messages", 0)
    return most if isinstance(most, int) else 0


def new_session_id() -> str:
    """A random one: agents of one name in one process must not meet in a ledger."""
    return f"agent-{secrets.token_hex(8)}"


def host_session(agent: Any) -> tuple[Any, str] | None:
    """The host's store on this machine's disk and the agent's session in it; None where the host
    forgets it, or keeps it elsewhere.

    A database adapter (`db=`) or a store without a directory may be on another machine: what is
    said there is no reason to write it to a disk here; nor what is said where we cannot tell.
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
    """Whether a store of the host, or of anyone else, encrypts what it keeps."""
    return any("encrypt" in kind.__name__.lower() for kind in type(store).__mro__)


def ledger_of(config: CompressorConfig, agent: Any) -> Store:
    """The store for an agent's ledger; which one it is, is logged.

    One that cannot be opened (a wrong URL or key, a path that is not writable) costs an agent what
    outlives its process, not its compression: the ledger is in memory then, and the log says why;
    for now where it could only not be reached.
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
        """The store, once, if it can be opened by now. None after the first compression and while
        one is being written: only before that the change costs nothing.

        How often it is tried is the store's to say, which rests after failures.
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
    """What the host's encrypted store encrypts with: a ledger is never plain beside it."""
    codec = getattr(keeper, "_fernet", None)
    if hasattr(codec, "encrypt") and hasattr(codec, "decrypt"):
        return codec
    kind = type(keeper).__name__
    raise ConfigError(f"the agent's sessions are encrypted by a {kind} whose key cannot be used")


def place_of(store: Store) -> str:
    """Where a ledger is, in words that hold no secret."""
    return str(getattr(store, "place", "memory"))


@dataclass(frozen=True)
class Forgotten:
    """What is gone, and what the caller must still see to."""

    erased: Erased
    """Of the ledger."""
    mirrored: tuple[str, ...] = ()
    """The host's child sessions that were removed, by their ids."""
    left: tuple[str, ...] = ()
    """What the host still holds, one sentence each."""


def forget(ledger: SqlStore, namespace: str, target: str, host: Any = None) -> Forgotten:
    """Remove a session or a message (by its digest) from the ledger and from the host's mirror.

    The mirrored children of every session that it touched are removed whole: each repeats summaries
    and the words that were newest then. The agent's own session in the host is the host's: where it
    is still there, `left` says so.

    Raises:
        SessionNotFound: no such session or message in this namespace.
        StoreUnavailable: nothing was removed.
    """
    erased = ledger.forget(namespace, target)
    gone: list[str] = []
    left: list[str] = []
    for name in erased.sessions if host is not None else ():
        for epoch in ledger.lineage(namespace, name):
            if epoch.session_id != name or epoch.id == name or not _is_there(host, epoch.id):
                continue
            if _removed(host, epoch.id):
                gone.append(epoch.id)
            else:
                left.append(f"the host's session {epoch.id} could not be removed")
        if _is_there(host, name):
            left.append(f"the host's own session {name} has its transcript; delete it there")
    if gone and getattr(host, "db_path", None):
        # The host's databases do not clear what they free.
        left.append(f"freed pages of {host.db_path} may hold old bytes; VACUUM it")
    if gone and getattr(host, "_mirror_writer", None) is not None:
        left.append("the host copies its sessions elsewhere (its own mirror); remove them there")
    return Forgotten(erased, tuple(gone), tuple(left))


def _is_there(host: Any, session_id: str) -> bool:
    try:
        return bool(host.session_exists(session_id))
    except Exception:
        log.warning("the host's session %s cannot be looked up", session_id, exc_info=True)
        return True  # then it cannot be removed either, and the caller learns of it


def _removed(host: Any, session_id: str) -> bool:
    try:
        return bool(host.delete_session(session_id)) and not host.session_exists(session_id)
    except Exception:
        log.warning("the host's session %s was not removed", session_id, exc_info=True)
        return False


def default_host() -> Any:
    """The host's session store of this user; None where there is no host, or no sessions of it."""
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
        """Return the archived messages of an entry; None for one that is left out."""
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


# ------------------------------------------------------------ compressions in the host's store


FILES = ("DefaultSessionStore", "SqliteSessionStore")
"""Stores of the host whose sessions are files that its `HierarchicalSessionStore` reads too."""


class Mirror:
    """One agent's. What fails here is said once and harms nothing: the ledger is the truth."""

    def __init__(self, agent: weakref.ref[Any], ledger: Callable[[], Store]) -> None:
        self._agent = agent
        self._ledger = ledger
        self._lock = renewed(threading.Lock())
        self._failed = False

    def show(self, namespace: str, result: CompressResult) -> None:
        """Write the epoch of a view's newest summary, unless it is there; never raises."""
        with self._lock:
            try:
                self._write(namespace, result)
            except Exception:
                level = logging.DEBUG if self._failed else logging.WARNING
                log.log(level, "not shown in the host's session store", exc_info=True)
                self._failed = True

    def forget(self, namespace: str, target: str) -> Forgotten:
        """Remove a session or a message from the ledger, and the children that showed it.

        Raises:
            LedgerError: as `SqlStore.forget` does, or the ledger is this process's memory.
        """
        ledger = self._ledger()
        if not isinstance(ledger, SqlStore):
            raise StoreUnavailable(
                "the ledger is in memory: nothing of it is kept, and it ends with this process"
            )
        session = host_session(self._agent())
        with self._lock:
            return forget(ledger, namespace, target, None if session is None else session[0])

    def _write(self, namespace: str, result: CompressResult) -> None:
        session = host_session(self._agent())
        if session is None:
            return
        chain = _summarized(self._ledger(), namespace, result.session_id)
        store = _hierarchical(session[0])
        if not chain or store.session_exists(chain[-1].id):
            return
        child, stable = chain[-1], chain[-1].session_id
        if stable != session[1] and not store.session_exists(stable):
            return  # a session that a command began: the host does not know it
        # An agent that only ever used `achat` has its session's name, and no transcript there: the
        # host opens its store in `chat` alone. The child then opens the parent.
        parent = next((e.id for e in reversed(chain[:-1]) if store.session_exists(e.id)), stable)
        title = f"{stable}, compressed ({len(chain)})"
        known = {"parent_id": parent, "parent_session_id": parent, "lineage_id": stable}
        if hasattr(store, "create_session"):
            store.create_session(
                session_id=child.id,
                parent_id=parent,
                title=title,
                metadata={**known, "title": title},
            )
        else:
            store.update_session_metadata(child.id, **known, title=title)
        for role, text in _said(result):
            store.add_message(child.id, role, text)
        # The host's search shows one hit for a lineage.
        store.update_session_metadata(stable, lineage_id=stable)


def _summarized(ledger: Store, namespace: str, session_id: str) -> list[Epoch]:
    """The epochs that began with a summary, oldest first; masks are not worth a session each."""
    entries = ledger.open(namespace, session_id).entries
    pairs = zip(entries, in_force(entries), strict=True)
    begun = {entry.epoch for entry, segment in pairs if segment.kind == "summary"}
    return [epoch for epoch in ledger.lineage(namespace, session_id) if epoch.id in begun]


def _hierarchical(store: Any) -> Any:
    """The host's store as one that keeps parents, encrypting as it does; itself if there is none.

    Sessions that are no files (a database) keep the parent in their metadata.
    """
    inner: Any = getattr(store, "_store", None) if is_encrypted(store) else store
    if type(inner).__name__ not in FILES:
        return store
    from praisonaiagents.session import HierarchicalSessionStore

    files = HierarchicalSessionStore(inner.session_dir)
    if inner is store:
        return files
    wrapped = object.__new__(type(store))
    wrapped.__dict__.update({**store.__dict__, "_store": files})
    return wrapped


def _said(result: CompressResult) -> Iterator[tuple[str, str]]:
    """The summaries, then the words that were kept.

    Without the tool steps: the host drops their ids on resume, and calls without answers are
    refused by providers. They are whole in the ledger.
    """
    summaries = [segment.rendered for segment in result.segments]
    yield from (("system", unframe(summary)) for summary in summaries)
    for message in result.messages:
        text = text_of(message)
        if text and message.get("role") in ("user", "assistant") and message not in summaries:
            yield message["role"], text
