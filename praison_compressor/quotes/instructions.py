"""Files that an agent follows by convention, and sources that the application names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase

from ..messages import ToolCall
from ..messages.calls import SHOWS, command_of, kind_of, paths_in
from .rendering import TITLES, Entry, Section
from .user import is_visible

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


def section(found: Mapping[str, tuple[int, str]], visible: str) -> Section:
    """Return the newest content of each source, with its path."""
    lines = [
        Entry(at, (-at,), _content(text), f"{source}:\n  ")
        for source, (at, text) in sorted(found.items(), key=lambda item: item[1][0])
        if not is_visible(text, visible)
    ]
    return Section(TITLES["instructions"], lines, 0.12, least=60, noun="files of instructions")


def _content(text: str) -> str:
    """Return a file's content without the numbers that a tool put before each line."""
    lines = text.strip("\n").split("\n")
    is_numbered = all(_NUMBERED.match(line) for line in lines if line.strip())
    return _NUMBERED.sub("", text).strip() if is_numbered else text.strip()
