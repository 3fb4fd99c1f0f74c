"""The facts of a segment: frozen records that are stored and come back whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from ..messages.forks import lazy

if TYPE_CHECKING:
    from .stale import Stale


DONE = ("completed", "complete", "done", "cancelled", "finished")
"""As which the items of a list count that need no more work."""


@dataclass(frozen=True)
class Said:
    """Something the user wrote, verbatim, and what became of it."""

    index: int
    text: str
    standing: bool = False
    """A rule for the whole session ("always", "never", "must") rather than one request."""
    pasted: int = 0
    """0 for what was typed, 1 for the beginning of a long paste, 2 for its rest."""
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
    counts: Mapping[str, int] = field(default_factory=dict)
    target: str = ""
    """Where a moved file went."""
    ok: bool = True


@dataclass(frozen=True)
class CommandFact:
    """A command, search or fetch, with its newest outcome."""

    text: str
    outcome: str
    """`ok`, `failed` or `unknown`."""
    detail: str
    """The line of the result that says it: first error, failing tests, or the last line."""
    index: int
    runs: int = 1
    kind: str = "command"


@dataclass(frozen=True)
class ErrorFact:
    """An error line of a tool result, and what the assistant said or did next."""

    text: str
    index: int
    followed_by: str = ""
    times: int = 1


@dataclass(frozen=True)
class Note:
    """A sentence of the assistant: a decision with its reason, or open work."""

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
    """How often, by whom and where an identifier was used."""

    text: str
    kind: str
    named: int = 0
    """Calls that name it in a short argument."""
    bodies: int = 0
    """Calls that hold it inside a long one: a file's text, a patch."""
    user: int = 0
    assistant: int = 0
    results: int = 0
    first: int = 0
    last: int = 0
    spread: int = 1
    """In how many passages it occurs."""
    crowd: int = 1
    """The fewest identifiers that share one passage with it."""


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
    errors: tuple[ErrorFact, ...] = ()
    decisions: tuple[Note, ...] = ()
    open_work: tuple[Note, ...] = ()
    todos: tuple[Todo, ...] = ()
    last_words: tuple[Note, ...] = ()
    """What the assistant said last, at most one sentence."""
    identifiers: tuple[Identifier, ...] = ()
    excerpts: tuple[Excerpt, ...] = ()
    patterns: Mapping[str, str] = field(default_factory=dict)
    """By which the domain's own identifiers were found: kind -> regular expression."""

    @lazy
    def worth(self) -> Mapping[str, float]:
        """How likely each identifier is to be needed again, 0 to 1."""
        from .importance import worth

        return worth(self)

    @lazy
    def stale(self) -> Stale:
        """What the user took back."""
        from .stale import Stale

        return Stale(self)

    def merge(self, later: Facts) -> Facts:
        """These facts followed by `later`: counts add, the last word wins."""
        from .extraction import merge

        return merge(self, later)

    def to_json(self) -> dict[str, Any]:
        """A plain JSON value; `from_json` gives an equal object back."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Facts:
        """The facts that `to_json` wrote; unknown keys of a later version are ignored."""
        kinds: dict[str, Any] = {
            "user": Said,
            "files": FileFact,
            "commands": CommandFact,
            "errors": ErrorFact,
            "decisions": Note,
            "open_work": Note,
            "todos": Todo,
            "last_words": Note,
            "identifiers": Identifier,
            "excerpts": Excerpt,
        }
        parts = {name: _records(kind, value.get(name, ())) for name, kind in kinds.items()}
        return cls(int(value.get("messages", 0)), **parts, patterns=value.get("patterns", {}))

    def __bool__(self) -> bool:
        kinds = (item.name for item in fields(self) if item.name not in ("messages", "patterns"))
        return any(getattr(self, name) for name in kinds)


def shifted(record: Any, by: int) -> Any:
    """The record as it stands `by` messages further on."""
    if by == 0:
        return record
    moved = {name: getattr(record, name) + by for name in _positions(record)}
    return replace(record, **moved)


def _positions(record: Any) -> list[str]:
    names = [name for name in ("index", "first", "last") if hasattr(record, name)]
    if getattr(record, "superseded_at", None) is not None:
        names.append("superseded_at")
    return names


def _records(kind: Any, values: Sequence[Mapping[str, Any]]) -> tuple[Any, ...]:
    known = {item.name for item in fields(kind)}
    return tuple(
        kind(**{key: _frozen(item) for key, item in value.items() if key in known})
        for value in values
    )


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
