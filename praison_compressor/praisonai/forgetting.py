"""`forget`, through to the host: the child sessions that the mirror showed there go too."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..store import Erased, SqlStore

__all__ = ["Forgotten", "default_host", "forget"]

log = logging.getLogger(__name__)


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
    if host is None:
        return Forgotten(erased)
    children = [
        epoch.id
        for name in erased.sessions
        for epoch in ledger.lineage(namespace, name)
        if epoch.session_id == name != epoch.id
    ]
    kept = [child for child in children if _is_there(host, child)]
    gone = tuple(child for child in kept if _removed(host, child))
    left = [f"the host's session {c} could not be removed" for c in kept if c not in gone]
    return Forgotten(erased, gone, (*left, *_left(host, erased.sessions, any_gone=bool(gone))))


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


def _left(host: Any, sessions: Sequence[str], *, any_gone: bool) -> Iterator[str]:
    for name in sessions:
        if _is_there(host, name):
            yield f"the host's own session {name} has its transcript; delete it there"
    database = getattr(host, "db_path", None)
    if any_gone and database:
        # The host's databases do not clear what they free.
        yield f"freed pages of {database} may hold old bytes; VACUUM it"
    if any_gone and getattr(host, "_mirror_writer", None) is not None:
        yield "the host copies its sessions elsewhere (its own mirror); remove them there"


def default_host() -> Any:
    """The host's session store of this user; None where there is no host, or no sessions of it."""
    try:
        from praisonaiagents.paths import get_sessions_dir
        from praisonaiagents.session import get_default_session_store
    except ImportError:
        return None
    # The store would make the directory.
    return get_default_session_store() if get_sessions_dir().is_dir() else None
