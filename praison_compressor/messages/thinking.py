"""Signed thinking of Anthropic's models, as blocks of the content or beside it.

Newer models accept such a block only behind the system prompt, the tools and the messages that it
was written behind (*preserved thinking*). Any change before a block makes it invalid, and all
blocks after it: the API refuses the request ("bound to a different conversation"). Blocks may be
left out at the start of the history. Older models want the blocks of the running tool loop back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from .shapes import Message

BLOCKS = "thinking_blocks"
"""litellm's key for blocks beside the content."""

_TOLD_TWICE = (BLOCKS, "reasoning_content", "reasoning")
"""Keys that hold the words of the blocks."""

_LEFT_OUT = "[only thinking, left out]"
"""Content of a message that was nothing but thinking: none may be empty."""


def signatures(message: Mapping[str, Any]) -> frozenset[str]:
    """Return the signatures of a message's thinking; of sealed thinking, its data."""
    if BLOCKS not in message and not isinstance(message.get("content"), list):
        return frozenset()
    found = (block.get("signature") or block.get("data") for block in _blocks(message))
    return frozenset(mark for mark in found if isinstance(mark, str) and mark)


def binds_thinking(model: str | None) -> bool:
    """Return whether a model binds its thinking (Claude from 5.1).

    These models think adaptively alone, and want no thinking of the running tool loop back.
    """
    found = _VERSION.search(model or "")
    return found is not None and (int(found[1]), int(found[2])) >= (5, 1)


_VERSION = re.compile(r"claude-[a-z]+-(\d{1,2})[-.](\d{1,2})(?!\d)", re.IGNORECASE)


def is_thinking(part: object) -> bool:
    """Return whether a part of a content is thinking."""
    return isinstance(part, Mapping) and part.get("type") in ("thinking", "redacted_thinking")


def _blocks(message: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for parts in (message.get("content"), message.get(BLOCKS)):
        if isinstance(parts, list):
            yield from filter(is_thinking, parts)


def without_thinking(message: Message) -> Message:
    """Return a message without its signed thinking; calls and text stay.

    >>> block = {"type": "thinking", "thinking": "Hm.", "signature": "x"}
    >>> without_thinking({"role": "assistant", "content": [block, {"type": "text", "text": "Hi"}]})
    {'role': 'assistant', 'content': [{'type': 'text', 'text': 'Hi'}]}
    """
    left_out = _TOLD_TWICE if message.get(BLOCKS) else ()
    kept = {key: value for key, value in message.items() if key not in left_out}
    content = kept.get("content")
    if isinstance(content, list):
        kept["content"] = [part for part in content if not is_thinking(part)]
    if not kept.get("content") and not kept.get("tool_calls"):
        text = {"type": "text", "text": _LEFT_OUT}
        kept["content"] = [text] if isinstance(content, list) else _LEFT_OUT
    return kept
