"""A transcript as a reader sees it: who said which line, and which call a result answers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from ..messages import Message, ToolCall, is_tools_text, result_text, tool_calls_of
from .envelopes import opened

# Hosts speak in the user's role too: command echoes, reminders, notices. Nobody said these.
HOST_PREFIXES = (
    "<system-reminder",
    "<command-",
    "<local-command",
    "<task-notification",
    "<environment",
    "Caveat: The messages below",
    "Base directory for this skill",
    "[Request interrupted",
    "[loop-guard]",
    "OBSERVATION",
    "<conversation-summary",
)
# Where to look and for how long: never what was looked at.
_UNSPOKEN = frozenset(
    "offset limit timeout head_limit view_range start_line end_line line character "
    "line_number security_risk".split()
)


class Passage(NamedTuple):
    """One text of the transcript with its speaker."""

    at: int
    """The position of its message."""
    source: str
    text: str
    call: ToolCall | None = None
    lead: str = ""
    """For a call: the last words said before it, which often tell what it is for."""


LEAD_CHARS = 80


def passages(messages: Sequence[Message], host_prefixes: tuple[str, ...] = ()) -> Iterator[Passage]:
    """Every text in order; calls as `name argument argument`, results with the call they answer."""
    calls: dict[str, ToolCall] = {}
    for index, message in enumerate(messages):
        text = result_text(message)
        role = message.get("role")
        if role in ("tool", "function"):
            key = message.get("tool_call_id") or message.get("name") or ""
            yield Passage(index, "result", opened(text), calls.get(str(key)))
            continue
        if text.strip():
            yield Passage(index, _speaker(message, text, host_prefixes), text)
        for call in tool_calls_of(message):
            calls[call.id] = calls[call.name] = call
            spoken = call_text(call)
            yield Passage(index, "call", spoken, call, _last_words(text))
            text = spoken


def _last_words(text: str) -> str:
    flat = " ".join(text[-2 * LEAD_CHARS :].split())
    return flat if len(flat) <= LEAD_CHARS else flat[flat.find(" ", len(flat) - LEAD_CHARS) + 1 :]


def _speaker(message: Message, text: str, host_prefixes: tuple[str, ...]) -> str:
    role = message.get("role")
    if role == "assistant":
        return "assistant"
    if role != "user":
        return "host"
    if is_tools_text(message):
        return "result"
    named = bool(message.get("name"))
    opens = text.lstrip().startswith((*HOST_PREFIXES, *host_prefixes))
    return "host" if named or opens else "user"


def without_notes(result: str, host_prefixes: tuple[str, ...] = ()) -> str:
    """A tool's own output, without what the host has added below it in paragraphs of its own."""
    opens = (*HOST_PREFIXES, *host_prefixes)
    own, _, last = result.rstrip().rpartition("\n\n")
    while own and last.lstrip().startswith(opens):
        result = own
        own, _, last = own.rstrip().rpartition("\n\n")
    return result


def call_text(call: ToolCall) -> str:
    """The call as one would say it: the tool's name and the values of its arguments."""
    values = "\n".join(argument_values(arguments_of(call)))
    return f"{call.name} {values}".rstrip()


def arguments_of(call: ToolCall) -> Any:
    """The decoded arguments, not to be changed; what is no JSON stays a string."""
    return _decoded(call.arguments or "{}")


@lru_cache(maxsize=8)
def _decoded(arguments: str) -> Any:
    # One call is looked at by several readers, one after the other.
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments


def argument_values(value: Any) -> Iterator[str]:
    """Every string and number of the arguments, in order."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield str(value)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key not in _UNSPOKEN:
                yield from argument_values(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from argument_values(item)
