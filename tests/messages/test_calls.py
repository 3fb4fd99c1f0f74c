"""What calls ask, and their arguments made shorter."""

from __future__ import annotations

import json
from typing import Any

import pytest

from praison_compressor import CompressorConfig, ContextCompressor
from praison_compressor.messages import check, tool_calls_of
from praison_compressor.messages.excerpts import with_shorter_calls
from tests.helpers.texts import prose

BIG = prose(28_000)
GIVEN: dict[str, Any] = {"path": "notes/a.txt", "content": BIG, "mode": 420}
TEXT = json.dumps(GIVEN)
SHAPES: dict[str, list[dict[str, Any]]] = {
    "openai": [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "write", "arguments": TEXT}}
            ],
        },
        {"role": "tool", "tool_call_id": "a", "content": "ok"},
    ],
    "anthropic": [
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "a", "name": "write", "input": GIVEN}],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "ok"}]},
    ],
}


def ends(text: str, chars: int) -> str:
    return f"{text[: chars // 2]}…{text[-chars // 2 :]}"


@pytest.mark.parametrize("shape", SHAPES)
def test_long_strings_are_cut_inside_the_json(shape: str) -> None:
    """Arguments stay an object: short values as they are, long strings by their ends."""
    message = SHAPES[shape][0]
    (call,) = tool_calls_of(with_shorter_calls(message, 4_000, ends))
    cut = json.loads(call.arguments)
    assert (cut["path"], cut["mode"]) == ("notes/a.txt", 420)
    assert 3_000 < len(cut["content"]) < 4_100
    assert cut["content"].startswith(BIG[:1_000])
    assert tool_calls_of(message)[0].arguments in (TEXT, json.dumps(GIVEN, ensure_ascii=False))


def test_thousands_of_short_values_become_one_text() -> None:
    """An object whose strings are all short is cut as one text, in an object."""
    rows = json.dumps({"rows": [["x", n] for n in range(9_000)]})
    function = {"name": "write", "arguments": rows}
    message = {"role": "assistant", "tool_calls": [{"id": "a", "function": function}]}
    (call,) = tool_calls_of(with_shorter_calls(message, 4_000, ends))
    assert json.loads(call.arguments).keys() == {"arguments"}
    assert len(call.arguments) < 8_000


@pytest.mark.parametrize("shape", SHAPES)
def test_a_call_larger_than_the_window_is_no_dead_end(shape: str) -> None:
    """The newest step's call is shortened in a valid view, and the transcript has the whole."""
    messages = [{"role": "user", "content": "Write it."}, *SHAPES[shape]]
    ours = ContextCompressor(CompressorConfig(model="gpt-4o", context_window=16_000))
    result = ours.compress_sync(messages)
    assert result.tokens_after < 4_000
    assert check(result.messages) == []
    assert ours.verbatim(result.messages) == messages
    longer = [*messages, {"role": "assistant", "content": "Written."}]
    longer.append({"role": "user", "content": "And now?"})
    assert ours.compress_sync(longer).messages[: len(messages)] == result.messages
