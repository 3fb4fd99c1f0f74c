"""Choose which words of a tool's output are quoted; say nothing about them.

An output of a few words is quoted whole. Of a longer one the lines are chosen by their form: a
line with an error's form, a line with a count, the last line that is not a footer. A mistake here
costs room, never truth: what is printed is a quotation.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..messages import ToolCall
from .passages import arguments_of, cut, key_of

LINE_CHARS = 160
WHOLE_CHARS = 200
"""An output of at most this many characters is quoted whole."""
EDGE_CHARS = 6_000
"""Characters at each end of an output that are searched line by line."""

# -------------------------------------------------------------- the forms of lines


_BAD_WORDS = (
    "error", "fail", "fatal", "exception", "traceback", "panic", "denied", "reject", "conflict",
    "not found", "no such", "cannot", "can't", "could not", "couldn't", "unable", "refused",
    "timed out", "timeout", "invalid", "abort", "killed", "undefined", "unresolved", "unexpected",
    "forbidden", "unauthorized", "unavailable", "blocked", "missing", "exceeded", "interrupted",
    "cancelled", "canceled", "segmentation", "no match", "not allowed", "not permitted", "does not",
    "doesn't", "was not", "nothing to", "no changes", "skipped", "declined", "mismatch", "violat",
    "unsupported", "deadlock", "out of memory", "✗", "✖", "✘", "❌", "×", "!!!", "not ok",
)  # fmt: skip
"""Words with which programs report that something did not happen; lower case."""
_BAD = re.compile("|".join(map(re.escape, _BAD_WORDS)), re.I)
_NONE_BAD = re.compile(
    r"\b(?:0|no|zero|without) (?:\w+ )?(?:errors?|failures?|failed|warnings?|problems|issues|"
    r"conflicts)\b|\b(?:errors?|failures?|failed|skipped|timeout)[\"']?\s*[:=]\s*(?:0\b|none|null|false|\[\])",
    re.I,
)
# Errors that decide: a program's own last word, a compiler's place, a test's name, a code.
_STRONG = re.compile(
    r"^\s*(?:E\s{2,}\S|error\b|fatal\b|panic\b|npm (?:ERR|error)|\S*(?:Error|Exception)\b|FAIL|"
    r"--- FAIL|make(?:\[\d+\])?: \*\*\*|\s*! \[|CONFLICT|rejected\b|Traceback|\[ERROR\]|❌|✗|✘|✖|×)"
    r"|\b\d+ (?:failed|failing|failures?|errors?|errored)\b|(?:failures|errors|failed)=[1-9]"
    r"|[:(]\d+(?:[:,]\d+)?\)?:? (?:fatal )?error\b|\berror(?:\[\w+\]| TS\d+)|\bHTTP(?:/\d\S*)? [45]\d\d\b"
    r"|\bstatus(?: code)?[:= ]+[45]\d\d\b|\b[45]\d\d (?:[A-Z][a-z]+ ?)+|\b(?:ECONN|ENO|EACC|EPERM|ERR_)\w+"
    r"|^\S+: (?:\S+: )*.*(?:[Nn]o such file|not found|[Dd]enied|not permitted)",
)
_COUNT = re.compile(
    r"\b\d[\d,.]*\s?(?:%|\w*\s?(?:passed|passing|failed|failing|errors?|warnings?|problems?|issues?|"
    r"tests?|specs?|examples?|assertions?|skipped|pending|todo|replacements?|occurrences?|matche?s|"
    r"results?|rows?|records?|files?|lines?|packages?|vulnerabilit|insertions?|deletions?|changed|"
    r"added|removed|destroyed|to add|to change|seconds?|ms\b|modules?|targets?|objects?|commits?|items?|"
    r"entries|hits?|builds?|tasks?|checks?|suites?))"
    r"|\b(?:Tests?|Suites?|Total|Found|Ran|Passed|Failed|Errors?|Warnings?|Coverage|Score|Result|"
    r"accuracy|loss|Finished|Successfully|BUILD|DONE|OK|PASS|ok)\b"
    r"|\w[\w ]{0,30}(?:: +|=)[\d$€£.-][\d,.]*\b",
)
_EXIT = re.compile(
    r"(?:exit(?:ed)?(?: with)?(?: \w+)?[ _-]?(?:code|status)|return ?code)[^\w-]{0,4}(-?\d+)"
    r"|^\[exit (-?\d+)\]|\b(?:killed|terminated) by signal (\d+)|<returncode>(-?\d+)</returncode>"
    r"|^exit: (-?\d+)$",
    re.I | re.M,
)
# Lines without a word of their own: brackets, rules, progress, footers, hosts' notes.
_SAYS_NOTHING = re.compile(
    r"^[\W_]*$|^\W*(?:end|done|else|fi|esac|EOF|pass|break|return|null|true|false)\W*$"
    r"|^(?:shell )?cwd (?:was )?reset|^wall time|^duration|^(?:real|user|sys)\s+\d|^process group"
    r"|^\[(?:exit \d+|loop-guard|the |python |jupyter |current |command )[^\]]*\]|^exit code:? \d+$"
    r"|^\((?:open file|current directory): .*\)$|^\S{0,60}[$#>%]\s*$|^[\w ]+: \(none\)$"
    r"|\b\d{1,3}%\s*[|\[█▏#=]|[█▓░━╸]{2,}|^\S+ (?:PASSED|SKIPPED|XFAIL)\b|^\S+::\S+.*\[ *\d+%\]"
    r"|^\s*(?:at \S+ \(|at \S+:\d+|File \"[^\"]+\", line)|^<[^>]*>$|^\s*[✓✔√]\s|^ok \d+\b"
    r"|^(?:exit )?code \d+$|^output:?$|^(?:stdout|stderr):?$|^command:|^\s*\^+[\s~^]*$",
    re.I,
)
# Echoes of a file's lines: `    12\ttext`, `+ text` of a diff, `12: text`, `12| text`.
_ECHO = re.compile(r"^\s*\d+(?:\t|→|\||:\s)|^[+-](?![-+ ]*$)(?!\d+ )|^@@|^\s{4,}")

# -------------------------------------------------------------- public


def telling_line(call: ToolCall | None, text: str) -> str:
    """Return the words of an output that decide, on one line; "" where none do.

    >>> telling_line(None, "tests/a.py::b PASSED\\n" * 40 + "2 passed, 2 errors in 1.2s\\n}\\n")
    '2 passed, 2 errors in 1.2s'
    """
    output = opened(text)
    code = exit_code(output)
    said = _telling(call, output)
    if code in ("", "0") or _EXIT.search(said):
        return said
    return f"exit code {code}" + (f": {said}" if said else "")


def exit_code(text: str) -> str:
    """Return the exit code that an output states at one of its ends, or ""."""
    found = _EXIT.search(text[:400]) or _EXIT.search(text[-400:])
    return next(filter(None, found.groups())) if found else ""


def _telling(call: ToolCall | None, output: str) -> str:
    flat = output.strip()
    if not flat:
        return ""
    if len(flat) <= WHOLE_CHARS:
        return " ".join(flat.split()) if _any_word(flat) else ""
    if flat[0] in "{[" and (said := _json_words(flat)):
        return said
    lines = _lines(flat)
    if call is not None and shows_text(call):
        return _first_if_bad(lines)
    return _chosen(lines, flat)


def _any_word(text: str) -> bool:
    return any(not _SAYS_NOTHING.search(line) for line in text.splitlines())


def _lines(text: str) -> list[str]:
    """Return the lines of both ends, and those between that hold a word of failure."""
    if len(text) <= 2 * EDGE_CHARS:
        return text.splitlines()
    head, tail = text[:EDGE_CHARS].splitlines(), text[-EDGE_CHARS:].splitlines()
    return [*head, *_between(text), *tail[1:]]


_MIDDLE_WORDS = ("error", "fail", "fatal", "exception", "conflict", "panic", "denied", "rejected")


def _between(text: str) -> Iterator[str]:
    """Yield the first line with each word of failure in a long text's middle."""
    lower, end = text.lower(), len(text) - EDGE_CHARS
    found = (lower.find(word, EDGE_CHARS, end) for word in _MIDDLE_WORDS)
    for at in sorted(place for place in found if place >= 0):
        start = text.rfind("\n", max(0, at - 400), at) + 1
        stop = text.find("\n", at, at + 400)
        yield text[start : stop if stop >= 0 else at + 400]


