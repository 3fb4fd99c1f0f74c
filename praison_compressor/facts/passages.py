"""A transcript as a reader sees it: who said which line, and which call a result answers."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from ..messages import (
    ORPHAN_OPENS,
    Message,
    ToolCall,
    is_answer_block,
    is_result,
    is_tools_text,
    result_blocks,
    result_text,
    text_of,
    tool_calls_of,
)
from .outcomes import opened, outcome_of
from .speakers import HOST_PREFIXES, SHELL, ran_by_the_user, voices, written_calls

# Where to look and for how long: never what was looked at.
_UNSPOKEN = frozenset(
    "offset limit timeout headlimit viewrange startline endline line character linenumber "
    "securityrisk".split()
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
    written: deque[ToolCall] = deque()
    for index, message in enumerate(messages):
        text = result_text(message)
        role = message.get("role")
        if is_result(message):
            key = message.get("tool_call_id") or message.get("name") or ""
            yield Passage(index, "result", opened(text), calls.get(str(key)))
        elif role == "assistant":
            yield from _unanswered(index - 1, written)
            made = tool_calls_of(message)
            calls.update((name, call) for call in made for name in (call.id, call.name))
            if not made and ("<" in text or "```" in text):
                ran = _is_answered(messages, index, host_prefixes)
                made, text = written_calls(text, answered=ran)
                written.extend(made)
            yield from _acted(index, text, made)
        elif text.strip() or result_blocks(message):
            spoken = _spoken(message, text, host_prefixes, bool(written))
            yield from _heard(index, spoken, calls, written)
    yield from _unanswered(len(messages) - 1, written)


def _acted(index: int, text: str, made: Iterable[ToolCall]) -> Iterator[Passage]:
    """What an assistant says, and its calls."""
    if text.strip():
        yield Passage(index, "assistant", text)
    for call in made:
        spoken = call_text(call)
        yield Passage(index, "call", spoken, call, _last_words(text))
        text = spoken


def _heard(
    index: int, spoken: Iterable[Spoken], calls: Mapping[str, ToolCall], written: deque[ToolCall]
) -> Iterator[Passage]:
    """What comes in the user's role; a tool's words answer the call that they name, else the
    oldest written one that has no answer."""
    for source, text, key in spoken:
        if source != "result":
            yield Passage(index, source, text)
            continue
        if key in calls:
            yield Passage(index, source, opened(text), calls[key])
            continue
        command, output = ran_by_the_user(text)
        if command:
            yield from _unanswered(index, written)
            written.append(ToolCall("", SHELL, json.dumps({"command": command})))
        yield Passage(index, source, opened(output), written.popleft() if written else None)


class Spoken(NamedTuple):
    """One voice in a message that is neither the assistant's nor wholly a tool's."""

    source: str
    text: str
    answers: str = ""
    """The id of the call that a result names."""


def _spoken(
    message: Message, text: str, host_prefixes: tuple[str, ...], after_call: bool
) -> Iterable[Spoken]:
    """The voices in a message that is neither the assistant's nor wholly a tool's."""
    if message.get("role") != "user" or message.get("name"):
        return (Spoken("host", text),)
    if is_tools_text(message):
        return _parts(message, text, host_prefixes)
    return (Spoken(*each) for each in voices(text, host_prefixes, after_call=after_call))


def _parts(message: Message, text: str, host_prefixes: tuple[str, ...]) -> Iterator[Spoken]:
    """Results, and what the user typed beside them."""
    content = message.get("content")
    if not isinstance(content, list):
        yield Spoken("result", text)
        return
    for part in content:
        if is_answer_block(part):
            yield Spoken("result", said_by(part), str(part.get("tool_use_id") or ""))
            continue
        said = text_of({"content": [part]})
        typed = isinstance(part, Mapping) and part.get("type") == "text"
        if typed and not said.startswith(ORPHAN_OPENS):
            yield from (Spoken(*each) for each in voices(said, host_prefixes))
        elif said:
            yield Spoken("result", said)


def said_by(block: Mapping[str, Any]) -> str:
    """A result's text; where only a flag beside it says that the call failed, with that in words.

    >>> said_by({"content": "No such page.", "is_error": True})
    'Error: No such page.'
    """
    text = text_of(block)
    if block.get("is_error") is not True or outcome_of(text).status == "failed":
        return text
    return f"Error: {text}"


def _is_answered(messages: Sequence[Message], index: int, host_prefixes: tuple[str, ...]) -> bool:
    """Whether a tool's answer in the user's role follows the message."""
    following = messages[index + 1] if index + 1 < len(messages) else {}
    if following.get("role") != "user":
        return False
    found = _spoken(following, result_text(following), host_prefixes, True)
    return any(each.source == "result" and not ran_by_the_user(each.text)[0] for each in found)


def _unanswered(index: int, written: deque[ToolCall]) -> Iterator[Passage]:
    """Calls that a host carries out without a word."""
    while written:
        yield Passage(index, "result", "", written.popleft())


def _last_words(text: str) -> str:
    flat = " ".join(text[-2 * LEAD_CHARS :].split())
    return flat if len(flat) <= LEAD_CHARS else flat[flat.find(" ", len(flat) - LEAD_CHARS) + 1 :]


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


@lru_cache(maxsize=1024)
def key_of(argument: str) -> str:
    """An argument's name in one spelling: `AbsolutePath`, `absolutePath` and `absolute_path`."""
    return argument.replace("_", "").replace("-", "").lower()


def argument_values(value: Any) -> Iterator[str]:
    """Every string and number of the arguments, in order."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield str(value)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key_of(key) not in _UNSPOKEN:
                yield from argument_values(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from argument_values(item)
