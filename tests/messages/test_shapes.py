"""One message of any shape: its calls, its text."""

from __future__ import annotations

from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest

from praison_compressor.messages import (
    is_tools_text,
    result_text,
    text_of,
    tool_calls_of,
)

NESTED = {"name": "run", "arguments": '{"x": 1}'}


@pytest.mark.parametrize(
    "given",
    [
        {"id": "a", "type": "function", "function": NESTED},
        {"id": "a", "function": {"name": "run", "arguments": {"x": 1}}},
        MappingProxyType({"id": "a", "function": MappingProxyType(NESTED)}),
        SimpleNamespace(id="a", function=SimpleNamespace(**NESTED)),
        SimpleNamespace(id="a", name="run", arguments={"x": 1}),
        {"id": "a", "type": "custom", "custom": {"name": "run", "input": '{"x": 1}'}},
        {"id": "a", "type": "tool_use", "name": "run", "input": {"x": 1}},
    ],
    ids=lambda given: type(given).__name__,
)
def test_a_call_is_read_in_every_shape_it_comes_in(given: Any) -> None:
    """A call is read from dictionaries, mappings and objects, nested or flat."""
    (made,) = tool_calls_of({"role": "assistant", "tool_calls": (given,)})
    assert (made.id, made.name, made.arguments) == ("a", "run", '{"x": 1}')


@pytest.mark.parametrize(
    ("content", "tools"),
    [
        ("[tool result whose call is not in this conversation]", True),
        ([{"type": "tool_result", "content": "x"}], True),
        ([{"type": "text", "text": "x"}], False),
        ("hello", False),
    ],
)
def test_a_tools_words_in_the_users_role_are_known(content: Any, tools: Any) -> None:
    """Orphan results and `tool_result` blocks are a tool's words."""
    assert is_tools_text({"role": "user", "content": content}) is tools


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, ""),
        ("words", "words"),
        (["one", {"type": "text", "text": "two"}, 3, {"type": "image_url"}], "one\ntwo"),
        ({"type": "text", "text": "alone"}, "alone"),
        ([{"type": "tool_result", "content": [{"type": "text", "text": "inner"}]}], "inner"),
        ([{"type": "other", "content": "inner"}], ""),
        (5, "5"),
        (b"ab", "b'ab'"),
    ],
)
def test_the_text_of_every_content(content: Any, text: str) -> None:
    """The text of each readable part is a line."""
    assert text_of({"role": "user", "content": content}) == text


@pytest.mark.parametrize(
    ("role", "text", "written"),
    [
        ("tool", '"a\\nb"', "a\nb"),
        ("function", '""', ""),
        *((role, text, text) for role, text in [("user", '"a\\nb"'), ("tool", '"a" or "b"')]),
        *(("tool", text, text) for text in ('"', '"a', 'a"', "5", "")),
    ],
)
def test_only_a_result_that_is_one_json_string_is_unpacked(
    role: str, text: str, written: str
) -> None:
    """Only a tool's result that is one JSON string is unpacked."""
    assert result_text({"role": role, "content": text}) == written
