"""What a call ran, how it ended, and which line of the result says so."""

from __future__ import annotations

import json
from typing import Any

import pytest

from praison_compressor.facts import CommandFact, Domain, extract
from praison_compressor.facts.commands import COMMAND_CHARS, command_fact
from praison_compressor.facts.model import GENERAL
from praison_compressor.facts.outcomes import LINE_CHARS, error_lines, outcome_of
from praison_compressor.messages import ToolCall


def call(name: str, /, **arguments: Any) -> ToolCall:
    """A call with these arguments."""
    return ToolCall("c", name, json.dumps(arguments))


def ran_fact(
    made: ToolCall, result: str, index: int, domain: Domain = GENERAL
) -> CommandFact | None:
    """The fact of a call with that result."""
    return command_fact(made, result, outcome_of(result), index, domain)


@pytest.mark.parametrize(
    ("result", "status", "detail"),
    [
        ("", "unknown", ""),
        ("done\nreal 0.5s\n", "ok", "done"),
        ("all good\nwall time 3 s\nduration: 4", "ok", "all good"),
        ("exit code 0\nok", "ok", "ok"),
        ("exit code: 0", "ok", "exit code: 0"),
        ("Exited with code 2\nsomething broke: error", "failed", "exit 2: something broke: error"),
        ("returncode=1\nnothing said", "failed", "returncode=1"),
        ("x\n" * 300 + "process exited with status 137", "failed", None),
        ("Error: no such file", "failed", "Error: no such file"),
        ("  ValueError: bad", "failed", "ValueError: bad"),
        ("all is well, no error", "ok", "all is well, no error"),
        ("== 3 failed, 2 passed ==\nend", "failed", "== 3 failed, 2 passed =="),
        ("0 failed, 2 passed in 1s\nbye", "ok", "0 failed, 2 passed in 1s"),
        ("ok  pkg/x 0.1s\nlast", "ok", "ok pkg/x 0.1s"),
        ("--- FAIL: TestX\nlast", "failed", "--- FAIL: TestX"),
        ("exit code 0\n1 failed", "ok", "1 failed"),
        ("permission denied", "failed", "permission denied"),
        ("b\nexit code 0", "ok", "b"),
        ("Command timed out after 60 seconds", "failed", "Command timed out after 60 seconds"),
        ("cat: x: Permission denied", "failed", "cat: x: Permission denied"),
        ("bash: line 1: frob: command not found", "failed", None),
        ("a.txt\nls: x: No such file or directory", "ok", None),
        ("the file: it was not found here, I said", "ok", None),
        (
            "x.c:3:5: error: expected ';'\n1 error generated.",
            "failed",
            "x.c:3:5: error: expected ';' … 1 error generated.",
        ),
        ("src/a.ts(3,5): error TS2322: no\nFound 1 error.", "failed", None),
        ("a.py:3: error: bad  [mypy]\nb", "failed", "a.py:3: error: bad [mypy]"),
        ("a.py:3:    error: str = ''", "ok", None),
        (
            "FAILED t.py::test_x - E\nFAILED t.py::test_y - E\n2 failed in 1s",
            "failed",
            "FAILED t.py::test_x - E … 2 failed in 1s",
        ),
        (
            "\n".join(f"FAILED t.py::test_{n} - E" for n in range(6)),
            "failed",
            "FAILED t.py::test_0 - E … FAILED t.py::test_5 - E",
        ),
        (
            "--- FAIL: TestA (0.00s)\n--- FAIL: TestB (0.00s)\nFAIL",
            "failed",
            "--- FAIL: TestA (0.00s)",
        ),
        (
            "test a ... ok\ntest b::c ... FAILED\ntest d ... FAILED\n",
            "failed",
            "test b::c ... FAILED … test d ... FAILED",
        ),
        (
            "FAIL b.test.js\n  ● adds › two\nTests: 1 failed, 2 total",
            "failed",
            "FAIL b.test.js … Tests: 1 failed, 2 total",
        ),
        ('{"output": "boom: bad\\n", "metadata": {"exit_code": 3}}', "failed", "exit 3: boom: bad"),
        ("a" * 300, "ok", "a" * (LINE_CHARS - 1) + "…"),
        ("a" * 200, "ok", "a" * 200),
    ],
)
def test_how_a_result_says_that_it_ended(result: str, status: str, detail: str | None) -> None:
    """By its exit code, by failing tests, by how it begins; the line that shows it."""
    found = outcome_of(result)
    assert found.status == status
    assert detail in (None, found.detail)


