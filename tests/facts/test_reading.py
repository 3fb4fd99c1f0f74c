"""Who said which line of a transcript, and what a call says."""

from __future__ import annotations

from praison_compressor.facts.passages import argument_values, call_text, passages
from praison_compressor.messages import ToolCall


def test_who_said_what() -> None:
    """Hosts speak in the user's role too; a name is another agent's; results know their call."""
    made = {"id": "c", "type": "function", "function": {"name": "ls", "arguments": '{"p": "x"}'}}
    messages = [
        {"role": "system", "content": "rules"},
        {"role": "user", "content": "task"},
        {"role": "user", "content": "  <system-reminder>now"},
        {"role": "user", "content": "hello", "name": "worker"},
        {"role": "user", "content": "NOTE: mine"},
        {"role": "assistant", "content": "I look.", "tool_calls": [made]},
        {"role": "tool", "tool_call_id": "c", "content": '"a\\nb"'},
        {"role": "function", "name": "ls", "content": "again"},
        {"role": "user", "content": [{"type": "tool_result", "content": "old"}]},
        {"role": "assistant", "content": " "},
        {"role": "tool", "tool_call_id": "gone", "content": "orphan"},
    ]
    found = [(p.at, p.source, p.text) for p in passages(messages, ("NOTE:",))]
    assert found == [
        (0, "host", "rules"),
        (1, "user", "task"),
        (2, "host", "  <system-reminder>now"),
        (3, "host", "hello"),
        (4, "host", "NOTE: mine"),
        (5, "assistant", "I look."),
        (5, "call", "ls x"),
        (6, "result", "a\nb"),
        (7, "result", "again"),
        (8, "result", "old"),
        (10, "result", "orphan"),
    ]
    calls = [p.call.name if p.call else None for p in passages(messages) if p.source == "result"]
    assert calls == ["ls", "ls", None, None]


def test_the_values_of_arguments_are_said_in_order() -> None:
    """Strings and numbers at any depth; where to look and for how long is left out."""
    given = {
        "path": "a",
        "offset": 5,
        "deep": [{"n": 1.5, "ok": True}, ("x",)],
        "limit": 3,
        "z": None,
    }
    assert list(argument_values(given)) == ["a", "1.5", "x"]


def test_a_call_without_arguments_is_its_name() -> None:
    """Whether a host writes none as nothing or as an empty object."""
    for arguments in ("", "{}"):
        assert call_text(ToolCall("c", "ls", arguments)) == "ls"
    assert call_text(ToolCall("c", "say", "no JSON")) == "say no JSON"
