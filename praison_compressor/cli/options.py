"""Declare the options that commands share; open the store that they name."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..config import MOST, CompressorConfig, nearest
from ..errors import CompressorError, SessionNotFound, StoreUnavailable
from ..ledger.segments import Session
from ..messages.display import one_line
from ..tokens.models import GUESSED_WINDOW
from .terminal import Unusable

if TYPE_CHECKING:
    from ..ledger.sql.store import SqlStore

# ---------------------------------------------------------------- numbers

_COUNT = re.compile(r"(\d[\d_,]*(?:\.\d+)?)([km]?)", re.IGNORECASE)
_TIMES = {"": 1, "k": 1_000, "m": 1_000_000}


def whole(text: str | int) -> int:
    """Read a whole number: 32000, 32_000, 32,000, 32k or 1.5M.

    Raises:
        BadParameter: the text is no such number, or the number is absurd.
    """
    found = _count(str(text))
    if found is None:
        raise typer.BadParameter(f"{text!s:.60}: expected a whole number such as 32000 or 32k")
    return found


def _count(text: str) -> int | None:
    found = _COUNT.fullmatch(text.strip())
    if found is None:
        return None
    value = Decimal(re.sub("[_,]", "", found[1])) * _TIMES[found[2].lower()]
    return int(value) if value <= MOST and value == int(value) else None


# ---------------------------------------------------------------- options


def value(metavar: str, help: str, *names: str) -> Any:
    """Describe an option that takes a text."""
    return typer.Option(*names, metavar=metavar, help=help)


def count(metavar: str, help: str) -> Any:
    """Describe an option that takes a whole number."""
    return typer.Option(parser=whole, metavar=metavar, help=help)


def flag(name: str, help: str) -> Any:
    """Describe an option that takes nothing."""
    return typer.Option(name, help=help)


# A transcript and a view.
File = Annotated[str, typer.Argument(metavar="FILE", help="The transcript; - is standard input.")]
Conversation = Annotated[int | None, count("N", "Which conversation, where a file has several.")]
InSession = Annotated[
    str | None, value("ID", "The session it belongs to, in the store.", "--session")
]
Out = Annotated[str | None, value("FILE", "Write there, .jsonl a message a line; - is stdout.")]
Target = Annotated[int | None, count("TOKENS", "Make a view of at most TOKENS, in any window.")]
Force = Annotated[bool, flag("--force", "Compress although the transcript fits.")]
AsJson = Annotated[bool, flag("--json", "Print one JSON value, for a program.")]

# The configuration.
Model = Annotated[
    str | None, value("MODEL", "The model that reads the view: its window, its tokenizer.")
]
Window = Annotated[int | None, count("TOKENS", "Tokens the model takes (context_window).")]
KeepTokens = Annotated[
    int | None, count("TOKENS", "Newest tokens kept verbatim (protect_last_n_tokens).")
]
AuxiliaryModel = Annotated[
    str | None, value("MODEL", "The model that writes summaries; else they are static.")
]
Pin = Annotated[
    list[str] | None, value("TEXT", "A text that stays in the view word for word. Repeatable.")
]
_ANY = (
    "Any option of CompressorConfig, such as trigger_ratio=0.7 or tool_policies=keep_none; JSON "
    "where it is no number or text. Repeatable."
)
Setting = Annotated[list[str] | None, value("OPTION=VALUE", _ANY, "--set")]

# A store.
_STORE = (
    "The ledger, such as sqlite:///ledger.db; else that of PRAISON_COMPRESSOR_STORE. "
    "PRAISONAI_SESSION_KEY opens an encrypted one."
)
StoreUrl = Annotated[str | None, value("URL", _STORE, "--store")]
Namespace = Annotated[str, value("NAME", "The tenant.")]
DEFAULT = CompressorConfig.namespace

# ---------------------------------------------------------------- the configuration


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
    """Assume the usual window where neither window nor model is known."""
    is_known = config.context_window is not None or config.model is not None
    return config if is_known else replace(config, context_window=GUESSED_WINDOW)


def _setting(text: str) -> tuple[str, Any]:
    name, equals, given = text.partition("=")
    if not equals:
        raise Unusable(f"--set {one_line(text)}: expected OPTION=VALUE")
    return name.strip().replace("-", "_"), _value(given.strip())


def _value(text: str) -> Any:
    """Read a whole number, JSON, "none", or the text itself."""
    found = _count(text)
    if found is not None:
        return found
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None if text.lower() == "none" else text


# ---------------------------------------------------------------- stores and sessions

STORED_WHEN = (
    "A session is stored when it is first compressed: by an agent with "
    "CompressorContext(store_url=...) or PRAISON_COMPRESSOR_STORE, or by "
    "praison-compressor compress FILE --store URL --session ID."
)


@contextlib.contextmanager
def ledger(url: str | None, *, new: bool = False) -> Iterator[SqlStore]:
    """Open the named store, that of the environment, or the user's.

    Only `new` makes a ledger: a mistyped path is no empty store. The key of an encrypted ledger is
    in the environment, since others can read a command line.
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
    """Return a stored session by its name or an epoch's.

    Raises:
        SessionNotFound: there is none; with the nearest name.
    """
    try:
        store.lineage(namespace, name)  # `open` makes a session of an unknown name
    except SessionNotFound as error:
        meant = nearest(name, (info.id for info in store.sessions(namespace)))
        hint = f" (did you mean {meant!r}?)" if meant else ""
        raise SessionNotFound(f"{error}{hint}") from error
    return store.open(namespace, name)


def _session_ids(context: typer.Context, incomplete: str) -> list[str]:
    """Return the sessions that a shell may complete."""
    given = context.params
    namespace = given.get("namespace") or DEFAULT
    try:
        with ledger(given.get("store")) as store:
            names = [info.id for info in store.sessions(namespace)]
    except CompressorError:
        return []  # a shell that completes cannot show an error
    # A shell prints the names as they are.
    return [n for n in names if n.startswith(incomplete) and n == one_line(n)]


SessionId = Annotated[
    str,
    typer.Argument(
        metavar="SESSION",
        help="Its stable id, or the id of any of its epochs.",
        autocompletion=_session_ids,
    ),
]