# -------------------------------------------------------------- choosing


def _chosen(lines: list[str], flat: str) -> str:
    """Return the error's line, and the last count or else the last line that says anything."""
    plain = [line for line in lines if line.strip() and not _SAYS_NOTHING.search(line.strip())]
    bad = [line for line in plain if _is_bad(line)]
    strong = [line for line in bad if _STRONG.search(line)]
    first = next(iter(strong or bad), "")
    counts = (line for line in reversed(plain[-12:]) if _COUNT.search(line[:400]))
    last = next(counts, "") or next(reversed(plain), "")
    if strong and not _COUNT.search(last):
        last = strong[-1]
    return _joined((first, last), flat)


def _is_bad(line: str) -> bool:
    head = line[:400]
    return _BAD.search(_NONE_BAD.sub("", head)) is not None or _STRONG.search(head) is not None


def _joined(parts: Iterable[str], flat: str) -> str:
    said: list[str] = []
    for part in parts:
        line = cut(part.strip(), LINE_CHARS)
        if line and line not in said:
            said.append(line)
    return " … ".join(said) or cut(flat, LINE_CHARS)


def _first_if_bad(lines: list[str]) -> str:
    """Return the first line of a text that was asked for, where it has an error's form."""
    first = next((line for line in lines if line.strip()), "")
    return cut(first, LINE_CHARS) if _is_bad(first) and not _ECHO.match(first) else ""


