"""Which files a call names as its own to change; whether it changed them is the result's to say."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from ..messages import ToolCall
from .passages import arguments_of, key_of
from .telling import PATH_KEYS

_CHANGES = re.compile(
    r"edit|patch|replace|insert|update|modify|append|apply|write|create|save|delete|remove|move|"
    r"rename|copy|touch|(?:^|_)(?:mv|rm|cp)(?:$|_)",
    re.I,
)
"""Verbs in the names of tools that change a file."""
_TARGETS = frozenset("newpath destination destinationpath dest targetpath newname".split())
_PATH_INSIDE = frozenset(("path", "filepath", "filename", "file"))
SHELL_KEYS = ("command", "cmd", "commands", "commandline", "script", "input")
_SHELL = re.compile(r"bash|shell|terminal|exec|run|command|console|process", re.I)
_PATCHED = re.compile(
    r"^\*\*\* (?:Add|Update|Delete) File: (.+)$|^\*\*\* Move to: (.+)$"
    r"|^(?:---|\+\+\+) (?:[ab]/)?(?!/dev/null)(\S+)",
    re.M,
)
MAX_PATH = 300


def changed_by(call: ToolCall) -> list[str]:
    """Return the paths that a call names to change, each once."""
    arguments = arguments_of(call)
    if isinstance(arguments, str):
        found = [*_patched(arguments), *(_by_shell(arguments) if _SHELL.search(call.name) else ())]
    elif isinstance(arguments, Mapping):
        found = list(_named(call.name, arguments))
    else:
        found = []
    return list(dict.fromkeys(path.removeprefix("./") for path in found if _is_path(path)))


def command_of(call: ToolCall) -> str:
    """Return the command line that a shell's call runs, or ""."""
    arguments = arguments_of(call)
    if isinstance(arguments, str):
        return arguments if _SHELL.search(call.name) else ""
    if not isinstance(arguments, Mapping):
        return ""
    inner = arguments.get("action")
    given = inner if isinstance(inner, Mapping) else arguments
    named = {key_of(str(key)): value for key, value in given.items()}
    return next(filter(None, (_line_of(named.get(key)) for key in SHELL_KEYS)), "")


def paths_in(call: ToolCall) -> list[str]:
    """Return the paths among a call's arguments."""
    arguments = arguments_of(call)
    if not isinstance(arguments, Mapping):
        return []
    return [path for path in _paths(arguments) if _is_path(path)]


def _line_of(value: Any) -> str:
    """Return a command line; of a list of words the script of `bash -lc SCRIPT`."""
    if isinstance(value, str):
        return value
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        return ""
    if len(value) > 2 and re.fullmatch(r"-\w*c", value[1]):
        return str(value[2])
    return "\n".join(value) if any(" " in word for word in value[:1]) else shlex.join(value)


def _named(name: str, arguments: Mapping[str, Any]) -> Iterator[str]:
    texts = [arguments.get(key) for key in ("patch", "input", "diff", "patch_text", "patchText")]
    patched = [path for text in texts if isinstance(text, str) for path in _patched(text)]
    verb = arguments.get("command")
    verb = verb if isinstance(verb, str) and re.fullmatch(r"[a-z_]+", verb) else ""
    if patched:
        yield from patched
    elif _CHANGES.search(verb if verb and "path" in arguments else name.rpartition("__")[2]):
        yield from _paths(arguments)
    elif _SHELL.search(name) and (line := _line_of_shell(arguments)):
        yield from _by_shell(line)


def _line_of_shell(arguments: Mapping[str, Any]) -> str:
    named = {key_of(str(key)): value for key, value in arguments.items()}
    return next(filter(None, (_line_of(named.get(key)) for key in SHELL_KEYS)), "")


def _paths(arguments: Mapping[str, Any]) -> Iterator[str]:
    for key, value in arguments.items():
        name = key_of(str(key))
        if name in PATH_KEYS or name in _TARGETS or name in ("replacements", "operations", "edits"):
            yield from _values(value, inside=name not in PATH_KEYS and name not in _TARGETS)
        elif name in ("source", "src", "from", "to", "target") and isinstance(value, str):
            if "/" in value or re.search(r"\.\w{1,8}$", value):
                yield value


def _values(value: Any, *, inside: bool) -> Iterator[str]:
    if isinstance(value, str) and not inside:
        yield value.removeprefix("file://").strip()
    elif isinstance(value, list):
        for item in value:
            yield from _values(item, inside=inside)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key_of(str(key)) in _PATH_INSIDE:
                yield from _values(item, inside=False)


def _is_path(path: str) -> bool:
    return 0 < len(path) <= MAX_PATH and len(path.splitlines()) == 1


# -------------------------------------------------------------- command lines


def _patched(text: str) -> Iterator[str]:
    if "*** " in text or "+++ " in text:
        for found in _PATCHED.findall(text):
            yield next(filter(None, found)).strip()


_HEREDOC = re.compile(r"<<-?\s*['\"]?(\w+)['\"]?([^\n]*)\n.*?^\s*\1\s*$", re.S | re.M)
_WRITES = re.compile(
    r"(?<![-=\d&>])>{1,2}\|?\s*([\w./~@+-][^\s;|&<>()'\"]*)|(?<![-=\d&>])>{1,2}\s*['\"]([^'\"\n]+)['\"]"
    r"|\btee (?:-a )?([\w./~@+-]+)"
)
_ACTS = re.compile(
    r"(?:^|[;&|\n(])\s*(?:sudo )?(?:git )?(sed|perl|mv|cp|rm|touch|patch)\s([^;&|\n]*)"
)
_NO_FILE = re.compile(r"^(?:/dev/|&|\$|\d+$|-)|[*?{}$`]|^https?:")


def _by_shell(line: str) -> Iterator[str]:
    """Yield the files that a command line writes, edits in place, moves or removes."""
    if not any(mark in line for mark in (">", "tee ", "sed ", "perl ", "mv ", "cp ", "rm ", "touch ",
                                         "*** ", "+++ ")):  # fmt: skip
        return
    yield from _patched(line)
    plain = _HEREDOC.sub(lambda found: found[2], line) if "<<" in line else line
    for found in _WRITES.findall(plain):
        path = next(filter(None, found), "")
        if not _NO_FILE.search(path):
            yield path
    for program, rest in _ACTS.findall(plain):
        yield from _operands(program, rest)


def _operands(program: str, rest: str) -> Iterator[str]:
    try:
        words = shlex.split(rest)
    except ValueError:
        words = rest.split()
    if program in ("sed", "perl"):
        if not any(word.startswith(("-i", "--in-place", "-pi", "-0pi")) for word in words):
            return
        words = [word for word in words if "." in word or "/" in word][-1:]
    elif program == "cp":
        words = words[-1:]
    yield from (word for word in words if not _NO_FILE.search(word))
