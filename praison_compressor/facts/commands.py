"""Commands, searches and fetches with what came of them, and which of them still fail."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ..messages import ToolCall
from .files import action_of, command_texts, names_a_file
from .model import GENERAL, Attempt, CommandFact, Domain, ToolAction
from .outcomes import BAD, PASSED, Outcome, outcome_of
from .passages import arguments_of, call_text, key_of
from .shell import Effect, programs

_SEARCH = re.compile(r"grep|search|find|glob|query|list(?!ing)", re.I)
_RUN = re.compile(
    r"bash|shell|terminal|exec|run|command|python|console|sql|repl(?!ac)|interpreter", re.I
)
_CODE_KEYS = ("code", "sql", "statement", "query")
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
    rule = domain.action(call.name)
    if rule is None:
        kind = _kind(call.name, arguments)
    else:
        kind = rule.action if rule.action in ("command", "search", "fetch") else None
    text = _spoken(call, arguments, kind, rule) if kind else ""
    if not kind or not text:
        return None
    if kind == "search" or (kind == "fetch" and not outcome.is_bad):
        outcome = _found(result)
    return CommandFact(
        text, outcome.status, outcome.detail, index, kind=kind, failing=outcome.failing
    )


_PIPED = re.compile(r"\||;\s*(?:echo|true)\b")


def call_outcome(call: ToolCall | None, result: str) -> Outcome:
    """What a result says came of the call that it answers.

    Of a check in a pipeline (`go build | head`) the end is unknown where its output does not tell.
    """
    lines = command_texts(arguments_of(call)) if call and _RUN.search(call.name) else []
    # Its exit code may be that of another program.
    piped = any(map(_PIPED.search, lines))
    outcome = outcome_of(result, piped=piped)
    if not piped or outcome.status != "ok" or PASSED.search(result[-4_000:]):
        return outcome
    ran = (run.program for text in lines for run in _runs_of(text))
    checks = any(not _KIND_OF.keys().isdisjoint(program) for program in ran)
    return Outcome("unknown", outcome.detail) if checks else outcome


def _kind(name: str, arguments: Any) -> str | None:
    if not isinstance(arguments, Mapping):
        return None
    if _RUN.search(name):
        return "command" if command_texts(arguments) or _first(arguments, _CODE_KEYS) else None
    if _first(arguments, _URL_KEYS):
        return "fetch"
    if _LIST_OF_WORK.search(name):
        return None
    writes = action_of(name, arguments) in ("created", "edited", "deleted", "moved")
    if _SEARCH.search(name) and not writes:
        return "search"
    acts = _ACTS.match(name.rpartition("__")[2])
    return "command" if acts and arguments and not names_a_file(arguments) else None


def _first(arguments: Mapping[str, Any], keys: tuple[str, ...]) -> str:
    """The text of the first argument that is called so."""
    found = (value for key, value in arguments.items() if key_of(key) in keys)
    texts = (value[0] if isinstance(value, list) and value else value for value in found)
    return next((text for text in texts if isinstance(text, str)), "")


def _spoken(call: ToolCall, arguments: Any, kind: str, rule: ToolAction | None) -> str:
    """What is run, a shell's lines or code, or the call with what its arguments say."""
    given = arguments if isinstance(arguments, Mapping) else {}
    text = ""
    if kind == "command":
        lines = " && ".join(command_texts(arguments, rule))
        text = lines if lines or rule else _first(given, _CODE_KEYS)
    elif kind == "fetch" and rule is None:
        text = f"{call.name} {_first(given, _URL_KEYS)}"
    elif rule is not None and rule.argument:
        text = f"{call.name} {given.get(rule.argument, '')}"
    flat = " ".join((text or call_text(call)).split())
    return flat if len(flat) <= COMMAND_CHARS else flat[: COMMAND_CHARS - 1] + "…"


def _found(result: str) -> Outcome:
    lines = [line for line in result.splitlines() if line.strip()]
    if not lines:
        return Outcome("ok", "nothing found")
    first = " ".join(lines[0].split())[:120]
    more = f" (+{len(lines) - 1} lines)" if len(lines) > 1 else ""
    return Outcome("ok", first + more)


# -------------------------------------------------------------- the table of outcomes


def attempt(
    call: ToolCall, effects: Sequence[Effect], outcome: Outcome, worked: bool, index: int
) -> Attempt:
    """The row of one call; `worked`: its files were touched as it meant, whatever came of it."""
    arguments = arguments_of(call)
    text = _spoken(call, arguments, "command" if _RUN.search(call.name) else "", None)
    paths = dict.fromkeys(path for one in effects for path in (one.path, one.target) if path)
    changes = any(effect.action != "read" for effect in effects)
    status = "ok" if changes and worked and outcome.status == "unknown" else outcome.status
    checks = _checks(call.name, command_texts(arguments))
    return Attempt(
        text, tuple(paths), changes, status, outcome.detail, index, checks, outcome.failing
    )


