"""Find the files that a call names and changes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any

from .calls import (
    PATH_ARGUMENTS,
    arguments_by_name,
    arguments_of,
    command_of,
    normalize_key,
    verb_of,
)
from .shapes import ToolCall

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
"""Redirections; quoted words match, too, so that nothing in them does."""
_FILE_COMMANDS = re.compile(
    r"(?:^|[;&|\n(])\s*(?:sudo )?(?:git )?(sed|perl|mv|cp|rm|touch|patch)\s([^;&|\n]*)"
)
_WRITE_MARKS = (">", "tee ", "sed ", "perl ", "mv ", "cp ", "rm ", "touch ", "*** ", "+++ ")
_NO_FILE = re.compile(r"^(?:/dev/|&|\$|\d+$|-)|[*?{}$`]|^https?:")
MAX_PATH_CHARS = 300


def paths_changed(call: ToolCall) -> list[str]:
    """Return the paths of the files that a call changes, each once."""
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
    """Return whether a text is one short line, as paths are."""
    return 0 < len(text) <= MAX_PATH_CHARS and len(text.splitlines()) == 1


def _patch_paths(text: str) -> Iterator[str]:
    if "*** " in text or "+++ " in text:
        for groups in _PATCH_HEADER.findall(text):
            yield next(filter(None, groups)).strip()


def _shell_paths(line: str) -> Iterator[str]:
    """Yield the files that a command line writes, moves or removes."""
    if not any(mark in line for mark in _WRITE_MARKS):
        return
    yield from _patch_paths(line)
    plain = _HEREDOC.sub(lambda match: match[2], line) if "<<" in line else line
    for groups in _REDIRECTS.findall(plain):
        path = next(filter(None, groups), "")
        if path and not _NO_FILE.search(path):
            yield path
    for program, rest in _FILE_COMMANDS.findall(plain):
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
