"""Files that calls name to change; whether one did is for its quoted result to say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..messages.calls import command_of
from ..messages.excerpts import cut
from .commands import Newest, parted
from .rendering import TITLES, Entry, Section


def section(found: Mapping[str, Newest], budget: int) -> Section:
    """Return the section of files, each with its newest changing call and that call's result."""
    older, newest = parted(_by_call(found), budget)
    lines = [
        Entry(one.exchange.where, (-n,), _quoted(paths, one), f"{_what(paths, one)} -> ")
        for n, (paths, one) in enumerate(newest)
    ]
    left = [one.exchange.where for paths, one in older for _ in paths]
    return Section(TITLES["files"], lines, 0.15, least=80, noun="files", unlisted=left)


def _by_call(found: Mapping[str, Newest]) -> list[tuple[list[str], Newest]]:
    """Return the paths that have the same newest call, with that call; a move names two."""
    grouped: dict[int, tuple[list[str], Newest]] = {}
    for path, one in found.items():
        paths, _ = grouped.pop(id(one.exchange), ([], one))
        grouped[id(one.exchange)] = ([*paths, path], one)
    return list(grouped.values())


def _what(paths: Sequence[str], one: Newest) -> str:
    """Return the paths and the call; a command that shows all the paths stands alone."""
    line = cut(command_of(one.exchange.call).strip(), 80)
    call = (f"`{line}`" if line else one.exchange.call.name) + one.often()
    return call if all(path in line for path in paths) else f"{', '.join(paths)}: {call}"


def _quoted(paths: Sequence[str], one: Newest) -> str:
    """Return the result's words, where the only path need not stand a second time."""
    words = one.quoted()
    return words.replace(paths[0], "…") if len(paths) == 1 and "/" in paths[0] else words
