"""Results that some tools hand over in JSON: their output is read, not its envelope."""

from __future__ import annotations

import json

import pytest

from praison_compressor.facts import extract
from praison_compressor.facts.outcomes import opened


@pytest.mark.parametrize(
    ("result", "said"),
    [
        ({"output": "a\nb\n", "metadata": {"exit_code": 0}}, "a\nb\nexit code 0"),
        ({"stdout": "a", "stderr": "b", "exitCode": 2}, "a\nb\nexit code 2"),
        ({"stdout": "", "stderr": "", "returncode": 0}, "exit code 0"),
        ({"output": "a", "status": "done"}, "a"),
        ({"output": "a", "success": True, "duration": 0.1}, "a"),
        ({"error": "b", "code": True}, "b"),
    ],
)
def test_an_envelope_is_opened(result: dict[str, object], said: str) -> None:
    """What was printed, and the exit code as a line below it."""
    assert opened(json.dumps(result)) == said


@pytest.mark.parametrize(
    "result",
    [
        "plain",
        "{not json}",
        '{"output": "a", "files": ["b"]}',
        '{"exit_code": 0}',
        '{"output": 7}',
        '["output"]',
        "{" * 100_000 + "}" * 100_000,
    ],
)
def test_what_says_more_stays_as_it_is(result: str) -> None:
    """A tool's own JSON is its answer: no key of it may be lost."""
    assert opened(result) == result


def test_the_lines_of_an_output_are_its_own() -> None:
    """Names at their beginnings are not glued to an escaped line end."""
    call = {"name": "shell", "arguments": json.dumps({"command": ["ls"]})}
    facts = extract(
        [
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "c", "type": "function", "function": call}],
            },
            {
                "role": "tool",
                "tool_call_id": "c",
                "content": json.dumps({"output": "x\nsrc/app.py\n", "metadata": {"exit_code": 0}}),
            },
        ]
    )
    assert "src/app.py" in {item.text for item in facts.identifiers}
    assert (facts.commands[0].text, facts.commands[0].detail) == ("ls", "src/app.py")
