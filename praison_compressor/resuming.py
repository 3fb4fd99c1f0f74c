"""A stored session, gone on from: its whole transcript out of the ledger."""

from __future__ import annotations

from .ledger import Session, Store
from .messages import Message
from .result import CompressResult

__all__ = ["in_full", "transcript_of"]


def transcript_of(store: Store, namespace: str, session_id: str) -> list[Message]:
    """The session's transcript as the store has it; any of its epochs' ids names it.

    Raises:
        SessionNotFound: nothing of that name was ever compressed in this store.
    """
    store.lineage(namespace, session_id)  # opening a name that nobody has would not be an error
    return store.transcript(store.open(namespace, session_id))


def in_full(messages: list[Message], session: Session, tokens: int) -> CompressResult:
    """The whole transcript as a result: nothing in it is represented."""
    return CompressResult(
        messages=messages,
        context_status="full",
        tokens_before=tokens,
        tokens_after=tokens,
        session_id=session.tip,
        parent_session_id=session.parent,
        summary_method=None,
    )
