"""Which requests are the agent's conversation, and which only pass through its turn."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from ..messages import Message, digest, is_system, text_of
from .shapes import Request

__all__ = ["carries", "now", "replace", "same_model", "without_window"]


def carries(agent: Any, messages: Sequence[Message]) -> bool:
    """Whether a request carries the agent's conversation, whole or a part of it.

    It starts as the agent's history does, or has two of its messages wherever they stand. Memory
    extraction, guardrails, titles and planners have words of their own.
    """
    history = list(getattr(agent, "chat_history", None) or ())
    known, sent = _first_said(history), _first_said(messages)
    if known is None or sent is None or digest(known) == digest(sent):
        return True
    # In the first turn the host may send more than it records: a template, retrieved text.
    if len(history) <= 2 and text_of(known) in text_of(sent):
        return True
    return len(set(map(digest, history)).intersection(map(digest, messages))) > 1


def without_window(agent: Any, messages: Sequence[Message]) -> Sequence[Message]:
    """A request's messages without the window of its session that the host puts before the whole.

    With `memory={"history": True}` the newest messages of the stored session come first, and the
    agent's history, which has them too, after them (agent/chat_mixin.py:1049). The window moves on
    every turn: each request would begin otherwise, and no summary would match.
    """
    history = list(getattr(agent, "chat_history", None) or ())
    users = [i for i, message in enumerate(history) if message.get("role") == "user"]
    finished = history[: users[-1]] if users else []
    start = _last_run(messages, finished)
    if start is None:
        return messages
    before = range(sum(1 for _ in itertools.takewhile(is_system, messages)), start)
    for first in before:
        # The window may begin amid a turn; what it shares with the history begins with one.
        is_turn = first == before.start or messages[first].get("role") == "user"
        if is_turn and _last_run(finished, list(messages[first:start])) is not None:
            return [*messages[:first], *messages[start:]]
    return messages


def _last_run(messages: Sequence[Message], run: Sequence[Message]) -> int | None:
    """Where the run of messages stands last; None where it does not, or is empty."""
    size = len(run)
    places = range(len(messages) - size, -1, -1) if size else ()
    return next(
        (i for i in places if messages[i] == run[0] and list(messages[i : i + size]) == run), None
    )


def now(agent: Any, sent: Sequence[Message]) -> Request:
    """The agent's conversation as it stands between two turns, with the system messages of what
    was sent last: the host keeps none in its history."""
    said = itertools.dropwhile(is_system, getattr(agent, "chat_history", None) or ())
    messages = [*itertools.takewhile(is_system, sent), *said]
    return Request(messages=messages, model=None, tools=(), output_tokens=0, schema="")


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
