"""Choose which words of outputs are quoted; make the sections of calls.

A short output is quoted whole. Of a longer output the first error and the last tally (such as
"2 passed") are quoted; without both, the first sentence and the last line. Lines that say nothing,
such as a footer, are skipped. Of a JSON object the deciding members are quoted. Of a call that only
reads, the first hit or failure is quoted.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

from ..messages import ToolCall, calls, results, shapes
from ..messages.display import pluralize
from ..messages.shortening import cut_line
from ..messages.speakers import IN_USER_ROLE, without_notes
from .rendering import COMMANDS, FILES, INSTRUCTIONS_READ, QuoteEntry, Section

LINE_CHARS = 150
WHOLE_CHARS = 200
"""An output of at most this many characters is quoted whole."""
HEAD_CHARS = 300
"""Characters of a line that are searched for failures."""
EDGE_CHARS = 4_000
"""Characters at each end of an output whose lines are all candidates."""
MIDDLE_TRIES = 50
"""Between the ends, at most this number of occurrences of a word is tried: the first occurrences
may be in names of passed tests."""
SHAPE_CHARS = 12
"""Characters of a line's beginning that are compared with other lines."""

_PLAIN_WORDS = tuple(
    "error|fail|fatal|exception|traceback|panic|denied|reject|conflict|not found|no such|cannot|"
    "can't|could not|couldn't|unable|refused|timed out|timeout|invalid|abort|killed|undefined|"
    "unresolved|unexpected|forbidden|unauthorized|unavailable|blocked|missing|exceeded|interrupt|"
    "cancelled|canceled|segmentation|no match|not allowed|not permitted|does not|doesn't|was not|"
    "nothing to|no changes|declined|mismatch|violat|loopbackoff|unsupported|deadlock|out of memory|"
    "already in use|econn|err_|✗|✖|✘|❌|!!!|not ok".split("|")
)
_FAILURE_WORDS = (*_PLAIN_WORDS, "http/", "status", "e: ", "e  ", "! [")
_MIDDLE_WORDS = ("error", "fail", "fatal", "exception", "conflict", "panic", "denied", "reject")
_MIDDLE_MARKS = ("FAILED", "ERROR")
"""Searched in upper case only: names of passed tests have these words too."""
_NO_FAILURE = re.compile(
    r"\b(?:0|no|zero|without) (?:\w+ )?(?:error|fail|warning|problem|issue|conflict)\w*"
    r"|\b(?:errors?|fail\w*|skipped|timeout)[\"']?\s*[:=]\s*(?:0\b|none|null|false|\[\])",
    re.I,
)
# Failures beyond doubt: a line that begins with a program's error; anywhere in a line, an "error"
# after a compiler's file:line, an HTTP status 4xx or 5xx, or a code such as ECONNREFUSED.
_CERTAIN_FAILURE = re.compile(
    r"(?i:error|fatal|panic|rejected|conflict|traceback|npm err\S*|\[error\]|not ok)\b|! \[|E:? "
    r"|\S*(?:Error|Exception)\b|FAIL|--- FAIL|make(?:\[\d+\])?: \*\*\*|[❌✗✘✖×]"
    r"|\S+: .*(?:[Nn]o such file|not found|[Dd]enied|not permitted)"
    r"|.*?(?:[:(]\d+(?:[:,]\d+)?\)?:? (?:fatal )?error\b|\berror(?:\[\w+\]| TS\d+)|\bHTTP"
    r"(?:/\d\S*)? [45]\d\d\b|\b[Ss]tatus(?: code)?[:= ]+[45]\d\d\b|\b(?:ECONN|ENO|EACC|ERR_)\w)"
)
_FAILED_TALLY = re.compile(
    r"\b[1-9][\d,]* (?:\w+ )?(?:fail\w*|errors?|errored|rejected|conflicts?|problems?|vulnerabilit)"
    r"|\b(?:fail\w*|errors?|unreachable)\b[\"']?\s*[:=]\s*[1-9]|^FAILED\b",
    re.I,
)
TALLY = re.compile(
    r"\b\d[\d,.]*%?\s?(?:\w+ )?(?:pass(?:ed|ing)|fail\w*|errors?|warnings?|problems?|issues?|"
    r"tests?|specs?|examples?|assertions?|pending|replacements?|occurrences?|match(?:es)?|results?|"
    r"rows?|records?|files?|packages?|vulnerabilit\w*|insertions?|deletions?|changed|added|removed|"
    r"destroyed|to (?:add|change)|seconds?|ms|modules?|targets?|tasks?|checks?|suites?|items?)\b"
    r"|\b(?:All|Total|Found|Ran|Coverage|Score|accuracy|loss|BUILD|Finished|Success\w*|succeeded|rated)\b"
    r"|^\w[\w ]{0,30}(?:: +|=)[\d$€£.-][\d,.]*\b"
)
# Lines that say nothing: only punctuation or a keyword, dividing lines, progress bars, stack
# frames, passed tests, prompts, footers, a host's notes.
_SAYS_NOTHING = re.compile(
    r"[\W_]*$|```\w*$|\W*(?:FAIL(?:ED)?|end|done|else|fi|esac|EOF|pass|break|return|null|true|"
    r"false|output|stdout|stderr)\W*$|(?:shell )?cwd (?:was )?reset|wall time|duration|"
    r"(?:real|user|sys)\s+\d|process group|"
    r"\[(?:exit \d+|loop-guard|(?:the )?(?:python|jupyter|current) )[^\]]*\]$"
    r"|exit(?: code|ed)?:? \d+$|\((?:open file|current directory): .*\)$|\S{0,60}[$#>%]\s*$"
    r"|[\w ]+: \(none\)$|\S+ (?-i:PASSED|SKIPPED|XFAIL)\b|=== |--- PASS"
    r"|.{0,40}\b\d{1,3}%\s*[|\[█▏#=]|.*[█▓░━╸]{2}"
    r"|at (?:\S+ \(|\S+:\d+|node:)|File \"[^\"]+\", line|<[^>]*>$|[✓✔√]\s|ok \d+\b|command:"
    r"|agentId: |(?:<usage>)?(?:total_tokens|tool_uses): |\^+[\s~^]*$|hint: ",
    re.I,
)
# Lines of a file or of a diff.
_SHOWN_LINE = re.compile(r"\s*\d+(?:\t|→|\||:\s)|[+-](?:\s{2,}|\w)|@@")

