"""The facts of a segment as frozen records, and what a user's own field adds to find them by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import NamedTuple

from ..config import CompressorConfig

DONE = ("completed", "complete", "done", "cancelled", "finished")
"""As which the items of a list count that need no more work."""


@dataclass(frozen=True)
class Said:
    """Something the user wrote, verbatim, and what became of it."""

    index: int
    text: str
    pasted: int = 0
    """0 for what was typed, 1 for the beginning of a long paste, 2 for its rest."""
    quoted: bool = False
    """Somebody else's words, which the user handed on."""
    superseded_by: str | None = None
    """The user's later words that replaced this."""
    superseded_at: int | None = None
    old_values: tuple[str, ...] = ()
    """The values in this text that no longer hold."""
    about: tuple[str, ...] = ()
    """The words that say what those were for, here or in what they replaced."""


@dataclass(frozen=True)
class FileFact:
    """One file and the last thing done to it."""

    path: str
    action: str
    via: str
    """The call that did it: a tool's name, or the shell command's."""
    index: int
    target: str = ""
    """Where a moved file went."""
    ok: bool = True


@dataclass(frozen=True)
class CommandFact:
    """A command, search or fetch, with its newest outcome."""

    text: str
    outcome: str
    """`ok`, `failed`, `refused`, `interrupted` or `unknown`."""
    detail: str
    """The line of the result that says it: first error, failing tests, or the last line."""
    index: int
    kind: str = "command"
    still_fails: bool = False
    """It failed, and nothing like it worked since."""
    failing: tuple[str, ...] = ()
    """The tests or their files that failed, where the result names them all."""


@dataclass(frozen=True)
class Attempt:
    """One call and what its result says came of it: a row of the table of outcomes."""

    text: str
    """What was tried: the command line, or the tool's name with its arguments."""
    paths: tuple[str, ...]
    """The files that it is about."""
    changes: bool
    """Whether it is to change them."""
    status: str
    """`ok`, `failed`, `refused`, `interrupted` or `unknown`."""
    detail: str
    """The line of the result that says so."""
    index: int
    checks: tuple[str, ...] = ()
    """What it checks: `test`, `lint`, `build`."""
    failing: tuple[str, ...] = ()
    """The tests or their files that failed, where the result names them all."""


@dataclass(frozen=True)
class Note:
    """A sentence of the assistant, or an error line of a tool's result."""

    text: str
    index: int


@dataclass(frozen=True)
class Todo:
    """An item of the newest todo list."""

    text: str
    status: str
    index: int


@dataclass(frozen=True)
class Identifier:
    """A name that nobody could guess, and how likely it is to be needed again."""

    text: str
    kind: str
    named: int = 0
    """Calls that name it in a short argument."""
    first: int = 0
    last: int = 0
    """The messages that had it first and last."""
    spread: int = 1
    """In how many passages it occurs."""
    crowd: int = 1
    """The fewest identifiers that share one passage with it."""
    sources: frozenset[str] = frozenset()
    """Whose passages have it: see `Excerpt.source`."""
    worth: float = 0.0
    """0 to 1."""


@dataclass(frozen=True)
class Excerpt:
    """A verbatim clause that binds the identifiers it holds."""

    index: int
    source: str
    """`user`, `assistant`, `call`, `result` or `host`."""
    text: str
    keys: tuple[str, ...] = ()


@dataclass(frozen=True)
class Facts:
    """Everything a segment must not lose; `messages` is how many messages it was read from."""

    messages: int = 0
    user: tuple[Said, ...] = ()
    files: tuple[FileFact, ...] = ()
    commands: tuple[CommandFact, ...] = ()
    errors: tuple[Note, ...] = ()
    decisions: tuple[Note, ...] = ()
    open_work: tuple[Note, ...] = ()
    todos: tuple[Todo, ...] = ()
    last_words: tuple[Note, ...] = ()
    """What the assistant said last, at most one sentence."""
    identifiers: tuple[Identifier, ...] = ()
    excerpts: tuple[Excerpt, ...] = ()
    attempts: tuple[Attempt, ...] = field(default=(), compare=False, repr=False)
    """Every call that was answered, in order."""
    patterns: Mapping[str, str] = field(default_factory=dict)
    """By which the domain's own identifiers were found: kind -> regular expression."""

    references: tuple[str, ...] = ()
    """By which the archive reads each message, as s2.14; empty where nothing is archived."""

    def at(self, index: int) -> str:
        """The reference of a message in brackets, with a space behind it; "" where it has none."""
        named = self.references[index] if index < len(self.references) else ""
        return f"[{named}] " if named else ""

    def __bool__(self) -> bool:
        nothing = Facts(self.messages, patterns=self.patterns, references=self.references)
        return self != nothing


class ToolAction(NamedTuple):
    """What a tool does, and the argument that says to what; empty: the usual one."""

    action: str
    argument: str = ""


@dataclass(frozen=True)
class Domain:
    """Tools, identifiers and host texts that no general vocabulary knows.

    >>> Domain(tools={"kb_*": "search:question"}).action("kb_lookup")
    ToolAction(action='search', argument='question')
    """

    tools: Mapping[str, str] = field(default_factory=dict)
    """Tool name or pattern -> action, or action:argument; see `CompressorConfig.fact_tools`."""
    patterns: Mapping[str, str] = field(default_factory=dict)
    """Kind of identifier -> regular expression; see `CompressorConfig.fact_patterns`."""
    host_prefixes: tuple[str, ...] = ()
    """How texts begin that a host writes in the user's role."""
    rule_sources: tuple[str, ...] = ()
    """Documents and tools whose words bind; see `CompressorConfig.rule_sources`."""

    @classmethod
    def of(cls, config: CompressorConfig) -> Domain:
        """The domain that a configuration describes."""
        return cls(
            config.fact_tools, config.fact_patterns, config.host_prefixes, config.rule_sources
        )

    def action(self, tool: str) -> ToolAction | None:
        """What a tool does: by its name, else by the first pattern that fits."""
        fitting = (rule for name, rule in self.tools.items() if fnmatchcase(tool, name))
        found = self.tools.get(tool) or next(fitting, None)
        return None if found is None else ToolAction(*found.split(":", 1))


GENERAL = Domain()
"""Nothing but the usual vocabularies."""
