"""Turn a database's errors into ledger errors with place and remedy."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import exc

from ...errors import LedgerConflict, LedgerCorrupt, LedgerError, StoreUnavailable

_DAMAGE_SIGNS = ("malformed", "not a database", "invalid page", "no such table")
_REMEDY_BY_SIGN = (
    ("disk is full", "the disk is full; free some space"),
    ("no space left", "the disk is full; free some space"),
    ("readonly", "it is read-only; make the file and its directory writable"),
    ("read-only", "it is read-only; write to the primary server"),
    ("unable to open", "it cannot be opened; check that the path exists and is writable"),
    ("locked", "another process has kept it locked; try again, or end that process"),
    ("lock timeout", "another process has kept it locked; try again, or end that process"),
    ("password authentication", "user or password is wrong"),
    ("does not exist", "the server knows no such database or user; create it"),
    ("permission denied", "this user may not do that; grant it the rights to its tables"),
    ("disk i/o", "its file was cut off, or the disk fails; restore a copy, or move it away"),
    ("connection", "it cannot be reached; start its server, or check the store's URL"),
)
# psycopg quotes connection strings in some of its messages.
_PASSWORD = re.compile(r"(?i)(password\s*=\s*|//[^/@\s:]*:)[^\s@&\"']+")


@contextmanager
def translate_errors(where: str) -> Iterator[None]:
    """Translate errors to `LedgerError`, with fact and remedy."""
    try:
        yield
    except exc.IntegrityError as error:
        raise LedgerConflict(
            f"{where}: another writer was first ({_driver_message(error)})"
        ) from error
    except exc.SQLAlchemyError as error:
        raise _ledger_error(where, _driver_message(error)) from error
    except UnicodeEncodeError as error:  # names only: messages are stored as bytes
        name = repr(error.object[:60])
        raise LedgerError(f"{where} cannot hold {name}: no UTF-8; use another name") from error
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise StoreUnavailable(f"{where}: {reason}; check the path and its rights") from error


def is_transient(error: exc.DBAPIError) -> bool:
    """Return whether a retry may succeed: a dead connection, a deadlock's victim."""
    state = getattr(error.orig, "sqlstate", None)
    return error.connection_invalidated or state in ("40001", "40P01")


def _ledger_error(where: str, reason: str) -> LedgerError:
    folded = reason.casefold()
    if any(sign in folded for sign in _DAMAGE_SIGNS):
        return LedgerCorrupt(
            f"{where} is damaged or no ledger ({reason}); restore a copy, or move it away"
        )
    for sign, remedy in _REMEDY_BY_SIGN:
        if sign in folded:
            return StoreUnavailable(f"{where}: {remedy} ({reason})")
    return StoreUnavailable(f"{where} cannot be reached or used ({reason})")


def _driver_message(error: exc.SQLAlchemyError) -> str:
    """Return the driver's first line; SQLAlchemy's own text would quote statements."""
    original = getattr(error, "orig", None) or error
    lines = str(original).strip().splitlines() or [type(original).__name__]
    return _PASSWORD.sub(r"\1***", lines[0])