_REPORTING = frozenset("agent delegate dispatchagent newtask runsubagent subagent task".split())

# The line with a report's conclusion; if that is a heading, the line below it.
_CONCLUDES = re.compile(
    r"^[\W_]*(?:\w+ ){0,2}(?:verdict|result|outcome|conclusion|decision|recommendation|assessment|"
    r"answer|status|rating|score)[*_]*(?:[ \t]*[:=—–][*_]*[ \t]*|[*_: \t]*\n+)\S[^\n]{0,300}$",
    re.I | re.M,
)


def deciding_line(call: ToolCall | None, text: str) -> str:
    """Return the deciding words of an output on one line, or "".

    >>> deciding_line(None, "tests/a.py::b PASSED\\n" * 40 + "2 passed, 2 errors in 1.2s\\n}\\n")
    '2 passed, 2 errors in 1.2s'
    """
    output = results.unwrap_output(text)
    code, words = results.exit_code(output), _choose_words(call, output)
    if code in ("", "0") or results.exit_code(words):
        return words
    return f"exit code {code}" + (f": {words}" if words else "")


def is_failure(line: str) -> bool:
    """Return whether a line has the form of a failure's report."""
    head = line[:HEAD_CHARS].lower()
    if not any(map(head.__contains__, _FAILURE_WORDS)):
        return False
    head = _NO_FAILURE.sub("", head)
    return _is_certain_failure(line) or any(map(head.__contains__, _PLAIN_WORDS))


def _is_certain_failure(line: str) -> bool:
    return _CERTAIN_FAILURE.match(_NO_FAILURE.sub("", line[:HEAD_CHARS])) is not None


def _choose_words(call: ToolCall | None, output: str) -> str:
    flat = output.strip()
    if len(flat) <= WHOLE_CHARS:
        return _join_short(flat)
    if flat[0] in "{[" and (members := _json_words(flat)):
        return members
    kind = calls.kind_of(call) if call is not None else calls.ACTS
    if call is not None and kind in (calls.SHOWS, calls.LISTS):
        return cut_line(_first_hit(call, kind, flat), LINE_CHARS)
    lines = [line.strip() for line in _candidate_lines(flat) if _has_content(line)]
    if call is None or calls.command_of(call):
        return _choose_lines(lines)
    if calls.normalize_key(call.name) in _REPORTING:
        conclusions = [" ".join(found[0].split()) for found in _CONCLUDES.finditer(flat)]
        return _edge_lines([*lines, *(line.lstrip("# ") for line in conclusions[-1:])])
    # Lines of the arguments are left out: a result may repeat its arguments, such as an approved
    # plan.
    arguments = "\n".join(map(str, calls.arguments_by_name(call).values()))
    echoed = {line.strip() for line in arguments.splitlines()}
    new = [x for x in lines if x not in (echoed if len(x) <= SHAPE_CHARS else arguments)]
    return _choose_lines(new)


