"""Cut the middle of messages that are too long for the window."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Sequence
from typing import Any

from ..messages import Message, is_result, is_system, tool_calls_of
from ..messages.shapes import is_result_block, makes_calls
from ..messages.shortening import with_shorter_calls

CountMessages = Callable[[Sequence[Message]], int]

LEAST_CUT_CHARS = 200


def shorten_messages(
    messages: Sequence[Message], limit: int, count: CountMessages
) -> list[Message]:
    """Return the messages, the longest texts cut to fit `limit`.

    Cut in this order until the list fits: tool results and user messages after the first; all but
    system messages and the newest message; all messages; the arguments of calls. Where nothing
    fits, the shortest possible list is returned.
    """
    every = range(len(messages))
    users = [index for index in every if messages[index].get("role") == "user"]
    later = {*users[1:], *(index for index in every if is_result(messages[index]))}
    not_newest = {index for index in every[:-1] if not is_system(messages[index])}
    shortened = list(messages)
    for targets in (later, not_newest, every):
        if count(shortened) <= limit:
            return shortened
        shortened = _cut_evenly(messages, targets, limit, count, _cut_message)
    if count(shortened) <= limit or not any(map(makes_calls, messages)):
        return shortened
    cut_calls = functools.partial(with_shorter_calls, shorten=leave_out_middle)
    return _cut_evenly(shortened, every, limit, count, cut_calls)


def _cut_evenly(
    messages: Sequence[Message],
    targets: Collection[int],
    limit: int,
    count: CountMessages,
    cut: Callable[[Message, int], Message],
) -> list[Message]:
    """Return the list with targets cut to the largest length that fits."""

    def cut_to(chars: int) -> list[Message]:
        return [cut(m, chars) if n in targets else m for n, m in enumerate(messages)]

    low = LEAST_CUT_CHARS
    high, best = max([low, *(_longest_text(messages[index]) for index in targets)]), cut_to(low)
    while high - low > max(50, low // 50):
        middle = (low + high) // 2
        tried = cut_to(middle)
        if count(tried) <= limit:
            best, low = tried, middle
        else:
            high = middle
    return best


def _longest_text(message: Message) -> int:
    arguments = (len(call.arguments) for call in tool_calls_of(message))
    return max([len(str(message.get("content") or "")), *arguments])


def _cut_message(message: Message, chars: int) -> Message:
    content = message.get("content")
    if isinstance(content, str):
        return {**message, "content": leave_out_middle(content, chars)}
    if isinstance(content, list):
        return {**message, "content": [_cut_part(part, chars) for part in content]}
    return message


def _cut_part(part: Any, chars: int) -> Any:
    if isinstance(part, dict) and part.get("type") in ("text", "input_text"):
        return {**part, "text": leave_out_middle(str(part.get("text") or ""), chars)}
    if is_result_block(part):
        return _cut_message(part, chars)
    return part


def leave_out_middle(text: str, chars: int, reason: str = "too long for the window") -> str:
    """Replace a text's middle by a note of its size and reason."""
    if len(text) <= chars:
        return text
    half = chars // 2
    left_out = f"{len(text) - 2 * half:,} characters left out"
    note = f"{left_out}: {reason}" if reason else left_out
    return f"{text[:half]}\n[… {note} …]\n{text[-half:]}"
