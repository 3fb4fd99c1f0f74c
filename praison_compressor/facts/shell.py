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


def effects(command: str) -> list[Effect]:
    """The files a command line reads, creates, edits, deletes or moves, in order.

    Names that come after a `cd` are told from where that leads.
    """
    out: list[Effect] = []
    folder, outside = "", [""]
    for words, end in [] if command.startswith(_PATCH) else _commands(command):
        name, arguments, found = _command(words)
        if name == "cd":
            path = next(iter(arguments), "")
            folder = posixpath.normpath(posixpath.join(folder, path)) if _is_file(path) else ""
        found += _of_program(name, arguments)
        out += [
            one._replace(
                path=_from(folder, one.path), target=one.target and _from(folder, one.target)
            )
            for one in found
        ]
        if end == "(":
            outside.append(folder)
        elif end == ")":
            folder = outside.pop() if outside else ""
    return out


_APPLIES = re.compile(r"(?:^|[\n;&|(])\s*(?:apply_patch|patch|git\s+apply)\b[^\n]*<<")


def applies_a_patch(command: str) -> bool:
    """Whether a command line is a patch, or hands one to `apply_patch` or `patch`."""
    return command.startswith(_PATCH) or _APPLIES.search(command) is not None


def spoken(words: list[str]) -> str:
    """A list of words as the command line that one would type: the script of `bash -lc SCRIPT`."""
    name = words[0].rpartition("/")[2]
    if name == "apply_patch" and len(words) == 2:
        return words[1]
    scripts = (then for flag, then in pairwise(words) if re.fullmatch(r"-\w*c", flag))
    script = next(scripts, None) if name in ("bash", "sh", "zsh", "dash") else None
    return shlex.join(words) if script is None else script


def failing(command: str, output: str) -> list[str]:
    """The programs of a failed command line that may have failed, of those that act on files.

    They are those that complain by their names, else the last.
    """
    ran = [name for words, _ in _commands(command) if (name := _command(words)[0])]
    complains = r"(?m)^(?:\S+: line \d+: )?{}: "
    said = output[:COMPLAINTS_WITHIN]
    complaining = [name for name in ran if re.search(complains.format(re.escape(name)), said)]
    return [name for name in complaining or ran[-1:] if name in _ACTIONS]


COMPLAINTS_WITHIN = 4_000
_SAYS_NOTHING = frozenset("cd echo export set source true sleep pwd".split())


def programs(command: str) -> list[list[str]]:
    """The programs of a command line with their arguments, without options, filters and `cd`.

    >>> programs("cd x && PORT=1 python -m pytest -q tests | tail -5")
    [['python', 'pytest', 'tests']]
    """
    out: list[list[str]] = []
    before = ""
    for words, end in _commands(command):
        name, arguments, _ = _command(words)
        if name and before != "|" and name not in _SAYS_NOTHING:
            out.append([*name.split(), *(word for word in arguments if word[:1] != "-")])
        before = end
    return out


# -------------------------------------------------------------- words of a command line


_HEREDOC = re.compile(r"<<-?\s*['\"]?(\w+)['\"]?[^\n]*\n(.*?)^\s*\1\s*$", re.S | re.M)
_TOKEN = re.compile(
    r"\d?>&\d|[\d&]?(?:>>|>\||>)(?!\()|<<<|<<-?|<(?!\()|&&|\|\||[;&|\n()]"
    r"|(?:\$\([^()]*\)|\\.|'[^']*'|\"(?:\\.|[^\"\\])*\"|[^\s;&|()<>'\"\\])+",
    re.S,
)
_ENDS = frozenset(("&&", "||", ";", "&", "|", "\n", "(", ")"))
_REDIRECTION = re.compile(r"[\d&]?[<>]+[-|]?")
_QUOTED = re.compile(r"\\(.)|'([^']*)'|\"((?:\\.|[^\"\\])*)\"", re.S)
_PREFIXES = frozenset(
    "sudo time nohup env command exec xargs nice timeout uv poetry npx run if ! then do {".split()
)
_BEFORE_PROGRAM = re.compile(r"\w+=.*|-.*|\d+[smhd]?")


