"""Files that calls name to change; whether one did is for its quoted result to say."""

from __future__ import annotations

from collections.abc import Mapping

from ..messages.calls import command_of
from ..messages.excerpts import cut
from .commands import Newest, parted
from .rendering import TITLES, Entry, Section


def section(found: Mapping[str, Newest], budget: int) -> Section:
    """Return the section of files, each with its newest changing call and that call's result."""
    older, newest = parted(list(found.items()), budget)
    lines = [
        Entry(one.exchange.where, (-n,), _quoted(path, one), f"{path}: {_what(one)} -> ")
        for n, (path, one) in enumerate(newest)
    ]
    left = [one.exchange.where for _, one in older]
    return Section(TITLES["files"], lines, 0.15, least=80, noun="files", unlisted=left)


def _what(one: Newest) -> str:
    line = command_of(one.exchange.call).strip()
    return (f"`{cut(line, 80)}`" if line else one.exchange.call.name) + one.often()


def _quoted(path: str, one: Newest) -> str:
    """Return the result's words, where the path need not stand a second time."""
    return one.quoted().replace(path, "…") if "/" in path else one.quoted()
