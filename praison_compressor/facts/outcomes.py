"""The outcome of a call: its status, and the one line of the result that says so."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple


class Outcome(NamedTuple):
    """`ok`, `failed` or `unknown`, and the line that shows it."""

    status: str
    detail: str


_EXIT = re.compile(
    r"(?:exit(?:ed)?(?: with)?(?: \w+)?[ _-]?(?:code|status)|return ?code)\W{0,4}(-?\d+)", re.I
)
_ERROR = re.compile(
    r"\b(?:\w*error|\w*exception|traceback|failed|failure|fatal|panic|denied|not found|"
    r"no such file|undefined|cannot|unable to|invalid|refused|timed? ?out)\b|\bFAIL\b|✗|✖|✘",
    re.I,
)
_FAILURE_FIRST = re.compile(
    r"^\W{0,3}(?:\w*error\b(?!\W{1,4}(?:null|none|false|0)\b)|failed|fatal|traceback|panic|"
    r"exit code [1-9]|command failed|<tool_use_error|permission denied|no such file|"
    r"(?:\w+ ){0,3}timed out|err_\w+|npm err)",
    re.I,
)
# How an editor says that it changed nothing.
_REFUSED = re.compile(
    r"\b(?:failed to (?:match|edit|apply|write|create|delete|move)|no (?:replacement|edit|change)s?"
    r"(?: was| were)? (?:performed|made)|introduced new syntax error|were not applied|"
    r"denied this operation)\b"
    # How a service says in JSON that it has not done it.
    r"|^\s*\{[^{}]{0,120}\"(?:(?:is_?)?error\"\s*:\s*(?:true|\"\w|\{)|status\"\s*:\s*\"(?:error|fail)|"
    r"(?:success|ok)\"\s*:\s*false)",
    re.I,
)
# How a program complains in its first line: `cat: x: No such file or directory`.
_COMPLAINT = re.compile(
    r"^\s*(?:[^\s:]+: ){1,3}.*(?:permission denied|no such file or directory|not found|"
    r"not a directory|is a directory|operation not permitted|does not exist)\W*$",
    re.I | re.M,
)
# Only what is looked for, not the line round it: that is cut out where it was found.
_TESTS = re.compile(
    r"\b(?:\d+ (?:passed|failed|tests?|errors?)|FAIL(?:ED)?\b|ok\s+\S+\s|PASS\b|"
    r"tests? (?:passed|failed))"
)
# Failing tests; a compiler's `x.c:3:5: error: ...`, `x.ts(3,5): error TS2322: ...`.
_FAILING = re.compile(
    r"--- FAIL|\bFAILED\b|\b[1-9]\d* (?:failed|failures?)\b|Failures?: +[1-9]|^ ?FAIL\b"
    r"|^(?:[A-Z]:)?[^\s:(]+[:(]\d+(?:[:,]\d+)?\)?:? (?:- )?(?:fatal )?error(?: \w+)?: ",
    re.M,
)
_FAILED_TEST = re.compile(
    r"^(?:FAILED \S+|\s*--- FAIL: \S+|test \S+ \.\.\. FAILED|\s*● \S.*|\s?FAIL:? +\S.*|"
    r"rspec \./\S+|\s*Failed \S+ \[|\s*\d+ - \S+ \(Failed\)|"
    r"\[ERROR\] \S+ +-- Time elapsed.*<<<|\w\S* > .+ FAILED$|\s+[✘×✕✗]\s+\S.*$)",
    re.M,
)
# How many there are is no error, nor is the word alone.
_COUNTS = re.compile(
    r"\b\d+ (?:passed|failed|errors?|failures?|examples?|tests?)\b|^\W*FAIL(?:ED)?\W*$"
)
# A heading tells of none yet, and some lines say that there is none or only that there was one.
_TELLS_NOTHING = re.compile(
    r"^\W*(?:error\W+)?(?:\w+ )?(?:errors?|failures?|failed (?:tests|examples))"
    r"(?:\W+(?:none|0)\W*|\s*:\s*)$"
    r"|^\W*traceback\b|^\W*(?:the )?(?:command|process)\b.{0,40}\b(?:code|status)\W{0,3}\d+\W*$",
    re.I,
)
_TRACEBACK = re.compile(r"^\W*Traceback \(most recent call last\)")
# How a program that failed takes its leave.
_ENDS_BADLY = re.compile(
    r"^(?:error|fatal)(?:\[\w+\])?: |^make(?:\[\d+\])?: \*\*\* |^npm (?:ERR!|error)\b"
    r"|^(?:\w+\.)*[A-Z]\w*(?:Error|Exception)(?:: |$)|^\W*✖ \d+ problems? \([1-9]"
)
# What tools print below the output of a program: it says how they are, not how it ended.
_FOOTER = re.compile(
    r"^wall time|^duration|^real\s|^user\s|^sys\s|^exit code|^[\w ]+: \(none\)$|^process group"
    r"|^\[(?:the |python |jupyter |current )?(?:command|interpreter|current|working|python)\b.*\]$"
    r"|^\((?:open file|current directory): .*\)$|^\S{0,40}[$#>]$",
    re.I,
)
LINE_CHARS = 200
DETAIL_CHARS = 300


def outcome_of(result: str, *, piped: bool = False) -> Outcome:
    """Read a tool's result from its edges: only the head and the tail say how it ended.

    Of a failure the exit code (1 goes without saying) and the first and the last line that tell of
    it. `piped`: exit code 0 is that of another program.
    """
    result = opened(result)
    head, tail = result[:4_000], result[-4_000:]
    text = result if len(result) <= 8_000 else f"{head}\n{tail}"
    code = _EXIT.search(head[:400]) or _EXIT.search(tail[-400:])
    flat = text.lower()  # to look for a word in it costs a tenth of the pattern
    failing = _FAILING.search(text) if "fail" in flat or "error" in flat else None
    if code and not (piped and code.group(1) == "0"):
        failed = code.group(1) != "0"
    else:
        first = text.lstrip()[:200]
        complains = _COMPLAINT.match(first.partition("\n")[0])
        failed = bool(
            failing
            or complains
            or _FAILURE_FIRST.search(first)
            or _REFUSED.search(first)
            or _ENDS_BADLY.search(_last_line(tail))
        )
    if failed:
        exit_code = code.group(1) if code and code.group(1) != "0" else "1"
        return Outcome("failed", _failure(text, failing, exit_code))
    tests = _TESTS.search(tail)
    status = "ok" if code or text.strip() else "unknown"
    return Outcome(status, _line(_line_of(tests) if tests else _last_line(tail)))


def _failure(text: str, failing: re.Match[str] | None, code: str) -> str:
    told, errors = errors_in(text), error_lines(text)
    shown = _FAILED_TEST.search(text) or (None if errors else failing)
    lines = (line for line in text.splitlines() if line.strip())
    telling = (line for line in lines if not _TELLS_NOTHING.search(line[:LINE_CHARS]))
    first = _line(_line_of(shown)) if shown else next(iter(errors), _line(next(telling, text)))
    said = first if code == "1" else f"exit {code}: {first}"
    last = _line(told[-1]) if told else first
    return said if last in said else _line(f"{said} … {last}", DETAIL_CHARS)


def _line_of(found: re.Match[str]) -> str:
    text = found.string
    end = text.find("\n", found.end())
    return text[text.rfind("\n", 0, found.start()) + 1 : end if end >= 0 else len(text)]


def error_lines(text: str) -> list[str]:
    """The first and the last line that tell of an error, once where they are the same."""
    found = [_line(line) for line in errors_in(text) if not _COUNTS.search(line)]
    return list(dict.fromkeys((*found[:1], *found[-1:])))


def errors_in(text: str) -> list[str]:
    out: list[str] = []
    raised = False
    for line in text.splitlines():
        if raised and line.strip() and not line[0].isspace():
            raised = False  # what was raised: its name need not have an error in it
            out.append(line)
        elif _ERROR.search(line[:400]) and not _TELLS_NOTHING.search(line[:400]):
            out.append(line)
        raised = raised or bool(_TRACEBACK.match(line[:60]))
    return out


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return next((line for line in reversed(lines) if not _FOOTER.match(line)), "".join(lines[-1:]))


def _line(text: str, most: int = LINE_CHARS) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= most else flat[: most - 1] + "…"


# -------------------------------------------------------------- results in JSON


_SAID = ("stdout", "output", "stderr", "error")
_CODES = ("exit_code", "exitCode", "returncode", "return_code", "code", "status")
_KNOWN = frozenset(
    "command cwd duration duration_ms duration_seconds execution_time interrupted isImage metadata "
    "ok pid signal success timed_out truncated".split()
).union(_SAID, _CODES)


def opened(result: str) -> str:
    """The output out of the JSON that some tools wrap it in, and a last line with its exit code.

    One line of JSON would hide every line of the output, and glue `\\n` to the word behind it. A
    result with any other key is the tool's own JSON and stays as it is.

    >>> opened('{"output": "a\\\\nb\\\\n", "metadata": {"exit_code": 2}}')
    'a\\nb\\nexit code 2'
    """
    if not (result.startswith("{") and result.endswith("}")):
        return result
    try:
        value = json.loads(result)
    except (ValueError, RecursionError):
        return result
    if not isinstance(value, dict) or not value.keys() <= _KNOWN:
        return result
    said = [value[key].strip("\n") for key in _SAID if isinstance(value.get(key), str)]
    if not said:
        return result
    beside = value.get("metadata")
    code = _code(value) or (_code(beside) if isinstance(beside, Mapping) else "")
    return "\n".join(text for text in (*said, code) if text)


def _code(value: Mapping[str, Any]) -> str:
    found = (value.get(key) for key in _CODES)
    return next((f"exit code {code}" for code in found if type(code) is int), "")
