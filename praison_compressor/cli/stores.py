"""A store opened for one command, and the arguments by which its sessions are named."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Annotated

import typer

from .. import CompressorConfig, CompressorError
from ..ledger import Entry

if TYPE_CHECKING:
    from ..store import SqlStore

__all__ = ["Out", "SessionArgument", "entries_of", "open_at", "when"]


@contextlib.contextmanager
def open_at(url: str | None) -> Iterator[SqlStore]:
    """The store at `url`, else where the environment says, else in the user's data directory.

    An encrypted one with the key in the environment: on a command line others would read it.
    """
    from ..store import default_path, open_store

    config = CompressorConfig(store_url=url).with_environment()
    place: str | os.PathLike[str] | None = config.store_url
    if place is None and config.store_key and not default_path().exists():
        place = default_path(encrypted=True)
    store = open_store(place, key=config.store_key)
    try:
        yield store
    finally:
        store.close()


def _session_ids(context: typer.Context, incomplete: str) -> list[str]:
    """The sessions of the store on the command line, for a shell that completes."""
    given = context.params
    try:
        with open_at(given.get("store")) as opened:
            found = opened.sessions(given.get("namespace") or "default")
    except (CompressorError, ModuleNotFoundError):
        return []  # a shell that completes has nowhere to say what is wrong
    return [info.id for info in found if info.id.startswith(incomplete)]


SessionArgument = Annotated[
    str,
    typer.Argument(
        metavar="SESSION",
        help="Its stable id, or any of its epochs'.",
        autocompletion=_session_ids,
    ),
]
Out = Annotated[
    str | None, typer.Option("--out", metavar="FILE", help="Write there; - is standard output.")
]


def entries_of(store: SqlStore, namespace: str, session: str) -> tuple[Entry, ...]:
    """The session's ledger.

    Raises:
        SessionNotFound: no such session in this namespace.
    """
    store.lineage(namespace, session)  # opening a name that nobody has would not be an error
    return store.open(namespace, session).entries


def when(seconds: float) -> str:
    if not seconds:
        return "-"
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