def _first_hit(call: ToolCall, kind: str, output: str) -> str:
    """Return the first hit or failure of a reading call, or ""."""
    lines = (line.strip() for line in output[:EDGE_CHARS].splitlines() if _has_content(line))
    if kind == calls.LISTS:
        asked = [f'"{value}"' for value in calls.arguments_by_name(call).values()]
        return next((line for line in lines if not any(map(line.__contains__, asked))), "")
    first = next(lines, "")
    return first if not _SHOWN_LINE.match(first) and is_failure(first[:LINE_CHARS]) else ""


def _join_short(output: str) -> str:
    lines = [line.strip() for line in output.splitlines()]
    shown = [line if _has_content(line) else "…" for line in lines if line]
    runs = [line for n, line in enumerate(shown) if line != "…" or shown[n - 1 : n] != ["…"]]
    return " ".join(runs).strip(" …") if len(lines) > 1 else output


def _has_content(line: str) -> bool:
    return _SAYS_NOTHING.match(line.strip()[:LINE_CHARS]) is None


def _candidate_lines(text: str) -> Iterator[str]:
    """Yield the lines of both ends, and lines with failures between them."""
    if len(text) <= 2 * EDGE_CHARS:
        yield from text.splitlines()
        return
    # The first part ends at a line's end. Half the line of a passed test, without its "PASSED", may
    # look like a failure.
    begin = text.rfind("\n", 0, EDGE_CHARS) + 1 or EDGE_CHARS
    yield from text[:begin].splitlines()
    lower = text.lower()
    found = {_middle_line(text, lower, word, begin) for word in _MIDDLE_WORDS}
    found |= {_middle_line(text, text, mark, begin) for mark in _MIDDLE_MARKS}
    for start, stop in sorted(place for place in found if place is not None):
        yield text[start:stop]
    yield from text[-EDGE_CHARS:].splitlines()[1:]


def _middle_line(text: str, searched: str, word: str, at: int) -> tuple[int, int] | None:
    """Return the bounds of the word's first line with content, or None."""
    end = len(text) - EDGE_CHARS
    for _ in range(MIDDLE_TRIES):
        if (at := searched.find(word, at, end)) < 0:
            break
        start = text.rfind("\n", max(0, at - 400), at) + 1 or at
        stop = text.find("\n", at, at + 400)
        at = stop if stop >= 0 else at + 400
        if _has_content(text[start:at]):
            return start, at
    return None


def _choose_lines(lines: Sequence[str]) -> str:
    """Return the first error and the last tally.

    Without a tally the last error replaces it; without both, return the first sentence and the last
    line.
    """
    reported = [line for line in lines if not _SHOWN_LINE.match(line)] or lines
    bad = [line for line in reported if is_failure(line)]
    strong = [line for line in bad if _is_certain_failure(line)]
    failed = [line for line in bad if _FAILED_TALLY.search(_NO_FAILURE.sub("", line[:HEAD_CHARS]))]
    tally = next((line for line in reversed(reported) if TALLY.search(line[:HEAD_CHARS])), "")
    if not (bad or tally):
        return _edge_lines(_rare_lines(reported))
    first = next(iter(strong or bad), "")
    last = failed[-1] if failed else tally or bad[-1]
    return " … ".join(dict.fromkeys(cut_line(line, LINE_CHARS) for line in (first, last) if line))


def _edge_lines(lines: Sequence[str]) -> str:
    """Return the first sentence and the last line."""
    lines = [line for line in lines if not line.startswith(("# ", "## ", "### "))] or lines
    # A sentence ends after 12 characters at the earliest: "Good." alone says nothing.
    first = re.sub(r"\A(.{12,}?[.!?]) .*", r"\1", next(iter(lines), ""))
    last = next((line for line in reversed(lines) if not line.endswith(":")), "")
    chosen = [last] if last.startswith(first) else [first, last]
    return " … ".join(cut_line(line, LINE_CHARS) for line in chosen if line)


