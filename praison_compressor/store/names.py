"""What may name a session or a namespace: text that every database can hold as a key."""

from __future__ import annotations

from ..errors import ConfigError

__all__ = ["check_names"]

_LONGEST_NAME = 1_000  # bytes; an index of PostgreSQL takes no key of more than 2,700


def check_names(*names: str | None) -> None:
    """Pass names, or nothing in their place.

    Raises:
        ConfigError: one is empty, too long, or no text that a database can hold.
    """
    for name in names:
        if name is None:
            continue
        if (
            not isinstance(name, str)
            or not name
            or "\0" in name
            or any("\ud800" <= c <= "\udfff" for c in name)
        ):
            raise ConfigError(f"{name!r} cannot name a session or namespace; expected text")
        size = len(name.encode("utf-8"))
        if size > _LONGEST_NAME:
            raise ConfigError(
                f"a name of {size} bytes, {name[:20]!r}…; expected at most {_LONGEST_NAME}"
            )
