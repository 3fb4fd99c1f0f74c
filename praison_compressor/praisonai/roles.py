"""Chat templates that want user and assistant in turns: learned from a refusal, met from then on.

A summary is a user message, and what follows it may be one too; most providers take that, the
templates of many local models do not.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ..messages import Message, tool_calls_of

__all__ = ["alternating", "refused"]

_REFUSAL = re.compile(r"roles must alternate|must alternate user", re.IGNORECASE)


def refused(error: BaseException) -> bool:
    """Whether a provider refused the order of roles."""
    return bool(_REFUSAL.search(str(error)))


def alternating(messages: Sequence[Message]) -> list[Message]:
    """The messages with neighbours of one role made one; tool steps stay as they are."""
    merged: list[Message] = []
    for message in messages:
        if merged and _may_join(merged[-1], message):
            merged[-1] = {**merged[-1], "content": _joined(merged[-1], message)}
        else:
            merged.append(message)
    return merged


def _may_join(one: Message, two: Message) -> bool:
    if one.get("role") != two.get("role") or one.get("role") not in ("user", "assistant"):
        return False
    return not tool_calls_of(one) and not tool_calls_of(two)


def _joined(one: Message, two: Message) -> Any:
    first, second = one.get("content"), two.get("content")
    if isinstance(first, str) and isinstance(second, str):
        return f"{first}\n\n{second}"
    return [*_parts(first), *_parts(second)]


def _parts(content: Any) -> list[Any]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return list(content or ())