_SHOWING = ("read", "view", "cat", "open", "get_file", "show", "head", "tail", "less", "sed", "nl")
_SHOWS = re.compile(r"^(?:cat|head|tail|less|more|bat|nl|sed -n)\s[^|;&>]*$")
SHOWS_FILES = re.compile(r"(?:cat|less|more|bat|type|Get-Content)(?: -\S+)* ([\w./\\~-]+)")
"""A command line that prints one file, whole."""


def shows_text(call: ToolCall) -> bool:
    """Return whether a call asks for a text: a file's lines are no report."""
    arguments = arguments_of(call)
    given = arguments if isinstance(arguments, Mapping) else {}
    command = given.get("command") or given.get("cmd")
    if isinstance(command, str) and " " in command.strip():
        return _SHOWS.match(command.strip()) is not None
    named = {key_of(key) for key in given}
    name = command if isinstance(command, str) else call.name.rpartition("__")[2]
    return not named.isdisjoint(PATH_KEYS) and name.lower().startswith(_SHOWING)


PATH_KEYS = frozenset(
    "filepath filepaths path filename file targetfile notebookpath relativepath absolutepath "
    "relativeworkspacepath sourcepath oldpath paths files uri".split()
)

# -------------------------------------------------------------- results in JSON


_SAID = ("stdout", "output", "stderr", "error")
_CODES = ("exit_code", "exitCode", "returncode", "return_code", "code", "status")
_KNOWN = frozenset(
    "command cwd duration duration_ms duration_seconds execution_time interrupted isImage metadata "
    "ok pid signal success timed_out truncated".split()
)


def opened(result: str) -> str:
    """Return the output inside a tool's JSON wrapper, and a last line with its exit code.

    A result with a key of its own stays as it is.

    >>> opened('{"output": "a\\\\nb\\\\n", "metadata": {"exit_code": 2}}')
    'a\\nb\\nexit code 2'
    """
    if not (result.startswith("{") and result.endswith("}")):
        return result
    value = _loaded(result)
    if not isinstance(value, dict):
        return result
    said = [value[key].strip("\n") for key in _SAID if isinstance(value.get(key), str)]
    if not said or not value.keys() <= _KNOWN.union(_SAID, _CODES):
        return result
    beside = value.get("metadata")
    given = {**beside, **value} if isinstance(beside, Mapping) else value
    codes = (f"exit code {given[key]}" for key in _CODES if type(given.get(key)) is int)
    flags = [f"{key}: false" for key in ("success", "ok") if value.get(key) is False]
    return "\n".join(text for text in (*said, *flags, next(codes, "")) if text)


def _loaded(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


_TELLING_KEYS = (
    "error", "errors", "success", "ok", "status", "state", "code", "statuscode", "message", "reason",
    "detail", "details", "warning", "warnings", "failed", "failures", "result", "total", "count",
)  # fmt: skip


def _json_words(text: str) -> str:
    """Return the members of a JSON object that decide, as they are written."""
    value = _loaded(text)
    if not isinstance(value, Mapping):
        return ""
    found = {key: value[key] for key in value if key_of(str(key)) in _TELLING_KEYS}
    short = {key: item for key, item in found.items() if not _is_empty(item)}
    said = (f'"{key}": {json.dumps(item, ensure_ascii=False)}' for key, item in short.items())
    return cut(", ".join(cut(part, LINE_CHARS) for part in said), 2 * LINE_CHARS)


def _is_empty(value: Any) -> bool:
    return value is None or value in ("", [], {})
