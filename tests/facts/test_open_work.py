"""Decisions, what comes next, and todo lists in every form."""

from __future__ import annotations

from typing import Any

import pytest

from praison_compressor.facts.extraction import TodoList, notes
from praison_compressor.facts.passages import Passage
from tests.helpers.transcripts import facts_call as call


def test_decisions_and_open_work_are_sentences_that_say_so() -> None:
    """Neither too short nor too long to be one; a decision first."""
    text = (
        "I decided to use SQLite. Next I fix the parser. Done. We chose it. "
        "The build needs to pass because CI is red. Nothing here."
    )
    found = [(kind, note.text, note.index) for kind, note in notes(Passage(4, "assistant", text))]
    assert found == [
        ("decision", "I decided to use SQLite.", 4),
        ("open", "Next I fix the parser.", 4),
        ("decision", "We chose it.", 4),
        ("decision", "The build needs to pass because CI is red.", 4),
    ]
    others = {
        "decision": ("Ich nehme nginx, weil Caddy hier fehlt.", "J'ai décidé d'utiliser SQLite.",
                     "因为支持异步，我决定用 FastAPI。", "リトライがあるため、45sに決定しました。"),
        "open": ("Als Nächstes prüfe ich die Rundung.", "El siguiente paso es pedir el permiso.",
                 "La prochaine étape est la migration.", "下一步修改测试。",
                 "次にテストを追加します。"),
    }  # fmt: skip
    for kind, sentences in others.items():
        for one in sentences:
            assert [told for told, _ in notes(Passage(0, "assistant", one))] == [kind]
    for none in ("we chose i.", "because " + "x" * 293):
        assert list(notes(Passage(0, "assistant", none))) == []


def listed(*seen: Any) -> list[tuple[str, str, int]]:
    """The todo list after these calls and texts."""
    todos = TodoList()
    for index, one in enumerate(seen):
        if isinstance(one, str):
            todos.see_text(one, index)
        else:
            todos.see(one, index)
    return [(todo.text, todo.status, todo.index) for todo in todos.todos()]


def test_a_todo_list_is_known_in_every_form() -> None:
    """Whole, item by item, or as check boxes; the newest list counts."""
    whole = call("x", todos=[{"content": "a", "status": "done"}, {"title": " b  c "}])
    assert listed(whole) == [("a", "done", 0), ("b c", "pending", 0)]
    assert listed(whole, call("x", plan=[{"step": "z"}])) == [("z", "pending", 1)]
    boxes = "- [ ] first thing\n* [x] second thing\n- [~] third thing\n- [-] fourth\n- [X] fifth"
    assert [status for _, status, _ in listed(boxes)] == [
        "pending", "completed", "in_progress", "in_progress", "completed",
    ]  # fmt: skip
    assert listed("- [ ] only one") == []
    assert listed(call("update_plan", plan=boxes))[0] == ("first thing", "pending", 0)
    ticked = listed("- [ ] first\n- [ ] second", call("TaskUpdate", id=2, status="done"))
    assert ticked == [("first", "pending", 0), ("second", "done", 1)]


def test_single_items_are_made_and_changed() -> None:
    """By an id where there is one; a tool that only reads makes none."""
    made = call("TaskCreate", subject="a")
    assert listed(made, call("TaskCreate", subject="b")) == [
        ("a", "pending", 0),
        ("b", "pending", 1),
    ]
    assert listed(made, call("TaskUpdate", taskId="1", status="done")) == [("a", "done", 1)]
    assert listed(made, call("TaskUpdate", id="7", status="done")) == [("a", "pending", 0)]
    assert listed(call("TaskGet", title="a")) == []
    assert listed(call("new_todo", text="x" * 400))[0][0] == "x" * 300


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("task_tracker", {"task_list": [{"id": "1", "title": "Fix", "status": "in-progress"}]}),
        ("manage_todo_list", {"todoList": [{"id": 1, "title": "Fix", "status": "in_progress"}]}),
        ("write_todos", {"todos": [{"description": "Fix", "state": "In_Progress"}]}),
    ],
)
def test_lists_of_many_makes(name: str, arguments: dict[str, Any]) -> None:
    """Under whatever key, with whatever spelling of a state."""
    assert listed(call(name, **arguments)) == [("Fix", "in_progress", 0)]
