"""How a summary reads: how things stand first, then the user, the reasons and the trail."""

from __future__ import annotations

import json

import pytest

from praison_compressor.summaries.static import static_summary


def count(text):
    return (len(text) + 3) // 4


def said(text):
    return {"role": "assistant", "content": text}


def turn(name, arguments, result="ok", call_id="c1", text=None):
    function = {"name": name, "arguments": json.dumps(arguments)}
    return [
        {
            "role": "assistant",
            "content": text,
            "tool_calls": [{"id": call_id, "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": call_id, "content": result},
    ]


TODOS = {
    "todos": [
        {"content": "Read the parser", "status": "completed"},
        {"content": "Fix the lexer", "status": "in_progress"},
        {"content": "Write the docs", "status": "pending"},
        {"content": "Tell the team", "status": "pending"},
    ]
}
SESSION = [
    {"role": "user", "content": "Please fix the lexer."},
    *turn("TodoWrite", TODOS),
    *turn("Read", {"file_path": "src/lexer/states.py"}, "def step(): ..."),
    *turn("Edit", {"file_path": "src/lexer/states.py", "old_string": "a", "new_string": "b"}),
    *turn("Edit", {"file_path": "src/lexer/rules.py", "old_string": "a", "new_string": "b"}),
    *turn("Bash", {"command": "make lint"}, "Exit code 2\nerror: unused import"),
    *turn("Bash", {"command": "make lint"}, "Exit code 0\nclean"),
    *turn("Bash", {"command": "pytest tests/lexer"}, "Exit code 1\nFAILED tests/lexer::test_eof"),
    said("I went with a table of states because the regular expressions backtrack. All is well."),
]


def section(text, title):
    return text.partition(f"## {title}\n")[2].partition("\n## ")[0].splitlines()


@pytest.mark.parametrize("budget", [250, 400, 1_500])
def test_a_reader_first_learns_how_things_stand(budget):
    """What is being done and what is next lead, at low budgets too."""
    text = static_summary(SESSION, budget_tokens=budget, count=count)
    lines = section(text, "Now")
    assert text.startswith("## Now")
    assert lines[:2] == ["- doing: Fix the lexer", "- next: Write the docs; Tell the team"]


def test_what_still_fails_is_told_and_what_works_again_is_not():
    """A failure counts until a like command has worked."""
    lines = section(static_summary(SESSION, budget_tokens=1_500, count=count), "Now")
    assert [line for line in lines if line.startswith("- still fails: ")] == [
        "- still fails: pytest tests/lexer: FAILED tests/lexer::test_eof [14]"
    ]
    mended = [*SESSION, *turn("Bash", {"command": "pytest -q"}, "Exit code 0\n9 passed")]
    assert "still fails" not in static_summary(mended, budget_tokens=1_500, count=count)


def test_the_last_words_of_the_assistant_are_told():
    """What it reported last says where the session stands."""
    text = static_summary(SESSION, budget_tokens=1_500, count=count)
    assert "- said: I went with a table of states because" in text


def test_a_decision_is_told_with_its_reason_and_a_question_is_none():
    """The words that justify it stand with it."""
    asked = said("Would you rather have the table because it is faster?")
    announced = said("This happens because of two things:")
    text = static_summary([*SESSION, asked, announced], budget_tokens=1_500, count=count)
    assert section(text, "Decisions") == [
        "- [15] I went with a table of states because the regular expressions backtrack."
    ]


def test_files_are_told_by_what_was_done_to_them_and_by_which_call():
    """One bullet for each, changed files before those only read."""
    more = turn("Read", {"file_path": "src/lexer/errors.py"}, "class LexError: ...", "r2")
    again = turn("Edit", {"file_path": "src/lexer/rules.py"}, "ok", "e3")
    text = static_summary([*SESSION, *more, *again], budget_tokens=2_000, count=count)
    assert section(text, "Files") == [
        "- edited (Edit): lexer/rules.py ×2, lexer/states.py",
    ]
    assert section(text, "Files read") == ["- read (Read): lexer/errors.py"]
