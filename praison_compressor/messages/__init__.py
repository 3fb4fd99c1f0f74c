"""Chat messages as they really come: read once, repaired only in the view, grouped, digested.

A *step* is one atom that is never split: an assistant message with its tool calls and all their
results; every other message is a step alone. A *turn* starts with a user message.

Calls and results come beside the content, as in OpenAI's chat completions (`tool_calls`, role
`tool`), or as blocks of it, as in Anthropic's API (`tool_use`, `tool_result`). Both are read, and
each stays in its shape.

`shapes` reads one message, `digests` tells two apart, `cleaning` mends one message, and `parsing`
brings calls and results together and makes of a whole list a `Transcript`. `responses` makes
messages of the items of OpenAI's Responses API, and items of messages. `calls` decodes what a call
asks and pairs it with its result, `paths` finds the files it names, `excerpts` shortens texts.
`secrets` masks keys and passwords, `display` writes a message for a person's eyes, `forks` keeps
locks and lazy values usable in a forked process.
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
    "media_in",
    "read",
    "result_blocks",
    "result_text",
    "steps",
    "text_of",
    "to_plain",
    "tool_calls_of",
]
