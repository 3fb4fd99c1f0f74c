"""What the usual programs do to the files among their arguments; nothing is run."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

__all__ = ["Effect", "is_file", "of_program"]


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
