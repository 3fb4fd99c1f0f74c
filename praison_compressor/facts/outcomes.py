"""The outcome of a call: its status, and the one line of the result that says so."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from itertools import chain
from typing import Any, NamedTuple


class Outcome(NamedTuple):
    """`ok`, `failed`, `refused` (by the user or a guard), `interrupted` or `unknown`, and the line
    that shows it."""

    status: str
    detail: str
    failing: tuple[str, ...] = ()
    """The tests or their files that failed, where the result names them all."""

    @property
    def is_bad(self) -> bool:
        """Whether what was tried did not come about."""
        return self.status in BAD


BAD = ("failed", "refused", "interrupted")


_EXIT = re.compile(
    r"(?:exit(?:ed)?(?: with)?(?: \w+)?[ _-]?(?:code|status)|return ?code)\W{0,4}(-?\d+)", re.I
)
_ERROR = re.compile(
    r"\b(?:\w*error|\w*exception|traceback|failed|failure|fatal|panic|denied|not found|"
    r"no such file|undefined|cannot|unable to|invalid|refused|timed? ?out)\b|\bFAIL\b|✗|✖|✘"
    r"|^(?:\w+\.)+[A-Z]\w+: ",
    re.I,
)
_NO_NOUN = (
    r"(?! (?!to\b|with\b|while\b|when\b|in\b|on\b|at\b|from\b|for\b|code\b|error\b|occurred\b|"
    r"\w+ing\b|\w+:)[a-z])"
)
_FAILURE_FIRST = re.compile(
    # "Failed logins by country" is a heading.
    rf"^\W{{0,3}}(?:\w*error\b(?!\W{{1,4}}(?:null|none|false|0)\b){_NO_NOUN}|failed{_NO_NOUN}|"
    rf"fatal{_NO_NOUN}|traceback|panic{_NO_NOUN}|"
    r"exit code [1-9]|command failed|<tool_use_error|permission denied|no such file|"
    r"no (?:replacement|edit|change)s? |(?:\w+ ){0,3}timed out|err_\w+|npm err)"
    # How a program complains: `cat: x: No such file or directory`.
    r"|^\s*(?:[^\s:]+: ){1,3}.*(?:permission denied|no such file or directory|not found|"
    r"not a directory|is a directory|operation not permitted|does not exist)\W*$"
    # How a service says in JSON that it has not done it.
    r"|^\s*\{[^{}]{0,120}\"(?:(?:is_?)?error\"\s*:\s*(?:true|\"\w|\{)|"
    r"status\"\s*:\s*\"(?:error|fail)|(?:success|ok)\"\s*:\s*false)",
    re.I,
)
# How a host says that the user, or a guard in his place, did not let it happen.
_REFUSED = re.compile(
    r"doesn['’]t want to (?:proceed|take)|\buser (?:has )?(?:rejected|declined|denied|refused|"
    r"cancell?ed|chose not)|(?:tool use|tool call|request|action|operation|command|edit|change)s? "
    r"(?:was|were|has been|is) (?:rejected|declined|denied|refused|blocked|not (?:allowed|"
    r"permitted|approved))|^\W*(?:rejected|declined|refused|blocked|denied)\b|"
    r"permission to (?:use )?\S+ .{0,80}denied|(?:blocked|denied|refused) by\b|"
    r"^\s*\{[^{}]{0,120}\"status\"\s*:\s*\"(?:denied|rejected|refused|blocked)",
    re.I,
)
_INTERRUPTED = re.compile(
    r"^\W*(?:request |command |tool (?:use |call )?|execution )?(?:was )?"
    r"(?:interrupted|aborted|cancell?ed)\b|\binterrupted by (?:the )?user|"
    r"\b(?:cancell?ed|aborted) by (?:the )?user",
    re.I,
)
# A program that checks says itself how it ended.
PASSED = re.compile(
    r"\b[1-9]\d* (?:tests? |examples? )?pass(?:ed|ing)?\b|^(?:ok\s+\S|PASS\b|OK\b)|"
    r"\bAll checks passed|\btest result: ok|\b(?:0|no) (?:errors?|failures?|issues|problems)\b|"
    r"\bBUILD SUCCESS|\bSuccess:|\bcompiled successfully",
    re.I | re.M,
)
# Failing tests; a compiler's `x.c:3:5: error: ...`, `x.ts(3,5): error TS2322: ...`.
_FAILING = re.compile(
    r"--- FAIL|\bFAILED\b|Failures?: +[1-9]|^ ?FAIL\b"
    # "2 failed payments" are no tests.
    r"|\b[1-9]\d* (?:failed|failures?)\b(?! (?!in\b|out\b|of\b|and\b|tests?\b)[a-z])"
    r"|^(?:[A-Z]:)?[^\s:(]+[:(]\d+(?:[:,]\d+)?\)?:? (?:- )?(?:fatal )?error(?: \w+)?: ",
    re.M,
)
_FAILED_TEST = re.compile(
    r"^(?:FAILED \S+|\s*--- FAIL: \S+|test \S+ \.\.\. FAILED|\s*● \S.*|\s?FAIL:? +\S.*|"
    r"rspec \./\S+|\w\S* > .+ FAILED$|\s+[✘×✕✗]\s+\S.*$)",
    re.M,
)
_COUNTED = re.compile(r"\b[1-9]\d* (?:failed|failures?|failing)\b")
_SAYS_WHY = re.compile(
    r"^(?:E +)?(?:(?:\w+\.)*[A-Z]\w*(?:Error|Exception)\b.*|thread .* panicked at .*"
    r"|\S+_test\.go:\d+: .*)"
)
# A heading tells of none yet, and some lines say that there is none or only that there was one.
_TELLS_NOTHING = re.compile(
    r"^\W*(?:error\W+)?(?:\w+ )?(?:errors?|failures?|failed (?:tests|examples))"
    r"(?:\W+(?:none|0)\W*|\s*:\s*)$|^\W*FAIL(?:ED)?\W*$"
    r"|^\W*traceback\b|^\W*(?:the )?(?:command|process)\b.{0,40}\b(?:code|status)\W{0,3}\d+\W*$",
    re.I,
)
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

    Of a failure the exit code (1 goes without saying), the first line that tells of it (of a test
    that failed also the one that says why) and the last, or the one that counts. `piped`: exit
    code 0 is that of another program.
    """
    result = opened(result)
    head, tail = result[:4_000], result[-4_000:]
    text = result if len(result) <= 8_000 else f"{head}\n{tail}"
    found = _EXIT.search(head[:400]) or _EXIT.search(tail[-400:])
    code = "" if found is None or (piped and found[1] == "0") else found[1]
    flat = text.lower()  # to look for a word in it costs a tenth of the pattern
    failing = _FAILING.search(text) if "fail" in flat or "error" in flat else None
    first = text.lstrip()[:200].partition("\n")[0]
    ends_badly = _FAILURE_FIRST.search(first) or _ENDS_BADLY.search(_last_line(tail))
    if refused := _REFUSED.search(first) or _INTERRUPTED.search(first):
        return Outcome("refused" if refused.re is _REFUSED else "interrupted", _line(first))
    if code not in ("", "0") or (not code and (failing or ends_badly)):
        said = _failure(text, failing, code or "1")
        return Outcome("failed", said, failing_tests(result) if failing else ())
    return Outcome("ok" if found or text.strip() else "unknown", _line(_last_line(tail)))


