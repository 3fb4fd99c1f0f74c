"""Declare the parameters of commands; open the store that they name."""

from __future__ import annotations

import contextlib
import functools
import json
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from inspect import cleandoc
from typing import TYPE_CHECKING, Any

import click

from ..config import MOST_TOKENS, CompressorConfig, nearest_name
from ..errors import SessionNotFound, StoreUnavailable
from ..ledger.segments import Session
from ..messages.display import one_line
from ..recall.answers import Recall
from ..tokens.counter import TokenCounter
from ..tokens.models import GUESSED_WINDOW
from .terminal import Unusable, load_transcript

if TYPE_CHECKING:
    from ..ledger.sql.store import SqlStore

Function = Callable[..., Any]
Decorator = Callable[[Any], Any]

# Commas separate thousands: "1,5k" is no number.
_NUMBER_TEXT = re.compile(r"((?:\d{1,3}(?:,\d{3})+|\d[\d_]*)(?:\.\d+)?)([km]?)", re.IGNORECASE)
_TIMES = {"": 1, "k": 1_000, "m": 1_000_000}


def parse_number(text: str) -> int | None:
    """Parse a whole number such as 32000, 32_000, 32,000, 32k or 1.5M."""
    match = _NUMBER_TEXT.fullmatch(text.strip())
    if match is None:
        return None
    value = Decimal(re.sub("[_,]", "", match[1])) * _TIMES[match[2].lower()]
    return int(value) if value <= MOST_TOKENS and value == int(value) else None


def _read_number(value: Any) -> int:
    number = parse_number(str(value))
    if number is None:
        raise click.BadParameter(
            f"{value!s:.60}: expected a whole number up to {MOST_TOKENS:,}, such as 32000 or 32k"
        )
    return number


# ---------------------------------------------------------------- declaring


def command(function: Function) -> click.Command:
    """Make a command whose help is its docstring, with an example last."""
    text, _, example = cleandoc(function.__doc__ or "").rpartition("\n\n$ ")
    return click.command(help=text, epilog=f"$ {example}")(function)


def option(spelling: str, meaning: str, *names: str, **settings: Any) -> Decorator:
    """Declare an option as its help spells it: `--window TOKENS`, or `--force`."""
    flag, _, metavar = spelling.partition(" ")
    kind = _read_number if metavar in ("TOKENS", "N") else None
    settings |= {"metavar": metavar} if metavar else {"is_flag": True}
    return click.option(flag, *names, type=kind, help=meaning, **settings)


def _bundle_options(bundle: str, make: Function, **options: Decorator) -> Decorator:
    """Return a decorator that passes `make(**options)` as the argument `bundle`.

    `options` has a click decorator for each parameter of `make`.
    """

    def decorate(function: Function) -> Function:
        @functools.wraps(function)
        def wrapper(**values: Any) -> Any:
            bundled = {name: values.pop(name) for name in options}
            return function(**values, **{bundle: make(**bundled)})

        declared: Function = wrapper
        for declare in reversed(options.values()):
            declared = declare(declared)
        return declared

    return decorate


# ---------------------------------------------------------------- what commands share


@dataclass(frozen=True)
class TranscriptArguments:
    """A transcript, and the arguments for compressing it."""

    file: str
    messages: list[Any]
    target: int | None
    force: bool
    keep: Sequence[str]
    since: str | None
    until: str | None
    session: str | None

    @property
    def arguments(self) -> dict[str, Any]:
        """`session_id`, `target_tokens` and `force` as arguments of `compress`."""
        return {"session_id": self.session, "target_tokens": self.target, "force": self.force}

    @property
    def selection(self) -> dict[str, Any]:
        """`keep`, `since` and `until` as arguments of `compress`, if given."""
        edges = {"since": self.since, "until": self.until}
        keep = {"keep": list(map(_reference_or_index, self.keep))} if self.keep else {}
        return keep | {name: _reference_or_index(text) for name, text in edges.items() if text}


def _load_arguments(file: str, conversation: int | None, **options: Any) -> TranscriptArguments:
    return TranscriptArguments(file, load_transcript(file, conversation), **options)


def _reference_or_index(text: str) -> str | int:
    return int(text) if text.isdecimal() else text


def _make_config(settings: Sequence[str], pinned: Sequence[str], **flags: Any) -> CompressorConfig:
    flags["pinned"] = tuple(pinned) or None
    options = dict(map(_parse_setting, settings))
    options |= {name: value for name, value in flags.items() if value is not None}
    return CompressorConfig.from_mapping(options).with_environment()