def test_only_the_edges_of_a_long_result_are_read() -> None:
    """What a file in the middle says of errors is no outcome."""
    middle = "x " * 2_100 + "\n5 failed\n" + "y " * 2_100
    assert outcome_of(middle).status == "ok"
    assert outcome_of("5 failed\n" + middle).status == "failed"
    assert outcome_of(middle + "\n5 failed").status == "failed"


def test_lines_that_tell_of_errors() -> None:
    """The first and the last, once where they are the same."""
    text = "start\n\nfatal: a\nerror b\nfatal: a\nerror c"
    assert error_lines(text) == ["fatal: a", "error c"]
    assert error_lines("fatal: a\nfine\nfatal: a") == ["fatal: a"]
    assert error_lines("E error\n--- FAIL: T\nFAIL\n1 failed, 2 passed") == [
        "E error",
        "--- FAIL: T",
    ]
    assert error_lines("x" * 401 + " error") == []
    assert error_lines(" " * 395 + "error") == ["error"]
    assert error_lines(" " * 396 + "error") == []


@pytest.mark.parametrize(
    ("made", "result", "fact"),
    [
        (call("bash", command="make  all"), "exit code 0\ndone",
         CommandFact("make all", "ok", "done", 3)),
        (call("run", commands=["a", "b"]), "x", CommandFact("a && b", "ok", "x", 3)),
        (call("shell", command=["bash", "-lc", "ls && pwd"]), "x",
         CommandFact("ls && pwd", "ok", "x", 3)),
        (call("shell", command=["git", "commit", "-m", "two words"]), "x",
         CommandFact("git commit -m 'two words'", "ok", "x", 3)),
        (call("shell", command=["rm a", "rm b"]), "x", CommandFact("rm a && rm b", "ok", "x", 3)),
        (call("fetch", url="https://a.b"), "<html>\n<TITLE lang='en'>A &amp;\nB</TITLE>",
         CommandFact("fetch https://a.b", "ok", "A & B", 3, kind="fetch")),
        (call("fetch", url="https://a.b"), "<html><title> </title>",
         CommandFact("fetch https://a.b", "ok", "<html><title> </title>", 3, kind="fetch")),
        (call("bash", other="x"), "x", None),
        (call("python", script="print(1)"), "error: x",
         CommandFact("print(1)", "failed", "error: x", 3)),
        (call("web_fetch", url="https://a.b/c"), "page\n\nmore\nend",
         CommandFact("web_fetch https://a.b/c", "ok", "page (+2 lines)", 3, kind="fetch")),
        (call("web_fetch", q="x"), "page", None),
        (call("grep", pattern="x", limit=5), "one", CommandFact("grep x 5", "ok", "one", 3,
                                                              kind="search")),
        (call("search_code", q="x"), " \n", CommandFact("search_code x", "ok", "nothing found", 3,
                                                       kind="search")),
        (call("edit", path="x"), "ok", None),
        (ToolCall("c", "grep", "[1]"), "ok", None),
        (call("bash", command="x" * 241), "y",
         CommandFact("x" * (COMMAND_CHARS - 1) + "…", "ok", "y", 3)),
        (call("bash", command="x" * 240), "y", CommandFact("x" * 240, "ok", "y", 3)),
        (call("find_it", q="x"), "z" * 130, CommandFact("find_it x", "ok", "z" * 120, 3,
                                                       kind="search")),
    ],
    ids=lambda value: value.name if isinstance(value, ToolCall) else "",
)  # fmt: skip
def test_what_a_call_ran_and_what_came_of_it(
    made: ToolCall, result: str, fact: CommandFact | None
) -> None:
    """Commands by their line, searches and fetches by what they were asked."""
    assert ran_fact(made, result, 3) == fact


def test_an_error_is_counted_and_knows_what_followed() -> None:
    """The assistant's next words; the newest place counts."""

    def ran(id: str, result: str, text: str | None = None) -> list[dict[str, Any]]:
        function = {"name": "bash", "arguments": '{"command": "make"}'}
        made = [{"id": id, "type": "function", "function": function}]
        return [
            {"role": "assistant", "content": text, "tool_calls": made},
            {"role": "tool", "tool_call_id": id, "content": result},
        ]

    facts = extract([*ran("a", "error: x"), *ran("b", "error: x\nerror: y", "I try " + "z" * 300)])
    assert [(e.text, e.times, e.index, e.followed_by) for e in facts.errors] == [
        ("error: x", 2, 3, ""),
        ("error: y", 1, 3, ""),
    ]
    assert [(c.text, c.runs, c.outcome) for c in facts.commands] == [("make", 2, "failed")]
    ended = extract([*ran("a", "error: x"), {"role": "assistant", "content": "I try " + "z" * 300}])
    assert ended.errors[0].followed_by == ("I try " + "z" * 300)[:200]
    assert extract(ran("a", "all fine, no error")).errors == ()
