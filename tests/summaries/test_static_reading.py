"""A person who opens a static summary knows what it is about, what is done and what is next."""

from __future__ import annotations

import pytest

from praison_compressor.facts import extract
from praison_compressor.summaries.static import repair, static_summary
from tests.helpers.transcripts import Message, step


def count(text: str) -> int:
    """A token for four characters."""
    return (len(text) + 3) // 4


def said(role: str, text: str) -> Message:
    """One message without calls."""
    return {"role": role, "content": text}


def section(text: str, title: str) -> list[str]:
    """The lines below a heading."""
    _, _, rest = text.partition(f"## {title}\n")
    return rest.partition("\n## ")[0].splitlines()


SERVICE = [
    said("user", "My internet plan is wrong on the last bill, please put it right."),
    *step("1", "Error: not available before 2025-12-10", "change_plan", plan="FIBER_250"),
    said("assistant", "It can change on 2025-12-10."),
    said("user", "Fine."),
    *step("2", '{"order_id": "#W447"}', "change_plan", plan="FIBER_250", day="2025-12-10"),
    *step("3", '{"refund_id": "RF-66120"}', "issue_refund", bill="B-2025-11", amount=15),
    *step("4", "src/a.py:3: rate = 1\nsrc/b.py:9: rate = 2", "grep", pattern="rate"),
    *step("5", "src/a.py", "glob", pattern="**/a*.py"),
]  # fmt: skip


def test_room_that_the_details_leave_is_for_what_was_done() -> None:
    """Every command with its outcome, the searches among files too."""
    text = static_summary(SERVICE, budget_tokens=1_000, count=count)
    ran = section(text, "Commands")
    assert [line.partition(" -> ")[0] for line in ran] == [
        "- [2] change_plan FIBER_250",
        "- [6] change_plan FIBER_250 2025-12-10",
        "- [8] issue_refund B-2025-11 15",
    ]
    assert section(text, "Local searches") == [
        "- [10] grep rate -> ok: src/a.py:3: rate = 1 (+1 lines)",
        "- [12] glob **/a*.py -> ok: src/a.py",
    ]


@pytest.mark.parametrize("budget", [60, 120, 200, 260, 300, 340, 400, 600])
def test_a_widened_summary_fits(budget: int) -> None:
    """To the token."""
    assert count(static_summary(SERVICE, budget_tokens=budget, count=count)) <= budget


def test_where_the_details_fill_the_room_searches_have_none() -> None:
    """They can be done again for less than they cost."""
    many = [
        message
        for n in range(60)
        for message in step(f"m{n}", f"def lookup_{n}(order_{n}x): pass", path=f"src/mod_{n}.py")
    ]
    text = static_summary([*SERVICE, *many], budget_tokens=500, count=count)
    assert "## Local searches" not in text
    assert count(text) > 470


def test_the_first_request_stands_in_a_long_session() -> None:
    """It says what all the rest is about; a greeting before it does not."""
    task = "Port the billing service from Flask to FastAPI."
    talk = [said("user", f"Then please look at the handler number {n} as well.") for n in range(60)]
    messages = [said("user", "Hello there!"), said("user", task), *talk]
    lines = section(static_summary(messages, budget_tokens=150, count=count), "The user said")
    assert f"- {task}" in lines[:2]
    assert lines[-1] == "- Then please look at the handler number 59 as well."
    assert len(lines) < 20


def test_what_still_fails_is_told_once() -> None:
    """Under Now, and neither as a command nor as an error."""
    messages = [
        said("user", "Build the parser with the new protocol."),
        *step("1", "ok", "bash", command="make proto"),
        *step("2", "parser.c:3:5: error: no member amount", "bash", command="make parser"),
    ]
    text = static_summary(messages, budget_tokens=700, count=count)
    above = text.partition("## Details")[0]
    assert above.count("error: no member amount") == 1
    assert "still fails: make parser: parser.c:3:5: error: no member amount [4]" in above
    assert "make proto -> ok" in above


def test_a_cell_that_failed_does_not_still_fail_once_another_worked() -> None:
    """In a notebook the next cell is the next try."""
    failed = "Traceback (most recent call last):\n  File \"x\", line 1\nKeyError: 'sdk'"
    first = step("1", failed, "python", code="df.groupby('sdk').wau.sum()")
    then = step("2", "1 2 3", "python", code="df = load('wau.parquet')")
    assert "still fails" in static_summary(first, budget_tokens=300, count=count)
    assert "still fails" not in static_summary([*first, *then], budget_tokens=300, count=count)


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
    now = section(static_summary(messages, budget_tokens=300, count=count), "Now")
    assert now == ["- doing: Stream rows in monthly.py", "- done: Inspect the client"]
    later = section(static_summary([*messages, stop], budget_tokens=300, count=count), "Now")
    assert later == [
        "- was doing: Stream rows in monthly.py",
        "- done: Inspect the client",
    ]


def test_beside_a_models_text_room_that_is_left_is_left() -> None:
    """It would be sent with every later request; a small summary without one uses it."""
    done = (f"Inspect client {n} of the many" for n in range(9))
    todos = [{"content": text, "status": "completed"} for text in done]
    messages = [*SERVICE, *step("6", "ok", "todo", todos=todos)]
    added = repair("All is well.", extract(messages), budget_tokens=500, count=count)
    assert added.partition("## The user said")[0].count("Inspect client") < 4
    assert "issue_refund B-2025-11 15 -> ok" not in added
    alone = static_summary(messages, budget_tokens=500, count=count)
    assert "issue_refund B-2025-11 15 -> ok" in alone


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
