"""Cache marks, for providers that cache only what is marked: set at the places that stay.

A mark says "cache everything up to here". It is one key beside the content, which digests leave
out: a message that loses it is again, byte for byte, what it was.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..messages import Message, is_result, is_system, text_of
from ..view.frame import is_framed

LARGEST = 4
"""Marks that a request may carry, those on its tools included."""

_CLAUDE = re.compile(r"(^|[/.@:_-])(claude|anthropic)([/.@:_-]|$)", re.IGNORECASE)

_SERVE_CLAUDE = frozenset({"azure_ai", "bedrock", "databricks", "openrouter", "vertex_ai"})
"""Of litellm's providers those that pass marks on to a Claude which they serve."""

_MARKABLE = frozenset({"text", "image_url", "image", "document", "file"})
"""Parts that may carry a mark. Thinking may not, and an empty text is refused with one."""


def takes_marks(provider: str | None, model: str) -> bool:
    """Return whether the API of litellm's `provider` takes marks.

    A name alone says nothing: an OpenAI-compatible endpoint that serves `claude-local` refuses
    the key.
    """
    served = provider in _SERVE_CLAUDE and _CLAUDE.search(model) is not None
    return served or provider == "anthropic"


def marked(
    messages: Sequence[Message],
    tools: Sequence[Mapping[str, Any]] | None = None,
    ttl: str | None = None,
) -> list[Message]:
    """Return the messages with cache marks that live for `ttl`, "5m" or "1h".

    They stand after the system prompt, the last summary, the last mask and the end.

    What stands before the last summary or mask changes only with the next compression; the mark
    at the end is what the next request of a growing conversation is found by. `messages` are not
    changed; a marked one is a copy. Marks that the host has set, on messages or `tools`, stay and
    count: with ours they are at most four, the end served first. Beside them ours have no `ttl`: an
    API refuses a mark of an hour behind one of minutes.
    """
    hosts = _marks_in([*messages, *(tools or ())])
    free = max(0, LARGEST - hosts)
    mark = {"type": "ephemeral", **({"ttl": ttl} if ttl and not hosts else {})}
    places = [place for place in _places(messages) if not _marks_in(messages[place])][:free]
    return [_with_mark(m, mark) if index in places else m for index, m in enumerate(messages)]


def _places(messages: Sequence[Message]) -> list[int]:
    """Return the indices to mark, the most valuable first."""
    carries = [index for index, message in enumerate(messages) if _can_carry(message)]
    # Only the system messages in front: later ones come and go.
    others = (index for index, message in enumerate(messages) if not is_system(message))
    leading = next(others, len(messages))
    kinds = (
        carries,
        [index for index in carries if index < leading],
        [index for index in carries if is_framed(messages[index])],
        [index for index in carries if _is_mask(messages[index])],
    )
    return list(dict.fromkeys(found[-1] for found in kinds if found))


def _is_mask(message: Message) -> bool:
    return is_result(message) and text_of(message).startswith("[masked]")


def _can_carry(message: Message) -> bool:
    # Never an assistant's: its last block may be thinking or a call, where a mark is refused.
    content = message.get("content")
    is_spoken = isinstance(content, (str, list)) and message.get("role") != "assistant"
    if not content or not is_spoken:
        return False
    last = content[-1] if isinstance(content, list) else {"type": "text", "text": content}
    if not isinstance(last, dict) or last.get("type") not in _MARKABLE:
        return False
    return last["type"] != "text" or bool(str(last.get("text") or "").strip())


def _with_mark(message: Message, mark: Mapping[str, Any]) -> Message:
    """Return the message with a mark where litellm looks for it."""
    content = message["content"]
    if isinstance(content, str) or is_result(message):
        return {**message, "cache_control": mark}
    return {**message, "content": [*content[:-1], {**content[-1], "cache_control": mark}]}


def _marks_in(value: Any) -> int:
    """Count the marks in messages or tools."""
    if isinstance(value, Mapping):
        inner = [item for key, item in value.items() if key != "cache_control"]
        return (value.get("cache_control") is not None) + _marks_in(inner)
    return sum(map(_marks_in, value)) if isinstance(value, (list, tuple)) else 0
