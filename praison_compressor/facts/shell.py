"""What a shell command line does to files; read from its words, nothing is run."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple


class Effect(NamedTuple):
    """One file that a call or a command touched."""

    path: str
    action: str
    via: str
    """What touched it: a tool's name, or the program of a command line."""
    target: str = ""


_PATCH = "*** Begin Patch"


def effects(command: str, folder: str = "") -> list[Effect]:
    """The files a command line reads, creates, edits, deletes or moves, in order.

    `folder` is where it begins; names that come after a `cd` are told from where that leads.
    """
    if command.startswith(_PATCH):
        return []
    out: list[Effect] = []
    outside: list[str] = []
    for part in _parts(command):
        while part.startswith("("):
            outside.append(folder)
            part = part[1:].lstrip()
        name, arguments, found = _command(_words(part.rstrip(")") if outside else part))
        if name == "cd":
            path = next(iter(arguments), "")
            folder = posixpath.normpath(posixpath.join(folder, path)) if _is_file(path) else ""
        elif name in _SHELLS:
            out += effects(_script(arguments) or "", folder)
        else:
            found += _of_program(name, arguments)
        out += [_placed(effect, folder) for effect in found]
        for _ in range(min(len(part) - len(part.rstrip(")")), len(outside))):
            folder = outside.pop()
    return out


_PATCHES = re.compile(r"(?:^|[\n;&|(])\s*(?:apply_patch|patch|git\s+apply)\b[^\n]*$")


def patches(command: str) -> list[str]:
    """The patches that a command line applies: what is handed to `apply_patch` or `patch`."""
    if command.startswith(_PATCH):
        return [command]
    return [
        found.group(2)
        for found in _HEREDOC.finditer(command)
        if _PATCHES.search(command[: found.start()])
    ]


def spoken(words: list[str]) -> str:
    """A list of words as the command line that one would type: the script of `bash -lc SCRIPT`."""
    name = words[0].rpartition("/")[2]
    if name == "apply_patch" and len(words) == 2:
        return words[1]
    script = _script(words) if name in _SHELLS else None
    return shlex.join(words) if script is None else script


_COMPLAINS = r"(?m)^(?:\S+: line \d+: )?{}: "
COMPLAINTS_WITHIN = 4_000


def blamed(effect: Effect, command: str, output: str) -> bool:
    """Whether a failed command line's effect on a file may be what failed.

    `sed -i ... && make test` has edited the file whatever the tests say: those have failed that
    complain by their names, else the last.
    """
    ran = [name for part in _parts(command) if (name := _command(_words(part))[0])]
    said = output[:COMPLAINTS_WITHIN]
    complaining = [name for name in ran if re.search(_COMPLAINS.format(re.escape(name)), said)]
    name = effect.via.partition(" -")[0]
    # Of another program only the output went there, and that has come about.
    return name in (complaining or ran[-1:]) and name in _ACTIONS


# -------------------------------------------------------------- words of a command line


_HEREDOC = re.compile(r"<<-?\s*['\"]?(\w+)['\"]?[^\n]*\n(.*?)^\s*\1\s*$", re.S | re.M)
_SPLIT = re.compile(r"\s*(?:&&|\|\||;|\n|(?<!>)\|(?!\|)|&(?!\d|>))\s*")
_REDIRECT = re.compile(r"(?:\d|&)?(>>|>\||>|<<<|<<-?|<)(?!\()(.*)", re.S)
_QUOTED = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"")
_QUOTING = re.compile(r"['\"\\#]")
_PREFIXES = frozenset(
    "sudo time nohup env command exec xargs nice timeout if ! then else do {".split()
)
_BEFORE_PROGRAM = re.compile(r"\w+=.*|-.*|\d+[smhd]?")
_SHELLS = frozenset(("bash", "sh", "zsh", "dash"))
_SCRIPT_FLAG = re.compile(r"-\w*c")
# Separators inside quotes, while the line is split at the others.
_FREE = str.maketrans("\ue000\ue001\ue002\ue003\ue004", ";&|<>")
_BOUND = str.maketrans(";&|<>", "\ue000\ue001\ue002\ue003\ue004")


def _parts(command: str) -> Iterator[str]:
    """Its simple commands, without here-documents; separators inside quotes part nothing."""
    text = _HEREDOC.sub(lambda found: found.group().partition("\n")[0], command)
    text = _QUOTED.sub(lambda found: found.group().translate(_BOUND), text.replace("\\\n", " "))
    return (part.strip() for part in _SPLIT.split(text))


def _words(part: str) -> list[str]:
    if not _QUOTING.search(part):
        return part.split()  # the lexer takes a letter at a time
    lexer = shlex.shlex(part, posix=True, punctuation_chars=False)
    lexer.whitespace_split = True
    try:
        return list(lexer)
    except ValueError:
        return part.split()


