"""List the commands of `praison-compressor`, and run one."""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Iterator
from importlib import import_module
from logging.handlers import MemoryHandler
from typing import Any

import click

from ..config import nearest_name
from .terminal import BAD_INPUT, DOES_NOT_FIT, LEDGER, Unusable, print_complaint, report_errors

PROGRAM = "praison-compressor"

COMMAND_MODULES = {
    **dict.fromkeys(("compress", "inspect"), "compressing"),
    "report": "report",
    "demo": "demo",
    "doctor": "doctor",
    **dict.fromkeys(("sessions", "lineage"), "store_commands"),
    "bill": "report",
    "show": "show",
    **dict.fromkeys(("search", "restore", "verify", "forget"), "store_commands"),
}
"""Command -> its module, in the order of the help."""


def main() -> None:
    """Run the command line of this process."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # A terminal that cannot show a character must not end the command.
            stream.reconfigure(errors="replace")
    with _warnings_on_stderr():
        # Under `python -m praison_compressor` too, help and completion name the command.
        build()(prog_name=PROGRAM)


class _Group(click.Group):
    """The commands; an error becomes one line and an exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMAND_MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMAND_MODULES:
            return None
        command: click.Command = getattr(
            import_module(f".{COMMAND_MODULES[cmd_name]}", __package__), cmd_name
        )
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args[0] not in COMMAND_MODULES and not ctx.resilient_parsing:  # a shell completes
            nearest = nearest_name(args[0], COMMAND_MODULES)
            hint = f"did you mean {nearest}?" if nearest else f"{PROGRAM} -h lists the commands"
            raise Unusable(f"no command {args[0]}; {hint}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        with report_errors():
            return super().invoke(ctx)


def build() -> click.Group:
    """Return the application."""
    from .. import __version__

    version = click.version_option(__version__, message="%(prog)s %(version)s")
    names = {"help_option_names": ["-h", "--help"]}
    group = click.group(PROGRAM, cls=_Group, no_args_is_help=True, context_settings=names)
    return group(version(_program))


def _program() -> None:
    """Compress long agent conversations, and look into what was compressed.

    A number of tokens is written 32000, 32_000, 32k or 1.5M. SESSION is a session's id, or the id
    of any of its epochs.
    """


@contextlib.contextmanager
def _warnings_on_stderr() -> Iterator[None]:
    """Print the library's warnings when the command ends, unless it failed."""
    logger = logging.getLogger("praison_compressor")
    handler = MemoryHandler(1_000)
    handler.setLevel(logging.WARNING)
    logger.addHandler(handler)
    logger.propagate = False
    try:
        yield
    except SystemExit as exited:
        records = [] if exited.code in (BAD_INPUT, DOES_NOT_FIT, LEDGER) else handler.buffer
        for text in dict.fromkeys(map(logging.LogRecord.getMessage, records)):
            print_complaint(text, kind="note: ")
        raise
    finally:
        logger.removeHandler(handler)
        logger.propagate = True
