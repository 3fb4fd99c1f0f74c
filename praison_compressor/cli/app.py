"""List the commands of `praison-compressor`, and run one."""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Callable, Iterator
from inspect import cleandoc
from logging.handlers import MemoryHandler
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from .compressing import compress, inspect
from .demo import demo
from .doctor import doctor
from .report import bill, report
from .stored import forget, lineage, restore, search, sessions, show, verify
from .terminal import BAD_INPUT, DOES_NOT_FIT, LEDGER, complain, errors_in_a_line

NAME = "praison-compressor"

COMMANDS: tuple[Callable[..., None], ...] = (
    *(compress, inspect, report, demo, doctor),
    *(sessions, lineage, bill, show, search),
    *(restore, verify, forget),
)


def main() -> None:
    """Run the command line of this process."""
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

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        with errors_in_a_line():
            return super().invoke(ctx)


class _Command(TyperCommand):
    """A command whose usage names FILE, not {FILE}."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the parts of the usage line."""
        return [piece.strip("{}") for piece in super().collect_usage_pieces(ctx)]


def build() -> typer.Typer:
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
    for command in COMMANDS:
        text, _, example = cleandoc(command.__doc__ or "").rpartition("\n\n$ ")
        app.command(command.__name__, cls=_Command, help=text, epilog=f"$ {example}")(command)
    return app


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
