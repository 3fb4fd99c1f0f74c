"""Commands, searches and fetches with what came of them, and which of them still fail."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from html import unescape
from typing import Any, NamedTuple

from ..messages import ToolCall
from .files import action_of, command_texts, names_a_file
from .model import GENERAL, CommandFact, Domain, Rule
from .outcomes import Outcome
from .passages import arguments_of, key_of

_SEARCH = re.compile(r"grep|search|find|glob|query|list(?!ing)", re.I)
_FETCH = re.compile(r"fetch|browse|url|http|go(?:to)?$|navigate|crawl", re.I)
_RUN = re.compile(
    r"bash|shell|terminal|exec|run|command|python|console|sql|repl(?!ac)|interpreter", re.I
)
_QUERIES = re.compile(r"sql|repl(?!ac)|database|warehouse", re.I)
"""Tools whose `query` is run, not looked for."""
_CODE_KEYS = ("code", "sql", "statement")
_URL_KEYS = ("url", "urls", "uri", "link", "href", "pageurl")
_LIST_OF_WORK = re.compile(r"todo|task|^(?:update_)?plan$", re.I)
# What an agent of a service does: it changes something that is no file.
_ACTS = re.compile(
    r"(?:add|approve|assign|book|buy|cancel|change|close|comment|create|delete|deploy|disable|"
    r"enable|exchange|issue|merge|modify|order|pay|place|post|publish|refund|register|reject|"
    r"remove|reschedule|reset|return|schedule|send|set|submit|transfer|update)(?:_|[A-Z]|$)"
)
COMMAND_CHARS = 240


def command_fact(
    call: ToolCall, result: str, outcome: Outcome, index: int, domain: Domain = GENERAL
) -> CommandFact | None:
    """The call as a command with its outcome, or None if it is neither command nor search."""
    arguments = arguments_of(call)
    rule = domain.rule(call.name)
    kind = _kind(call.name, arguments) if rule is None else _ruled(rule)
    text = _spoken(call, arguments, kind, rule) if kind else ""
    if not kind or not text:
        return None
    status, detail = outcome if kind == "command" else _found(result, outcome, kind)
    return CommandFact(text, status, detail, index, kind=kind)


_PIPED = re.compile(r"\||;\s*(?:echo|true)\b")


def is_piped(call: ToolCall) -> bool:
    """Whether an exit code may be that of another program: `pytest | tail`."""
    if not _PIPED.search(call.arguments) or not _RUN.search(call.name):
        return False
    return any(_PIPED.search(text) for text in command_texts(arguments_of(call)))


def _kind(name: str, arguments: Any) -> str | None:
    if not isinstance(arguments, Mapping):
        return None
    if _url(arguments) and (_FETCH.search(name) or not _RUN.search(name)):
        return "fetch"
    if _RUN.search(name) and _run_texts(name, arguments):
        return "command"
    if _RUN.search(name) and not _QUERIES.search(name):
        return None
    writes = action_of(name, arguments) in ("created", "edited", "deleted", "moved")
    if _SEARCH.search(name) and not writes and not _LIST_OF_WORK.search(name):
        return "search"
    acts = _ACTS.match(name.rpartition("__")[2]) and not _LIST_OF_WORK.search(name)
    return "command" if acts and arguments and not names_a_file(arguments) else None


def _ruled(rule: Rule) -> str | None:
    return rule.action if rule.action in ("command", "search", "fetch") else None


def _url(arguments: Mapping[str, Any]) -> str:
    """The page that a call asks for."""
    for key, value in arguments.items():
        if key_of(key) in _URL_KEYS:
            first = value[0] if isinstance(value, list) and value else value
            if isinstance(first, str) and first:
                return first
    return ""


def _run_texts(name: str, arguments: Any) -> list[str]:
    """What is run: a shell's lines, code or a query."""
    found = command_texts(arguments)
    if not found and isinstance(arguments, Mapping):
        keys = (*_CODE_KEYS, "query") if _QUERIES.search(name) else _CODE_KEYS
        values = (value for key, value in arguments.items() if key_of(key) in keys)
        found = [value for value in values if isinstance(value, str)][:1]
    return found


