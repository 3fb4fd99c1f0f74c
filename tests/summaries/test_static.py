"""The summary without a model: what it is about, what is done, what is next; within any budget."""

from __future__ import annotations

from functools import partial

import pytest

from praison_compressor.facts import coverage, extract, missing
from praison_compressor.summaries.static import repair, static_summary
from tests.helpers.transcripts import Message, step


def count(text: str) -> int:
    """A token for four characters."""
    return (len(text) + 3) // 4


def used(call_id: str, result: str, name: str, **arguments: object) -> list[Message]:
    """A step that says what it does."""
    asked, answer = step(call_id, result, name, **arguments)
    return [{**asked, "content": f"Now let me use {name} to look closer."}, answer]


def session(rounds: int = 30) -> list[Message]:
    todos = [
        {"content": "Fix the parser", "status": "completed"},
        {"content": "Write the changelog", "status": "pending"},
    ]
    messages = [said("user", "Always run the linter before you commit.")]
    messages += used("todo", "saved", "TodoWrite", todos=todos)
    for n in range(rounds):
        path = f"src/handlers/handler_{n}.py"
        source = f"def handle_request_{n}(order):\n    return lookup_{n}(order)"
        failed = f"Exit code 1\nFAILED tests/test_{n}.py::test_total - KeyError: 'id'"
        messages += [
            said("user", f"Please look at the handler number {n} as well."),
            *used(f"r{n}", source, "Read", file_path=path),
            *used(f"e{n}", "The file has been updated.", "Edit", file_path=path),
            *used(f"b{n}", failed, "Bash", command=f"pytest tests/test_{n}.py"),
        ]
    return messages


def said(role: str, text: str) -> Message:
    """One message without calls."""
    return {"role": role, "content": text}


@pytest.mark.parametrize(
    ("budget", "filled"),
    [(60, 1), (200, 1), (300, 270), (400, 1), (900, 837), (2_500, 2_325), (20_000, 1)],
)
def test_the_summary_fits_any_budget(budget: int, filled: int) -> None:
    """From two lines to tens of thousands of tokens, never over, and always the same; where there
    are facts enough it fills its room, for what is left over would have held another."""
    text = static_summary(session(60), budget_tokens=budget, count=count)
    assert filled <= count(text) <= budget
    assert static_summary(session(60), budget_tokens=budget, count=count) == text


def test_a_small_summary_still_holds_rule_open_work_and_newest_file() -> None:
    """Most valuable first: a standing rule, the pending item, the file last changed. What the view
    shows anyway is not printed again."""
    shown = "Please look at the handler number 29 as well."
    text = static_summary(session(), budget_tokens=700, count=count, visible=shown)
    assert shown not in text
    assert "Always run the linter before you commit." in text
    assert "- was next: Write the changelog" in text
    assert "handler_29.py" in text


def test_earlier_summaries_are_cut_only_where_the_facts_need_the_room() -> None:
    """A short new stretch leaves them whole; a long one takes no more than its share."""
    rules = "\n".join(f"Rule {n} of the house holds." for n in range(40))
    short = static_summary(session(0), budget_tokens=480, count=count, previous=[rules])
    assert rules in short
    long = static_summary(session(60), budget_tokens=400, count=count, previous=[rules])
    assert "Rule 0 of the house holds." in long
    assert "the handler number 59 as well" in long


def test_a_repair_adds_what_the_summary_lacks_and_raises_coverage() -> None:
    """The audit appends facts; what the summary says already is not said twice."""
    messages = session(4)
    facts = extract(messages)
    summary = "The user wants handlers fixed. Always run the linter before you commit."
    added = repair(summary, facts, budget_tokens=800, count=count)
    assert count(added) <= 800
    assert "Always run the linter" not in added
    before, after = coverage(facts, summary), coverage(facts, f"{summary}\n{added}")
    assert before.covered < after.covered <= after.total
    assert after.by_kind["user"][0] == after.by_kind["user"][1]
    assert len(missing(facts, f"{summary}\n{added}").files) == 0


def test_a_failure_told_as_a_success_is_set_right() -> None:
    """A command's name in a model's text leaves its outcome to be added, and so does a failure
    without its error."""
    failed = "Exit code 2\nError: 401 from registry"
    messages = [
        said("user", "Deploy it to staging."),
        *step("c", failed, "Bash", command="make deploy ENV=staging"),
    ]
    facts = extract(messages)
    for told, added in (
        ("succeeded", True),
        ("failed with exit 2", True),
        ("failed with a 401 from the registry", False),
    ):
        text = f"Staging: make deploy ENV=staging {told}."
        right = repair(text, facts, budget_tokens=300, count=count)
        assert ("make deploy ENV=staging: exit 2" in right) is added


