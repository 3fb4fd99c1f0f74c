"""What a shell command does to files, and what it runs in the end; read from its words, nothing is
run.
"""

from __future__ import annotations

import ntpath
import posixpath
import re
import shlex
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from .programs import Effect, is_file, of_cmdlet, of_program

__all__ = [
    "Run",
    "effects",
    "patches",
    "run_of",
    "runs_of",
    "spoken",
    "tail_of",
]


# -------------------------------------------------------------- shell


_HEREDOC = re.compile(r"<<-?\s*['\"]?(\w+)['\"]?[^\n]*\n(.*?)^\s*\1\s*$", re.S | re.M)
_SPLIT = re.compile(r"\s*(?:&&|\|\||;|\n|(?<!>)\|(?!\|)|&(?!\d|>))\s*")
_REDIRECT = re.compile(r"(?:\d|&)?(>>|>\||>|<<<|<<-?|<)(?!\()(.*)", re.S)
_QUOTED = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"")
_PREFIXES = frozenset(
    "sudo time nohup env command exec xargs nice timeout if ! then else do {".split()
)
_VALUED = ("-u", "-g", "-n")  # of the prefixes: whose next word is no program
_NUMBER = re.compile(r"\d+[smhd]?")
_SHELLS = frozenset(("bash", "sh", "zsh", "dash"))
_SCRIPT_FLAG = re.compile(r"-\w*c")
_QUOTING = re.compile(r"['\"\\#]")
_WINDOWS = re.compile(r"\b[A-Za-z]:\\|(?:^|\s)\.{1,2}\\|^[A-Z][a-z]+-[A-Z]")
_PATCHES = re.compile(r"(?:^|[\n;&|(])\s*(?:apply_patch|patch|git\s+apply)\b[^\n]*$")
_PATCH = "*** Begin Patch"
_COMPLAINS = r"(?m)^(?:\S+: line \d+: )?{}: "
COMPLAINTS_WITHIN = 4_000
_FREE = str.maketrans("\ue000\ue001\ue002\ue003\ue004", ";&|<>")
_BOUND = str.maketrans(";&|<>", "\ue000\ue001\ue002\ue003\ue004")


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
        words = _words(part.rstrip(")") if outside else part)
        name, arguments, redirected = _command(words)
        out += [_placed(effect, folder) for effect in redirected]
        if name in ("cd", "Set-Location"):
            folder = _entered(folder, arguments)
        elif name in _SHELLS:
            out += effects(_script(arguments) or "", folder)
        else:
            done = [*of_program(name, arguments), *of_cmdlet(name, arguments)]
            out += [_placed(effect, folder) for effect in done]
        for _ in range(min(len(part) - len(part.rstrip(")")), len(outside))):
            folder = outside.pop()
    return out


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
    if _WINDOWS.search(part):
        lexer.escape = ""  # there a backslash parts the folders of a path
    try:
        return list(lexer)
    except ValueError:
        return part.split()


def _command(words: list[str]) -> tuple[str, list[str], list[Effect]]:
    """The program, its arguments, and what its redirections do to files."""
    plain, redirections = _redirections(words)
    plain = _unprefixed(plain)
    name = plain[0].rpartition("/")[2] if plain else ""
    found = [
        effect
        for mark, path in redirections
        if is_file(path)
        for effect in _redirected(mark, path, plain[0] if plain else mark)
    ]
    if name == "git" and len(plain) > 1:
        name, plain = f"git {plain[1]}", plain[1:]
    return name, [word.translate(_FREE) for word in plain[1:]], found


def _redirections(words: list[str]) -> tuple[list[str], list[tuple[str, str]]]:
    plain: list[str] = []
    found: list[tuple[str, str]] = []
    pending = ""
    for word in words:
        match = _REDIRECT.fullmatch(word)
        if pending:
            found.append((pending, word.translate(_FREE)))
            pending = ""
        elif match and match[2]:
            found.append((match[1], match[2].translate(_FREE)))
        elif match:
            pending = match[1]
        else:
            plain.append(word)
    return plain, found


def _redirected(mark: str, path: str, via: str) -> Iterator[Effect]:
    if mark.startswith(">"):
        yield Effect(path, "edited" if mark == ">>" else "created", via)
    elif mark == "<" and ("/" in path or "." in path):
        yield Effect(path, "read", via)


def _unprefixed(words: list[str]) -> list[str]:
    """The words from the program on, without what only says how it is run."""
    at = 0
    while at < len(words) and (words[at] in _PREFIXES or re.fullmatch(r"\w+=.*", words[at])):
        at += 1
        while at < len(words) and (words[at].startswith("-") or _NUMBER.fullmatch(words[at])):
            at += 2 if words[at] in _VALUED else 1
    return words[at:]


def _script(words: list[str]) -> str | None:
    """What `bash -c '...'` is told to do."""
    return next((then for flag, then in pairwise(words) if _SCRIPT_FLAG.fullmatch(flag)), None)


def _entered(folder: str, arguments: list[str]) -> str:
    """The folder after a `cd`; "" where nobody can tell."""
    path = next(iter(arguments), "")
    return _joined(folder, path) if is_file(path) else ""