_ANY_NUMBER = re.compile(r"\d+")


def _rare_lines(lines: Sequence[str]) -> Sequence[str]:
    shapes = [_ANY_NUMBER.sub("0", line[:SHAPE_CHARS]) for line in lines]
    times = Counter(shapes)
    odd = [line for line, shape in zip(lines, shapes, strict=True) if times[shape] == 1]
    is_heading = odd == list(lines[:1])
    return odd if 0 < len(odd) * 4 < len(lines) and not is_heading else lines


_DECIDING_KEY = re.compile(
    ".*error.*|success|ok|status|state|(?:status)?code|message|reason|details?|warnings?|failed|"
    "failures|result|total|count|rejected|applied|content"
)


def _json_words(text: str) -> str:
    value = shapes.parse_json(text)
    if not isinstance(value, Mapping):
        return ""
    members = [
        cut_line(f'"{key}": {json.dumps(item, ensure_ascii=False)}', LINE_CHARS)
        for key, item in value.items()
        if item not in (None, "", [], {})
        and (item is False or _DECIDING_KEY.fullmatch(calls.normalize_key(str(key))))
    ]
    return cut_line(", ".join(members), 2 * LINE_CHARS)


# -------------------------------------------------------------- sections of calls

UNANSWERED = "no result was recorded"
COMMAND_LINE_CHARS = 200
LEAST_ENTRIES, TOKENS_PER_ENTRY = 24, 150
"""A section has at most one call for each `TOKENS_PER_ENTRY` of the budget; `LEAST_ENTRIES` are
always allowed."""
Records = Sequence[results.CallRecord]
"""Equal calls, the newest last."""


def _entry(records: Records, rank: tuple[int, ...], title: str, path: str = "") -> QuoteEntry:
    """Return the newest call's entry; "…" replaces `path` in the output."""
    record = records[-1]
    output = without_notes(record.text)
    words = deciding_line(record.call, output) if record.is_answered else ""
    lead = [title, f"(newest of {len(records)}) ->" if len(records) > 1 else "->"]
    lead += _facts(record, output, words) if record.is_answered else [UNANSWERED]
    if words:
        lead.append("")  # a space before the words
    body = words.replace(path, "…") if path else words
    return QuoteEntry(record.where, rank, body, " ".join(lead), -1, record)


def _facts(record: results.CallRecord, output: str, words: str) -> Iterator[str]:
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
    """Return the calls' section; calls that only show or list rank last."""
    ranked = sorted(runs.items(), key=lambda run: results.acts_first(run[1][-1]), reverse=True)
    most = max(LEAST_ENTRIES, budget // TOKENS_PER_ENTRY)
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
    """Return the section of files with their newest changing calls."""
    newest: dict[results.CallRecord, list[str]] = {}  # a move names two paths
    for path, records in files.items():
        newest.setdefault(records[-1], []).append(path)
    in_order = sorted(newest.items(), key=lambda item: item[0].at)
    most = max(LEAST_ENTRIES, budget // TOKENS_PER_ENTRY)
    entries = []
    for n, (record, paths) in enumerate(in_order[-most:]):
        path = paths[0] if len(paths) == 1 and "/" in paths[0] else ""
        entries.append(_entry(files[paths[0]], (-n,), _files_and_call(paths, record.call), path))
    return Section(FILES, entries, [r.where for r, paths in in_order[:-most] for _ in paths])


def _files_and_call(paths: Sequence[str], call: ToolCall) -> str:
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
    """Return the source of the instructions that a call reads, or "".

    A source is a file's path, or the name of a tool in `rule_sources`.
    """
    if any(fnmatchcase(call.name, pattern) for pattern in rule_sources):
        return call.name
    shown = _SHOWS_ONE.fullmatch(calls.command_of(call).strip())
    paths = calls.paths_in(call) if calls.kind_of(call) == calls.SHOWS else []
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
    """Return the section of the newest content of instruction files."""
    oldest_first = sorted(readings.items(), key=lambda item: item[1][0])
    entries = [
        QuoteEntry(at, (-at,), _content(text), f"{source}:\n  ")
        for source, (at, text) in oldest_first
    ]
    return Section(INSTRUCTIONS_READ, entries)


def _content(text: str) -> str:
    is_numbered = all(_LINE_NUMBER.match(line) for line in text.splitlines() if line.strip())
    return _LINE_NUMBER.sub("", text).strip() if is_numbered else text.strip()
