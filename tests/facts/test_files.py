"""The trail of files: the last thing done to each, whatever tool did it."""

from __future__ import annotations

import json

import pytest

from praison_compressor.facts import extract


def turn(name, arguments, result="ok", call_id="c1"):
    call = {
        "id": call_id,
        "type": "function",
        "function": {"name": name, "arguments": json.dumps(arguments)},
    }
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call_id, "content": result},
    ]


def trail(*turns):
    messages = [message for one in turns for message in one]
    return {item.path: item.action for item in extract(messages).files}


TOOLS = [
    ("Read", {"file_path": "src/a.py"}, "read"),
    ("read_file", {"path": "src/a.py"}, "read"),
    ("write_file", {"path": "src/a.py", "content": "x"}, "created"),
    ("Edit", {"file_path": "src/a.py", "old_string": "a", "new_string": "b"}, "edited"),
    ("str_replace_editor", {"command": "view", "path": "src/a.py"}, "read"),
    ("str_replace_editor", {"command": "create", "path": "src/a.py"}, "created"),
    ("str_replace_editor", {"command": "str_replace", "path": "src/a.py"}, "edited"),
    ("apply_patch", {"input": "*** Begin Patch\n*** Add File: src/a.py\n+x"}, "created"),
    ("apply_patch", {"input": "*** Begin Patch\n*** Update File: src/a.py\n+x"}, "edited"),
    ("apply_patch", {"input": "*** Begin Patch\n*** Delete File: src/a.py"}, "deleted"),
    ("apply_patch", {"patch": "--- a/src/a.py\n+++ b/src/a.py\n@@ -1 +1 @@"}, "edited"),
    ("delete_file", {"path": "src/a.py"}, "deleted"),
    ("move_file", {"source": "src/a.py", "destination": "src/b.py"}, "moved"),
    ("Bash", {"command": "sed -i 's/a;b/c/' src/a.py"}, "edited"),
    ("bash", {"command": "cat src/a.py | head"}, "read"),
    ("bash", {"command": "cd src && rm -f a.py"}, "deleted"),
    (
        "bash",
        {"command": "apply_patch <<'E'\n*** Begin Patch\n*** Delete File: src/a.py\nE"},
        "deleted",
    ),
    (
        "shell",
        {"command": ["apply_patch", "*** Begin Patch\n*** Add File: src/a.py\n+x"]},
        "created",
    ),
    ("bash", {"command": "git mv src/a.py src/b.py"}, "moved"),
    ("bash", {"command": "mv src/a.py src/b.py"}, "moved"),
    ("bash", {"command": "echo hi > src/a.py"}, "created"),
    ("bash", {"command": "echo hi >> src/a.py"}, "edited"),
    ("bash", {"command": "cat > src/a.py <<'EOF'\nrm src/z.py\nEOF\n"}, "created"),
    ("terminal", {"command": "touch src/a.py"}, "created"),
    ("run_commands", {"commands": ["rm src/a.py"]}, "deleted"),
]


@pytest.mark.parametrize(("name", "arguments", "action"), TOOLS)
def test_each_usual_vocabulary_is_understood(name, arguments, action):
    """A call's tool name and arguments say what happened to the file."""
    assert trail(turn(name, arguments))["src/a.py"] == action


def test_the_last_action_wins_but_reading_does_not_undo_a_change():
    """An edited file that is read again stays edited; a deleted one is deleted."""
    edit = turn("Edit", {"file_path": "a/b.py"})
    read = turn("Read", {"file_path": "a/b.py"})
    remove = turn("bash", {"command": "rm a/b.py"})
    assert trail(read, edit, read)["a/b.py"] == "edited"
    assert trail(read, edit, remove)["a/b.py"] == "deleted"


def test_a_file_has_one_name_however_it_is_spelled():
    """An editor is told the whole path, the shell a part of it; two parts must agree."""
    edit = turn("Edit", {"file_path": "/repo/src/a.py"})
    remove = turn("bash", {"command": "rm ./src/a.py"})
    assert trail(edit, remove) == {"/repo/src/a.py": "deleted"}
    assert trail(remove, edit) == {"src/a.py": "edited"}
    assert trail(edit, turn("bash", {"command": "rm a.py"})) == {
        "/repo/src/a.py": "edited",
        "a.py": "deleted",
    }
    assert trail(edit, turn("bash", {"command": "rm /other/src/a.py"})) == {
        "/repo/src/a.py": "edited",
        "/other/src/a.py": "deleted",
    }


@pytest.mark.parametrize("path", ["../src/a.py", "~/src/a.py", "rc/a.py"])
def test_only_a_part_of_a_path_is_another_name_for_it(path):
    """Not one that begins elsewhere, nor one that cuts a word."""
    edit = turn("Edit", {"file_path": "/repo/src/a.py"})
    assert trail(edit, turn("Read", {"file_path": path})) == {
        "/repo/src/a.py": "edited",
        path: "read",
    }


def test_a_name_that_two_files_could_have_is_neithers():
    """Two packages with the same tree: nobody can tell which one the shell means."""
    one, other = (turn("Edit", {"file_path": f"/repo/{name}/src/a.py"}) for name in ("x", "y"))
    assert trail(one, other, turn("bash", {"command": "rm src/a.py"})) == {
        "/repo/x/src/a.py": "edited",
        "/repo/y/src/a.py": "edited",
        "src/a.py": "deleted",
    }


def test_a_failed_edit_changes_nothing():
    """The result decides: an edit that failed leaves the file as it was last seen."""
    read = turn("Read", {"file_path": "a/b.py"})
    failed = turn("Edit", {"file_path": "a/b.py"}, "Error: old_string not found")
    assert trail(read, failed)["a/b.py"] == "read"
