"""Messages and kinds of facts in words, for whoever reads them: nothing is rewritten."""

from __future__ import annotations

from datetime import datetime, timezone

from .messages import Message, media_in, text_of, tool_calls_of

__all__ = ["in_words", "kind_in_words", "when"]

_KINDS = {"user": "said by the user", "todos": "to-do list"}
"""Kinds of facts whose own names say too little."""


def in_words(message: Message) -> str:
    """A message's text, the calls it makes, how much of it is no text."""
    lines = [text_of(message)]
    lines += [f"-> {call.name}({call.arguments})" for call in tool_calls_of(message)]
    others = media_in(message)
    if others:
        lines.append(f"[{others} parts that are no text: not shown]")
    return "\n".join(line for line in lines if line)


def kind_in_words(kind: str) -> str:
    """What a kind of facts, as `Coverage.by_kind` has it, is called."""
    return _KINDS.get(kind, kind.replace("_", " "))


def when(seconds: float) -> str:
    """A time in UTC; "" for none, and for one outside the calendar, as an import may have it."""
    try:
        found = datetime.fromtimestamp(seconds, timezone.utc)
    except (OverflowError, ValueError, OSError):
        return ""
    return found.strftime("%Y-%m-%d %H:%M:%S UTC") if seconds else ""
