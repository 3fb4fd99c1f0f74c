"""The options that several commands share, each described once."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Annotated, Any

import typer

from ..config import CompressorConfig
from ..tokens.models import GUESSED_WINDOW

__all__ = [
    "ApiBase",
    "AsJson",
    "Conversation",
    "File",
    "ForModel",
    "Force",
    "KeepTokens",
    "Model",
    "Namespace",
    "Reading",
    "SessionOption",
    "Store",
    "Target",
    "Timeout",
    "Window",
    "config_of",
    "reading",
    "window_of",
]


File = Annotated[str, typer.Argument(metavar="FILE", help="The transcript; - is standard input.")]


Conversation = Annotated[
    int | None,
    typer.Option(
        "--conversation", metavar="N", help="Which conversation, where the file holds several."
    ),
]


Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="MODEL",
        help="Writes the summary, by its name in litellm. Without it the summary is static.",
    ),
]


ApiBase = Annotated[
    str | None,
    typer.Option(
        "--api-base",
        metavar="URL",
        help="Where that model is served. Its key is what litellm finds in the environment.",
    ),
]


Timeout = Annotated[
    float | None,
    typer.Option(
        "--timeout",
        metavar="SECONDS",
        help="For one call of that model (60): one on this machine's own processor takes longer.",
    ),
]


ForModel = Annotated[
    str | None,
    typer.Option(
        "--for-model", metavar="MODEL", help="Reads the view: its window and tokenizer count."
    ),
]


Window = Annotated[
    int | None,
    typer.Option(
        "--window", metavar="TOKENS", help="What the reading model takes, instead of its table."
    ),
]


KeepTokens = Annotated[
    int | None,
    typer.Option("--keep-tokens", metavar="TOKENS", help="Newest tokens kept verbatim (20,000)."),
]


Target = Annotated[
    int | None,
    typer.Option(
        "--target",
        metavar="TOKENS",
        help="A view of at most so many tokens, whatever the window.",
    ),
]


Force = Annotated[
    bool, typer.Option("--force", help="Compress although the transcript still fits.")
]


SessionOption = Annotated[
    str | None,
    typer.Option(
        "--session", metavar="ID", help="The session that the transcript belongs to, in the store."
    ),
]


Store = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="URL",
        help="Where the ledger is kept, such as sqlite:///ledger.db; "
        "else the variable PRAISON_COMPRESSOR_STORE. An encrypted one is opened with the key in "
        "PRAISONAI_SESSION_KEY.",
    ),
]


Namespace = Annotated[
    str, typer.Option("--namespace", metavar="NAME", help="The tenant, in the store.")
]


AsJson = Annotated[bool, typer.Option("--json", help="For a program: one JSON value on stdout.")]


def config_of(**given: Any) -> CompressorConfig:
    """The configuration with what was given on the command line; None means not given.

    Raises:
        ConfigError: a value that cannot work.
    """
    known = {field.name for field in fields(CompressorConfig)}
    return CompressorConfig(**{k: v for k, v in given.items() if k in known and v is not None})


def window_of(window: int | None, for_model: str | None) -> int | None:
    """The window to count with: given, the named model's (None), or the usual guess, unlogged."""
    return window if window is not None or for_model is not None else GUESSED_WINDOW


@dataclass(frozen=True)
class Reading:
    """A transcript and how it is read: what `compress` and `inspect` take alike."""

    file: File
    for_model: ForModel = None
    window: Window = None
    keep_tokens: KeepTokens = None
    target: Target = None
    force: Force = False
    conversation: Conversation = None
    session: SessionOption = None
    store: Store = None
    namespace: Namespace = "default"

    def config(self, **more: Any) -> CompressorConfig:
        """The configuration that it asks for.

        Raises:
            ConfigError: a value that cannot work.
        """
        return config_of(
            model=self.for_model,
            context_window=window_of(self.window, self.for_model),
            protect_last_n_tokens=self.keep_tokens,
            store_url=self.store,
            namespace=self.namespace,
            **more,
        )

    @property
    def call(self) -> dict[str, Any]:
        """What it asks of one call of the compressor."""
        return {
            "session_id": self.session,
            "target_tokens": self.target,
            "force": self.force,
        }


def reading(command: Callable[..., None]) -> Callable[..., None]:
    """The command with the options of `Reading`, which it gets as its first argument."""
    shared = inspect.signature(Reading, eval_str=True).parameters
    own = list(inspect.signature(command, eval_str=True).parameters.values())[1:]

    @functools.wraps(command)
    def run(**given: Any) -> None:
        command(Reading(**{name: given.pop(name) for name in shared}), **given)

    # The command line is read off this signature; the annotations must say the same.
    parameters = [*shared.values(), *own]
    kind = inspect.Parameter.KEYWORD_ONLY
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [parameter.replace(kind=kind) for parameter in parameters], return_annotation=None
    )
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    del run.__wrapped__
    return run
