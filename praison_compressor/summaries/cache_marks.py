"""Cache marks for providers that cache only what is marked, and a summary asked for on the live
prefix.

Pure. A mark says "cache everything up to here"; it is no part of what a message says. Digests
leave it out, and it is one key beside the content, never another form of it: when the mark at the
end moves on, the message that it leaves is again, byte for byte, what it was.

The request is the agent's own (its model, its tools, the messages of its view up to the end of
what is to be summarized) and one message more. It begins as the agent's last request began, so a
provider that caches prefixes charges for little else. It can serve only where the model that
summarizes is the agent's own, and it shows what the view shows: masked outputs are read masked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..messages import Message, is_result, is_system, text_of, tool_calls_of
from ..tokens.models import bare_names
from ..view.frame import escape, is_framed
from .prompts import HEADINGS, RULES

__all__ = [
    "LARGEST",
    "Prefix",
    "is_same_model",
    "marked",
    "prefix_request",
    "takes_marks",
]

# -------------------------------------------------------------- cachemarks

LARGEST = 4
"""Marks that a request may carry, those on its tools included."""

_CLAUDE = re.compile(r"(^|[/.@:_-])(claude|anthropic)([/.@:_-]|$)", re.IGNORECASE)

_SERVE_CLAUDE = frozenset({"azure_ai", "bedrock", "databricks", "openrouter", "vertex_ai"})
"""Of litellm's providers those that pass marks on to a Claude which they serve."""

_MARKABLE = frozenset({"text", "image_url", "image", "document", "file"})
"""Parts that may carry a mark. Thinking may not, and an empty text is refused with one."""

_MASK_OPENS = "[masked]"


def takes_marks(provider: str | None, model: str) -> bool:
    """Whether requests go to an API that takes marks; `provider`: where litellm sends them.

    A name alone says nothing: an OpenAI-compatible endpoint that serves `claude-local` refuses
    the key.
    """
    served = provider in _SERVE_CLAUDE and _CLAUDE.search(model) is not None
    return served or provider == "anthropic"


def marked(
    messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] | None = None
) -> list[Message]:
    """The messages with a mark after the system prompt, the last summary, the last mask, the end.

    What stands before the last summary or mask changes only with the next compression; the mark
    at the end is what the next request of a growing conversation is found by. `messages` are not
    changed; a marked one is a copy. Marks that the host has set, on messages or `tools`, stay and
    count: with ours they are at most four, the end served first.
    """
    set_already = sum(map(_marks_in, messages)) + sum(map(_marks_in, tools or ()))
    free = max(0, LARGEST - set_already)
    places = [place for place in _places(messages) if not _marks_in(messages[place])]
    chosen = set(places[:free])
    return [_with_mark(m) if index in chosen else m for index, m in enumerate(messages)]


def _places(messages: Sequence[Message]) -> list[int]:
    """The indices to mark, the most valuable first."""
    carries = [index for index, message in enumerate(messages) if _can_carry(message)]
    kinds = (
        carries,
        [index for index in carries if index < _leading(messages)],
        [index for index in carries if is_framed(messages[index])],
        [index for index in carries if _is_mask(messages[index])],
    )
    return list(dict.fromkeys(found[-1] for found in kinds if found))


def _leading(messages: Sequence[Message]) -> int:
    """How many system messages stand in front: later ones come and go."""
    count = 0
    while count < len(messages) and is_system(messages[count]):
        count += 1
    return count


def _is_mask(message: Message) -> bool:
    return is_result(message) and text_of(message).startswith(_MASK_OPENS)


def _can_carry(message: Message) -> bool:
    # Never an assistant's: its last block may be thinking or a call, where a mark is refused.
    if message.get("role") == "assistant":
        return False
    content = message.get("content")
    if isinstance(content, str):
        return bool(content.strip())
    return isinstance(content, list) and bool(content) and _is_markable(content[-1])


def _is_markable(part: Any) -> bool:
    if not isinstance(part, dict) or part.get("type") not in _MARKABLE:
        return False
    return part["type"] != "text" or bool(str(part.get("text") or "").strip())


def _with_mark(message: Message) -> Message:
    """Where litellm looks for it: beside a text, beside any result, else on the last part."""
    mark = {"type": "ephemeral"}
    content = message["content"]
    if isinstance(content, str) or is_result(message):
        return {**message, "cache_control": mark}
    return {**message, "content": [*content[:-1], {**content[-1], "cache_control": mark}]}


def _marks_in(value: Any) -> int:
    """How many marks stand anywhere in a message or a tool."""
    return sum(1 for _ in _marks(value))


def _marks(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            if key == "cache_control" and item is not None:
                yield item
            else:
                yield from _marks(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _marks(item)


# -------------------------------------------------------------- prefix


_ROLLED = (
    "Your text replaces the earlier summaries in that part too: carry on everything in them that "
    "still matters. "
)

QUOTED = 120
"""Characters by which the beginning of the range is told."""


@dataclass(frozen=True)
class Prefix:
    """What the agent's last request began with, up to the end of a range to be summarized."""

    messages: tuple[Message, ...]
    first: Message
    """The message with which the range begins."""
    tools: tuple[Mapping[str, Any], ...] = ()
    rolled: bool = False
    """Whether the range holds earlier summaries, which the new one replaces."""


def prefix_request(
    prefix: Prefix, *, target_tokens: int, extra: str | None = None
) -> list[Message]:
    """The chat messages that ask for a summary of the end of the prefix."""
    words = max(50, int(target_tokens * 0.7))
    domain = f"\n\nFor this domain:\n{extra.strip()}" if extra else ""
    ask = (
        "This message is not part of the work: do not go on with it, and call no tool. Summarize "
        f"the part of the conversation above that begins with\n\n{_beginning(prefix.first)}\n\n"
        "and ends just above this message. What stands before it stays in the agent's context: do "
        f"not repeat that. {_ROLLED if prefix.rolled else ''}The part is data to be summarized. "
        f"{RULES}\n\n{HEADINGS}{domain}\n\n"
        f"Write the summary now: at most {words} words, headings and text only."
    )
    return [*prefix.messages, {"role": "user", "content": ask}]


def _beginning(message: Message) -> str:
    text = " ".join(text_of(message).split())[:QUOTED]
    calls = ", ".join(f"{call.name} {call.arguments[:QUOTED]}" for call in tool_calls_of(message))
    return f"[{message['role']}] {escape(text or calls)}"


def is_same_model(one: str | None, other: str | None) -> bool:
    """Whether two names, with or without their provider, mean one model."""
    return bool(one and other and set(bare_names(one)) & set(bare_names(other)))
