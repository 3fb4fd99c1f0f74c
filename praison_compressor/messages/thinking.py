"""Find and remove signed thinking of Anthropic's models.

Newer models bind a block to everything before it: system prompt, tools and messages
(*preserved thinking*). After a change there, the API refuses the block and all blocks behind it
("bound to a different conversation"). A request may leave out the first blocks of the history.
Older models require the blocks of the running tool loop.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from .shapes import Message

BLOCKS = "thinking_blocks"
"""litellm's key for blocks beside the content."""

_LEFT_OUT = "[only thinking, left out]"
"""Content of a message that had only thinking, since no content may be empty."""


def signatures(message: Mapping[str, Any]) -> frozenset[str]:
    """Return the signatures of a message's thinking; of encrypted thinking, its data."""
    if BLOCKS not in message and not isinstance(message.get("content"), list):
        return frozenset()
    blocks: list[Any] = []
    for parts in (message.get("content"), message.get(BLOCKS)):
        blocks += filter(is_thinking, parts) if isinstance(parts, list) else ()
    marks = (block.get("signature") or block.get("data") for block in blocks)
    return frozenset(mark for mark in marks if isinstance(mark, str) and mark)


def binds_thinking(model: str | None) -> bool:
    """Return whether a model binds its thinking (Claude from 5.1).

    These models require no thinking of the running tool loop.
    """
    version = _CLAUDE_VERSION.search(model or "")
    return version is not None and (int(version[1]), int(version[2])) >= (5, 1)


_CLAUDE_VERSION = re.compile(r"claude-[a-z]+-(\d{1,2})[-.](\d{1,2})(?!\d)", re.IGNORECASE)


def is_thinking(part: object) -> bool:
    """Return whether a content part is thinking."""
    return isinstance(part, Mapping) and part.get("type") in ("thinking", "redacted_thinking")


def without_thinking(message: Message) -> Message:
    """Return a message without its signed thinking; calls and text stay.

    >>> block = {"type": "thinking", "thinking": "Hm.", "signature": "x"}
    >>> without_thinking({"role": "assistant", "content": [block, {"type": "text", "text": "Hi"}]})
    {'role': 'assistant', 'content': [{'type': 'text', 'text': 'Hi'}]}
    """
    # Both other keys repeat the words of the blocks.
    left_out = (BLOCKS, "reasoning_content", "reasoning") if message.get(BLOCKS) else ()
    stripped = {key: value for key, value in message.items() if key not in left_out}
    content = stripped.get("content")
    if isinstance(content, list):
        stripped["content"] = [part for part in content if not is_thinking(part)]
    if not stripped.get("content") and not stripped.get("tool_calls"):
        text = {"type": "text", "text": _LEFT_OUT}
        stripped["content"] = [text] if isinstance(content, list) else _LEFT_OUT
    return stripped
