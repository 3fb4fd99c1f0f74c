"""The options that several commands share, each described once."""

from __future__ import annotations

from dataclasses import fields
from typing import Annotated, Any

import typer

from ..config import CompressorConfig
from ..models import GUESSED_WINDOW

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
    "SessionOption",
    "Store",
    "Target",
    "Window",
    "config_of",
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
