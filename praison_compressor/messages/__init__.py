"""Chat messages as data: read once, repaired only in the view, grouped, digested.

A *step* is never split: an assistant message with its tool calls and all their results; every
other message is a step alone. A *turn* starts with a user message.

Calls and results stand beside the content (OpenAI's `tool_calls`, role `tool`), or are blocks of it
(Anthropic's `tool_use`, `tool_result`). Both are read, and each keeps its shape.

- `shapes`: one message's text, calls and plain copy
- `digests`: canonical and content digests; the cache of messages
- `repair`: one message, checked and repaired
- `parsing`: calls paired with results: a list as a `Transcript`
- `responses`: items of OpenAI's Responses API as messages, and back
- `calls`: what a call asks: arguments, command line, files; and its result
- `shortening`: texts and call arguments made shorter
- `thinking`: signed thinking of Anthropic's models, and messages without it
- `dropped_steps`: tool steps that a host left out of a request, put back
- `secrets`: keys and passwords masked
- `display`: a message as text for a person
"""

from __future__ import annotations

from .digests import content_digest, digest
from .parsing import Transcript, as_list, check, read, steps
from .shapes import (
    ORPHAN_OPENS,
    Message,
    ToolCall,
    calls_beside,
    is_answer_block,
    is_result,
    is_system,
    is_tools_text,
    leading_in,
    media_in,
    result_blocks,
    result_text,
    text_of,
    to_plain,
    tool_calls_of,
)

__all__ = [
    "ORPHAN_OPENS",
    "Message",
    "ToolCall",
    "Transcript",
    "as_list",
    "calls_beside",
    "check",
    "content_digest",
    "digest",
    "is_answer_block",
    "is_result",
    "is_system",
    "is_tools_text",
    "leading_in",
    "media_in",
    "read",
    "result_blocks",
    "result_text",
    "steps",
    "text_of",
    "to_plain",
    "tool_calls_of",
]
