"""Agents without native calls write them into their text: the trail is the same."""

from __future__ import annotations

import json
from typing import Any

import pytest

from praison_compressor.facts import Facts, extract
from praison_compressor.facts.speakers import written_calls


def talk(*texts: str) -> Facts:
    """A user and an assistant in turn, the user first."""
    roles = ("user", "assistant")
    return extract([{"role": roles[n % 2], "content": text} for n, text in enumerate(texts)])


@pytest.mark.parametrize(
    ("text", "name", "given"),
    [
        ("<read_file>\n<path>a.py</path>\n</read_file>", "read_file", {"path": "a.py"}),
        ("<read_file>\n<args>\n<file>\n<path>a.py</path>\n</file>\n</args>\n</read_file>",
         "read_file", {"path": "a.py"}),
        ("<function=execute_bash>\n<parameter=command>ls</parameter>\n</function>",
         "execute_bash", {"command": "ls"}),
        ('<invoke name="Read"><parameter name="file_path">a.py</parameter></invoke>',
         "Read", {"file_path": "a.py"}),
        ('<tool_call>\n{"name": "ls", "arguments": {"path": "a"}}\n</tool_call>',
         "ls", {"path": "a"}),
    ],
)  # fmt: skip
def test_calls_in_tags(text: str, name: str, given: dict[str, Any]) -> None:
    """Several ways to write one; what stands round them is said."""
    found = written_calls(f"I look.\n{text}")
    assert [(c.name, json.loads(c.arguments)) for c in found.calls] == [(name, given)]
    assert found.prose == "I look.\n"


@pytest.mark.parametrize(
    "text",
    ["a < b", "<div><span>x</span></div>", "<read_file>\n<path>a.py", "<tool_call>{}</tool_call>",
     "<tool_call>{x}</tool_call>", "```bash\nls\n```"],
)  # fmt: skip
def test_texts_that_call_nothing(text: str) -> None:
    """Markup, broken calls, and a command that is only shown."""
    assert written_calls(text) == ((), text)


def test_a_fenced_command_was_run_where_an_answer_follows() -> None:
    """Its files, its outcome and its exit code are facts as those of any other."""
    facts = talk(
        "Mend the links.",
        "THOUGHT: rename it.\n\n```bash\nsed -i s/A/B/ src/cancel.rs\n```",
        "<returncode>0</returncode>\n<output>\n</output>",
        "THOUGHT: try.\n\n```bash\ncargo doc\n```",
        "<returncode>101</returncode>\n<output>\nerror[E0433]: no crate `tracing`\n</output>",
    )
    assert [(f.path, f.action, f.via) for f in facts.files] == [
        ("src/cancel.rs", "edited", "sed -i")
    ]
    assert facts.commands[-1].outcome == "failed"
    assert facts.commands[-1].detail == "exit 101: error[E0433]: no crate `tracing`"
    assert [said.text for said in facts.user] == ["Mend the links."]


def test_a_block_to_search_and_replace_edits_a_file() -> None:
    """Hosts carry it out without a word; an empty search makes a new file."""
    facts = talk(
        "Add the tax.",
        "I multiply.\n\nshop/cart.py\n```python\n<<<<<<< SEARCH\nreturn a\n=======\nreturn b\n"
        ">>>>>>> REPLACE\n```\n\nshop/tax.py\n```python\n<<<<<<< SEARCH\n=======\nVAT = 1\n"
        ">>>>>>> REPLACE\n```\n",
        "I ran this command:\n\npytest\n\nAnd got this output:\n\nFAILED t.py::t - E",
    )
    assert [(f.path, f.action, f.ok) for f in facts.files] == [
        ("shop/cart.py", "edited", True),
        ("shop/tax.py", "created", True),
    ]


def test_an_edit_that_did_not_match_changed_nothing() -> None:
    """The host says so in the user's role."""
    facts = talk(
        "Add the tax.",
        "cart.py\n```\n<<<<<<< SEARCH\nreturn a\n=======\nreturn b\n>>>>>>> REPLACE\n```\n",
        "# 1 SEARCH/REPLACE block failed to match!\n\nreturn a",
    )
    assert [(f.path, f.ok) for f in facts.files] == [("cart.py", False)]
