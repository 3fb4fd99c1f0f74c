"""What a command line runs in the end, so that two runs of one thing are known as such."""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["Run", "run_of", "runs_of", "tail_of"]

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
