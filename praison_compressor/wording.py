"""A message in words, for whoever reads it: nothing is rewritten, what is no text is counted."""

from __future__ import annotations

from .messages import Message, text_of, tool_calls_of

__all__ = ["in_words"]


def in_words(message: Message) -> str:
    """Its text, the calls it makes, how much of it is no text."""
    lines = [text_of(message)]
    lines += [f"-> {call.name}({call.arguments})" for call in tool_calls_of(message)]
    content = message.get("content")
    others = (
        [part for part in content if isinstance(part, dict) and part.get("type") != "text"]
        if isinstance(content, list)
        else []
    )
    if others:
        lines.append(f"[{len(others)} parts that are no text: not shown]")
    return "\n".join(line for line in lines if line)
