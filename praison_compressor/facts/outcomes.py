"""What came of a call: its status, and the one line of the result that says so."""

from __future__ import annotations

import re
from typing import NamedTuple


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
    r"^\W{0,3}(?:\w*error\b|failed|fatal|traceback|panic|exit code [1-9]|command failed|"
    r"<tool_use_error|permission denied|no such file)",
    re.I,
)
# Only what is looked for, not the line round it: that is cut out where it was found.
_TESTS = re.compile(
    r"\b(?:\d+ (?:passed|failed|tests?|errors?)|FAIL(?:ED)?\b|ok\s+\S+\s|PASS\b|"
    r"tests? (?:passed|failed))"
)
_FAILING = re.compile(r"--- FAIL|\bFAILED\b|[1-9]\d* failed|^FAIL\b", re.M)
_TIMING = re.compile(r"^wall time|^duration|^real\s|^user\s|^sys\s", re.I)
LINE_CHARS = 200


def outcome_of(result: str) -> Outcome:
    """Read a tool's result from its edges: only the head and the tail say how it ended."""
    head, tail = result[:4_000], result[-4_000:]
    text = result if len(result) <= 8_000 else f"{head}\n{tail}"
    code = _EXIT.search(head[:400]) or _EXIT.search(tail[-400:])
    failing = _FAILING.search(text)
    if code:
        failed = code.group(1) != "0"
    else:
        failed = bool(failing or _FAILURE_FIRST.search(text.lstrip()[:200]))
    if failed:
        return Outcome("failed", _line(_line_of(failing) if failing else first_error(text)))
    tests = _TESTS.search(tail)
    status = "ok" if code or text.strip() else "unknown"
    return Outcome(status, _line(_line_of(tests) if tests else _last_line(tail)))


def _line_of(found: re.Match[str]) -> str:
    text = found.string
    end = text.find("\n", found.end())
    return text[text.rfind("\n", 0, found.start()) + 1 : end if end >= 0 else len(text)]


def first_error(text: str) -> str:
    """The first line that tells of an error, or the first line at all."""
    lines = [line for line in text.splitlines() if line.strip()]
    return next((line for line in lines if _ERROR.search(line[:400])), lines[0] if lines else "")


def error_lines(text: str, limit: int = 2) -> list[str]:
    """At most `limit` lines that tell of an error."""
    found = [_line(line) for line in text.splitlines() if _ERROR.search(line[:400])]
    return list(dict.fromkeys(found))[:limit]


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip() and not _TIMING.match(line)]
    return lines[-1] if lines else ""


def _line(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= LINE_CHARS else flat[: LINE_CHARS - 1] + "…"