LONG = "cd /home/dev/tax && DATABASE_URL=postgresql://localhost/test python -m pytest -v -p no:x"
PASSED = "\n".join(f"tests/test_tax.py::test_{n} PASSED" for n in range(80))
TESTS_FAIL = (
    f"exit code 1\n{PASSED}\nE       KeyError: 'tax_16'\n"
    "FAILED tests/test_tax.py::test_16 - KeyError: 'tax_16'\n1 failed, 80 passed in 0.9s"
)
WHY = "FAILED tests/test_tax.py::test_16 - KeyError: 'tax_16' … 1 failed, 80 passed in 0.9s"


def unresolved(result: str, tool: str, *later: Message, **arguments: object) -> list[Message]:
    """Much that is read and edited, a call that fails, and what came later."""
    messages = [said("user", "Mend the tax module so that its tests pass.")]
    for n in range(14):
        path = f"/app/src/tax/module_{n}.py"
        source = "\n".join(f"return lookup_table_{n}_{k}('EU-{n}{k}')" for k in range(12))
        messages += used(f"r{n}", source, "read_file", path=path)
        messages += used(f"e{n}", "ok", "edit_file", path=path, new=f"lookup_rates_{n}")
    return [*messages, *step("t", result, tool, **arguments), *later]


@pytest.mark.parametrize("budget", [150, 300, 600])
@pytest.mark.parametrize(
    ("messages", "told"),
    [
        (unresolved(TESTS_FAIL, "bash", command="pytest -v"), f"pytest -v: {WHY}"),
        (unresolved(TESTS_FAIL, "bash", command=LONG), f"python -m pytest -v -p no:x: {WHY}"),
        (unresolved(TESTS_FAIL, "run_tests", suite="tax"), f"run_tests tax: {WHY}"),
        (unresolved("Error: no region eu-1", "deploy", region="eu-1"), "Error: no region eu-1"),
        (
            unresolved(
                "The user doesn't want to proceed with this tool use. To tell you how to proceed, "
                "the user said:\nnot yet",
                "bash",
                command="git push",
            ),
            "git push: The user doesn't want to proceed with this tool use\n",
        ),
    ],
    ids=["shell", "long command", "tool", "error of a tool", "refused"],
)
def test_a_repair_tells_first_what_still_fails(
    messages: list[Message], told: str, budget: int
) -> None:
    """Which call, which error and how many, whatever the tool: before identifiers of code, in a
    small room too."""
    facts = extract(messages)
    added = repair("The modules were edited.", facts, budget_tokens=budget, count=count)
    assert told in added.partition("## The user said")[0]
    assert count(added) <= budget


@pytest.mark.parametrize(
    ("prose", "told"),
    [
        ("pytest -v fails with exit code 1.", True),
        ("The KeyError 'tax_16' in test_16 was fixed.", True),
        ("tests/test_tax.py::test_16 was edited.", True),
        ("Open: test_16 fails with KeyError: 'tax_16'.", False),
        (f"Open: {WHY}", False),
    ],
)
def test_a_failure_is_added_unless_the_prose_names_its_error(prose: str, told: bool) -> None:
    """That something fails, or that its error was mended, leaves it to be told."""
    facts = extract(unresolved(TESTS_FAIL, "bash", command="pytest -v"))
    added = repair(prose, facts, budget_tokens=300, count=count)
    assert (f": {WHY}" in added) is told


@pytest.mark.parametrize("budget", [150, 300, 600])
@pytest.mark.parametrize("later", [0, 40])
@pytest.mark.parametrize(
    ("tool", "arguments"), [("bash", {"command": LONG}), ("run_tests", {"suite": "tax"})]
)
def test_a_static_summary_tells_first_what_still_fails(
    tool: str, arguments: dict[str, str], later: int, budget: int
) -> None:
    """Before the list of work and what was said last, in a small room too, however long ago."""
    todos = [{"content": f"Port the rates of module {n}", "status": "pending"} for n in range(9)]
    more = step("todo", "saved", "TodoWrite", todos=todos)
    for n in range(later):
        more += used(f"later{n}", "ok", "edit_file", path=f"src/vat/rate_{n}.py", new="a")
    messages = unresolved(TESTS_FAIL, tool, *more, **arguments)
    lines = static_summary(messages, budget_tokens=budget, count=count).splitlines()
    assert lines[0] == "## Now"
    assert lines[1].startswith("- last run failed: ")
    assert lines[1].endswith(f": {WHY}")