def _commands(command: str) -> Iterator[tuple[list[str], str]]:
    """Its simple commands without here-documents, each with what ends it."""
    text = _HEREDOC.sub(lambda found: found.group().partition("\n")[0], command)
    words: list[str] = []
    for token in (*_TOKEN.findall(text.replace("\\\n", " ")), ";"):
        if token in _ENDS:
            yield words, token
            words = []
        else:
            words.append(token)


def _command(words: list[str]) -> tuple[str, list[str], list[Effect]]:
    """The program, its arguments, and what its redirections do to files."""
    plain: list[str] = []
    redirected: list[tuple[str, str]] = []
    before = ""
    for word in words:
        if _REDIRECTION.fullmatch(before):
            redirected.append((before, _unquoted(word)))
        elif not _REDIRECTION.match(word):
            plain.append(_unquoted(word))
        before = word
    while plain and (plain[0] in _PREFIXES or _BEFORE_PROGRAM.fullmatch(plain[0])):
        plain = plain[1:]
    program = plain[0] if plain else ""
    found = [one for mark, path in redirected for one in _redirected(mark, path, program or mark)]
    name = program.rpartition("/")[2]
    if name == "git" and len(plain) > 1:
        name, plain = f"git {plain[1]}", plain[1:]
    return name, plain[1:], found


def _unquoted(word: str) -> str:
    return _QUOTED.sub(lambda found: found[1] or found[2] or found[3] or "", word)


def _redirected(mark: str, path: str, via: str) -> Iterator[Effect]:
    if ">" in mark and _is_file(path):
        yield Effect(path, "edited" if ">>" in mark else "created", via)
    elif mark == "<" and _is_file(path):
        yield Effect(path, "read", via)


def _from(folder: str, path: str) -> str:
    if not folder or path.startswith(("/", "~")):
        return path
    joined = posixpath.normpath(posixpath.join(folder, path))
    return f"{joined}/" if path.endswith("/") else joined


# -------------------------------------------------------------- programs


_ACTIONS = {
    **dict.fromkeys("cat head tail less more nl wc stat diff grep rg awk sed".split(), "read"),
    **dict.fromkeys(("rm", "git rm", "rmdir"), "deleted"),
    **dict.fromkeys(("touch", "tee"), "created"),
    **dict.fromkeys(("mv", "git mv"), "moved"),
    "cp": "copied",
    "sed -i": "edited",
}
"""What a program does to the files it is given."""
_SCRIPTED = frozenset("grep rg awk sed".split())
"""Programs whose first word says what to look for or to do."""
_NOT_A_FILE = re.compile(r"^(?:/dev/|&\d|\$|\d+$)|[*?{}]|\$\(|^https?:")


def _of_program(name: str, arguments: Sequence[str]) -> Iterator[Effect]:
    words = [word for word in arguments if not word.startswith("-")]
    if name in _SCRIPTED:
        given = [then for option, then in pairwise(arguments) if option in ("-e", "-f")]
        words = [word for word in words if word not in given] if given else words[1:]
    if name == "sed" and any(word.startswith(("-i", "--in-place")) for word in arguments):
        name = "sed -i"
    action = _ACTIONS.get(name)
    paths = [word for word in words if _is_file(word)]
    if action in ("moved", "copied"):
        yield from _carried(name, action, paths)
    elif action is not None:
        # What is only a word may be a pattern, a number, a folder or a command.
        named = [path for path in paths if "." in path.rpartition("/")[2].strip(".")]
        chosen = named if action in ("read", "edited") else paths
        yield from (Effect(path, action, name) for path in chosen)


def _carried(via: str, action: str, paths: list[str]) -> Iterator[Effect]:
    *sources, target = paths or [""]
    for path in sources:
        if action == "moved":
            yield Effect(path, "moved", via, target)
        else:
            name = path.rstrip("/").rpartition("/")[2] if target.endswith("/") else ""
            yield Effect(target + name, "created", via)


def _is_file(word: str) -> bool:
    """Whether the word can be the name of one file: no flag, variable, pattern, device or url."""
    return bool(word) and not word.startswith("-") and not _NOT_A_FILE.search(word)
