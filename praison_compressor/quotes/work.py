"""Quote what calls did: changed files, instructions read, newest runs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from ..messages import ToolCall, calls
from ..messages.display import pluralize
from ..messages.shortening import cut_line
from .rendering import TITLES, QuoteEntry, Section
from .speakers import IN_USER_ROLE, without_notes
from .telling import telling_line

UNANSWERED = "no result was recorded"
AGENT_TEXT = "assistant"  # the name of a call that an agent without native calls wrote in its text
COMMAND_LINE_CHARS = 200
ENTRY_TOKENS = 60  # of a call with its result


class Newest(NamedTuple):
    """The newest of equal calls, and how many there were."""

    exchange: calls.AnsweredCall
    times: int

    def entry(self, rank: tuple[int, ...], what: str, path: str = "") -> QuoteEntry:
        """Return its entry; words show a given path as "…".

        What no cut tears are the call, a size, an exit code.
        """
        call, output, said = self.exchange.call, without_notes(self.exchange.text), ""
        about = [what, f"(newest of {self.times}) ->" if self.times > 1 else "->"]
        if not self.exchange.is_answered:
            about.append(UNANSWERED)
        else:
            said, kind = telling_line(call, output), calls.kind_of(call)
            about += [f"{IN_USER_ROLE}:"] if call.name == AGENT_TEXT and not call.id else []
            if not said or (kind == calls.LISTS and "\n" in output.strip()):
                lines = pluralize(output.strip().count("\n") + 1, "line")
                size = f"({lines}, {len(output):,} characters)"
                about.append(size if output.strip() else "(no output)")
            code = calls.exit_code(calls.unwrap_output(output)) if kind == calls.ACTS else ""
            about += ["exit code 0:"] if code == "0" and "exit" not in said else []
        lead = " ".join(about) + (" " if said else "")
        return QuoteEntry(
            self.exchange.where, rank, said.replace(path, "…") if path else said, lead
        )


def note_newest(found: dict[str, Newest], name: str, one: calls.AnsweredCall) -> None:
    """Make a call the newest of its name."""
    known = found.pop(name, None)
    found[name] = Newest(one, known.times + 1 if known else 1)


def commands_section(found: Mapping[str, Newest], budget: int) -> Section:
    """Return the section of calls; calls that only look rank last."""
    others, best = split_newest(sorted(found.items(), key=_rank, reverse=True), budget)
    lines = [
        one.entry(_rank((line, one)), cut_line(line, COMMAND_LINE_CHARS))
        for line, one in sorted(best, key=lambda item: item[1].exchange.at)
    ]
    left = [one.exchange.where for _, one in others]
    tools = {x.where: cut_line(x.call.name, 40) for x, _ in found.values() if x.call.id}
    return Section(TITLES["commands"], lines, 0.15, 80, "calls", left, tools)


def split_newest(entries: Sequence[Any], budget: int) -> tuple[Sequence[Any], Sequence[Any]]:
    """Return the older entries, and the newest that a budget can hold."""
    most = max(24, budget // ENTRY_TOKENS)
    return entries[:-most], entries[-most:]


def _rank(item: tuple[str, Newest]) -> tuple[int, ...]:
    return calls.kind_of(item[1].exchange.call) != calls.ACTS, -item[1].exchange.at


def files_section(found: Mapping[str, Newest], budget: int) -> Section:
    """Return the section of files with their newest changing calls.

    Whether the call changed the file is for its quoted result to say.
    """
    older, newest = split_newest(_group_by_call(found), budget)
    lines = [
        one.entry(
            (-n,),
            _files_and_call(paths, one),
            paths[0] if len(paths) == 1 and "/" in paths[0] else "",
        )
        for n, (paths, one) in enumerate(newest)
    ]
    left = [one.exchange.where for paths, one in older for _ in paths]
    return Section(TITLES["files"], lines, 0.15, least=80, noun="files", unlisted=left)


def _group_by_call(found: Mapping[str, Newest]) -> list[tuple[list[str], Newest]]:
    """Return the paths of each newest call; a move names two."""
    grouped: dict[int, tuple[list[str], Newest]] = {}
    for path, one in found.items():
        paths, _ = grouped.pop(id(one.exchange), ([], one))
        grouped[id(one.exchange)] = ([*paths, path], one)
    return list(grouped.values())


def _files_and_call(paths: Sequence[str], one: Newest) -> str:
    """Return the paths and the call; omit paths that it shows."""
    line = cut_line(calls.command_of(one.exchange.call).strip(), 80)
    call = f"`{line}`" if line else one.exchange.call.name
    return call if all(path in line for path in paths) else f"{', '.join(paths)}: {call}"


INSTRUCTION_FILES = frozenset(
    ".clinerules .cursorrules .goosehints .hermes.md .roorules .rules .windsurfrules agent.md "
    "agents.local.md agents.md agents.override.md claude.local.md claude.md crush.md gemini.md "
    "copilot-instructions.md hermes.md praison.md qwen.md skill.md soul.md warp.md".split()
)
"""Exact names of files of instructions, in lower case."""
_SHOWS_ONE = re.compile(r"(?:cat|less|more|bat|type|Get-Content)(?: -\S+)* ([\w./\\~-]+)")
_LINE_NUMBER = re.compile(r"^\s*\d+(?:\t|→|\|) ?", re.M)


def source_of(call: ToolCall, rule_sources: tuple[str, ...]) -> str:
    """Return the instruction path or tool that a call reads, or ""."""
    if any(fnmatchcase(call.name, pattern) for pattern in rule_sources):
        return call.name
    shown = _SHOWS_ONE.fullmatch(calls.command_of(call).strip())
    paths = calls.paths_in(call) if calls.kind_of(call) == calls.SHOWS else []
    for path in (path.replace("\\", "/") for path in ([shown[1]] if shown else paths)):
        name = path.rpartition("/")[2]
        if name.lower() in INSTRUCTION_FILES or any(
            _matches_pattern(path, name, pattern) for pattern in rule_sources
        ):
            return path
    return ""


def _matches_pattern(path: str, name: str, pattern: str) -> bool:
    end = "/" + pattern.removeprefix("./")
    return fnmatchcase(path, pattern) or fnmatchcase(name, pattern) or f"/{path}".endswith(end)


def instructions_section(found: Mapping[str, tuple[int, str]]) -> Section:
    """Return the newest content of each file of instructions, with its path."""
    lines = [
        QuoteEntry(at, (-at,), _content(text), f"{source}:\n  ")
        for source, (at, text) in sorted(found.items(), key=lambda item: item[1][0])
    ]
    return Section(TITLES["instructions"], lines, 0.12, least=60, noun="files of instructions")


def _content(text: str) -> str:
    """Return a file's content without a tool's line numbers."""
    lines = text.strip("\n").split("\n")
    is_numbered = all(_LINE_NUMBER.match(line) for line in lines if line.strip())
    return _LINE_NUMBER.sub("", text).strip() if is_numbered else text.strip()
