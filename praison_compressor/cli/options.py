"""What commands share: options described once, groups of them, and the decorator `command`."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..config import CompressorConfig
from ..errors import CompressorError, StoreUnavailable
from ..messages.display import one_line
from ..tokens.models import GUESSED_WINDOW
from .terminal import Answer, errors_in_a_line

if TYPE_CHECKING:
    from ..ledger.sql.store import SqlStore

# ---------------------------------------------------------------- the decorator


def command(function: Callable[..., Answer | None]) -> Callable[..., None]:
    """Make a command of a function that returns what it found.

    A parameter whose type is a dataclass stands for its fields: a group of options. `--json` is
    added, the answer is printed, and errors become one line and an exit code.
    """
    kind = inspect.Parameter.KEYWORD_ONLY
    groups: dict[str, Any] = {}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(function, eval_str=True).parameters.items():
        own = [parameter]
        if is_dataclass(parameter.annotation):
            groups[name] = parameter.annotation
            own = [*inspect.signature(groups[name], eval_str=True).parameters.values()]
        parameters += [one.replace(kind=kind) for one in own]
    parameters.append(inspect.Parameter("as_json", kind, default=False, annotation=AsJson))

    @functools.wraps(function)
    def run(*, as_json: bool, **given: Any) -> None:
        grouped = {
            name: group(**{field.name: given.pop(field.name) for field in fields(group)})
            for name, group in groups.items()
        }
        with errors_in_a_line():
            answer = function(**grouped, **given)
            if answer is not None:
                answer.print(as_json=as_json)
        if answer is not None and answer.code:
            raise typer.Exit(answer.code)

    # typer reads the command line off this signature; the annotations must say the same.
    signature = inspect.Signature(parameters, return_annotation=None)
    run.__signature__ = signature  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    del run.__wrapped__
    return run


# ---------------------------------------------------------------- single options


def option(name: str, metavar: str, help: str) -> Any:
    """An option that takes a value."""
    return typer.Option(name, metavar=metavar, help=help)


def flag(name: str, help: str) -> Any:
    """An option that takes none."""
    return typer.Option(name, help=help)


AsJson = Annotated[bool, flag("--json", "For a program: one JSON value on stdout.")]
Conversation = Annotated[
    int | None, option("--conversation", "N", "Which conversation, where the file holds several.")
]
File = Annotated[str, typer.Argument(metavar="FILE", help="The transcript; - is standard input.")]
ForModel = Annotated[
    str | None, option("--for-model", "MODEL", "Reads the view: its window and tokenizer count.")
]
KeepTokens = Annotated[
    int | None, option("--keep-tokens", "TOKENS", "Newest tokens kept verbatim (20,000).")
]
Out = Annotated[
    str | None,
    option("--out", "FILE", "Write there (.jsonl: a message a line); - is standard output."),
]
Window = Annotated[
    int | None, option("--window", "TOKENS", "What the reading model takes, instead of its table.")
]


def _session_ids(context: typer.Context, incomplete: str) -> list[str]:
    """The sessions of the store on the command line, for a shell that completes."""
    given = context.params
    place = Place(store=given.get("store"), namespace=given.get("namespace") or "default")
    try:
        with place.open() as store:
            found = store.sessions(place.namespace)
    except (CompressorError, ModuleNotFoundError):
        return []  # a shell that completes has nowhere to say what is wrong
    names = (info.id for info in found if info.id.startswith(incomplete))
    return [name for name in names if name == one_line(name)]  # a shell prints them as they are


_SESSION: Any = {"metavar": "SESSION", "help": "Its stable id, or any of its epochs'."}
SessionId = Annotated[str, typer.Argument(**_SESSION, autocompletion=_session_ids)]

# ---------------------------------------------------------------- groups of options


@dataclass(frozen=True, kw_only=True)
class Place:
    """A store, and whose sessions in it are meant."""

    store: Annotated[
        str | None,
        option(
            "--store",
            "URL",
            "Where the ledger is, such as sqlite:///ledger.db; else what PRAISON_COMPRESSOR_STORE "
            "says. PRAISONAI_SESSION_KEY opens an encrypted one.",
        ),
    ] = None
    namespace: Annotated[str, option("--namespace", "NAME", "The tenant.")] = "default"

    @contextlib.contextmanager
    def open(self, *, new: bool = False) -> Iterator[SqlStore]:
        """The store at the URL, else where the environment says, else in the user's data directory.

        The key of an encrypted one is in the environment: on a command line others would read it.
        A file that is not there is made with `new` alone: a mistyped path is no empty store.
        """
        from ..ledger.sql.store import open_store

        config = CompressorConfig(store_url=self.store).with_environment()
        store = open_store(config.store_url or default_store(config), key=config.store_key)
        try:
            if not new and not store.is_there():
                raise StoreUnavailable(f"{store.place}: there is no such file; check --store")
            yield store
        finally:
            store.close()


def default_store(config: CompressorConfig) -> Path:
    """The file of agents that were told no store and whose host keeps their sessions."""
    from ..ledger.sql.database import default_path

    plain = default_path()
    return default_path(encrypted=True) if config.store_key and not plain.exists() else plain


@dataclass(frozen=True, kw_only=True)
class Writer:
    """The model that writes summaries."""

    model: Annotated[
        str | None,
        option("--model", "MODEL", "Writes the summary (litellm); else static."),
    ] = None
    api_base: Annotated[
        str | None,
        option("--api-base", "URL", "Where it is served, its key in the environment."),
    ] = None
    timeout: Annotated[float | None, option("--timeout", "SECONDS", "For one call (60).")] = None


@dataclass(frozen=True, kw_only=True)
class Reading(Place):
    """A transcript in a file, and how it is to be read."""

    file: File
    for_model: ForModel = None
    window: Window = None
    keep_tokens: KeepTokens = None
    target: Annotated[
        int | None, option("--target", "TOKENS", "A view of at most so many, whatever the window.")
    ] = None
    force: Annotated[bool, flag("--force", "Compress although the transcript fits.")] = False
    conversation: Conversation = None
    session: Annotated[
        str | None, option("--session", "ID", "The session it belongs to, in the store.")
    ] = None

    def config(self, writer: Writer | None = None) -> CompressorConfig:
        """The configuration that it asks for."""
        return config_of(
            writer,
            model=self.for_model,
            context_window=window_of(self.window, self.for_model),
            protect_last_n_tokens=self.keep_tokens,
            store_url=self.store,
            namespace=self.namespace,
        )

    @property
    def call(self) -> dict[str, Any]:
        """What it asks of one call of the compressor."""
        return {"session_id": self.session, "target_tokens": self.target, "force": self.force}


def config_of(writer: Writer | None = None, **given: Any) -> CompressorConfig:
    """The configuration with what was given on the command line; None means not given."""
    if writer is not None:
        given |= {"auxiliary_model": writer.model, "auxiliary_api_base": writer.api_base}
        given["timeout_seconds"] = writer.timeout
    return CompressorConfig(**{name: v for name, v in given.items() if v is not None})


def window_of(window: int | None, for_model: str | None) -> int | None:
    """The window to count with: given, the named model's (None), or the usual guess, unlogged."""
    return window if window is not None or for_model is not None else GUESSED_WINDOW
