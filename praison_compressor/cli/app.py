"""List the commands of `praison-compressor`, and run one."""

from __future__ import annotations

import contextlib
import gc
import logging
import sys
from collections.abc import Iterator
from importlib import import_module
from inspect import cleandoc
from logging.handlers import MemoryHandler
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from ..config import nearest
from .terminal import BAD_INPUT, DOES_NOT_FIT, LEDGER, Unusable, complain, errors_in_a_line

NAME = "praison-compressor"

COMMANDS = {
    **dict.fromkeys(("compress", "inspect"), "compressing"),
    "report": "report",
    "demo": "demo",
    "doctor": "doctor",
    **dict.fromkeys(("sessions", "lineage"), "stored"),
    "bill": "report",
    **dict.fromkeys(("show", "search", "restore", "verify", "forget"), "stored"),
}
"""Command -> its module, in the order of the help. Only the module of the command is imported."""

OBJECTS_BETWEEN_COLLECTIONS = 100_000
"""A transcript's messages live until the command ends: a search for garbage finds none."""


def main() -> None:
    """Run the command line of this process."""
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            # A terminal that cannot show a character must not end the command.
            reconfigure(errors="replace")
    with _warnings_on_stderr():
        # Under `python -m praison_compressor` too, help and completion name the command.
        build()(prog_name=NAME)


class _Group(TyperGroup):
    """The commands; an error becomes one line and an exit code."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import a command."""
        return _command(cmd_name) if cmd_name in COMMANDS else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that the arguments name; suggest the nearest for an unknown one."""
        if args[0] in COMMANDS or args[0].startswith("-"):
            return super().resolve_command(ctx, args)
        meant = nearest(args[0], COMMANDS)
        hint = f"did you mean {meant}?" if meant else f"{NAME} -h lists the commands"
        raise Unusable(f"no command {args[0]}; {hint}")

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        with errors_in_a_line():
            return super().invoke(ctx)


class _Command(TyperCommand):
    """A command whose usage names FILE, not {FILE}."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the parts of the usage line."""
        return [piece.strip("{}") for piece in super().collect_usage_pieces(ctx)]


def _command(name: str) -> Any:
    """Return the command of that name, as the parser takes it."""
    function = getattr(import_module(f".{COMMANDS[name]}", __package__), name)
    text, _, example = cleandoc(function.__doc__ or "").rpartition("\n\n$ ")
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command(name, cls=_Command, help=text, epilog=f"$ {example}")(function)
    return typer.main.get_command(app)


def build() -> Any:
    """Return the application."""
    app = typer.Typer(
        name=NAME,
        cls=_Group,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,  # in boxes a narrow terminal has room for half of the words
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_common)
    return typer.main.get_command(app)


def _version(asked: bool) -> None:
    if asked:
        from .. import __version__

        print(f"{NAME} {__version__}")
        raise typer.Exit


_VERSION: Any = {"callback": _version, "is_eager": True, "help": "Print the version."}


def _common(version: Annotated[bool, typer.Option("--version", **_VERSION)] = False) -> None:
    """Compress long agent conversations, and look into what was compressed.

    A number of tokens is written 32000, 32_000, 32k or 1.5M.
    """


@contextlib.contextmanager
def _warnings_on_stderr() -> Iterator[None]:
    """Print the library's warnings when the command ends, unless it failed.

    The one line of an error repeats what the library logged before the error.
    """
    logger = logging.getLogger("praison_compressor")
    handler = MemoryHandler(1_000)
    handler.setLevel(logging.WARNING)
    logger.addHandler(handler)
    logger.propagate = False
    try:
        yield
    except SystemExit as ended:
        kept = [] if ended.code in (BAD_INPUT, DOES_NOT_FIT, LEDGER) else handler.buffer
        for text in dict.fromkeys(map(logging.LogRecord.getMessage, kept)):
            complain(text, kind="note: ")
        raise
    finally:
        logger.removeHandler(handler)
        logger.propagate = True