_RUNS_ANOTHER = frozenset(
    "pnpm npm yarn bun python python3 make cargo go dotnet mvn gradle docker compose kubectl "
    "terraform mise just task rake nx turbo hatch pdm composer".split()
)
"""What the next word tells is run: `cargo test` and `cargo doc` are two programs."""
_CHECK_KINDS = {
    "test": "test tests pytest unittest jest vitest mocha playwright rspec phpunit ctest tox nox",
    "lint": "lint eslint ruff clippy mypy flake8 pylint golangci rubocop",
    "build": "build compile tsc vet check typecheck make",
}
_KIND_OF = {word: kind for kind, all_of in _CHECK_KINDS.items() for word in all_of.split()}
"""Of a check it matters on what it was run; that another file can be listed says nothing new."""


def _checks(tool: str, lines: Sequence[str]) -> tuple[str, ...]:
    """What a call checks, by the programs that it runs; by its name where it runs no command."""
    found: list[str | None] = []
    for words in (words for line in lines for words in programs(line)):
        told = words[:4] if words[0] in _RUNS_ANOTHER else words[:1]
        parts = (part for word in told for part in re.split(r"[^a-z0-9]", word.rpartition("/")[2]))
        found += [_KIND_OF.get(part) for part in parts]
    if not lines:
        found = [_KIND_OF.get(part) for part in re.split(r"[^a-z0-9]", tool.lower())]
    return tuple(dict.fromkeys(filter(None, found)))


# -------------------------------------------------------------- what still fails


def with_failing(
    commands: Iterable[CommandFact], attempts: Iterable[Attempt] = ()
) -> tuple[CommandFact, ...]:
    """The commands, those marked that failed when they last ran if none like them worked since: of
    two programs at most, the newest. So too of calls that name no file, such as `run_tests`: those
    of the `attempts` that still fail are told as commands. A run of tests is resolved, too, where
    each test that it names as failed has passed in later, narrower runs."""
    known = list(commands)
    texts = {item.text for item in known}
    known += (
        CommandFact(row.text, row.status, row.detail, row.index, kind="call", failing=row.failing)
        for row in attempts
        if not row.paths and row.text not in texts
    )
    out: list[CommandFact] = []
    worked: list[Run] = []
    passed: list[Run] = []
    failed: dict[str, set[tuple[str, ...]]] = {"command": set(), "call": set()}
    for item in sorted(known, key=lambda item: item.index)[::-1]:
        if item.kind in failed and item.outcome not in BAD:
            worked += _runs(item)
            passed += _runs(item) if item.outcome == "ok" else ()
        elif item.kind in failed and item.detail and len(failed[item.kind]) < 2:
            run, told = _runs(item)[-1], failed[item.kind]
            mended = any(map(run.is_within, worked)) or _all_passed(item.failing, run, passed)
            if run.program not in told and not mended:
                told.add(run.program)
                item = replace(item, kind="command", still_fails=True)
        if item.kind != "call":
            out.append(item)
    return tuple(reversed(out))


class Run(NamedTuple):
    """A program with its subcommand, and the words that say on what."""

    program: tuple[str, ...]
    on: frozenset[str]

    def is_within(self, wider: Run) -> bool:
        """Whether the other run has done at least this: `pytest` does `pytest tests/a.py`."""
        if self.program != wider.program or _KIND_OF.keys().isdisjoint(self.program):
            return self.program == wider.program
        return all(
            any(word.startswith(whole.rstrip("/")) for word in self.on) for whole in wider.on
        )

    def has_run(self, test: str) -> bool:
        """Whether it was on this test or what it is of; one that also selects by a word may not."""
        return all(map(_A_PLACE.fullmatch, self.on)) and any(
            re.match(rf"{re.escape(word.removeprefix('./').rstrip('/'))}(?!\w)", test)
            for word in self.on
        )


_A_PLACE = re.compile(r"\S*[./:]\S*|tests?")


def _all_passed(failing: Sequence[str], run: Run, passed: Iterable[Run]) -> bool:
    """Whether each of the tests that failed has passed in a run of the same program since."""
    like = [one for one in passed if one.program == run.program]
    return bool(failing) and all(any(one.has_run(test) for one in like) for test in failing)


def _runs(item: CommandFact) -> list[Run]:
    """What a command ran; a call is a program by the words of its tool's name."""
    if item.kind == "command":
        return _runs_of(item.text)
    name, *words = item.text.split()
    return [Run(tuple(re.split(r"[^a-z0-9]+", name.lower())), frozenset(words))]


def _runs_of(command: str) -> list[Run]:
    """What a command line ran that ended as it did: what `&&` joins ended well in each part."""
    runs = [_run(words) for words in programs(command)] or [Run((command,), frozenset())]
    return runs if ";" not in command and "||" not in command else runs[-1:]


def _run(words: list[str]) -> Run:
    """
    >>> _run(["python", "pytest", "tests"])
    Run(program=('python', 'pytest'), on=frozenset({'tests'}))
    """
    depth = 1
    while depth < len(words) and words[depth - 1] in _RUNS_ANOTHER:
        depth += 1
    return Run(tuple(words[:depth]), frozenset(words[depth:]))
