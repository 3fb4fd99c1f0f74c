"""A transcript as a reader sees it: who said which text, and which call a result answers.

Tools answer in the user's role too, and hosts put notes of their own round what was typed. Only
what is left over when both are taken out is the user's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
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


class Passage(NamedTuple):
    """One text of the transcript with its speaker."""

    at: int
    """The position of its message."""
    source: str
    """`user`, `assistant`, `call`, `result` or `host`."""
    text: str
    call: ToolCall | None = None
    """The call itself, or the one that a result answers."""
    lead: str = ""
    """For a call: the last words said before it, which often tell what it is for."""


LEAD_CHARS = 80


def passages(
    messages: Sequence[Message],
    host_prefixes: tuple[str, ...] = (),
    *,
    start: int = 0,
    calls: dict[str, ToolCall] | None = None,
) -> Iterator[Passage]:
    """Every text in order; calls as `name argument argument`, results with the call they answer.

    To go on where one has stopped: `start`, and the dictionary of `calls` that it was given.
    """
    calls = {} if calls is None else calls
    for index in range(start, len(messages)):
        message = messages[index]
        text = result_text(message)
        if is_result(message):
            key = message.get("tool_call_id") or message.get("name") or ""
            yield Passage(index, "result", opened(text), calls.get(str(key)))
        elif message.get("role") == "assistant":
            made = tool_calls_of(message)
            calls.update((name, call) for call in made for name in (call.id, call.name))
            if text.strip():
                yield Passage(index, "assistant", text)
            # From a whole word on: half a name would be a name that nobody wrote.
            lead = " ".join(text[-LEAD_CHARS:].split()[len(text) > LEAD_CHARS :])
            yield from (Passage(index, "call", call_text(call), call, lead) for call in made)
        elif text.strip() or result_blocks(message):
            for source, said, key in _spoken(message, text, host_prefixes):
                said = opened(said) if source == "result" else said
                yield Passage(index, source, said, calls.get(key))


def _spoken(
    message: Message, text: str, host_prefixes: tuple[str, ...]
) -> Iterator[tuple[str, str, str]]:
    """(speaker, text, id of the call it answers) for a message of the user or the host."""
    content = message.get("content")
    if message.get("role") != "user" or message.get("name"):
        yield "host", text, ""
    elif not is_tools_text(message):
        yield from ((source, said, "") for source, said in speakers(text, host_prefixes))
    elif not isinstance(content, list):
        yield "result", text, ""
    else:  # results, and what the user typed beside them
        for part in content:
            said = text_of({"content": [part]})
            typed = isinstance(part, Mapping) and part.get("type") == "text"
            if is_answer_block(part):
                yield "result", said_by(part), str(part.get("tool_use_id") or "")
            elif typed and not said.startswith(ORPHAN_OPENS):
                yield from ((source, own, "") for source, own in speakers(said, host_prefixes))
            elif said:
                yield "result", said, ""


def said_by(block: Mapping[str, Any]) -> str:
    """A result's text; where only a flag beside it says that the call failed, with that in words.

    >>> said_by({"content": "No such page.", "is_error": True})
    'Error: No such page.'
    """
    text = text_of(block)
    if block.get("is_error") is not True or outcome_of(text).is_bad:
        return text
    return f"Error: {text}"


def dialogue(messages: Sequence[Message]) -> list[Message]:
    """The user's messages, each with the assistant's text before it."""
    out: list[Message] = []
    before: Message | None = None
    for message in messages:
        if message.get("role") == "user":
            out += [before, message] if before is not None else [message]
            before = None
        elif message.get("role") == "assistant":
            before = message
    return out


# -------------------------------------------------------------- the user's role


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
    "<conversation-summary",
    "# AGENTS.md instructions",
    "I have *added these files to the chat*",
)
# Notes with an end of their own: what stands before and behind them is somebody else's.
_NOTE = re.compile(
    r"^[ \t]*<(system-reminder|command-[a-z]+|local-command-[a-z]+|task-notification|"
    r"environment_?[a-z]*|additional_data|attached_files|attachments|user_info|git_status|"
    r"project_layout|workspace_info|repository_info|runtime_information|reminderInstructions|"
    r"open_and_recently_viewed_files|user_instructions)\b[^>\n]*>",
    re.M | re.I,
)
_WRAPPING = re.compile(
    r"^[ \t]*</?(?:task|user_query|userRequest|user_request|user_message|feedback|answer)>[ \t]*$"
    r"|^\s*<(?:task|user_query|userRequest|user_request)>|</(?:task|user_query|userRequest|"
    r"user_request)>\s*$",
    re.M,
)
# How agents without native calls hand over what a tool printed.
_ANSWER = re.compile(
    r"\s*(?:(?P<heading>\[\w+(?: for .{0,2000}?)?\] Result:|OBSERVATION:?|Observation:\s|"
    r"EXECUTION RESULT of \[\w+\]:)|I ran this command:\n|# \d+ SEARCH/REPLACE block|"
    r"<(?:returncode|output|tool_response|tool_result|function_results?|observation)>)",
    re.S,
)


def speakers(text: str, host_prefixes: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    """(`user`, `result` or `host`, text) for the speakers in a message of the user's role.

    >>> list(speakers("<system-reminder>be brief</system-reminder>\\nFix the parser."))
    [('user', 'Fix the parser.'), ('host', '<system-reminder>be brief</system-reminder>')]
    """
    opens = (*HOST_PREFIXES, *host_prefixes)
    own, notes = _parted(text)
    if answer := _ANSWER.match(own):
        yield "result", own[answer.end("heading") :].strip() if answer["heading"] else own
    elif own.lstrip().startswith(opens):
        yield "host", own
    elif own.strip():
        yield "user", _WRAPPING.sub("", own).strip() if "<" in own else own
    yield from (("host", note) for note in notes)


def is_answer(text: str) -> bool:
    """Whether a message in the user's role brings a tool's words.

    >>> is_answer("[read_file for 'a.py'] Result:\\nport = 1")
    True
    """
    return _ANSWER.match(_parted(text)[0]) is not None


def _parted(text: str) -> tuple[str, list[str]]:
    """The text without the host's notes, and those notes; one that has no end is none."""
    own: list[str] = []
    notes: list[str] = []
    at = 0
    while found := _NOTE.search(text, at):
        closing = f"</{found[1]}>"
        end = text.find(closing, found.end())
        if end < 0:
            break
        end += len(closing)
        own.append(text[at : found.start()])
        notes.append(text[found.start() : end].strip())
        at = end
    own.append(text[at:])
    return "\n".join(part.strip() for part in own if part.strip()) if notes else text, notes


def without_notes(result: str, host_prefixes: tuple[str, ...] = ()) -> str:
    """A tool's own output, without what the host has added below it in paragraphs of its own."""
    opens = (*HOST_PREFIXES, *host_prefixes)
    own, _, last = result.rstrip().rpartition("\n\n")
    while own and last.lstrip().startswith(opens):
        result = own
        own, _, last = own.rstrip().rpartition("\n\n")
    return result


# -------------------------------------------------------------- calls


# Where to look and for how long: never what was looked at.
_UNSPOKEN = frozenset(
    "offset limit timeout headlimit viewrange startline endline line character linenumber "
    "securityrisk".split()
)


def call_text(call: ToolCall) -> str:
    """The call as one would say it: the tool's name and the values of its arguments."""
    values = "\n".join(argument_values(arguments_of(call)))
    return f"{call.name} {values}".rstrip()


def arguments_of(call: ToolCall) -> Any:
    """The decoded arguments, not to be changed; what is no JSON stays a string."""
    return _decoded(call.arguments or "{}")


@lru_cache(maxsize=8)  # one call is looked at by several readers, one after the other
def _decoded(arguments: str) -> Any:
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