def _command(words: list[str]) -> tuple[str, list[str], list[Effect]]:
    """The program, its arguments, and what its redirections do to files."""
    plain: list[str] = []
    redirected: list[tuple[str, str]] = []
    pending = ""
    for word in words:
        match = _REDIRECT.fullmatch(word)
        if pending:
            redirected.append((pending, word))
            pending = ""
        elif match and match[2]:
            redirected.append((match[1], match[2]))
        elif match:
            pending = match[1]
        else:
            plain.append(word)
    plain = _unprefixed(plain)
    name = plain[0].rpartition("/")[2] if plain else ""
    found = [
        effect
        for mark, path in redirected
        for effect in _redirected(mark, path.translate(_FREE), plain[0] if plain else mark)
    ]
    if name == "git" and len(plain) > 1:
        name, plain = f"git {plain[1]}", plain[1:]
    return name, [word.translate(_FREE) for word in plain[1:]], found


def _redirected(mark: str, path: str, via: str) -> Iterator[Effect]:
    if mark.startswith(">") and _is_file(path):
        yield Effect(path, "edited" if mark == ">>" else "created", via)
    elif mark == "<" and _is_file(path) and ("/" in path or "." in path):
        yield Effect(path, "read", via)


def _unprefixed(words: list[str]) -> list[str]:
    """The words from the program on, without what only says how it is run."""
    at = 0
    while at < len(words) and (words[at] in _PREFIXES or _BEFORE_PROGRAM.fullmatch(words[at])):
        at += 1
    return words[at:]


def _script(words: list[str]) -> str | None:
    """What `bash -c '...'` is told to do."""
    return next((then for flag, then in pairwise(words) if _SCRIPT_FLAG.fullmatch(flag)), None)


def _placed(effect: Effect, folder: str) -> Effect:
    target = effect.target and _from(folder, effect.target)
    return effect._replace(path=_from(folder, effect.path), target=target)


def _from(folder: str, path: str) -> str:
    if not folder or path.startswith(("/", "~")):
        return path
    joined = posixpath.normpath(posixpath.join(folder, path))
    return f"{joined}/" if path.endswith("/") else joined


# -------------------------------------------------------------- programs


_ACTIONS = {
    **dict.fromkeys("cat head tail less more nl wc bat stat file diff".split(), "read"),
    **dict.fromkeys("grep rg ag awk sed".split(), "read"),
    **dict.fromkeys(("rm", "unlink", "git rm", "rmdir"), "deleted"),
    **dict.fromkeys(("touch", "tee"), "created"),
    **dict.fromkeys(("mv", "git mv"), "moved"),
    "cp": "copied",
}
"""What a program does to the files it is given."""
_SCRIPTED = frozenset("grep rg ag awk sed".split())
"""Programs whose first word says what to look for or to do."""
_NOT_A_FILE = re.compile(r"^(?:/dev/|&\d|\$|\d+$)|[*?{}]|^https?:")


def _of_program(name: str, arguments: Sequence[str]) -> Iterator[Effect]:
    action = _ACTIONS.get(name)
    words = [word for word in arguments if not word.startswith("-")]
    if name == "sed" and any(word.startswith(("-i", "--in-place")) for word in arguments):
        action, via = "edited", "sed -i"
    else:
        via = name
    if name in _SCRIPTED:
        words = _without_script(arguments, words)
    paths = [word for word in words if _is_file(word)]
    if action in ("moved", "copied"):
        yield from _carried(via, action, paths)
    elif action is not None:
        # What is only a word may be a pattern, a number, a folder or a command.
        named = [path for path in paths if "." in path.rpartition("/")[2].strip(".")]
        chosen = named if action in ("read", "edited") else paths
        yield from (Effect(path, action, via) for path in chosen)


def _without_script(arguments: Sequence[str], words: list[str]) -> list[str]:
    """The words behind the script: it is the first one, or that of an option."""
    given = [then for option, then in pairwise(arguments) if option in ("-e", "-f")]
    return [word for word in words if word not in given] if given else words[1:]


def _carried(via: str, action: str, paths: list[str]) -> Iterator[Effect]:
    *sources, target = paths or [""]
    if action == "moved":
        yield from (Effect(path, "moved", via, target) for path in sources)
    elif target.endswith("/"):
        names = (path.rstrip("/").rpartition("/")[2] for path in sources)
        yield from (Effect(target + name, "created", via) for name in names)
    elif sources:
        yield Effect(target, "created", via)


def _is_file(word: str) -> bool:
    """Whether the word can be the name of one file: no flag, variable, pattern, device or url."""
    return bool(word) and not word.startswith("-") and not _NOT_A_FILE.search(word)