def _parse_setting(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals:
        raise Unusable(f"--set {one_line(text)}: expected OPTION=VALUE")
    return name.strip().replace("-", "_"), _parse_value(value.strip())


def _parse_value(text: str) -> Any:
    """Parse a whole number, JSON, "none", or the text itself."""
    number = parse_number(text)
    if number is not None:
        return number
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None if text.lower() == "none" else text


def with_guessed_window(config: CompressorConfig) -> CompressorConfig:
    """Return the configuration; guess its window if window and model are unknown."""
    is_known = config.context_window is not None or config.model is not None
    return config if is_known else replace(config, context_window=GUESSED_WINDOW)


STORE = option(
    "--store URL",
    "The ledger: sqlite:///ledger.db, a path, or a PostgreSQL URL. Default: "
    "PRAISON_COMPRESSOR_STORE. PRAISONAI_SESSION_KEY opens an encrypted ledger.",
    "store_url",
)
NAMESPACE = option("--namespace NAME", "The tenant. Default: default.")
CONVERSATION = option(
    "--conversation N", "Take the Nth conversation. Needed if FILE has several conversations."
)
AS_JSON = option("--json", "Print one JSON value, for a program.", "as_json")


def _open_tenant(store_url: str | None, namespace: str | None) -> Tenant:
    """Return the tenant; its store is closed when the command ends."""
    ledger = open_ledger(CompressorConfig(store_url=store_url))
    store = click.get_current_context().with_resource(ledger)
    return Tenant(store, namespace or CompressorConfig.namespace, store_url)


with_tenant = _bundle_options("tenant", _open_tenant, store_url=STORE, namespace=NAMESPACE)


with_transcript = _bundle_options(
    "given",
    _load_arguments,
    file=click.argument("file"),
    conversation=CONVERSATION,
    target=option("--target TOKENS", "Make a view of at most TOKENS."),
    force=option("--force", "Compress although the transcript fits."),
    keep=option(
        "--keep MESSAGE",
        "Keep a message verbatim: a reference that `inspect --messages` prints, or an index. "
        "Repeatable.",
        multiple=True,
    ),
    since=option("--since MESSAGE", "Compress nothing before this message."),
    until=option("--until MESSAGE", "Compress nothing from this message on."),
    session=option("--session ID", "The session in the store that the transcript belongs to."),
)

with_config = _bundle_options(
    "config",
    _make_config,
    model=option("--model MODEL", "The model that reads the view: its window and tokenizer."),
    context_window=option(
        "--window TOKENS", "The model's window (context_window).", "context_window"
    ),
    protect_last_n_tokens=option(
        "--keep-tokens TOKENS",
        "Newest tokens kept verbatim (protect_last_n_tokens).",
        "protect_last_n_tokens",
    ),
    auxiliary_model=option(
        "--auxiliary-model MODEL",
        "The model that writes summaries. Default: PRAISONAI_AUXILIARY_MODEL, else static text.",
    ),
    pinned=option(
        "--pin TEXT", "Keep TEXT in the view, word for word. Repeatable.", "pinned", multiple=True
    ),
    settings=option(
        "--set OPTION=VALUE",
        "Set any option of CompressorConfig: trigger_ratio=0.7, tool_policies=keep_none. "
        "VALUE is a number, a text or JSON. Repeatable.",
        "settings",
        multiple=True,
    ),
    store_url=STORE,
    namespace=NAMESPACE,
)


# -------------------------------------------------------------- the store that parameters name

SCREEN_TOKENS = 2_000
"""An answer has at most this number of tokens, which fill a screen or two."""

STORED_WHEN = (
    "A session is stored when it is first compressed: by an agent with "
    "CompressorContext(store_url=...) or PRAISON_COMPRESSOR_STORE, or by "
    "praison-compressor compress FILE --store URL --session ID."
)


@contextlib.contextmanager
def open_ledger(config: CompressorConfig, *, allow_missing: bool = False) -> Iterator[SqlStore]:
    """Open the store of the options, the environment, or the user's folder.

    Without `allow_missing` a missing ledger raises `StoreUnavailable`: the path may be mistyped.
    """
    from ..ledger.sql.database import default_path
    from ..ledger.sql.store import open_store

    config = config.with_environment()
    encrypted = config.store_key is not None and not default_path().exists()
    address = config.store_url or default_path(encrypted=encrypted)
    store = open_store(address, key=config.store_key)
    try:
        if not allow_missing and not store.exists():
            raise StoreUnavailable(
                f"{store.location}: there is no such file, or no ledger in it; check --store. "
                + STORED_WHEN
            )
        yield store
    finally:
        store.close()


@dataclass(frozen=True)
class Tenant:
    """An open store, and one tenant in it."""

    store: SqlStore
    namespace: str
    url: str | None
    """The store as the command line names it."""

    def find_session(self, name: str) -> Session:
        """Return the stored session of an id or an epoch's id.

        Raises:
            SessionNotFound: there is no such session; the error has the nearest id.
        """
        try:
            self.store.lineage(self.namespace, name)  # `open` makes a session of an unknown name
        except SessionNotFound as error:
            nearest = nearest_name(name, (info.id for info in self.store.sessions(self.namespace)))
            hint = f" (did you mean {nearest!r}?)" if nearest else ""
            raise SessionNotFound(f"{error}{hint}") from error
        return self.store.open(self.namespace, name)

    def find_readable_session(self, name: str) -> Session:
        """Return the stored session unless all of it was forgotten.

        Raises:
            SessionNotFound: there is no such session, or only its tombstones.
        """
        session = self.find_session(name)
        is_gone = session.entries and all(entry.is_forgotten for entry in session.entries)
        if is_gone and not self.store.transcript(session):
            raise SessionNotFound(f"session {name!r} was forgotten; only its tombstones are left")
        return session

    def recall(self, session: Session) -> Recall:
        """Return a `Recall`; its cut answers print the command to read on."""

        def command_to_read(reference: str) -> str:
            words = ["praison-compressor", "show", session.id, reference]
            if self.url and "@" not in self.url:  # a URL may have a password
                words += ["--store", self.url]
            if self.namespace != CompressorConfig.namespace:
                words += ["--namespace", self.namespace]
            return shlex.join(words)

        return Recall(
            lambda: self.store,
            lambda: session,
            TokenCounter(None).text,
            turn_tokens=None,
            read_on=command_to_read,
        )
