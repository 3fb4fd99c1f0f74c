"""Declare the options that commands share; open a store."""

from __future__ import annotations

import functools
import inspect
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from inspect import cleandoc
from typing import Any

import click

from ..config import MOST_TOKENS, CompressorConfig
from ..messages.display import one_line
from ..tokens.models import GUESSED_WINDOW
from .terminal import Unusable

Function = Callable[..., Any]
Decorator = Callable[[Any], Any]

_NUMBER = re.compile(r"(\d[\d_,]*(?:\.\d+)?)([km]?)", re.IGNORECASE)
_TIMES = {"": 1, "k": 1_000, "m": 1_000_000}


def parse_number(text: str) -> int | None:
    """Parse a whole number such as 32000, 32_000, 32,000, 32k or 1.5M."""
    match = _NUMBER.fullmatch(text.strip())
    if match is None:
        return None
    value = Decimal(re.sub("[_,]", "", match[1])) * _TIMES[match[2].lower()]
    return int(value) if value <= MOST_TOKENS and value == int(value) else None


class _Number(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """A whole number, as a person writes it."""

    name = "number"

    def convert(self, value: Any, param: Any, ctx: Any) -> int:
        """Parse a number."""
        number = parse_number(str(value))
        if number is None:
            wrong = f"{value!s:.60}: expected a whole number such as 32000 or 32k"
            self.fail(wrong, param, ctx)
        return number


# ---------------------------------------------------------------- declaring


def command(function: Function) -> click.Command:
    """Make a command whose docstring is its help, ending in an example."""
    text, _, example = cleandoc(function.__doc__ or "").rpartition("\n\n$ ")
    return click.command(help=text, epilog=f"$ {example}")(function)


def option(name: str, metavar: str, help: str, **more: Any) -> Decorator:
    """Declare an option with a value; TOKENS and N are numbers."""
    kind = _Number() if metavar in ("TOKENS", "N") else None
    own = re.sub("^--", "", name).replace("-", "_")
    names = (name, more.pop("of", own))
    return click.option(*names, metavar=metavar, help=help, type=kind, **more)


def flag(name: str, help: str) -> Decorator:
    """Declare an option without a value."""
    return click.option(name, is_flag=True, help=help)


def argument(name: str, *, required: bool = True, metavar: str | None = None) -> Decorator:
    """Declare a positional argument; the command's docstring describes it."""
    shown = metavar or (name.upper() if required else f"[{name.upper()}]")
    return click.argument(name, metavar=shown, required=required)


def _bundle_options(name: str, make: Function, *options: Decorator) -> Decorator:
    """Return a decorator that reads options into one value by `make`."""
    taken = list(inspect.signature(make).parameters)

    def decorate(function: Function) -> Function:
        @functools.wraps(function)
        def wrapper(**values: Any) -> Any:
            bundled = {key: values.pop(key) for key in taken}
            return function(**values, **{name: make(**bundled)})

        for each in reversed(options):
            wrapper = each(wrapper)
        return wrapper

    return decorate


# ---------------------------------------------------------------- what commands share


@dataclass(frozen=True)
class CallOptions:
    """The options of one call of the compressor."""

    target: int | None
    force: bool
    keep: Sequence[str]
    since: str | None
    until: str | None
    session: str | None

    @property
    def options(self) -> dict[str, Any]:
        """Return session, target and force, as the compressor takes them."""
        size = {"target_tokens": self.target, "force": self.force}
        return {"session_id": self.session, **size}

    @property
    def choices(self) -> dict[str, Any]:
        """Return the given options that choose messages, by reference or index."""
        keep = list(map(_reference_or_index, self.keep)) or None
        choices = {
            "keep": keep,
            "since": _reference_or_index(self.since),
            "until": _reference_or_index(self.until),
        }
        return {name: value for name, value in choices.items() if value is not None}


def _reference_or_index(text: str | None) -> str | int | None:
    return int(text) if text and text.isdecimal() else text or None


def _make_config(
    model: str | None,
    window: int | None,
    keep_tokens: int | None,
    auxiliary_model: str | None,
    pin: Sequence[str],
    settings: Sequence[str],
    store: str | None,
    namespace: str,
) -> CompressorConfig:
    """Return the configuration of a command, completed from the environment."""
    flags = {
        "model": model,
        "context_window": window,
        "auxiliary_model": auxiliary_model,
        "protect_last_n_tokens": keep_tokens,
        "pinned": tuple(pin) or None,
        "store_url": store,
        "namespace": namespace,
    }
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
    "--store",
    "URL",
    "The ledger: sqlite:///ledger.db, a path, or a PostgreSQL URL. Default: "
    "PRAISON_COMPRESSOR_STORE. PRAISONAI_SESSION_KEY opens an encrypted one.",
)
NAMESPACE = option(
    "--namespace", "NAME", "The tenant. Default: default.", default=CompressorConfig.namespace
)


@dataclass(frozen=True)
class Tenant:
    """A store, and the tenant in it."""

    store: str | None
    namespace: str


with_tenant = _bundle_options("tenant", Tenant, STORE, NAMESPACE)
CONVERSATION = option("--conversation", "N", "The conversation to take, of several.")
AS_JSON = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON value, for a program."
)

with_call = _bundle_options(
    "call",
    CallOptions,
    option("--target", "TOKENS", "Make a view of at most TOKENS."),
    flag("--force", "Compress although the transcript fits."),
    option(
        "--keep",
        "MESSAGE",
        "Keep a message verbatim: a reference that `inspect --messages` prints, or an index. "
        "Repeatable.",
        multiple=True,
    ),
    option("--since", "MESSAGE", "Compress nothing before this message."),
    option("--until", "MESSAGE", "Compress nothing from this message on."),
    option("--session", "ID", "The session in the store that it belongs to."),
)
with_config = _bundle_options(
    "config",
    _make_config,
    option("--model", "MODEL", "The model that reads the view: its window and tokenizer."),
    option("--window", "TOKENS", "The model's window (context_window)."),
    option("--keep-tokens", "TOKENS", "Newest tokens kept verbatim (protect_last_n_tokens)."),
    option(
        "--auxiliary-model",
        "MODEL",
        "The model that writes summaries. Default: PRAISONAI_AUXILIARY_MODEL, else static text.",
    ),
    option("--pin", "TEXT", "Keep TEXT in the view, word for word. Repeatable.", multiple=True),
    option(
        "--set",
        "OPTION=VALUE",
        "Set any option of CompressorConfig: trigger_ratio=0.7, tool_policies=keep_none. "
        "VALUE is a number, a text or JSON. Repeatable.",
        of="settings",
        multiple=True,
    ),
    STORE,
    NAMESPACE,
)
