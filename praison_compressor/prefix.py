"""A summary asked for on the live prefix: the provider's cache serves all of it but the question.

The request is the agent's own (its model, its tools, the messages of its view up to the end of
what is to be summarized) and one message more. It begins as the agent's last request began, so a
provider that caches prefixes charges for little else. It can serve only where the model that
summarizes is the agent's own, and it shows what the view shows: masked outputs are read masked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .messages import Message, text_of, tool_calls_of
from .models import bare_names
from .prompts import HEADINGS, RULES, escape

__all__ = ["Prefix", "is_same_model", "prefix_request"]

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
