"""The calls of an answer are read from all that a provider's client hands out."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from praison_compressor.praisonai.answers import CallPieces, calls_in

CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at": 1}'}}
MADE = {"role": "assistant", "content": "Looking.", "tool_calls": [CALL]}
ITEMS = [
    {"type": "reasoning", "id": "r1", "summary": []},
    {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"at": 1}'},
]


def objects(value: Any) -> Any:
    """The value as a client's objects."""
    return json.loads(json.dumps(value), object_hook=lambda found: SimpleNamespace(**found))


@pytest.mark.parametrize("form", [dict, objects])
def test_a_whole_answer_of_chat(form: Any) -> None:
    """Content and calls, as the next request would carry them."""
    assert calls_in(form({"choices": [{"message": MADE}]})) == MADE
    assert calls_in(form({"choices": [{"message": {"content": "Done."}}]})) is None


@pytest.mark.parametrize("form", [dict, objects])
def test_a_whole_response(form: Any) -> None:
    """A call keeps the reasoning item that the API demands before it."""
    found = calls_in(form({"output": ITEMS}))
    assert found is not None
    assert [item["id"] for item in found["response_items"]] == ["r1"]
    assert found["tool_calls"][0]["function"] == CALL["function"]
    assert calls_in(form({"output": ITEMS[:1]})) is None


@pytest.mark.parametrize("form", [dict, objects])
def test_a_stream_of_chat(form: Any) -> None:
    """Parallel calls come in pieces, each with its index."""
    deltas: list[Any] = [
        {"content": "Look"},
        {"content": "ing."},
        {"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "look", "arguments": ""}}]},
        {"tool_calls": [{"index": 1, "id": "c2", "function": {"name": "say", "arguments": "{}"}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"at": 1}'}}]},
    ]
    pieces = CallPieces()
    for delta in deltas:
        pieces.take(form({"choices": [{"delta": delta}]}))
    pieces.take(form({"choices": [], "usage": {"prompt_tokens": 3}}))
    found = pieces.message
    assert found is not None
    assert found["content"] == "Looking."
    assert found["tool_calls"][0] == CALL
    assert found["tool_calls"][1]["function"] == {"name": "say", "arguments": "{}"}


@pytest.mark.parametrize("form", [dict, objects])
def test_a_stream_of_a_response(form: Any) -> None:
    """The last event has the whole."""
    pieces = CallPieces()
    pieces.take(form({"type": "response.output_text.delta", "delta": "x"}))
    assert pieces.message is None
    pieces.take(form({"type": "response.completed", "response": {"output": ITEMS}}))
    assert pieces.message == calls_in({"output": ITEMS})
