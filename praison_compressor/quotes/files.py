"""Files that calls name to change, and files of instructions that calls read."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from ..messages import ToolCall
from ..messages.calls import SHOWS, command_of, kind_of, paths_in
from ..messages.excerpts import cut
from .commands import Newest, parted
from .rendering import TITLES, Entry, Section


def changed(found: Mapping[str, Newest], budget: int) -> Section:
    """Return the section of files, each with its newest changing call and that call's result.

    Whether the call changed the file is for its quoted result to say.
    """
    older, newest = parted(_by_call(found), budget)
    lines = [
        one.entry((-n,), _what(paths, one), paths[0] if len(paths) == 1 and "/" in paths[0] else "")
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


# -------------------------------------------------------------- instructions

NAMES = frozenset(
    ".clinerules .cursorrules .goosehints .hermes.md .roorules .rules .windsurfrules agent.md "
    "agents.local.md agents.md agents.override.md claude.local.md claude.md crush.md gemini.md "
    "copilot-instructions.md hermes.md praison.md qwen.md skill.md soul.md warp.md".split()
)
"""Exact names of files of instructions, in lower case."""
_SHOWS_ONE = re.compile(r"(?:cat|less|more|bat|type|Get-Content)(?: -\S+)* ([\w./\\~-]+)")
_NUMBERED = re.compile(r"^\s*\d+(?:\t|→|\|) ?", re.M)


def source_of(call: ToolCall, rule_sources: tuple[str, ...]) -> str:
    """Return the path or the tool whose instructions a call reads, or ""."""
    if any(fnmatchcase(call.name, pattern) for pattern in rule_sources):
        return call.name
    shown = _SHOWS_ONE.fullmatch(command_of(call).strip())
    paths = [shown[1]] if shown else paths_in(call) if kind_of(call) == SHOWS else []
    for path in (path.replace("\\", "/") for path in paths):
        name = path.rpartition("/")[2]
        if name.lower() in NAMES or any(_fits(path, name, pattern) for pattern in rule_sources):
            return path
    return ""


def _fits(path: str, name: str, pattern: str) -> bool:
    end = "/" + pattern.removeprefix("./")
    return fnmatchcase(path, pattern) or fnmatchcase(name, pattern) or f"/{path}".endswith(end)


def instructions(found: Mapping[str, tuple[int, str]]) -> Section:
    """Return the newest content of each file of instructions, with its path."""
    lines = [
        Entry(at, (-at,), _content(text), f"{source}:\n  ")
        for source, (at, text) in sorted(found.items(), key=lambda item: item[1][0])
    ]
    return Section(TITLES["instructions"], lines, 0.12, least=60, noun="files of instructions")


def _content(text: str) -> str:
    """Return a file's content without the numbers that a tool put before each line."""
    lines = text.strip("\n").split("\n")
    is_numbered = all(_NUMBERED.match(line) for line in lines if line.strip())
    return _NUMBERED.sub("", text).strip() if is_numbered else text.strip()
