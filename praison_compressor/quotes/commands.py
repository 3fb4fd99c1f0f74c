"""The newest run of each command and call, and the newest changing call of each file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..messages import ToolCall
from .exchanges import NO_RESULT, Exchange
from .files import command_of
from .passages import QuoteOptions, call_line, call_text, cut, without_notes
from .rendering import TITLES, Line, Section
from .telling import exit_code, opened, telling_line

COMMAND_CHARS = 200
_LOOKS = re.compile(
    r"^(?:read|view|get|list|ls|search|grep|find|glob|cat|fetch|open|look|show|query|web|describe)",
    re.I,
)
_LOOKING_COMMAND = re.compile(r"^(?:cd [^&;]*(?:&&|;)\s*)?(?:cat|ls|head|tail|grep|rg|find|sed -n|pwd|"
                              r"which|wc|tree|git (?:log|show|diff|status|branch))\b")  # fmt: skip


@dataclass(frozen=True)
class Newest:
    """The newest of equal calls, and how many there were."""

    exchange: Exchange
    times: int
    host_prefixes: tuple[str, ...]

    def quoted(self) -> str:
        """Return the words of its result that decide, with the exit code where there is one."""
        one = self.exchange
        if not one.is_answered:
            return NO_RESULT
        output = without_notes(one.text, self.host_prefixes)
        said = telling_line(one.call, output)
        code = exit_code(opened(output))
        if code == "0" and not re.search(r"\bexit|code\b", said):
            said = f"exit code 0: {said}" if said else "exit code 0"
        return said or size(output)


def size(output: str) -> str:
    """Return an output's size in words."""
    if not output.strip():
        return "(empty result)"
    lines = output.strip().count("\n") + 1
    return f"({lines:,} lines, {len(output):,} characters)"


def key(call: ToolCall) -> str:
    """Return what makes two calls the same run."""
    return command_of(call).strip() or call_text(call)


def is_run(call: ToolCall) -> bool:
    """Return whether a call runs a command line."""
    return bool(command_of(call))


def note(found: dict[str, Newest], name: str, one: Exchange, options: QuoteOptions) -> None:
    """Make a call the newest of its name."""
    known = found.pop(name, None)
    found[name] = Newest(one, known.times + 1 if known else 1, options.host_prefixes)


def files(found: Mapping[str, Newest], budget: int) -> Section:
    """Return the section of files, each with its newest changing call and that call's result."""
    newest = list(found.items())[-_most(budget) :]
    lines = [
        Line(
            one.exchange.at,
            (-one.exchange.at, -n),
            f"{_what(one)}{_times(one)} -> {one.quoted()}",
            f"{path}: ",
        )
        for n, (path, one) in enumerate(newest)
    ]
    return Section(
        TITLES["files"], lines, 0.15, least=80, noun="files", unlisted=len(found) - len(newest)
    )


def runs(found: Sequence[Newest], budget: int) -> Section:
    """Return the section of commands and calls; those that only look rank last."""
    ranked = sorted(found, key=lambda one: (_looks(one.exchange.call), -one.exchange.at))
    chosen = sorted(ranked[: _most(budget)], key=lambda one: one.exchange.at)
    lines = [
        Line(
            one.exchange.at,
            (_looks(one.exchange.call), -one.exchange.at),
            f"{_said(one.exchange.call)}{_times(one)} -> {one.quoted()}",
        )
        for one in chosen
    ]
    return Section(
        TITLES["commands"], lines, 0.15, least=80, noun="calls", unlisted=len(found) - len(chosen)
    )


def _most(budget: int) -> int:
    """Return how many entries a budget can hold at most."""
    return max(4, budget // 16)


def _times(one: Newest) -> str:
    return f" (newest of {one.times})" if one.times > 1 else ""


def _said(call: ToolCall) -> str:
    line = command_of(call)
    return cut(line, COMMAND_CHARS) if line else call_line(call, COMMAND_CHARS)


def _what(one: Newest) -> str:
    line = command_of(one.exchange.call)
    return f"`{cut(line, 80)}`" if line and " " in line.strip() else one.exchange.call.name


def _looks(call: ToolCall) -> int:
    line = command_of(call).strip()
    if line:
        return int(_LOOKING_COMMAND.match(line) is not None)
    return int(_LOOKS.match(call.name.rpartition("__")[2]) is not None)
