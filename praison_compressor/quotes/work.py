"""Quote what calls did: changed files, instructions read, newest runs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

from ..messages import ToolCall, calls, changed_files, results
from ..messages.display import pluralize
from ..messages.shortening import cut_line
from ..messages.speakers import IN_USER_ROLE, without_notes
from .output_lines import deciding_line, is_failure
from .rendering import COMMANDS, FILES, INSTRUCTIONS_READ, QuoteEntry, Section

UNANSWERED = "no result was recorded"
COMMAND_LINE_CHARS = 200
LEAST_ENTRIES, ENTRY_TOKENS = 24, 150  # calls with results that a section is made from
Records = Sequence[results.CallRecord]
"""Equal calls, the newest last."""


def _entry(records: Records, rank: tuple[int, ...], title: str, path: str = "") -> QuoteEntry:
    """Return the newest call's entry.

    Its output shows a given path as "…". A cut keeps the call, a size and an exit code.
    """
    record = records[-1]
    output = without_notes(record.text)
    words = deciding_line(record.call, output) if record.is_answered else ""
    lead = [title, f"(newest of {len(records)}) ->" if len(records) > 1 else "->"]
    lead += _facts(record, output, words) if record.is_answered else [UNANSWERED]
    body = words.replace(path, "…") if path else words
    return QuoteEntry(
        record.where, rank, body, " ".join([*lead, ""] if words else lead), -1, record
    )


def _facts(record: results.CallRecord, output: str, words: str) -> Iterator[str]:
    """Yield a result's role, its size and its exit code of 0."""
    kind = calls.kind_of(record.call)
    if record.call.name == results.AGENT_TEXT and not record.call.id:
        yield f"{IN_USER_ROLE}:"
    if not words or (kind == calls.LISTS and "\n" in output.strip()):
        lines = pluralize(output.strip().count("\n") + 1, "line")
        yield f"({lines}, {len(output):,} characters)" if output.strip() else "(no output)"
    code = results.exit_code(results.unwrap_output(output)) if kind == calls.ACTS else ""
    if code == "0" and "exit" not in words:
        yield "exit code 0:"


def commands_section(runs: Mapping[str, Records], budget: int) -> Section:
    """Return the section of calls; calls that only look rank last."""
    ranked = sorted(runs.items(), key=lambda run: results.acts_first(run[1][-1]), reverse=True)
    most = max(LEAST_ENTRIES, budget // ENTRY_TOKENS)
    newest = ranked[-most:]
    failed = [(line, [run]) for line, records in newest for run in _earlier_failure(records)]
    entries = [
        _entry(records, results.acts_first(records[-1]), cut_line(line, COMMAND_LINE_CHARS))
        for line, records in sorted([*newest, *failed], key=lambda run: run[1][-1].at)
    ]
    return Section(COMMANDS, entries)


def _earlier_failure(records: Records) -> Records:
    """Return a command's newest failed run, unless the newest run failed."""
    runs = records if len(records) > 1 and calls.command_of(records[-1].call) else ()
    failed = next((x for x in reversed(runs) if is_failure(deciding_line(x.call, x.text))), None)
    return [] if failed is None or failed is records[-1] else [failed]


def files_section(files: Mapping[str, Records], budget: int) -> Section:
    """Return the section of files with their newest changing calls.

    Whether the call changed the file is for its quoted result to say.
    """
    newest: dict[results.CallRecord, list[str]] = {}  # a move names two paths
    for path, records in files.items():
        newest.setdefault(records[-1], []).append(path)
    in_order = sorted(newest.items(), key=lambda item: item[0].at)
    most = max(LEAST_ENTRIES, budget // ENTRY_TOKENS)
    entries = []
    for n, (record, paths) in enumerate(in_order[-most:]):
        path = paths[0] if len(paths) == 1 and "/" in paths[0] else ""
        entries.append(_entry(files[paths[0]], (-n,), _files_and_call(paths, record.call), path))
    return Section(FILES, entries, [r.where for r, paths in in_order[:-most] for _ in paths])


def _files_and_call(paths: Sequence[str], call: ToolCall) -> str:
    """Return the paths and the call; omit paths that the call shows."""
    line = cut_line(calls.command_of(call).strip(), 80)
    shown = f"`{line}`" if line else call.name
    return shown if all(path in line for path in paths) else f"{', '.join(paths)}: {shown}"


INSTRUCTION_FILES = frozenset(
    ".clinerules .cursorrules .goosehints .hermes.md .roorules .rules .windsurfrules agent.md "
    "agents.local.md agents.md agents.override.md claude.local.md claude.md crush.md gemini.md "
    "copilot-instructions.md hermes.md praison.md qwen.md skill.md soul.md warp.md".split()
)
_SHOWS_ONE = re.compile(r"(?:cat|less|more|bat|type|Get-Content)(?: -\S+)* ([\w./\\~-]+)")
_LINE_NUMBER = re.compile(r"^\s*\d+(?:\t|→|\|) ?", re.M)


def source_of(call: ToolCall, rule_sources: tuple[str, ...]) -> str:
    """Return the instruction path or tool that a call reads, or ""."""
    if any(fnmatchcase(call.name, pattern) for pattern in rule_sources):
        return call.name
    shown = _SHOWS_ONE.fullmatch(calls.command_of(call).strip())
    paths = changed_files.paths_in(call) if calls.kind_of(call) == calls.SHOWS else []
    for path in (path.replace("\\", "/") for path in ([shown[1]] if shown else paths)):
        name = path.rpartition("/")[2]
        if name.lower() in INSTRUCTION_FILES or any(
            fnmatchcase(path, pattern)
            or fnmatchcase(name, pattern)
            or f"/{path}".endswith("/" + pattern.removeprefix("./"))
            for pattern in rule_sources
        ):
            return path
    return ""


def instructions_section(readings: Mapping[str, tuple[int, str]]) -> Section:
    """Return the newest content of each file of instructions, with its path."""
    oldest_first = sorted(readings.items(), key=lambda item: item[1][0])
    entries = [
        QuoteEntry(at, (-at,), _content(text), f"{source}:\n  ")
        for source, (at, text) in oldest_first
    ]
    return Section(INSTRUCTIONS_READ, entries)


def _content(text: str) -> str:
    """Return a file's content without a tool's line numbers."""
    is_numbered = all(_LINE_NUMBER.match(line) for line in text.splitlines() if line.strip())
    return _LINE_NUMBER.sub("", text).strip() if is_numbered else text.strip()