@pytest.mark.parametrize("prose", [False, True])
def test_a_long_failure_is_cut_in_its_middle(prose: bool) -> None:
    """Which run it was and how many failed stay, where the whole line has no room."""
    name = "_and_".join(f"rate_{n}_of_the_union" for n in range(14))
    failed = f"exit code 1\nFAILED tests/test_tax.py::test_{name} - KeyError\n1 failed in 0.9s"
    messages = unresolved(failed, "bash", command=LONG)
    write = partial(repair, "Edited.") if prose else partial(static_summary, messages)
    text = write(facts=extract(messages), budget_tokens=150, count=count)
    line = next(line for line in text.splitlines() if line.endswith("1 failed in 0.9s"))
    assert "cd /home/dev/tax" in line
    assert "FAILED tests/test_tax.py::test_rate_0" in line
    assert count(line) <= 75 < count(failed)


@pytest.mark.parametrize("tool", ["bash", "run_tests"])
@pytest.mark.parametrize(
    ("first", "then", "told"),
    [
        ("tests", "tests", False),
        ("tests/test_tax.py", "tests", False),
        ("tests", "tests/test_vat.py", True),
    ],
)
def test_a_failure_that_a_later_run_resolved_is_not_told(
    tool: str, first: str, then: str, told: bool
) -> None:
    """A run of as much has to pass: one of another file resolves nothing."""
    key = "command" if tool == "bash" else "path"
    runs = {key: f"pytest {first}" if tool == "bash" else first}
    passes = {key: f"pytest {then}" if tool == "bash" else then}
    later = step("later", "81 passed in 0.8s", tool, **passes)
    facts = extract(unresolved(TESTS_FAIL, tool, *later, **runs))
    added = repair("The modules were edited.", facts, budget_tokens=300, count=count)
    assert (f": {WHY}" in added) is told


def test_the_first_request_stands_in_a_long_session() -> None:
    """It says what all the rest is about; a greeting before it does not."""
    task = "Port the billing service from Flask to FastAPI."
    talk = [said("user", f"Then please look at the handler number {n} as well.") for n in range(60)]
    messages = [said("user", "Hello there!"), said("user", task), *talk]
    text = static_summary(messages, budget_tokens=150, count=count)
    lines = text.partition("## The user said\n")[2].partition("\n## ")[0].splitlines()
    assert f"- {task}" in lines[:2]
    assert lines[-1] == "- Then please look at the handler number 59 as well."
    assert len(lines) < 20


def test_a_list_from_before_the_users_last_words_says_so() -> None:
    """It does not know of them: what it calls next may be what the user has just stopped."""
    todos = [
        {"content": "Stream rows in monthly.py", "status": "in_progress"},
        {"content": "Inspect the client", "status": "completed"},
    ]
    messages = [
        said("user", "Make the export faster please."),
        *step("1", "ok", "todo", todos=todos),
    ]
    stop = said("user", "No, leave monthly.py alone.")
    now = static_summary(messages, budget_tokens=300, count=count)
    assert "- doing: Stream rows in monthly.py\n- done: Inspect the client" in now
    later = static_summary([*messages, stop], budget_tokens=300, count=count)
    assert "- was doing: Stream rows in monthly.py\n- done: Inspect the client" in later


def test_no_line_is_told_twice() -> None:
    """Neither what was said last as a decision, nor an error's line with its command."""
    decided = "It fails because the rate is read as text."
    messages = [
        said("user", "Mend the rate of the invoices please."),
        *step("1", "Exit code 1\nError: rate_of is no number", "bash", command="make bill"),
        *step("2", "ok", "bash", command="make bill"),
        said("assistant", decided),
    ]
    told = static_summary(messages, budget_tokens=900, count=count).partition("## Details")[0]
    assert told.count(decided) == 1
    failed = static_summary(
        [*messages[:3], *step("3", "ok", "bash", command="cat x")], budget_tokens=900, count=count
    )
    assert failed.partition("## Details")[0].count("rate_of is no number") == 1


@pytest.mark.parametrize(("budget", "told"), [(400, False), (1_200, True)])
def test_details_say_that_conditions_may_be_left_out(budget: int, told: bool) -> None:
    """Where there is room for the words."""
    messages = unresolved(TESTS_FAIL, "bash", command="pytest -v")
    text = static_summary(messages, budget_tokens=budget, count=count)
    heading = next(line for line in text.splitlines() if line.startswith("## Details"))
    assert ("conditions and exceptions" in heading) is told
    assert count(text) <= budget
