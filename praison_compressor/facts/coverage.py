"""What a text still holds of the facts, and what it lacks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from .identifiers import Classifier
from .model import DONE, CommandFact, Facts, FileFact, Todo
from .outcomes import BAD

MATTERS = 0.05
COMMAND_CHARS = 80
"""By which a long command is known again."""
CLAUSE_CHARS = 200
# What came of something, as people write it.
_CAME = re.compile(
    r"(?<!\bno )(?<!\b0 )(?<!\bnot )(?<!\bwithout )(?:"
    r"(?P<failed>\bfail|\berrors?\b|\bexit\D{0,9}[1-9]|\bcrash|\babort|\brefus|\breject|\binterrupt|\bdenied|\bbroke|"
    r"\btimed? ?out|\bcould ?n[o']t|✗|❌|\bfehl(?:er|ge)|\béchou|\bfall[óa]|失败|失敗|エラー|错误)"
    r"|(?P<ok>\bsucce|\bpass|\bok\b|\bwork(?:s|ed)\b|\bgreen\b|\bfine\b|\bclean|\bdone\b|\bcomplete|"
    r"✓|✔|✅|\berfolg|\bbestanden|\bréussi|\béxito|成功|通过|通過))",
    re.I,
)
_CLAUSE_ENDS = re.compile(r"\n|[.;!?](?=\s|$)")


@dataclass(frozen=True)
class Coverage:
    """How many of the facts a text holds; `by_kind` gives (covered, total) for each kind."""

    covered: int
    total: int
    by_kind: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def share(self) -> float:
        """Covered over total, 1 where there is nothing to cover."""
        return self.covered / self.total if self.total else 1.0


class Text:
    """A text prepared for look-ups: its identifiers, and its words with whitespace flattened."""

    def __init__(self, text: str, patterns: Mapping[str, str]) -> None:
        self.text = text
        self.flat = " ".join(text.split())
        self.keys = set(Classifier(patterns).names(text))

    def says(self, text: str) -> bool:
        return " ".join(text.split()) in self.flat

    def names(self, key: str) -> bool:
        return key in self.keys or (len(key) >= 4 and key in self.flat)

    def has_file(self, item: FileFact) -> bool:
        path = short(item.path)
        return self.names(path) and (item.ok or self.outcome(path) == "failed")

    def has_command(self, item: CommandFact) -> bool:
        text = item.text[:COMMAND_CHARS]
        return self.says(text) and (self.outcome(text) == "failed") == (item.outcome in BAD)

    def has_todo(self, item: Todo) -> bool:
        return self.says(item.text) and (item.status in DONE or self.outcome(item.text) != "ok")

    def outcome(self, text: str) -> str | None:
        """`failed` or `ok`: what is last said to have come of it, in a clause that names it."""
        said = None
        words = r"\s+".join(map(re.escape, text.split()))
        for found in re.finditer(words or r"\Z", self.text):
            start, end = found.span()
            behind = _CLAUSE_ENDS.split(self.text[end : end + CLAUSE_CHARS])[0]
            before = _CLAUSE_ENDS.split(self.text[max(0, start - CLAUSE_CHARS) : start])[-1]
            came = _CAME.search(behind) or _CAME.search(before)
            said = came.lastgroup if came else said
        return said


def coverage(facts: Facts, text: str) -> Coverage:
    """Count which facts the text holds, by kind."""
    lacking = missing(facts, text)
    by_kind = {}
    for kind in ("user", "files", "commands", "errors", "decisions", "open_work", "todos"):
        if total := len(getattr(facts, kind)):
            by_kind[kind] = (total - len(getattr(lacking, kind)), total)
    matter = {item.text for item in facts.identifiers if item.worth >= MATTERS}
    if matter:
        left = sum(item.text in matter for item in lacking.identifiers)
        by_kind["identifiers"] = (len(matter) - left, len(matter))
    covered = sum(pair[0] for pair in by_kind.values())
    return Coverage(covered, sum(pair[1] for pair in by_kind.values()), by_kind)


def missing(facts: Facts, text: str) -> Facts:
    """The facts without those that the text already holds, with what came of them."""
    seen = Text(text, facts.patterns)
    return replace(
        facts,
        user=tuple(item for item in facts.user if not seen.says(item.text)),
        files=tuple(item for item in facts.files if not seen.has_file(item)),
        commands=tuple(item for item in facts.commands if not seen.has_command(item)),
        errors=tuple(item for item in facts.errors if not seen.says(item.text[:80])),
        decisions=tuple(item for item in facts.decisions if not seen.says(item.text)),
        open_work=tuple(item for item in facts.open_work if not seen.says(item.text)),
        todos=tuple(item for item in facts.todos if not seen.has_todo(item)),
        last_words=tuple(item for item in facts.last_words if not seen.says(item.text)),
        identifiers=tuple(item for item in facts.identifiers if item.text not in seen.keys),
        excerpts=tuple(item for item in facts.excerpts if not set(item.keys) <= seen.keys),
    )


def short(path: str) -> str:
    """The last two parts of a path: enough to recognise it."""
    mark = "\\" if "\\" in path and "/" not in path else "/"
    parts = [part for part in path.split(mark) if part not in ("", ".", "..", "~")]
    return mark.join(parts[-2:]) if len(parts) >= 3 else path
