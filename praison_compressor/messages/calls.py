"""Read a tool call's arguments, command line and kind."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from .shapes import ToolCall, parse_json

_POSITION_KEYS = frozenset(
    "offset limit timeout headlimit viewrange startline endline line character linenumber "
    "securityrisk".split()
)
"""Arguments that are a position in a text, or a duration."""
PATH_ARGUMENTS = frozenset(
    "absolutepath file filename filepath filepaths files notebookpath oldpath path paths "
    "relativepath relativeworkspacepath sourcepath targetfile uri".split()
)
"""Arguments that are a file's path."""
CACHED_CALLS = 64  # several functions read one call, one after the other
_SHELL_KEYS = ("command", "cmd", "commands", "commandline", "script", "input", "code")
_SHELL = re.compile(r"bash|shell|terminal|exec|run|command|console|process", re.I)


def call_text(call: ToolCall) -> str:
    """Return the tool's name and its arguments' values, one a line."""
    values = "\n".join(argument_values(arguments_of(call)))
    return f"{call.name} {values}".rstrip()


@lru_cache(maxsize=CACHED_CALLS)
def arguments_of(call: ToolCall) -> Any:
    """Return the decoded arguments (read-only), or a text that is no JSON."""
    value = parse_json(call.arguments or "{}")
    return call.arguments if value is None else value


@lru_cache(maxsize=CACHED_CALLS)
def arguments_by_name(call: ToolCall) -> dict[str, Any]:
    """Return the arguments (read-only) by normalized name."""
    return members_of(arguments_of(call))


def members_of(value: Any) -> dict[str, Any]:
    """Return an object's members by normalized key; {} of any other value."""
    items = value.items() if isinstance(value, Mapping) else ()
    return {normalize_key(str(key)): item for key, item in items}


@lru_cache(maxsize=1024)
def normalize_key(argument: str) -> str:
    """Return a name in one spelling: `absolutepath` for `AbsolutePath` and `absolute_path`."""
    return argument.replace("_", "").replace("-", "").lower()


def argument_values(value: Any) -> Iterator[str]:
    """Yield the arguments' strings and numbers, without positions and durations."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield str(value)
    elif isinstance(value, dict):
        for key, item in value.items():
            if normalize_key(str(key)) not in _POSITION_KEYS:
                yield from argument_values(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from argument_values(item)


@lru_cache(maxsize=CACHED_CALLS)
def command_of(call: ToolCall) -> str:
    """Return the command line that a call runs, or ""."""
    arguments = arguments_of(call)
    if isinstance(arguments, str):
        return arguments if _SHELL.search(call.name) else ""
    members = arguments_by_name(call)
    if "path" in members:
        return ""
    members = members_of(members.get("action")) or members
    keys = _SHELL_KEYS if _SHELL.search(call.name) else _SHELL_KEYS[:2]
    return next(filter(None, (_command_line(members.get(key)) for key in keys)), "")


def _command_line(value: Any) -> str:
    if isinstance(value, str):
        return value
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        return ""
    if len(value) > 2 and re.fullmatch(r"-\w*c", value[1]):
        return str(value[2])
    return "\n".join(value) if any(" " in word for word in value[:1]) else shlex.join(value)


def verb_of(call: ToolCall) -> str:
    """Return a call's command line, its verb, or its tool's name.

    >>> verb_of(ToolCall("", "str_replace_editor", '{"command": "view", "path": "a.py"}'))
    'view'
    """
    verb = arguments_by_name(call).get("command")
    own = verb if isinstance(verb, str) else call.name.rpartition("__")[2]
    return command_of(call).strip() or own


# -------------------------------------------------------------- what a call does

SHOWS, LISTS, LOOKS, ACTS = "shows a text", "lists", "looks", "acts"
_CD = r"(?:cd [^&;|]*(?:&&|;)\s*)?"
_CALL_KINDS = tuple(
    (kind, re.compile(_CD + commands), re.compile(tools, re.I))
    for kind, commands, tools in (
        (SHOWS, r"(?:cat|head|tail|less|more|bat|nl|sed -n)\s[^|;&>]*(?:\|\s*(?:head|tail|less|jq|"
         r"nl|cat)\b[^|;&>]*)*$", "read|view|cat|open|get_file|show|head|tail|less"),
        (LISTS, r"(?:ls|grep|rg|find|tree|git (?:log|show|diff|branch|blame))\b",
         "list|ls$|(?:web_?)?search|grep|find|glob|codebase"),
        (LOOKS, r"(?:cat|head|tail|sed -n|pwd|which|wc|curl|wget|git status)\b",
         "read|view|get|cat|fetch|open|look|show|query|web|describe|think|browse|download"),
    )
)  # fmt: skip
"""(kind of a call, pattern of its command line, pattern of its tool's name)."""


@lru_cache(maxsize=512)
def kind_of(call: ToolCall) -> str:
    """Return a call's kind by its first word; `ACTS` if no other."""
    line, verb = command_of(call), verb_of(call)
    names_file = not PATH_ARGUMENTS.isdisjoint(arguments_by_name(call))
    for kind, commands, tools in _CALL_KINDS:
        fits = (commands if line else tools).match(verb)
        if fits and (line or kind != SHOWS or names_file):
            return kind
    return ACTS
