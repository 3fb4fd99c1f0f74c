"""The summary without a model: what it is about, what is done, what is next; within any budget."""

from __future__ import annotations

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
    """A command's name in a model's text leaves its outcome to be added."""
    failed = "Exit code 2\nError: 401 from registry"
    messages = [
        said("user", "Deploy it to staging."),
        *step("c", failed, "Bash", command="make deploy ENV=staging"),
    ]
    facts = extract(messages)
    for told, added in (("succeeded", True), ("failed with exit 2", False)):
        text = f"Staging: make deploy ENV=staging {told}."
        right = repair(text, facts, budget_tokens=300, count=count)
        assert ("make deploy ENV=staging: exit 2" in right) is added


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
