"""Files as agents of many makes touch them: their keys, their editors, PowerShell, Python."""

from __future__ import annotations

import json
from typing import Any

import pytest

from praison_compressor.facts import Facts, FileFact, extract
from praison_compressor.facts.corrections import Stale
from praison_compressor.facts.files import effects_of
from praison_compressor.facts.rendering import files_section
from praison_compressor.messages import ToolCall


def done(*steps: tuple[str, dict[str, Any], str]) -> dict[str, FileFact]:
    """The files after calls with these results."""
    messages: list[dict[str, Any]] = []
    for number, (name, arguments, result) in enumerate(steps):
        function = {"name": name, "arguments": json.dumps(arguments)}
        made = {"id": str(number), "type": "function", "function": function}
        messages.append({"role": "assistant", "content": None, "tool_calls": [made]})
        messages.append({"role": "tool", "tool_call_id": str(number), "content": result})
    return {fact.path: fact for fact in extract(messages).files}


@pytest.mark.parametrize(
    ("command", "result", "ok"),
    [
        ("sed -i s/a/b/ a.py && pytest", "FAILED t.py::t - E\n1 failed", True),
        ("cat > a.py <<'E'\nx\nE\ngit push", "error: failed to push some refs", True),
        ("pytest > a.py", "Error: no tests", True),
        ("sed -i s/a/b/ a.py", "Error: sed went wrong", False),
        ("make && rm a.py", "make: *** [x] Error 1\nrm: cannot remove 'a.py'\nexit code 1", False),
        ("rm a.py && make", "rm: cannot remove 'a.py': No such file or directory", False),
        ("rm a.py; make", "bash: line 1: rm: a.py: No such file or directory\nexit code 2", False),
    ],
)
def test_what_came_before_the_failure_happened(command: str, result: str, ok: bool) -> None:
    """A failing test undoes no edit of the same command line; who complains has failed."""
    assert done(("bash", {"command": command}, result))["a.py"].ok is ok


def test_a_moved_file_is_printed_once() -> None:
    """Not again where it went, unless something was done to it there."""
    moved = ("bash", {"command": "git mv a.py b.py"}, "")
    edited = ("edit_file", {"path": "b.py"}, "ok")

    def printed(*steps: tuple[str, dict[str, Any], str]) -> list[str]:
        facts = tuple(done(*steps).values())
        return [line.text for line in files_section(Facts(files=facts), Stale(())).lines]

    assert printed(moved) == ["a.py to b.py"]
    assert printed(moved, edited) == ["b.py", "a.py to b.py"]


@pytest.mark.parametrize(
    ("name", "arguments", "found"),
    [
        ("copy_path", {"source_path": "a", "destination_path": "b"}, [("b", "created", "")]),
        ("move_path", {"source_path": "a", "destination_path": "b"}, [("a", "moved", "b")]),
        ("move_file", {"source": "a", "destination": "b"}, [("a", "moved", "b")]),
        ("move_card", {"from": "todo", "to": "doing"}, []),
        ("move_card", {"from": "in/a.md", "to": "b.md"}, [("in/a.md", "moved", "b.md")]),
        ("show_seats", {"from": "BER", "to": "MUC"}, []),
        ("update_user", {"source": "crm"}, []),
        ("download_file", {"url": "https://a.b/c.zip", "path": "c.zip"},
         [("c.zip", "created", "")]),
        ("write_file", {"path": "notes.md", "content": "--- a/x.py\n+++ b/x.py\n"},
         [("notes.md", "created", "")]),
        ("apply_patch", {"content": "--- a/x.py\n+++ b/x.py\n"}, [("x.py", "edited", "")]),
    ],
)  # fmt: skip
def test_what_names_a_file_and_what_does_not(
    name: str, arguments: dict[str, Any], found: list[tuple[str, str, str]]
) -> None:
    """A list on a board, a city or a field is none; a file's text is not a patch."""
    made = effects_of(ToolCall("c", name, json.dumps(arguments)))
    assert [(effect.path, effect.action, effect.target) for effect in made] == found
