"""Read chat messages as data; repair only copies of them.

A *step* is never split: an assistant message with its tool calls and all their results. Every other
message is a step alone. A *turn* starts with a user message.

Calls and results stand beside the content (OpenAI's `tool_calls`, role `tool`), or are blocks of it
(Anthropic's `tool_use`, `tool_result`). Each message keeps its shape.

In the order in which data passes the modules:

- `shapes`: the words, calls and plain copy of one message; signed thinking
- `responses`: items of OpenAI's Responses API as messages, and back
- `transcript`: a list of messages as steps, and as exchanges (question, work, answer)
- `repair`: repairs of what a provider would refuse
- `dropped_steps`: tool steps that a host left out of a request, restored
- `digests`: canonical and content digests; the cache of messages
- `calls`: a call's arguments, command line and kind; the files that it names and changes
- `speakers`: who wrote which text of a message; the user's words inside results
- `results`: a result's exit code and output; its call
- `secrets`: keys and passwords redacted
- `shortening`: shorter texts and call arguments; shares of a budget
- `display`: messages as text for a person
"""

from __future__ import annotations

from .digests import content_digest, digest
from .shapes import (
    Message,
    ToolCall,
    is_result,
    is_system,
    leading_count,
    result_text,
    text_of,
    to_plain,
    tool_calls_of,
)
from .transcript import Transcript, read_transcript, split_steps

__all__ = [
    "Message",
    "ToolCall",
    "Transcript",
    "content_digest",
    "digest",
    "is_result",
    "is_system",
    "leading_count",
    "read_transcript",
    "result_text",
    "split_steps",
    "text_of",
    "to_plain",
    "tool_calls_of",
]