def _failure(text: str, failing: re.Match[str] | None, code: str) -> str:
    errors = errors_in(text)
    shown = _FAILED_TEST.search(text) or (None if errors else failing)
    telling = (line for line in text.splitlines() if line.strip() and not _tells_nothing(line))
    first = _line(_line_of(shown) if shown else next(chain(errors, telling), text))
    said = first if code == "1" else f"exit {code}: {first}"
    # Behind a test that failed, why it did; of lines at the end the one that counts.
    lines = map(str.strip, text.splitlines() if shown else ())
    why = next((_line(line) for line in lines if _SAYS_WHY.match(line)), first)
    counted = (line for line in reversed(errors) if _COUNTED.search(line))
    last = next(counted, errors[-1] if errors else first)
    for more in (why.removeprefix("E "), _line(last)):
        said = said if more in said else _line(f"{said} … {more}", DETAIL_CHARS)
    return said


_NAMED_TEST = re.compile(
    # pytest, rspec; cargo; jest and vitest; unittest.
    r"^(?:(?:FAILED|ERROR|rspec) (?=\w|\./)(\S+)|test (\S+) \.\.\. FAILED|"
    r" ?FAIL +(\S+\.\w+)(?=\s|$)|(?:FAIL|ERROR): \w+ \(([\w.]+)\))",
    re.M,
)
_HOW_MANY = re.compile(
    r"\b(\d{1,9}) (?:failed|failures?|failing|errors?)\b|\b(?:failures|errors)=(\d{1,9})"
)


def failing_tests(result: str) -> tuple[str, ...]:
    """The tests, or files of tests, that a result names as failed; none unless it names as many
    as it counts.

    >>> failing_tests("FAILED a.py::b - KeyError\\n1 failed, 2 passed in 0.1s")
    ('a.py::b',)
    """
    found = (next(filter(None, match.groups())) for match in _NAMED_TEST.finditer(result))
    names = tuple(dict.fromkeys(name.removeprefix("./") for name in found))
    counted = (map("".join, _HOW_MANY.findall(line)) for line in result.splitlines())
    return names if names and len(names) in (sum(map(int, many)) for many in counted) else ()


def _line_of(found: re.Match[str]) -> str:
    text = found.string
    end = text.find("\n", found.end())
    return text[text.rfind("\n", 0, found.start()) + 1 : end if end >= 0 else len(text)]


def error_lines(text: str) -> list[str]:
    """The first and the last line that tell of an error, once where they are the same."""
    found = [_line(line) for line in errors_in(text)]
    return list(dict.fromkeys((*found[:1], *found[-1:])))


def errors_in(text: str) -> list[str]:
    """The lines that tell of an error, in order."""
    lines = text.splitlines()
    return [line for line in lines if _ERROR.search(line[:400]) and not _tells_nothing(line)]


def _tells_nothing(line: str) -> bool:
    return _TELLS_NOTHING.search(line[:LINE_CHARS]) is not None


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
)


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
        value: dict[str, Any] = json.loads(result)
    except (ValueError, RecursionError):
        return result
    said = [value[key].strip("\n") for key in _SAID if isinstance(value.get(key), str)]
    if not said or not value.keys() <= _KNOWN.union(_SAID, _CODES):
        return result
    beside = value.get("metadata")
    given = {**beside, **value} if isinstance(beside, Mapping) else value
    codes = (f"exit code {given[key]}" for key in _CODES if type(given.get(key)) is int)
    return "\n".join(text for text in (*said, next(codes, "")) if text)
