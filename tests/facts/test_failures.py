"""How builds and test runs of many languages say that they failed, and at what."""

from __future__ import annotations

import json
from typing import Any

import pytest

from praison_compressor.facts import CommandFact, extract
from praison_compressor.facts.outcomes import error_lines, outcome_of


def ran(name: str, result: str, **arguments: Any) -> CommandFact | None:
    """What a call with that result is told as."""
    function = {"name": name, "arguments": json.dumps(arguments)}
    made = {"id": "c", "type": "function", "function": function}
    facts = extract(
        [
            {"role": "assistant", "content": None, "tool_calls": [made]},
            {"role": "tool", "tool_call_id": "c", "content": result},
        ]
    )
    return facts.commands[0] if facts.commands else None


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
        ("Failed Orders.CheckoutTests.Rounds [12 ms]\n  Error Message:\n   Assert.Equal() Failure\n"
         "Failed!  - Failed:     1, Passed:    41", "Failed Orders.CheckoutTests.Rounds [12 ms]"),
        ("2/2 Test #2: wire_limits ....***Failed 0.02 sec\nThe following tests FAILED:\n"
         "\t  2 - wire_limits (Failed)\nErrors while running CTest", "2 - wire_limits (Failed)"),
        ("[ERROR] Tests run: 4, Failures: 1, Errors: 0\n"
         "[ERROR] a.GatewayTest.forwards -- Time elapsed: 0.01 s <<< FAILURE!\n"
         "[INFO] BUILD FAILURE",
         "[ERROR] a.GatewayTest.forwards -- Time elapsed: 0.01 s <<< FAILURE!"),
        ("> Task :admin:test FAILED\n\nAdminTest > rejectsUnknown() FAILED\n"
         "6 tests completed, 1 failed", "AdminTest > rejectsUnknown() FAILED"),
        ("  ✘  1 [chromium] › e2e/board.spec.ts:8:5 › drag a card (5.1s)\n  1 failed",
         "✘ 1 [chromium] › e2e/board.spec.ts:8:5 › drag a card (5.1s)"),
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
        ("[ERROR] COMPILATION ERROR :\n[ERROR] A.java:[33,19] cannot find symbol\nexit code 1",
         "[ERROR] A.java:[33,19] cannot find symbol"),
        ("Output: FAIL: a\nError: (none)\nExit Code: 1\nSignal: (none)", "Output: FAIL: a"),
        ("The command failed with exit code: 1\nOutput:\nh.go:31:24: cannot use a as b",
         "h.go:31:24: cannot use a as b"),
        ("To github.com:a/b.git\n ! [rejected] HEAD\nerror: failed to push some refs", None),
        (" ERR_PNPM_PEER_DEP_ISSUES  Unmet peer dependencies\n\npackages/ui",
         "ERR_PNPM_PEER_DEP_ISSUES Unmet peer dependencies"),
        ("a.tsx\n  14:7  error  'x' is never used\n\n✖ 1 problem (1 error, 0 warnings)",
         "14:7 error 'x' is never used"),
        ("Remove-Item: Cannot find path 'C:\\x' because it does not exist.",
         "Remove-Item: Cannot find path 'C:\\x' because it does not exist."),
        ("ERROR:\nNo replacement was performed, old_str `a` did not appear verbatim in b.py.",
         "No replacement was performed, old_str `a` did not appear verbatim in b.py."),
        ("Failed to edit, 0 occurrences found for old_string.",
         "Failed to edit, 0 occurrences found for old_string."),
        ("Your proposed edit has introduced new syntax error(s).\nERRORS:\n- E999 SyntaxError: x",
         "Your proposed edit has introduced new syntax error(s)."),
    ],
)  # fmt: skip
def test_a_failure_and_the_line_that_names_it(output: str, first: str | None) -> None:
    """The failing test or the first error itself, not a heading, a count or a "none"."""
    found = outcome_of(output)
    assert found.status == "failed"
    told = found.detail.partition(" … ")[0].partition("; also ")[0]
    assert told == (first or "error: failed to push some refs")


@pytest.mark.parametrize(
    ("output", "detail"),
    [
        ("344\n(Open file: /m/a.py)\n(Current directory: /m)\nbash-$", "344"),
        ("done\n[The command completed with exit code 0.]\n[Current working directory: /w]\n"
         "[Python interpreter: /p]\n[Command finished with exit code 0]", "done"),
        ("Output: done\nError: (none)\nExit Code: 0\nSignal: (none)\nProcess Group PGID: 1",
         "Output: done"),
        ("all fine\nFound 0 errors", "Found 0 errors"),
    ],
)  # fmt: skip
def test_what_tools_print_below_an_output_is_not_how_it_ended(output: str, detail: str) -> None:
    """The last line of the program's own is."""
    assert outcome_of(output) == ("ok", detail)


