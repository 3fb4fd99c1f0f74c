"""Data and rules: what the usual programs, Python code and PowerShell commands do to the files
among their arguments; nothing is run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

__all__ = [
    "Effect",
    "is_file",
    "of_cmdlet",
    "of_code",
    "of_program",
]


# -------------------------------------------------------------- programs


class Effect(NamedTuple):
    """One file that a command touched."""

    path: str
    action: str
    via: str
    target: str = ""


Handler = Callable[[str, Sequence[str]], Iterator[Effect]]
_NOT_A_FILE = re.compile(r"^(?:/dev/|&\d|\$|\d+$)|[*?{}]|^https?:")
_OUTPUT = {"curl": ("-o", "--output"), "wget": ("-O", "--output-document")}
# What makes a formatter write: a flag or a first word; (), where it always does.
_WRITES = {
    "autopep8": ("-i", "--in-place"),
    "black": (),
    "clang-format": ("-i",),
    "eslint": ("--fix",),
    "gofmt": ("-w",),
    "isort": (),
    "prettier": ("--write", "-w"),
    "ruff": ("format", "--fix"),
    "rustfmt": (),
}
_ONLY_LOOKS = frozenset({"--check", "--diff", "-c"})


def of_program(name: str, arguments: Sequence[str]) -> Iterator[Effect]:
    """What a program (git with its command: `git mv`) does to the files it is given."""
    handler = _HANDLERS.get(name)
    return handler(name, arguments) if handler is not None else iter(())


def is_file(word: str) -> bool:
    """Whether the word can be the name of one file: no flag, variable, pattern, device or url."""
    return bool(word) and not word.startswith("-") and not _NOT_A_FILE.search(word)


def _paths(arguments: Sequence[str]) -> list[str]:
    return [word for word in arguments if is_file(word)]


def _named(arguments: Sequence[str]) -> list[str]:
    """Those that look like a file: what is only a word may be a pattern or a command."""
    return [path for path in _paths(arguments) if "/" in path or "." in path]


def _without(arguments: Sequence[str], *options: str) -> list[str]:
    """The arguments without these options and the value behind each."""
    values = {at + 1 for at, word in enumerate(arguments) if word in options}
    return [w for at, w in enumerate(arguments) if at not in values and w not in options]


def _each(action: str, *options: str) -> Handler:
    def handler(name: str, arguments: Sequence[str]) -> Iterator[Effect]:
        for path in _paths(_without(arguments, *options)):
            yield Effect(path, action, name)

    return handler


def _reads(name: str, arguments: Sequence[str]) -> Iterator[Effect]:
    for path in _named(arguments):
        yield Effect(path, "read", name)


def _moves(name: str, arguments: Sequence[str]) -> Iterator[Effect]:
    *sources, target = _paths(arguments) or [""]
    for path in sources:
        yield Effect(path, "moved", name, target)


def _copies(name: str, arguments: Sequence[str]) -> Iterator[Effect]:
    *sources, target = _paths(_without(arguments, "-m", "-o", "-g")) or [""]
    if target.endswith("/"):
        for path in sources:
            yield Effect(target + path.rstrip("/").rpartition("/")[2], "created", name)
    elif sources:
        yield Effect(target, "created", name)


def _sed(name: str, arguments: Sequence[str]) -> Iterator[Effect]:
    in_place = any(word.startswith(("-i", "--in-place")) for word in arguments)
    words = _without(arguments, "-e", "-f")
    if len(words) == len(arguments):  # no script by option: it is the first word
        words = [word for word in words if not word.startswith("-")][1:]
    for path in _named(words):
        yield Effect(path, "edited" if in_place else "read", "sed -i" if in_place else "sed")


def _perl(name: str, arguments: Sequence[str]) -> Iterator[Effect]:
    flags = [word for word in arguments if word.startswith("-")]
    if not any(re.match(r"-\w*i", flag) for flag in flags):
        return
    scripts = [flag for flag in flags if re.fullmatch(r"-\w*[eE]", flag)]
    for path in _named(_without(arguments, *scripts)):
        yield Effect(path, "edited", "perl -i")


def _searches(name: str, arguments: Sequence[str]) -> Iterator[Effect]:
    for path in _paths([word for word in arguments if not word.startswith("-")][1:]):
        if "." in path.rpartition("/")[2].strip("."):
            yield Effect(path, "read", name)


def _formats(name: str, arguments: Sequence[str]) -> Iterator[Effect]:
    wanted = _WRITES[name]
    writes = not wanted or not set(wanted).isdisjoint(arguments)
    writes &= _ONLY_LOOKS.isdisjoint(arguments)
    for path in _named(arguments):
        yield Effect(path, "edited" if writes else "read", name)


def _downloads(name: str, arguments: Sequence[str]) -> Iterator[Effect]:
    for option, value in pairwise(arguments):
        if option in _OUTPUT[name] and is_file(value):
            yield Effect(value, "created", name)


def _patched(name: str, arguments: Sequence[str]) -> Iterator[Effect]:
    for path in _paths(_without(arguments, "-i", "-d", "-o", "-p"))[:1]:
        yield Effect(path, "edited", name)


def _checked_out(name: str, arguments: Sequence[str]) -> Iterator[Effect]:
    """Only behind `--`: without it nobody can tell a file from a branch."""
    at = arguments.index("--") if "--" in arguments else len(arguments)
    for path in _paths(arguments[at + 1 :]):
        yield Effect(path, "edited", name)


def _dumped(name: str, arguments: Sequence[str]) -> Iterator[Effect]:
    for word in arguments:
        if word.startswith("of=") and is_file(word[3:]):
            yield Effect(word[3:], "created", name)


_HANDLERS: dict[str, Handler] = {
    **dict.fromkeys("cat head tail less more nl wc bat stat file diff".split(), _reads),
    **dict.fromkeys("grep rg ag awk".split(), _searches),
    **dict.fromkeys(("rm", "unlink", "git rm", "rmdir"), _each("deleted")),
    **dict.fromkeys(("touch", "tee"), _each("created")),
    **dict.fromkeys(("mv", "git mv", "rename"), _moves),
    **dict.fromkeys(("cp", "ln", "install"), _copies),
    **dict.fromkeys(_WRITES, _formats),
    **dict.fromkeys(_OUTPUT, _downloads),
    "dd": _dumped,
    "git checkout": _checked_out,
    "git restore": _each("edited", "-s", "--source"),
    "patch": _patched,
    "perl": _perl,
    "sed": _sed,
    "sponge": _each("edited"),
    "truncate": _each("edited", "-s", "-r", "--size", "--reference"),
}


# -------------------------------------------------------------- code


_PATH = r"\(\s*[rf]?(?P<quote>['\"])(?P<path>[^'\"\n{}]{1,300})(?P=quote)"
_CALLS = re.compile(
    rf"\b(?P<name>open|read_\w+|to_(?:csv|parquet|json|excel|pickle|feather|html|markdown)|savefig|"
    rf"imwrite|imsave|remove|unlink|write_text|Path){_PATH}"
    r"(?:\)\.(?P<method>\w+)|\s*,\s*(?:mode\s*=\s*)?['\"](?P<mode>[rwaxbt+]{1,3})['\"])?"
)
_METHODS = {
    "write_text": "created",
    "write_bytes": "created",
    "unlink": "deleted",
    "read_text": "read",
    "read_bytes": "read",
}
_READS = re.compile(r"read_(?:csv|parquet|json|excel|table|pickle|feather|fwf|html)$")


def of_code(code: str, via: str) -> Iterator[Effect]:
    """The files that a script opens, writes or removes under a name it spells out."""
    for found in _CALLS.finditer(code):
        action = _action(found)
        if action and "://" not in found["path"]:
            yield Effect(found["path"], action, via)


def _action(found: re.Match[str]) -> str:
    name, mode = found["name"], found["mode"] or "r"
    if name == "Path":
        return _METHODS.get(found["method"] or "", "")
    if name == "open":
        return "created" if mode[0] in "wx" else "edited" if "a" in mode or "+" in mode else "read"
    if name in ("remove", "unlink"):
        return "deleted"
    if name.startswith("read_"):
        return "read" if _READS.match(name) else ""
    return "created"


# -------------------------------------------------------------- cmdlets


_ACTIONS = {
    **dict.fromkeys("get-content gc type import-csv select-string get-filehash".split(), "read"),
    **dict.fromkeys("set-content out-file new-item ni export-csv tee-object".split(), "created"),
    **dict.fromkeys("add-content clear-content".split(), "edited"),
    **dict.fromkeys("remove-item ri del erase".split(), "deleted"),
    **dict.fromkeys("move-item mi move rename-item rni ren".split(), "moved"),
    **dict.fromkeys("copy-item ci copy".split(), "copied"),
}
_NAMES = ("-path", "-literalpath", "-filepath")
_TARGETS = ("-destination", "-newname")
_SWITCHES = frozenset("-recurse -force -raw -append -whatif -passthru -verbose -nonewline".split())


def of_cmdlet(name: str, arguments: Sequence[str]) -> Iterator[Effect]:
    """The files that `Set-Content -Path a.txt -Value x` and its like touch."""
    action = _ACTIONS.get(name.lower())
    if action is None:
        return
    paths, target = _cmdlet_paths(name.lower(), arguments)
    for path in paths:
        if action == "copied":
            yield Effect(target or path, "created", name)
        else:
            yield Effect(path, action, name, target if action == "moved" else "")


def _cmdlet_paths(name: str, arguments: Sequence[str]) -> tuple[list[str], str]:
    """The files, and where they go."""
    given: dict[str, str] = {}
    placed: list[str] = []
    option = ""
    for word in arguments:
        if word.startswith("-"):
            option = "" if word.lower() in _SWITCHES else word.lower()
        elif option:
            given[option] = word
            option = ""
        else:
            placed.append(word)
    if name == "select-string" and not any(key in given for key in ("-pattern", *_NAMES)):
        placed = placed[1:]
    named = next((given[key] for key in _NAMES if key in given), None)
    if named is None and placed:
        named, placed = placed[0], placed[1:]
    target = next((given[key] for key in _TARGETS if key in given), "".join(placed[:1]))
    paths = [path.strip("() ") for path in (named or "").split(",")]
    return [path for path in paths if is_file(path)], target
