"""What a shell command does to files, read from its words; nothing is run."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from typing import NamedTuple


class Effect(NamedTuple):
    """One file that a command touched."""

    path: str
    action: str
    via: str
    target: str = ""


_HEREDOC = re.compile(r"<<-?\s*['\"]?(\w+)['\"]?[^\n]*\n.*?^\s*\1\s*$", re.S | re.M)
_SPLIT = re.compile(r"\s*(?:&&|\|\||;|\n|\|(?!\|)|&(?!\d|>))\s*")
_REDIRECT = re.compile(r"^(?:[12&])?(>>?)(.*)$")
_PREFIXES = frozenset("sudo time nohup env command exec xargs nice then do else".split())
_NOT_A_FILE = re.compile(r"^(?:/dev/|&\d|\$|-|\d+$)|[*?{}]|^https?:")


def effects(command: str) -> list[Effect]:
    """The files a command line reads, creates, edits, deletes or moves, in order."""
    out: list[Effect] = []
    text = _HEREDOC.sub(lambda found: found.group().partition("\n")[0], command)
    for part in _SPLIT.split(_joined(text)):
        out.extend(_simple(part))
    return out


def _joined(text: str) -> str:
    """Separators inside quotes hidden, so that splitting keeps `sed 's/a;b/c/'` whole."""
    return re.sub(
        r"'[^'\n]*'|\"[^\"\n]*\"", lambda found: re.sub(r"[;&|]", "\x1f", found.group()), text
    )


def _words(part: str) -> list[str]:
    try:
        return shlex.split(part, comments=True)
    except ValueError:
        return part.split()


def _simple(part: str) -> Iterator[Effect]:
    plain, redirects = _redirections(_words(part))
    while plain and (plain[0] in _PREFIXES or re.fullmatch(r"\w+=.*", plain[0])):
        plain.pop(0)
    for mark, path in redirects:
        if not _NOT_A_FILE.search(path):
            yield Effect(path, "edited" if mark == ">>" else "created", plain[0] if plain else mark)
    if plain:
        name = plain[0].rpartition("/")[2]
        if name == "git" and len(plain) > 1:
            name, plain = f"git {plain[1]}", plain[1:]
        yield from _HANDLERS.get(name, _nothing)(name, plain[1:])


def _redirections(words: list[str]) -> tuple[list[str], list[tuple[str, str]]]:
    plain: list[str] = []
    found: list[tuple[str, str]] = []
    pending = ""
    for word in words:
        match = _REDIRECT.match(word)
        if pending:
            found.append((pending, word))
            pending = ""
        elif match and match.group(2):
            found.append((match.group(1), match.group(2)))
        elif match:
            pending = match.group(1)
        else:
            plain.append(word)
    return plain, found


def _paths(arguments: list[str]) -> list[str]:
    return [
        word.replace("\x1f", ";")
        for word in arguments
        if word and not word.startswith("-") and not _NOT_A_FILE.search(word)
    ]


def _nothing(name: str, arguments: list[str]) -> Iterator[Effect]:
    return iter(())


def _each(action: str) -> Callable[[str, list[str]], Iterator[Effect]]:
    def handler(name: str, arguments: list[str]) -> Iterator[Effect]:
        for path in _paths(arguments):
            yield Effect(path, action, name)

    return handler


def _reads(name: str, arguments: list[str]) -> Iterator[Effect]:
    for path in _paths(arguments):
        if "/" in path or "." in path:
            yield Effect(path, "read", name)


def _moves(name: str, arguments: list[str]) -> Iterator[Effect]:
    paths = _paths(arguments)
    if len(paths) >= 2:
        for path in paths[:-1]:
            yield Effect(path, "moved", name, paths[-1])


def _copies(name: str, arguments: list[str]) -> Iterator[Effect]:
    paths = _paths(arguments)
    if len(paths) >= 2:
        yield Effect(paths[-1], "created", name)


def _sed(name: str, arguments: list[str]) -> Iterator[Effect]:
    in_place = any(word.startswith(("-i", "--in-place")) for word in arguments)
    scripts = {at + 1 for at, word in enumerate(arguments) if word in ("-e", "-f")}
    given = (word for at, word in enumerate(arguments) if at not in scripts)
    words = [word for word in given if word and not word.startswith("-")]
    for path in _paths(words if scripts else words[1:]):
        if "/" in path or "." in path:
            yield Effect(path, "edited" if in_place else "read", "sed -i" if in_place else "sed")


def _searches(name: str, arguments: list[str]) -> Iterator[Effect]:
    for path in _paths([word for word in arguments if not word.startswith("-")][1:]):
        if "." in path.rpartition("/")[2].strip("."):
            yield Effect(path, "read", name)


_HANDLERS: dict[str, Callable[[str, list[str]], Iterator[Effect]]] = {
    **dict.fromkeys("cat head tail less more nl wc bat stat file diff".split(), _reads),
    **dict.fromkeys("grep rg ag awk".split(), _searches),
    "sed": _sed,
    "rm": _each("deleted"),
    "unlink": _each("deleted"),
    "git rm": _each("deleted"),
    "rmdir": _each("deleted"),
    "touch": _each("created"),
    "tee": _each("created"),
    "mv": _moves,
    "git mv": _moves,
    "rename": _moves,
    "cp": _copies,
    "git restore": _each("edited"),
    "black": _reads,
}
