"""Declare the parameters that commands share; open the store that they name."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from ..config import MOST, CompressorConfig, nearest
from ..errors import SessionNotFound, StoreUnavailable
from ..ledger.segments import Session
from ..messages.display import one_line
from ..tokens.models import GUESSED_WINDOW
from .terminal import Unusable

if TYPE_CHECKING:
    from ..ledger.sql.store import SqlStore

_NUMBER = re.compile(r"(\d[\d_,]*(?:\.\d+)?)([km]?)", re.IGNORECASE)
_TIMES = {"": 1, "k": 1_000, "m": 1_000_000}


def number_in(text: str | int) -> int:
    """Parse a whole number such as 32000, 32_000, 32,000, 32k or 1.5M.

    Raises:
        BadParameter: the text is no such number, or the number is above `MOST`.
    """
    found = _number(str(text))
    if found is None:
        raise typer.BadParameter(f"{text!s:.60}: expected a whole number such as 32000 or 32k")
    return found


def _number(text: str) -> int | None:
    found = _NUMBER.fullmatch(text.strip())
    if found is None:
        return None
    value = Decimal(re.sub("[_,]", "", found[1])) * _TIMES[found[2].lower()]
    return int(value) if value <= MOST and value == int(value) else None


def option(metavar: str, help: str, *names: str) -> Any:
    """Declare an option with a value; TOKENS and N are numbers."""
    parser = number_in if metavar in ("TOKENS", "N") else None
    return typer.Option(*names, metavar=metavar, help=help, parser=parser, show_default=False)


def argument(metavar: str, help: str) -> Any:
    """Declare a word that has no name."""
    return typer.Argument(metavar=metavar, help=help)


def switch(name: str, help: str) -> Any:
    """Declare an option without a value."""
    return typer.Option(name, help=help)


# ---------------------------------------------------------------- what a command is given

Count: TypeAlias = int | None
Name: TypeAlias = str | None
Names: TypeAlias = list[str] | None

File = Annotated[str, argument("FILE", "The transcript; - is standard input.")]
SessionId = Annotated[str, argument("SESSION", "Its id, or the id of any of its epochs.")]
Conversation = Annotated[Count, option("N", "The conversation to take, of several.")]
InSession = Annotated[
    Name, option("ID", "The session in the store that it belongs to.", "--session")
]
Out = Annotated[Name, option("FILE", "Write the view there (.jsonl: JSON Lines); - is stdout.")]
Target = Annotated[Count, option("TOKENS", "Make a view of at most TOKENS.")]
Force = Annotated[bool, switch("--force", "Compress although the transcript fits.")]
Keep = Annotated[
    Names,
    option(
        "MESSAGE",
        "Keep a message verbatim: a reference that `inspect --messages` prints, or an index. "
        "Repeatable.",
    ),
]
Since = Annotated[Name, option("MESSAGE", "Compress nothing before this message.")]
Until = Annotated[Name, option("MESSAGE", "Compress nothing from this message on.")]
AsJson = Annotated[bool, switch("--json", "Print one JSON value, for a program.")]

Model = Annotated[Name, option("MODEL", "The model that reads the view: its window and tokenizer.")]
Window = Annotated[Count, option("TOKENS", "The model's window (context_window).")]
KeepTokens = Annotated[
    Count, option("TOKENS", "Newest tokens kept verbatim (protect_last_n_tokens).")
]
AuxiliaryModel = Annotated[
    Name, option("MODEL", "The model that writes summaries. Default: static text.")
]
Pin = Annotated[Names, option("TEXT", "Keep TEXT in the view, word for word. Repeatable.")]
Setting = Annotated[
    Names,
    option(
        "OPTION=VALUE",
        "Set any option of CompressorConfig: trigger_ratio=0.7, tool_policies=keep_none. "
        "VALUE is a number, a text or JSON. Repeatable.",
        "--set",
    ),
]
StoreUrl = Annotated[
    Name,
    option(
        "URL",
        "The ledger: sqlite:///ledger.db, a path, or a PostgreSQL URL. Default: "
        "PRAISON_COMPRESSOR_STORE. PRAISONAI_SESSION_KEY opens an encrypted one.",
        "--store",
    ),
]
Namespace = Annotated[str, option("NAME", "The tenant. Default: default.")]
DEFAULT = CompressorConfig.namespace


def choices(keep: Sequence[str] | None, since: str | None, until: str | None) -> dict[str, Any]:
    """Return the given options of a call that choose messages, by reference or index."""
    kept = [_place(text) for text in keep or ()] or None
    found = {"keep": kept, "since": _place(since), "until": _place(until)}
    return {name: value for name, value in found.items() if value is not None}


def _place(text: str | None) -> str | int | None:
    return int(text) if text and text.isdecimal() else text or None


def configured(
    store: str | None,
    namespace: str,
    settings: Sequence[str] | None,
    model: str | None = None,
    window: int | None = None,
    auxiliary_model: str | None = None,
    keep_tokens: int | None = None,
    pins: Sequence[str] | None = None,
) -> CompressorConfig:
    """Return the configuration of a command, completed from the environment."""
    given = {
        "model": model,
        "context_window": window,
        "auxiliary_model": auxiliary_model,
        "protect_last_n_tokens": keep_tokens,
        "pinned": tuple(pins or ()) or None,
        "store_url": store,
        "namespace": namespace,
    }
    options = dict(map(_setting, settings or ()))
    options |= {name: value for name, value in given.items() if value is not None}
    return CompressorConfig.from_mapping(options).with_environment()


def with_window(config: CompressorConfig) -> CompressorConfig:
    """Return the configuration; guess its window if window and model are unknown."""
    is_known = config.context_window is not None or config.model is not None
    return config if is_known else replace(config, context_window=GUESSED_WINDOW)


def _setting(text: str) -> tuple[str, Any]:
    name, equals, given = text.partition("=")
    if not equals:
        raise Unusable(f"--set {one_line(text)}: expected OPTION=VALUE")
    return name.strip().replace("-", "_"), _value(given.strip())


def _value(text: str) -> Any:
    """Parse a whole number, JSON, "none", or the text itself."""
    found = _number(text)
    if found is not None:
        return found
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None if text.lower() == "none" else text


# ---------------------------------------------------------------- the store

STORED_WHEN = (
    "A session is stored when it is first compressed: by an agent with "
    "CompressorContext(store_url=...) or PRAISON_COMPRESSOR_STORE, or by "
    "praison-compressor compress FILE --store URL --session ID."
)


@contextlib.contextmanager
def ledger(url: str | None, *, new: bool = False) -> Iterator[SqlStore]:
    """Open the named store, that of the environment, or the user's.

    Without `new` a missing ledger is an error: a mistyped path is no empty store. The key of an
    encrypted ledger is in the environment, since others can read a command line.
    """
    from ..ledger.sql.database import default_path
    from ..ledger.sql.store import open_store

    config = CompressorConfig(store_url=url).with_environment()
    encrypted = config.store_key is not None and not default_path().exists()
    place = config.store_url or default_path(encrypted=encrypted)
    store = open_store(place, key=config.store_key)
    try:
        if not new and not store.is_there():
            raise StoreUnavailable(
                f"{store.place}: there is no such file, or no ledger in it; check --store. "
                + STORED_WHEN
            )
        yield store
    finally:
        store.close()


def existing(store: SqlStore, namespace: str, name: str) -> Session:
    """Return the stored session of an id or an epoch's id.

    Raises:
        SessionNotFound: there is none; the error has the nearest id.
    """
    try:
        store.lineage(namespace, name)  # `open` makes a session of an unknown name
    except SessionNotFound as error:
        meant = nearest(name, (info.id for info in store.sessions(namespace)))
        hint = f" (did you mean {meant!r}?)" if meant else ""
        raise SessionNotFound(f"{error}{hint}") from error
    return store.open(namespace, name)


def remembered(store: SqlStore, namespace: str, name: str) -> Session:
    """Return the stored session of an id, unless all of it was forgotten.

    Raises:
        SessionNotFound: there is none, or only tombstones of it.
    """
    found = existing(store, namespace, name)
    is_gone = found.entries and all(entry.forgotten for entry in found.entries)
    if is_gone and not store.transcript(found):
        raise SessionNotFound(f"session {name!r} was forgotten; only its tombstones are left")
    return found
