"""Read a tool call: arguments, command line, kind, the files it names."""

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
CACHED_CALLS = 64
"""Several functions read the same call one after the other."""
_SHELL_KEYS = ("command", "cmd", "commands", "commandline", "script", "input", "code")
_SHELL = re.compile(r"bash|shell|terminal|exec|run|command|console|process", re.I)


def call_text(call: ToolCall) -> str:
    """Return the tool's name and its arguments' values, each on its line."""
    values = "\n".join(argument_values(arguments_of(call)))
    return f"{call.name} {values}".rstrip()


@lru_cache(maxsize=CACHED_CALLS)
def arguments_of(call: ToolCall) -> Any:
    """Decode a call's arguments; return a text that is no JSON unchanged.

    Nobody may edit the returned value: later calls return the same object.
    """
    value = parse_json(call.arguments or "{}")
    return call.arguments if value is None else value


@lru_cache(maxsize=CACHED_CALLS)
def arguments_by_name(call: ToolCall) -> dict[str, Any]:
    """Return the read-only arguments by normalized name."""
    return members_of(arguments_of(call))


def members_of(value: Any) -> dict[str, Any]:
    """Return an object's members by normalized key, else {}."""
    items = value.items() if isinstance(value, Mapping) else ()
    return {normalize_key(str(key)): item for key, item in items}


@lru_cache(maxsize=1024)
def normalize_key(argument: str) -> str:
    """Return a name in one spelling: `absolutepath` for `AbsolutePath`."""
    return argument.replace("_", "").replace("-", "").lower()


def argument_values(value: Any) -> Iterator[str]:
    """Yield strings and numbers, without positions and durations."""
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
    name = verb if isinstance(verb, str) else call.name.rpartition("__")[2]
    return command_of(call).strip() or name


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
    """Return a call's kind by its first word, else `ACTS`."""
    line, verb = command_of(call), verb_of(call)
    names_file = not PATH_ARGUMENTS.isdisjoint(arguments_by_name(call))
    for kind, commands, tools in _CALL_KINDS:
        fits = (commands if line else tools).match(verb)
        if fits and (line or kind != SHOWS or names_file):
            return kind
    return ACTS


# -------------------------------------------------------------- files that a call names and changes

_CHANGES = re.compile(
    r"edit|patch|replace|insert|update|modify|append|apply|write|create|save|delete|remove|move|"
    r"rename|copy|touch|(?:^|_)(?:mv|rm|cp)(?:$|_)",
    re.I,
)
"""Verbs in the names of tools that change a file."""
_TARGET_KEYS = frozenset("newpath destination destinationpath dest targetpath newname".split())
_MAYBE_KEYS = frozenset(("source", "src", "from", "to", "target"))
_LIST_KEYS = frozenset(("replacements", "operations", "edits", "changes"))
_PATCH_KEYS = ("patch", "input", "diff", "patchtext")
_PATCH_HEADER = re.compile(
    r"^\*\*\* (?:Add|Update|Delete) File: (.+)$|^\*\*\* Move to: (.+)$"
    r"|^(?:---|\+\+\+) (?:[ab]/)?(?!/dev/null)(\S+)",
    re.M,
)
_HEREDOC = re.compile(r"<<-?\s*['\"]?(\w+)['\"]?([^\n]*)\n.*?^\s*\1\s*$", re.S | re.M)
_REDIRECTS = re.compile(
    r"(?<![-=\d&>])>{1,2}\|?\s*(?:([\w./~@+-][^\s;|&<>()'\"]*)|['\"]([^'\"\n]+)['\"])"
    r"|\btee (?:-a )?([\w./~@+-]+)|'[^']*'|\"[^\"]*\""
)
"""Matches redirections. Quoted words match as a whole, so that no redirection inside a quoted word
matches."""
_FILE_COMMANDS = re.compile(
    r"(?:^|[;&|\n(])\s*(?:sudo )?(?:git )?(sed|perl|mv|cp|rm|touch|patch)\s([^;&|\n]*)"
)
_WRITE_MARKS = (">", "tee ", "sed ", "perl ", "mv ", "cp ", "rm ", "touch ", "*** ", "+++ ")
_NO_FILE = re.compile(r"^(?:/dev/|&|\$|\d+$|-)|[*?{}$`]|^https?:")
MOST_PATH_CHARS = 300


def paths_changed(call: ToolCall) -> list[str]:
    """Return the paths of the files that a call changes."""
    arguments, line = arguments_of(call), command_of(call)
    if isinstance(arguments, str):
        paths = [*_patch_paths(arguments), *_shell_paths(line)]
    else:
        texts = map(arguments_by_name(call).get, _PATCH_KEYS)
        paths = [path for text in texts if isinstance(text, str) for path in _patch_paths(text)]
        if not paths and line:
            paths = [*_shell_paths(line)]
        elif not paths and _CHANGES.search(verb_of(call)):
            paths = paths_in(call)
    return list(dict.fromkeys(path.removeprefix("./") for path in paths if is_path(path)))


def paths_in(call: ToolCall) -> list[str]:
    """Return the paths among a call's arguments."""
    paths: list[str] = []
    for key, value in arguments_by_name(call).items():
        if key in PATH_ARGUMENTS or key in _TARGET_KEYS or key in _LIST_KEYS:
            paths += _paths_in_value(value, whole=key not in _LIST_KEYS)
        elif key in _MAYBE_KEYS and isinstance(value, str) and re.search(r"/|\.\w{1,8}$", value):
            paths.append(value)
    return [path for path in paths if is_path(path)]


def _paths_in_value(value: Any, *, whole: bool) -> Iterator[str]:
    if isinstance(value, str) and whole:
        yield value.removeprefix("file://").strip()
    elif isinstance(value, list):
        for item in value:
            yield from _paths_in_value(item, whole=whole)
    elif isinstance(value, dict):
        for key, item in value.items():
            if normalize_key(str(key)) in ("path", "filepath", "filename", "file"):
                yield from _paths_in_value(item, whole=True)


def is_path(text: str) -> bool:
    """Return whether a text is one short line, like a path."""
    return 0 < len(text) <= MOST_PATH_CHARS and len(text.splitlines()) == 1


def _patch_paths(text: str) -> Iterator[str]:
    if "*** " in text or "+++ " in text:
        for groups in _PATCH_HEADER.findall(text):
            yield next(filter(None, groups)).strip()


def _shell_paths(line: str) -> Iterator[str]:
    if not any(mark in line for mark in _WRITE_MARKS):
        return
    yield from _patch_paths(line)
    plain = _HEREDOC.sub(lambda match: match[2], line) if "<<" in line else line
    for groups in _REDIRECTS.findall(plain):
        path = next(filter(None, groups), "")
        if path and not _NO_FILE.search(path):
            yield path
    for program, operands in _FILE_COMMANDS.findall(plain):
        yield from (word for word in _operands(program, operands) if not _NO_FILE.search(word))


def _operands(program: str, operands: str) -> list[str]:
    try:
        words = shlex.split(operands)
    except ValueError:
        words = operands.split()
    if program in ("sed", "perl"):
        in_place = any(word.startswith(("-i", "--in-place", "-pi", "-0pi")) for word in words)
        return [word for word in words if in_place and re.search(r"[./]", word)][-1:]
    return words[-1:] if program == "cp" else words
