"""A store opened for one command, and the arguments by which its sessions are named."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .. import CompressorConfig, CompressorError, StoreUnavailable
from ..ledger import Entry
from .terminal import one_line

if TYPE_CHECKING:
    from ..store import SqlStore

__all__ = ["Out", "SessionArgument", "default_of", "entries_of", "open_at"]


@contextlib.contextmanager
def open_at(url: str | None, *, new: bool = False) -> Iterator[SqlStore]:
    """The store at `url`, else where the environment says, else in the user's data directory.

    An encrypted one with the key in the environment: on a command line others would read it. With
    `new` a file that is not there is made.

    Raises:
        StoreUnavailable: there is no such file; a mistyped path must not be a sound, empty store.
    """
    from ..store import open_store

    config = CompressorConfig(store_url=url).with_environment()
    store = open_store(config.store_url or default_of(config), key=config.store_key)
    if not new and not store.is_there():
        raise StoreUnavailable(f"{store.place}: there is no such file; check --store")
    try:
        yield store
    finally:
        store.close()


def default_of(config: CompressorConfig) -> Path:
    """The file of agents that were told no store and whose host keeps their sessions."""
    from ..store import default_path

    plain = default_path()
    return default_path(encrypted=True) if config.store_key and not plain.exists() else plain


def _session_ids(context: typer.Context, incomplete: str) -> list[str]:
    """The sessions of the store on the command line, for a shell that completes."""
    given = context.params
    try:
        with open_at(given.get("store")) as opened:
            found = opened.sessions(given.get("namespace") or "default")
    except (CompressorError, ModuleNotFoundError):
        return []  # a shell that completes has nowhere to say what is wrong
    names = (info.id for info in found if info.id.startswith(incomplete))
    return [name for name in names if name == one_line(name)]  # a shell prints them as they are


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
