"""Read which files a call names, by its arguments, its patch or its command line."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from .calls import arguments_of, command_of, key_of, named_arguments, verb_of
from .shapes import ToolCall

PATH_KEYS = frozenset(
    "absolutepath file filename filepath filepaths files notebookpath oldpath path paths "
    "relativepath relativeworkspacepath sourcepath targetfile uri".split()
)
"""Names of arguments that name a file."""
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
_PATCHED = re.compile(
    r"^\*\*\* (?:Add|Update|Delete) File: (.+)$|^\*\*\* Move to: (.+)$"
    r"|^(?:---|\+\+\+) (?:[ab]/)?(?!/dev/null)(\S+)",
    re.M,
)
_HEREDOC = re.compile(r"<<-?\s*['\"]?(\w+)['\"]?([^\n]*)\n.*?^\s*\1\s*$", re.S | re.M)
_WRITES = re.compile(
    r"(?<![-=\d&>])>{1,2}\|?\s*(?:([\w./~@+-][^\s;|&<>()'\"]*)|['\"]([^'\"\n]+)['\"])"
    r"|\btee (?:-a )?([\w./~@+-]+)|'[^']*'|\"[^\"]*\""
)
"""Redirections; quoted words are passed over."""
_ACTS = re.compile(
    r"(?:^|[;&|\n(])\s*(?:sudo )?(?:git )?(sed|perl|mv|cp|rm|touch|patch)\s([^;&|\n]*)"
)
_MARKS = (">", "tee ", "sed ", "perl ", "mv ", "cp ", "rm ", "touch ", "*** ", "+++ ")
_NO_FILE = re.compile(r"^(?:/dev/|&|\$|\d+$|-)|[*?{}$`]|^https?:")
MAX_PATH_CHARS = 300


def changed_by(call: ToolCall) -> list[str]:
    """Return the paths that a call names to change, each once."""
    given, line = arguments_of(call), command_of(call)
    if isinstance(given, str):
        found = [*_patched(given), *_by_shell(line)]
    else:
        found = list(_by_tool(call, line))
    return list(dict.fromkeys(path.removeprefix("./") for path in found if is_path(path)))


def _by_tool(call: ToolCall, line: str) -> Iterator[str]:
    given = named_arguments(call)
    texts = (given.get(key) for key in _PATCH_KEYS)
    patched = [path for text in texts if isinstance(text, str) for path in _patched(text)]
    if patched or line:
        yield from patched or _by_shell(line)
    elif _CHANGES.search(verb_of(call)):
        yield from paths_in(call)


def paths_in(call: ToolCall) -> list[str]:
    """Return the paths among a call's arguments."""
    found: list[str] = []
    for key, value in named_arguments(call).items():
        if key in PATH_KEYS or key in _TARGET_KEYS or key in _LIST_KEYS:
            found += _paths(value, whole=key not in _LIST_KEYS)
        elif key in _MAYBE_KEYS and isinstance(value, str) and re.search(r"/|\.\w{1,8}$", value):
            found.append(value)
    return [path for path in found if is_path(path)]


def _paths(value: Any, *, whole: bool) -> Iterator[str]:
    if isinstance(value, str) and whole:
        yield value.removeprefix("file://").strip()
    elif isinstance(value, list):
        for item in value:
            yield from _paths(item, whole=whole)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key_of(str(key)) in ("path", "filepath", "filename", "file"):
                yield from _paths(item, whole=True)


def is_path(text: str) -> bool:
    """Return whether a text may be a path: one line, not too long."""
    return 0 < len(text) <= MAX_PATH_CHARS and len(text.splitlines()) == 1


def _patched(text: str) -> Iterator[str]:
    if "*** " in text or "+++ " in text:
        for found in _PATCHED.findall(text):
            yield next(filter(None, found)).strip()


def _by_shell(line: str) -> Iterator[str]:
    """Yield the files that a command line writes, edits in place, moves or removes."""
    if not any(mark in line for mark in _MARKS):
        return
    yield from _patched(line)
    plain = _HEREDOC.sub(lambda found: found[2], line) if "<<" in line else line
    for found in _WRITES.findall(plain):
        path = next(filter(None, found), "")
        if path and not _NO_FILE.search(path):
            yield path
    for program, rest in _ACTS.findall(plain):
        yield from (word for word in _operands(program, rest) if not _NO_FILE.search(word))


def _operands(program: str, rest: str) -> list[str]:
    try:
        words = shlex.split(rest)
    except ValueError:
        words = rest.split()
    if program in ("sed", "perl"):
        in_place = any(word.startswith(("-i", "--in-place", "-pi", "-0pi")) for word in words)
        return [word for word in words if in_place and re.search(r"[./]", word)][-1:]
    return words[-1:] if program == "cp" else words


# -------------------------------------------------------------- what a call does

SHOWS, LISTS, LOOKS, ACTS = "shows a text", "lists", "looks", "acts"
_CD = r"(?:cd [^&;|]*(?:&&|;)\s*)?"
_KINDS = tuple(
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
"""What a call does by its first word: (kind, form of a command line, form of a tool's name)."""


@lru_cache(maxsize=512)
def kind_of(call: ToolCall) -> str:
    """Return what a call does, as far as its first word says so; `ACTS` for all others."""
    line, verb = command_of(call), verb_of(call)
    names_file = not PATH_KEYS.isdisjoint(named_arguments(call))
    for kind, commands, tools in _KINDS:
        fits = (commands if line else tools).match(verb)
        if fits and (line or kind != SHOWS or names_file):
            return kind
    return ACTS