def _spoken(call: ToolCall, arguments: Any, kind: str, rule: Rule | None) -> str:
    text = ""
    if kind == "command":
        found = _run_texts(call.name, arguments) if rule is None else []
        text = " && ".join(found or command_texts(arguments, rule))
    elif kind == "fetch" and rule is None:
        text = f"{call.name} {_url(arguments)}"
    if not text:
        text = f"{call.name} {' '.join(_values(arguments, rule))}"
    flat = " ".join(text.split())
    return flat if len(flat) <= COMMAND_CHARS else flat[: COMMAND_CHARS - 1] + "…"


def _values(arguments: Any, rule: Rule | None) -> list[str]:
    if not isinstance(arguments, Mapping):
        return [str(arguments)]
    if rule is not None and rule.argument:
        return [str(arguments.get(rule.argument, ""))]
    told = (value for value in arguments.values() if not isinstance(value, bool))
    return [str(value) for value in told if isinstance(value, (str, int, float))]


_TITLE = re.compile(r"<title[^>]*>([^<]*\w[^<]*)</title>", re.I)
TITLE_WITHIN = 20_000  # characters of a page: scripts may stand before its title


def _found(result: str, outcome: Outcome, kind: str) -> Outcome:
    if kind == "fetch" and outcome.status == "failed":
        return outcome
    title = _TITLE.search(result[:TITLE_WITHIN]) if kind == "fetch" else None
    if title:
        return Outcome("ok", " ".join(unescape(title[1]).split())[:120])
    lines = [line for line in result.splitlines() if line.strip()]
    if not lines:
        return Outcome("ok", "nothing found")
    first = " ".join(lines[0].split())[:120]
    more = f" (+{len(lines) - 1} lines)" if len(lines) > 1 else ""
    return Outcome("ok", first + more)


# -------------------------------------------------------------- what still fails


STILL_FAILING = 2
"""So many are told, the newest."""


def with_failing(commands: Iterable[CommandFact]) -> tuple[CommandFact, ...]:
    """The commands, those marked that failed when they last ran if none like them worked since."""
    out: list[CommandFact] = []
    worked: list[Run] = []
    failed: set[tuple[str, ...]] = set()
    for item in reversed(list(commands)):
        if item.kind == "command" and item.outcome != "failed":
            worked += _runs_of(item.text)
        elif item.kind == "command" and item.detail and len(failed) < STILL_FAILING:
            run = run_of(item.text)
            fails = run.program not in failed and not any(map(run.is_within, worked))
            failed |= {run.program} if fails else set()
            item = replace(item, still_fails=fails)
        out.append(item)
    return tuple(reversed(out))


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
_NO_WORD = re.compile(r"-|\d*[<>]|.*=")
_CODE = re.compile(r"(?:import|from|print|def) ?[\w(]|[\w.]+\(|[\w.\[\]]+ = ")
"""A cell of a notebook: the next one that works is the next try."""


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
    words = [word for word in (told or parts)[-1] if not _NO_WORD.match(word)]
    while len(words) > 1 and words[0] in _WRAPS:
        words = words[1:]
    program = [word.rpartition("/")[2] if word[0] in "./" else word for word in words[:3]]
    depth = 1
    while depth < len(program) and program[depth - 1] in _RUNS_ANOTHER:
        depth += 1
    return Run(tuple(program[:depth]), frozenset(words[depth:]))


def _runs_of(command: str) -> list[Run]:
    """All that a command line ran which ended well: what `&&` joins ended well in each part."""
    parts = command.split("&&") if ";" not in command and "||" not in command else [command]
    return [run_of(command), *(run_of(part) for part in parts[:-1])]
