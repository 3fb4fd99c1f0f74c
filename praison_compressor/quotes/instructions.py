"""Files that an agent follows by convention, and sources that the application names."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase

from ..messages import ToolCall
from .files import command_of, paths_in
from .rendering import TITLES, Line, Section
from .telling import SHOWS_FILES, shows_text

NAMES = frozenset(
    "agents.md agents.override.md agent.md agents.local.md claude.md claude.local.md gemini.md "
    "qwen.md crush.md warp.md skill.md praison.md .cursorrules .windsurfrules .clinerules .roorules "
    ".goosehints .rules copilot-instructions.md hermes.md .hermes.md soul.md".split()
)
"""Exact names of instruction files, in lower case."""


def source_of(call: ToolCall, rule_sources: tuple[str, ...]) -> str:
    """Return the path or tool whose instructions a call reads, or ""."""
    if any(fnmatchcase(call.name, pattern) for pattern in rule_sources):
        return call.name
    for path in _read_by(call):
        if _name(path) in NAMES or any(_fits(path, pattern) for pattern in rule_sources):
            return path
    return ""


def _read_by(call: ToolCall) -> list[str]:
    if not shows_text(call):
        return []
    shown = SHOWS_FILES.fullmatch(command_of(call).strip())
    return [shown[1]] if shown else paths_in(call)


def _name(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2].lower()


def _fits(path: str, pattern: str) -> bool:
    plain = path.replace("\\", "/").removeprefix("./")
    return any(fnmatchcase(end, pattern) for end in (plain, _name(path))) or plain.endswith(
        "/" + pattern.removeprefix("./")
    )


def section(found: Mapping[str, tuple[int, str]], visible: str) -> Section:
    """Return the newest content of each source with its path."""
    lines = [
        Line(at, (-at,), text.strip(), f"{path}:\n  ")
        for path, (at, text) in sorted(found.items(), key=lambda item: item[1][0])
        if text.strip() not in visible
    ]
    return Section(TITLES["instructions"], lines, 0.12, least=60, noun="files of instructions")
