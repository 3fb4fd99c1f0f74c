"""What a call ran, how it ended, and which line of the result says so."""

from __future__ import annotations

import json

import pytest

from praison_compressor.facts import CommandFact, extract
from praison_compressor.facts.commands import COMMAND_CHARS, command_fact
from praison_compressor.facts.outcomes import LINE_CHARS, opened, outcome_of
from praison_compressor.messages import ToolCall
from tests.helpers import transcripts
from tests.helpers.transcripts import facts_call as call


@pytest.mark.parametrize(
    ("result", "status", "detail"),
    [
        ("", "unknown", ""),
        ("done\nreal 0.5s\n", "ok", "done"),
        ("exit code 0\nok", "ok", "ok"),
        ("Exited with code 2\nsomething broke: error", "failed", "exit 2: something broke: error"),
        ("x\n" * 300 + "process exited with status 137", "failed", None),
        ("Error: no such file", "failed", "Error: no such file"),
        ("all is well, no error", "ok", "all is well, no error"),
        ("== 3 failed, 2 passed ==\nend", "failed", "== 3 failed, 2 passed =="),
        ("exit code 0\n1 failed", "ok", "1 failed"),
        ("Command timed out after 60 seconds", "failed", "Command timed out after 60 seconds"),
        ("bash: line 1: frob: command not found", "failed", None),
        ("a.txt\nls: x: No such file or directory", "ok", None),
        ("the file: it was not found here, I said", "ok", None),
        ("Failed logins by country\nde 5", "ok", None),
        ("Error budgets explained\nA budget is", "ok", None),
        ("Invoice 7: 2 failed payments last month. Total 900", "ok", None),
        ("Failed to open x", "failed", None),
        ("Error executing tool x", "failed", None),
        (
            "x.c:3:5: error: expected ';'\n1 error generated.",
            "failed",
            "x.c:3:5: error: expected ';' … 1 error generated.",
        ),
        (
            "FAILED t.py::test_x - E\nFAILED t.py::test_y - E\n2 failed in 1s",
            "failed",
            "FAILED t.py::test_x - E … 2 failed in 1s",
        ),
        ('{"output": "boom: bad\\n", "metadata": {"exit_code": 3}}', "failed", "exit 3: boom: bad"),
        ("a" * 300, "ok", "a" * (LINE_CHARS - 1) + "…"),
        ("344\n(Open file: /m/a.py)\n(Current directory: /m)\nbash-$", "ok", "344"),
        ("done\n[The command completed with exit code 0.]\n[Python interpreter: /p]", "ok", "done"),
        ("Output: done\nError: (none)\nExit Code: 0\nSignal: (none)", "ok", "Output: done"),
        ("all fine\nFound 0 errors", "ok", "Found 0 errors"),
        ("The user doesn't want to proceed with this tool use. STOP.", "refused", None),
        ("Permission to use Bash has been denied.", "refused", None),
        ("Command was blocked by the sandbox policy", "refused", None),
        ('{"status": "rejected", "id": 3}', "refused", None),
        ("[Request interrupted by user for tool use]", "interrupted", None),
        ("12: he rejected the offer, and was interrupted", "ok", None),
        ('{"status": "error", "message": "no such reservation"}', "failed", None),
        ('{"success": false}', "failed", '{"success": false}'),
        ('{"error": null, "id": 3}', "ok", None),
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


@pytest.mark.parametrize(
    ("made", "result", "fact"),
    [
        (call("bash", command="make  all"), "exit code 0\ndone",
         CommandFact("make all", "ok", "done", 3)),
        (call("run", commands=["a", "b"]), "x", CommandFact("a && b", "ok", "x", 3)),
        (call("shell", command=["bash", "-lc", "ls && pwd"]), "x",
         CommandFact("ls && pwd", "ok", "x", 3)),
        (call("python", script="print(1)"), "error: x",
         CommandFact("print(1)", "failed", "error: x", 3)),
        (call("web_fetch", url="https://a.b/c"), "page\n\nmore\nend",
         CommandFact("web_fetch https://a.b/c", "ok", "page (+2 lines)", 3, kind="fetch")),
        (call("search_code", q="x"), " \n", CommandFact("search_code x", "ok", "nothing found", 3,
                                                       kind="search")),
        (call("edit", path="x"), "ok", None),
        (ToolCall("c", "grep", "[1]"), "ok", None),
        (call("bash", command="x" * 241), "y",
         CommandFact("x" * (COMMAND_CHARS - 1) + "…", "ok", "y", 3)),
        (call("run_command", CommandLine="go test"), "x", CommandFact("go test", "ok", "x", 3)),
        (call("sql_db_query", query="SELECT 1"), "x", CommandFact("SELECT 1", "ok", "x", 3)),
        (call("execute_ipython_cell", code="1 + 1"), "x", CommandFact("1 + 1", "ok", "x", 3)),
        (call("open_url", url="https://a.b"), "Error: 403 Forbidden",
         CommandFact("open_url https://a.b", "failed", "Error: 403 Forbidden", 3, kind="fetch")),
        (call("change_plan", line_id="L-7", new_plan="FIBER", fee=1.5), '{"order_id": "#W4"}',
         CommandFact("change_plan L-7 FIBER 1.5", "ok", '{"order_id": "#W4"}', 3)),
        (call("mcp__crm__refundBill", bill="B-1"), "Error: not paid",
         CommandFact("mcp__crm__refundBill B-1", "failed", "Error: not paid", 3)),
    ],
    ids=lambda value: value.name if isinstance(value, ToolCall) else "",
)  # fmt: skip
def test_what_a_call_ran_and_what_came_of_it(
    made: ToolCall, result: str, fact: CommandFact | None
) -> None:
    """Commands by their line, searches and fetches by what they were asked."""
    assert command_fact(made, result, outcome_of(result), 3) == fact


@pytest.mark.parametrize(
    ("output", "detail"),
    [
        ("FAIL src/tax.test.ts\n  ● tax › rate\n\n    TypeError: x is not a function\n\n"
         "Tests:       1 failed, 80 passed, 81 total\nTime: 2 s",
         "FAIL src/tax.test.ts … TypeError: x is not a function … Tests: 1 failed, 80 passed, "
         "81 total"),
        ("    tax_test.go:18: got 0, want 139\n--- FAIL: TestTax (0.00s)\nFAIL",
         "--- FAIL: TestTax (0.00s) … tax_test.go:18: got 0, want 139"),
        ("test tax::t16 ... FAILED\n\nthread 'tax::t16' panicked at src/tax.rs:18:9:\nleft: 0\n"
         "test result: FAILED. 80 passed; 1 failed\n\nerror: test failed, to rerun pass `--lib`",
         "test tax::t16 ... FAILED … thread 'tax::t16' panicked at src/tax.rs:18:9: … "
         "test result: FAILED. 80 passed; 1 failed"),
        ("E   KeyError: 'a'\nFAILED t.py::test_a - KeyError: 'a'\n1 failed in 1s\n"
         "make: *** [Makefile:2: test] Error 1",
         "FAILED t.py::test_a - KeyError: 'a' … 1 failed in 1s"),
    ],
    ids=["jest", "go", "cargo", "pytest under make"],
)  # fmt: skip
def test_a_failed_test_is_told_with_why_and_how_many(output: str, detail: str) -> None:
    """Its name, the error, the count: what is to be mended, and how much."""
    assert outcome_of(f"exit code 1\n{output}").detail == detail


@pytest.mark.parametrize(
    ("output", "first"),
    [
        (" FAIL  src/a.test.ts > logger > upper case\nAssertionError: expected 'a' to be 'B'\n"
         "Tests  1 failed | 31 passed (32)", "FAIL src/a.test.ts > logger > upper case"),
        (" ❯ src/a.test.ts (3 tests | 1 failed) 12ms\n   × routes > returns a client 3ms\n"
         " Tests  1 failed | 8 passed (9)", "× routes > returns a client 3ms"),
        ("Failures:\n  1) Job archives\n     Failure/Error: perform\n2 examples, 1 failure\n\n"
         "Failed examples:\n\nrspec ./spec/job_spec.rb:6 # Job archives",
         "rspec ./spec/job_spec.rb:6 # Job archives"),
        ("    --- FAIL: TestBalance/negative (0.00s)\nFAIL",
         "--- FAIL: TestBalance/negative (0.00s)"),
        ("a.ts:12:7 - error TS2304: Cannot find name 'x'.\nFound 1 error.",
         "a.ts:12:7 - error TS2304: Cannot find name 'x'."),
        ("protoc --go_out=. a.proto\na.proto:12:3: \"Amount\" is not defined.\n"
         "make: *** [Makefile:18: proto] Error 1", "make: *** [Makefile:18: proto] Error 1"),
        ("Traceback (most recent call last):\n  File \"a.py\", line 1\n    x\n"
         "psycopg2.errors.InvalidCursorName: cursor \"c\" does not exist",
         "psycopg2.errors.InvalidCursorName: cursor \"c\" does not exist"),
        ("exit code 1\nERROR: relation \"event\" does not exist\nLINE 1: SELECT 1",
         "ERROR: relation \"event\" does not exist"),
        ("a.tsx\n  14:7  error  'x' is never used\n\n✖ 1 problem (1 error, 0 warnings)",
         "14:7 error 'x' is never used"),
        ("Remove-Item: Cannot find path 'C:\\x' because it does not exist.",
         "Remove-Item: Cannot find path 'C:\\x' because it does not exist."),
        ("ERROR:\nNo replacement was performed, old_str `a` did not appear verbatim in b.py.",
         "No replacement was performed, old_str `a` did not appear verbatim in b.py."),
    ],
)  # fmt: skip
def test_a_failure_and_the_line_that_names_it(output: str, first: str) -> None:
    """The failing test or the first error itself, not a heading, a count or a "none"."""
    found = outcome_of(output)
    assert found.status == "failed"
    told = found.detail.partition(" … ")[0].partition("; also ")[0]
    assert told == first


@pytest.mark.parametrize(
    ("command", "output", "status"),
    [
        ("go build ./... 2>&1 | head -5", "main.go:3: declared", "unknown"),
        ("pytest -q | tail -3", "8 passed in 1s", "ok"),
        ("pytest -q | tail -3", "1 failed, 7 passed", "failed"),
        ("ls src | head -3", "a.py", "ok"),
        ("pytest -q | tail", "FAILED t.py::a - E\n1 failed\n[Finished with exit code 0]", "failed"),
        ("pytest -q", "FAILED t.py::a - E\n1 failed\n[Finished with exit code 0]", "ok"),
    ],
)
def test_how_a_check_in_a_pipeline_ended(command: str, output: str, status: str) -> None:
    """Its own output tells, or nothing does."""
    [row] = extract(transcripts.step("c", output, "bash", command=command)).attempts
    assert row.status == status


def test_the_table_of_outcomes() -> None:
    """What was tried, on what, and what came of it."""
    refused = "The user doesn't want to proceed with this tool use."
    facts = extract(
        [
            *transcripts.step("1", "1 failed\nexit code 1", "bash", command="make && pytest tests"),
            *transcripts.step("2", refused, "edit_file", path="src/a.py", text="x"),
            *transcripts.step("3", "done", "edit_file", path="src/b.py", text="y"),
            *transcripts.step("4", "3 passed", "bash", command="make && pytest tests"),
        ]
    )
    told = [(row.status, row.paths, row.changes) for row in facts.attempts]
    assert told == [
        ("failed", (), False),
        ("refused", ("src/a.py",), True),
        ("ok", ("src/b.py",), True),
        ("ok", (), False),
    ]
    assert facts.attempts[0].checks == ("build", "test")
    assert {item.path: item.ok for item in facts.files} == {"src/a.py": False, "src/b.py": True}


def test_an_envelope_is_opened() -> None:
    """What was printed, and the exit code as a line below it; of a tool's own JSON, which has other
    keys too, none may be lost."""
    given = {"output": "a\nb\n", "metadata": {"exit_code": 0}}
    assert opened(json.dumps(given)) == "a\nb\nexit code 0"
    assert opened('{"stdout": "a", "stderr": "b", "exitCode": 2}') == "a\nb\nexit code 2"
    others = ("{not json}", '{"output": "a", "files": ["b"]}', '{"exit_code": 0}', '{"output": 7}')
    for result in (*others, "{" * 100_000 + "}" * 100_000):
        assert opened(result) == result
