"""The last resort inside an agent's turn: messages that no window can take, cut in their middle.

Used only where what may not be dropped exceeds the window by itself, so that the turn goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..messages import Message, is_answer_block, is_result, is_system, steps

__all__ = [
    "shorten",
]


Count = Callable[[Sequence[Message]], int]


LEAST_CHARS = 200


def shorten(messages: Sequence[Message], limit: int, count: Count) -> list[Message]:
    """The messages with their longest texts cut in the middle until they count at most `limit`.

    What lies between the task and the newest step is cut first where that is enough, else tool
    results and the user's words after the task, else everything but system messages and the
    newest, else all. The shortest possible list is returned where even that does not fit.
    """
    shortened = list(messages)
    for may_cut in (_before_the_newest_step, _after_the_task, _all_but_newest, _everything):
        if count(shortened) <= limit:
            break
        targets = [i for i, message in enumerate(messages) if may_cut(messages, i, message)]
        shortened = _level(list(messages), targets, limit, count)
    return shortened


def _before_the_newest_step(messages: Sequence[Message], index: int, message: Message) -> bool:
    newest = steps(messages)[-1].start
    return index < newest and _after_the_task(messages, index, message)


def _after_the_task(messages: Sequence[Message], index: int, message: Message) -> bool:
    users = [i for i, other in enumerate(messages) if other.get("role") == "user"]
    return is_result(message) or index in users[1:]


def _all_but_newest(messages: Sequence[Message], index: int, message: Message) -> bool:
    return not is_system(message) and index != len(messages) - 1


def _everything(messages: Sequence[Message], index: int, message: Message) -> bool:
    return True


def _level(
    messages: list[Message], targets: Sequence[int], limit: int, count: Count
) -> list[Message]:
    """Every target cut to one common length: the largest for which the list fits."""
    longest = max((len(str(messages[i].get("content") or "")) for i in targets), default=0)
    low, high = LEAST_CHARS, max(LEAST_CHARS, longest)
    best = _cut_all(messages, targets, low)
    while high - low > max(50, low // 50):
        middle = (low + high) // 2
        tried = _cut_all(messages, targets, middle)
        if count(tried) <= limit:
            best, low = tried, middle
        else:
            high = middle
    return best


def _cut_all(messages: Sequence[Message], targets: Sequence[int], chars: int) -> list[Message]:
    chosen = set(targets)
    return [_cut(m, chars) if i in chosen else m for i, m in enumerate(messages)]


def _cut(message: Message, chars: int) -> Message:
    content = message.get("content")
    if isinstance(content, str):
        return {**message, "content": _middle_out(content, chars)}
    if isinstance(content, list):
        return {**message, "content": [_cut_part(part, chars) for part in content]}
    return message


def _cut_part(part: Any, chars: int) -> Any:
    if isinstance(part, dict) and part.get("type") in ("text", "input_text"):
        return {**part, "text": _middle_out(str(part.get("text") or ""), chars)}
    if is_answer_block(part):
        return _cut(part, chars)
    return part


def _middle_out(text: str, chars: int) -> str:
    if len(text) <= chars:
        return text
    half = chars // 2
    left_out = len(text) - 2 * half
    return (
        f"{text[:half]}\n[… {left_out} characters left out: no window takes them …]\n{text[-half:]}"
    )
