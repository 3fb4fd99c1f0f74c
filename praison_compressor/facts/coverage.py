"""What a text still holds of the facts, and what it lacks; questions on a compressed session."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..messages import Message, content_digest
from ..messages.display import in_words
from .extraction import extract
from .identifiers import Classifier
from .model import DONE, GENERAL, CommandFact, Domain, Facts, FileFact, Note, Said, Todo

MATTERS = 0.05
COMMAND_CHARS = 80
"""By which a long command is known again."""
CLAUSE_CHARS = 200
# What came of something, as people write it.
_CAME = re.compile(
    r"(?<!\bno )(?<!\b0 )(?<!\bnot )(?<!\bwithout )(?:"
    r"(?P<failed>\bfail|\berrors?\b|\bexit\D{0,9}[1-9]|\bcrash|\babort|\brefus|\bdenied|\bbroke|"
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
        return self.says(text) and (self.outcome(text) == "failed") == (item.outcome == "failed")

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


# -------------------------------------------------------------- probes

QUESTIONS = {
    "task": "What is the user's task, and what did the user ask for last?",
    "rules": "Which rules and wishes of the user hold for all that is still to come?",
    "files": "Which files were changed, and what was done to each of them last?",
    "failures": "Which commands failed, and have not worked since?",
    "next": "What is open, and what comes next?",
}
"""What an agent that goes on has to know, by kind."""
TOLD = 0.6
"""Share of a fact's words that an answer in other words has to have."""
READING = ("read", "listed", "searched")


@dataclass(frozen=True)
class Probe:
    """A question on a compressed session: what its transcript says, and which of that is told."""

    kind: str
    question: str
    expected: tuple[str, ...]
    lacking: tuple[str, ...]
    """Those of `expected` that the view, or the answer, does not have."""

    @property
    def score(self) -> float:
        """0 to 1; 1 where the transcript has nothing of the kind."""
        return 1 - len(self.lacking) / len(self.expected) if self.expected else 1.0


def probe(
    messages: Sequence[Message],
    view: Sequence[Message],
    answers: Mapping[str, str] | None = None,
    *,
    domain: Domain = GENERAL,
) -> list[Probe]:
    """Ask of a view what its transcript knows for certain: no model judges.

    With `answers`, by the kinds of `QUESTIONS`, those are scored instead: what somebody who sees
    the view alone has said. A fact counts as told where the message it comes from stands in the
    view, where its words do, or, in an answer, most of them.
    """
    facts = extract(messages, domain=domain)
    standing = {content_digest(message) for message in view}
    shown = {n for n, message in enumerate(messages) if content_digest(message) in standing}
    seen = Text("\n".join(map(in_words, view)), facts.patterns)
    found = []
    for kind, items in _expected(facts).items():
        answer = None if answers is None else Text(answers.get(kind, ""), facts.patterns)
        lacking = [
            item
            for item in items
            if not (_says(answer, item) if answer else item.index in shown or _holds(seen, item))
        ]
        found.append(
            Probe(kind, QUESTIONS[kind], tuple(map(_line, items)), tuple(map(_line, lacking)))
        )
    return found


Item = Said | FileFact | CommandFact | Todo | Note


def _expected(facts: Facts) -> dict[str, list[Item]]:
    asked = sorted({0, len(facts.user) - 1}) if facts.user else []
    return {
        "task": [facts.user[n] for n in asked],
        "rules": [item for item in facts.user if item.standing and item.superseded_by is None],
        "files": [item for item in facts.files if item.action not in READING],
        "failures": [item for item in facts.commands if item.still_fails],
        "next": [item for item in facts.todos if item.status not in DONE] or list(facts.last_words),
    }


def _line(item: Item) -> str:
    if isinstance(item, FileFact):
        return f"{item.action} {item.path}"
    return item.text


def _holds(seen: Text, item: Item) -> bool:
    if isinstance(item, FileFact):
        return seen.has_file(item)
    if isinstance(item, CommandFact):
        return seen.has_command(item)
    return seen.has_todo(item) if isinstance(item, Todo) else seen.says(item.text)


def _says(answer: Text, item: Item) -> bool:
    """Whether an answer in other words tells of it."""
    if isinstance(item, FileFact):
        return answer.names(short(item.path))
    wanted = set(re.findall(r"\w{4,}", item.text.casefold()))
    told = wanted & set(re.findall(r"\w{4,}", answer.text.casefold()))
    return len(told) >= TOLD * len(wanted)
