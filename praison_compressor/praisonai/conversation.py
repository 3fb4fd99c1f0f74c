"""Which requests are the agent's conversation, and which only pass through its turn."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from ..messages import Message, digest, is_system, text_of
from .shapes import Request

__all__ = ["extends", "now", "replace", "same_model"]


def extends(agent: Any, messages: Sequence[Message]) -> bool:
    """Whether a request goes on with the agent's conversation.

    Memory extraction, guardrails, titles and planners start with words of their own; the
    conversation starts as the agent's history does, however much of it the host has trimmed.
    """
    history = list(getattr(agent, "chat_history", None) or ())
    known, sent = _first_said(history), _first_said(messages)
    if known is None or sent is None or digest(known) == digest(sent):
        return True
    # In the first turn the host may send more than it records: a template, retrieved text.
    return len(history) <= 2 and text_of(known) in text_of(sent)


def now(agent: Any) -> Request:
    """The agent's conversation as it stands between two turns."""
    history = list(getattr(agent, "chat_history", None) or ())
    return Request(messages=history, model=None, tools=(), output_tokens=0, schema="")


def replace(agent: Any, messages: Sequence[Message]) -> None:
    """Put another conversation in the place of the agent's, without its leading system messages:
    the host writes its own at every turn."""
    said = itertools.dropwhile(is_system, messages)
    agent.clear_history()
    agent.chat_history = list(said)


def same_model(one: str | None, other: str | None) -> bool:
    """Whether two names mean one model; the host adds and drops provider prefixes."""
    if one is None or other is None:
        return True
    return one.rsplit("/", 1)[-1] == other.rsplit("/", 1)[-1]


def _first_said(messages: Sequence[Message]) -> Message | None:
    return next((message for message in messages if not is_system(message)), None)
