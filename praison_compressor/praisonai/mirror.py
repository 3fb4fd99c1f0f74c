"""Shows each compression in the host's own session store, as a child of the agent's session."""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import StoreUnavailable
from ..forks import renewed
from ..ledger import Epoch, Store
from ..messages import Message, text_of
from ..prompts import unframe
from ..result import CompressResult
from .ledgers import host_session, is_encrypted

if TYPE_CHECKING:
    from .forgetting import Forgotten

__all__ = ["Mirror"]

log = logging.getLogger(__name__)

FILES = ("DefaultSessionStore", "SqliteSessionStore")
"""Stores of the host whose sessions are files that its `HierarchicalSessionStore` reads too."""


class Mirror:
    """One agent's. What fails here is said once and harms nothing: the ledger is the truth."""

    def __init__(self, agent: weakref.ref[Any], ledger: Callable[[], Store]) -> None:
        self._agent = agent
        self._ledger = ledger
        self._lock = renewed(threading.Lock())
        self._shown: str | None = None
        self._failed = False

    def show(self, namespace: str, result: CompressResult) -> None:
        """Write the epoch of a view's newest summary, unless it is there; never raises."""
        if not result.segments:
            return
        with self._lock:
            if result.session_id == self._shown:
                return
            self._shown = result.session_id
            try:
                self._write(namespace, result)
            except Exception:
                self._say()

    def forget(self, namespace: str, target: str) -> Forgotten:
        """Remove a session or a message from the ledger, and the children that showed it.

        Raises:
            LedgerError: as `SqlStore.forget` does, or the ledger is this process's memory.
        """
        from ..store import SqlStore
        from .forgetting import forget

        ledger = self._ledger()
        if not isinstance(ledger, SqlStore):
            raise StoreUnavailable(
                "the ledger is in memory: nothing of it is kept, and it ends with this process"
            )
        session = host_session(self._agent())
        with self._lock:
            return forget(ledger, namespace, target, None if session is None else session.store)

    def _say(self) -> None:
        if not self._failed:
            self._failed = True
            log.warning("compressions are not shown in the host's session store", exc_info=True)

    def _write(self, namespace: str, result: CompressResult) -> None:
        session = host_session(self._agent())
        if session is None:
            return
        chain = _summarized(self._ledger(), namespace, result.session_id)
        store = _hierarchical(session.store)
        if not chain or store.session_exists(chain[-1].id):
            return
        child, stable = chain[-1], chain[-1].session_id
        if stable != session.id and not store.session_exists(stable):
            return  # a session that a command began: the host does not know it
        # An agent that only ever used `achat` has its session's name, and no transcript there: the
        # host opens its store in `chat` alone. The child then opens the parent.
        parent = next((e.id for e in reversed(chain[:-1]) if store.session_exists(e.id)), stable)
        known = {
            "parent_id": parent,
            "parent_session_id": parent,
            "lineage_id": stable,
            "title": f"{stable}, compressed ({len(chain)})",
        }
        _create(store, child.id, known)
        for role, text in _said(result):
            store.add_message(child.id, role, text)
        # The host's search shows one hit for a lineage.
        store.update_session_metadata(stable, lineage_id=stable)


def _summarized(ledger: Store, namespace: str, session_id: str) -> list[Epoch]:
    """The epochs that began with a summary, oldest first; masks are not worth a session each."""
    entries = ledger.open(namespace, session_id).entries
    begun = {entry.epoch for entry in entries if entry.segment.kind == "summary"}
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


def _create(store: Any, child: str, known: dict[str, str]) -> None:
    create = getattr(store, "create_session", None)
    if create is not None:
        create(session_id=child, parent_id=known["parent_id"], title=known["title"], metadata=known)
    else:
        store.update_session_metadata(child, **known)


def _said(result: CompressResult) -> Iterator[tuple[str, str]]:
    """The summaries, then the words that were kept.

    Without the tool steps: the host drops their ids on resume, and calls without answers are
    refused by providers. They are whole in the ledger.
    """
    summaries: Sequence[Message] = [segment.rendered for segment in result.segments]
    for summary in summaries:
        yield "system", unframe(summary)
    for message in result.messages:
        text = text_of(message)
        if text and message.get("role") in ("user", "assistant") and message not in summaries:
            yield message["role"], text
