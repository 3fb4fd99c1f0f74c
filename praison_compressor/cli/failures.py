"""What goes wrong becomes one line on stderr and an exit code; a bug keeps its traceback."""

from __future__ import annotations

import contextlib
import functools
import logging
import sys
from collections.abc import Callable, Iterator
from typing import TypeVar

import typer

from ..errors import BudgetTooSmall, CompressorError, ConfigError, InvalidMessages, LedgerError
from ..messages.display import one_line

__all__ = [
    "ERROR_CODES",
    "EXIT_CODES",
    "FOUND_FAULT",
    "Unusable",
    "complain",
    "guarded",
    "unlogged",
]


F = TypeVar("F", bound=Callable[..., object])


DONE = 0


FOUND_FAULT = 1


BAD_INPUT = 2


DOES_NOT_FIT = 3


LEDGER = 4


INTERRUPTED = 130


EXIT_CODES = {
    DONE: "done, also when there was nothing to do",
    FOUND_FAULT: "something that is needed does not work (`doctor`) or does not hold (`verify`)",
    BAD_INPUT: "the command line, an option, or the file cannot be used",
    DOES_NOT_FIT: "what cannot be dropped does not fit the window or `--target`",
    LEDGER: "the store: not reachable, no such session, damaged, or changed by another",
    INTERRUPTED: "interrupted",
}
"""Of every command; the README's table is checked against it."""


ERROR_CODES = frozenset({BAD_INPUT, DOES_NOT_FIT, LEDGER})
"""One line has been said about what went wrong."""


PROGRAM = "praison-compressor"


PACKAGE = "praison_compressor"


EXTRAS = {"psycopg": "'praison-compressor[postgres]'"}


class Unusable(CompressorError):
    """A file or an option that the command cannot work with."""


def complain(text: str, *, kind: str = "") -> None:
    """One line on stderr, whatever is in the text."""
    print(one_line(f"{PROGRAM}: {kind}{text}"), file=sys.stderr)


@contextlib.contextmanager
def unlogged() -> Iterator[None]:
    """Without the library's warnings, where the command says the same in its own words."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)


def guarded(command: F) -> F:
    """The command with every error of ours turned into one line and its exit code."""

    @functools.wraps(command)
    def run(*args: object, **kwargs: object) -> object:
        try:
            return command(*args, **kwargs)
        except CompressorError as error:
            complain(str(error))
            raise typer.Exit(_code(error)) from error
        except ModuleNotFoundError as error:
            if (error.name or PACKAGE).startswith(PACKAGE):
                raise
            wanted = EXTRAS.get(str(error.name), error.name)
            complain(f"{error.name} is not installed; pip install {wanted}")
            raise typer.Exit(FOUND_FAULT) from error
        except BrokenPipeError:
            raise  # who reads has seen enough: click ends without a word
        except OSError as error:
            complain(f"{error.filename or 'output'}: {error.strerror or error}")
            raise typer.Exit(FOUND_FAULT) from error
        except KeyboardInterrupt as error:
            complain("interrupted")
            raise typer.Exit(INTERRUPTED) from error

    return run  # type: ignore[return-value]  # the same signature, by functools.wraps


def _code(error: CompressorError) -> int:
    if isinstance(error, BudgetTooSmall):
        return DOES_NOT_FIT
    if isinstance(error, LedgerError):
        return LEDGER
    return BAD_INPUT if isinstance(error, (Unusable, ConfigError, InvalidMessages)) else FOUND_FAULT