def test_an_exit_code_of_another_program_proves_nothing() -> None:
    """`pytest | tail` ends with the exit code of `tail`."""
    output = "FAILED t.py::test_a - E\n1 failed, 5 passed\n[Command finished with exit code 0]"
    piped = ran("bash", output, command="pytest -q 2>&1 | tail -5")
    plain = ran("bash", output, command="pytest -q")
    assert (piped and piped.outcome, plain and plain.outcome) == ("failed", "ok")


def test_a_heading_is_no_error() -> None:
    """Nor the line that says only that there was one."""
    text = "Failed examples:\nError: (none)\nthe process exited with code 2\nTypeError: x"
    assert error_lines(text) == ["TypeError: x"]


@pytest.mark.parametrize(
    ("name", "arguments", "text", "kind"),
    [
        ("run_command", {"CommandLine": "go test"}, "go test", "command"),
        ("execute_sql", {"sql": "SELECT 1"}, "SELECT 1", "command"),
        ("sql_db_query", {"query": "SELECT 1"}, "SELECT 1", "command"),
        ("python_repl_ast", {"query": "1 + 1"}, "1 + 1", "command"),
        ("execute_ipython_cell", {"code": "1 + 1"}, "1 + 1", "command"),
        ("read_pdf", {"url": "https://a.b/c.pdf", "pages": "1"}, "read_pdf https://a.b/c.pdf",
         "fetch"),
        ("web_extract", {"urls": ["https://a.b"]}, "web_extract https://a.b", "fetch"),
        ("web_search", {"query": "q"}, "web_search q", "search"),
    ],
)  # fmt: skip
def test_what_is_run_looked_for_and_fetched(
    name: str, arguments: dict[str, Any], text: str, kind: str
) -> None:
    """Whatever the tool calls its argument."""
    found = ran(name, "x", **arguments)
    assert found is not None
    assert (found.text, found.kind) == (text, kind)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("search_replace", {"file_path": "a.rb", "old_string": "a"}),
        ("str_replace_editor", {"command": "view", "path": "a.py"}),
        ("manage_todo_list", {"operation": "write"}),
        ("update_plan", {"plan": ["a"]}),
        ("create_task", {"title": "a"}),
        ("update_file", {"path": "a.md", "text": "x"}),
        ("get_bill", {"bill_id": "B-1"}),
        ("settle", {"bill_id": "B-1"}),
    ],
)
def test_what_is_neither_run_nor_looked_for(name: str, arguments: dict[str, Any]) -> None:
    """An editor that searches, a list of work, a look at a record."""
    assert ran(name, "x", **arguments) is None


@pytest.mark.parametrize(
    ("name", "result", "outcome", "detail"),
    [
        ("search", '{"hits": 3}', "ok", '{"hits": 3}'),
        ("search", "[1, 2", "ok", "[1, 2"),
        ("open_url", "Error: 403 Forbidden", "failed", "Error: 403 Forbidden"),
    ],
)
def test_what_a_search_found_and_a_page_is_called(
    name: str, result: str, outcome: str, detail: str
) -> None:
    """Titles out of a service's JSON, a page's own title, or why there is none."""
    found = ran(name, result, url="https://a.b") if "url" in name else ran(name, result, query="q")
    assert found is not None
    assert (found.outcome, found.detail) == (outcome, detail)


@pytest.mark.parametrize(
    ("name", "arguments", "result", "told"),
    [
        ("change_plan", {"line_id": "L-7", "new_plan": "FIBER", "fee": 1.5}, '{"order_id": "#W4"}',
         ("change_plan L-7 FIBER 1.5", "ok", '{"order_id": "#W4"}')),
        ("mcp__crm__refundBill", {"bill": "B-1"}, "Error: not paid",
         ("mcp__crm__refundBill B-1", "failed", "Error: not paid")),
        ("cancel", {"id": "R1"}, '{"status": "error", "message": "no such reservation"}',
         ("cancel R1", "failed", '{"status": "error", "message": "no such reservation"}')),
        ("cancel", {"id": "R1"}, '{"success": false}',
         ("cancel R1", "failed", '{"success": false}')),
        ("cancel", {"id": "R1"}, '{"error": null, "id": 3}',
         ("cancel R1", "ok", '{"error": null, "id": 3}')),
    ],
)  # fmt: skip
def test_what_an_agent_of_a_service_does(
    name: str, arguments: dict[str, Any], result: str, told: tuple[str, str, str]
) -> None:
    """It changes bookings and bills rather than files, and is told in JSON if it could not."""
    found = ran(name, result, **arguments)
    assert found is not None
    assert (found.text, found.outcome, found.detail) == told
