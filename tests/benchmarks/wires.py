"""What is wrong with the calls of a request, on any of the three wires."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["unpaired"]


def unpaired(protocol: str, body: Mapping[str, Any]) -> int:
    """How many results have no call before them, and how many calls no result after them."""
    waiting: list[str] = []
    orphans = 0
    for kind, call_id in _READERS[protocol](body):
        if kind == "call":
            waiting.append(call_id)
        elif call_id in waiting:
            waiting.remove(call_id)
        else:
            orphans += 1
    return orphans + len(waiting)


def _chat(body: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for message in body["messages"]:
        for call in message.get("tool_calls") or ():
            yield "call", call["id"]
        if message["role"] == "tool":
            yield "result", message["tool_call_id"]


def _responses(body: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    items = body["input"]
    for item in () if isinstance(items, str) else items:
        if item.get("type") == "function_call":
            yield "call", item["call_id"]
        if item.get("type") == "function_call_output":
            yield "result", item["call_id"]


def _anthropic(body: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for message in body["messages"]:
        content = message["content"]
        for block in () if isinstance(content, str) else content:
            if block["type"] == "tool_use":
                yield "call", block["id"]
            if block["type"] == "tool_result":
                yield "result", block["tool_use_id"]


_READERS = {"chat": _chat, "responses": _responses, "anthropic": _anthropic}