def _placed(effect: Effect, folder: str) -> Effect:
    if not folder:
        return effect
    target = effect.target and _from(folder, effect.target)
    return effect._replace(path=_from(folder, effect.path), target=target)


def _from(folder: str, path: str) -> str:
    if path.startswith(("/", "~")):
        return path
    joined = _joined(folder, path)
    return f"{joined}/" if path.endswith("/") else joined


def _joined(folder: str, path: str) -> str:
    if "\\" in folder + path:
        return ntpath.normpath(ntpath.join(folder, path))
    return posixpath.normpath(posixpath.join(folder, path))


def blamed(effect: Effect, command: str, output: str) -> bool:
    """Whether a failed command line's effect on a file may be what failed.

    `sed -i ... && make test` has edited the file whatever the tests say: those have failed that
    complain by their names, else the last.
    """
    ran = [name for part in _parts(command) if (name := _command(_words(part))[0])]
    said = output[:COMPLAINTS_WITHIN]
    complaining = [name for name in ran if re.search(_COMPLAINS.format(re.escape(name)), said)]
    name = effect.via.partition(" -")[0]
    return name in (complaining or ran[-1:]) and _touches_files(effect.via, name)


def _touches_files(via: str, name: str) -> bool:
    """Whether it is the program itself that touches files, not only its redirected output."""
    probe = ("x.y", "x.z")
    return any(of_program(via, probe)) or any(of_cmdlet(name, probe)) or via != name


# -------------------------------------------------------------- runs


_PARTS = re.compile(r"&&|\|\||;")
_WRAPS = frozenset("sudo time env nice timeout npx bunx exec run uv poetry pipenv bundle".split())
_RUNS_ANOTHER = frozenset(
    "exec run pnpm npm yarn bun python python3 py make cargo go dotnet mvn mvnw gradle gradlew "
    "docker compose kubectl terraform helm git".split()
)
"""What the next word tells is run: `cargo test` and `cargo doc` are two programs."""
_CHECKS = frozenset(
    "pytest unittest jest vitest mocha playwright tsc eslint rspec phpunit ctest mypy ruff "
    "tox nox test build check vet lint clippy typecheck".split()
)
"""Of them it matters on what they were run; that another file can be listed says nothing new."""
_SAYS_NOTHING = frozenset("cd echo export set source true sleep pwd".split())
_CUTS = re.compile(r"\s*(?:2>&1\s*)?(?:\|\s*(?:tail|head|cat)\b[^|]*)?$")
_CODE = re.compile(r"(?:import|from|print|def) ?[\w(]|[\w.]+\(|[\w.\[\]]+ = ")
"""A cell of a notebook: what the next one does well is not what this one could not."""
MOST_WORDS = 3


class Run(NamedTuple):
    """A program with its subcommand, and the words that say on what."""

    program: tuple[str, ...]
    on: frozenset[str]

    def is_within(self, wider: Run) -> bool:
        """Whether the other run has done at least this: `pytest` does `pytest tests/a.py`."""
        if self.program != wider.program or _CHECKS.isdisjoint(self.program):
            return self.program == wider.program
        return all(
            any(word.startswith(whole.rstrip("/")) for word in self.on) for whole in wider.on
        )


def run_of(command: str) -> Run:
    """The last program of a command line, that its output is of.

    >>> run_of("cd x && PORT=1 python -m pytest -q tests | tail -5")
    Run(program=('python', 'pytest'), on=frozenset({'tests'}))
    """
    if _CODE.match(command):
        return Run(("code",), frozenset())
    parts = [part.partition("|")[0].split() for part in _PARTS.split(command)]
    told = [words for words in parts if words and words[0] not in _SAYS_NOTHING]
    words = [
        word
        for word in (told or parts or [[]])[-1]
        if not word.startswith("-") and "=" not in word and not re.match(r"\d*[<>]", word)
    ]
    while len(words) > 1 and words[0] in _WRAPS:
        words = words[1:]
    depth = 1
    while depth < min(len(words), MOST_WORDS) and _name(words[depth - 1]) in _RUNS_ANOTHER:
        depth += 1
    return Run(tuple(map(_name, words[:depth])), frozenset(words[depth:]))


def runs_of(command: str) -> list[Run]:
    """All that a command line ran which ended well: what `&&` joins ended well in each part.

    >>> [run.program for run in runs_of("make test && rm -r out")]
    [('rm',), ('make', 'test')]
    """
    parts = command.split("&&") if ";" not in command and "||" not in command else [command]
    return [run_of(command), *(run_of(part) for part in parts[:-1])]


def tail_of(command: str) -> str:
    """The command line without what only leads to its last part, and what only cuts its output.

    >>> tail_of("cd x && make test 2>&1 | tail -5")
    'make test'
    """
    parts = [_CUTS.sub("", part.strip()) for part in _PARTS.split(command)]
    told = [part for part in parts if part and part.split()[0] not in _SAYS_NOTHING]
    return " && ".join(told) or command


def _name(word: str) -> str:
    return word.rpartition("/")[2] if word.startswith((".", "/")) else word
