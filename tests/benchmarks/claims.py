"""How many false claims of a summary are found, and how many true ones are marked for nothing.

    python -m tests.benchmarks.claims [--corpus ../shared/corpus] [--show]

True summaries are those that a model wrote on record of real sessions
(`recorded_compactions.jsonl`). A program with a fixed seed makes one claim of one of them false,
and the summary is checked as a compression checks it: the claim must be contradicted or marked.
The sessions are split by a hash of their id: rules were tuned on one part, the other is scored.

A swapped file and a dropped negation need not make a claim false (the other file may have been
edited too; the session may never have said either), nor an approval of what stands in a plan to
which the user said yes. Only those are made that are false by the session: the file never stands
with a name in the claim, the session denies the two words and never has them undenied, the user
said yes to no message that names it.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from praison_compressor.facts import Facts, extract
from praison_compressor.facts.coverage import STOP, stem, words
from praison_compressor.facts.passages import passages
from praison_compressor.facts.wording import AGREES, DENIES
from praison_compressor.messages import Message
from praison_compressor.summaries.claims import claims_of, unverified
from praison_compressor.summaries.prompts import rendering
from praison_compressor.summaries.protocol import Brief, Doubt
from tests.benchmarks.common import options, recorded, show

SEED = 20261123
PER_KIND = 24
"""Mutations of one kind in one summary at most."""


class Case(NamedTuple):
    """A session up to where it was compressed, and the summary that its model wrote."""

    name: str
    messages: list[Message]
    summary: str

    @property
    def part(self) -> str:
        """`tuning` or `score`, by the session's id."""
        session_id = self.name.partition("-compact")[0]
        return "score" if hashlib.sha256(session_id.encode()).digest()[0] % 2 else "tuning"


_AROUND = re.compile(
    r"^This session is being continued.*\n|^If you need specific details.*\n?|"
    r"^Please continue the conversation.*\n?",
    re.M,
)


def cases(corpus: Path) -> list[Case]:
    rows = recorded(corpus / "recorded_compactions.jsonl")
    return [Case(row["id"], row["pre"], _AROUND.sub("", row["summary"])) for row in rows]


def brief_of(messages: list[Message]) -> Brief:
    given = tuple(messages)
    return Brief(given, given, 4_000, 8_000, 100_000, 500, 1_000, originals=given)


# ---------------------------------------------------------------- mutations

Change = Callable[[str, "Session", random.Random], "str | None"]


class Session:
    """What a mutation may take from a session."""

    def __init__(self, messages: list[Message]) -> None:
        self.text = "\n".join(rendering(messages))
        self.facts: Facts = extract(messages)
        found = [item for item in self.facts.files if _FILE.search(item.path)]
        self.paths = {item.path.rpartition("/")[2]: item.path for item in found}
        told = list(passages(messages))
        spoken = [p for p in told if p.source in ("user", "assistant")]
        self.agreed = [
            f"{before.text}\n{said.text}".casefold()
            for before, said in pairwise(spoken)
            if said.source == "user" and AGREES.match(said.text)
        ]
        prose = [p.text for p in told if p.source in ("user", "assistant")]
        self.lines = [[stem(w) for w in words(line)] for text in prose for line in text.split("\n")]
        self.steps = [f"{p.call.arguments if p.call else ''}\n{p.text}".casefold() for p in told]

    def denies(self, pair: list[str]) -> bool:
        """Whether it has the two words near each other behind a negation, and not without one."""
        signs = []
        for line in self.lines if len(pair) == 2 else ():
            at = [n for n, one in enumerate(line) if one == pair[0] and pair[1] in line[n : n + 6]]
            signs += [any(one in DENIES for one in line[max(0, n - 3) : n]) for n in at]
        return bool(signs) and all(signs)

    def consented(self, name: str) -> bool:
        """Whether the user said yes to a message that names it."""
        part = name.rpartition("/")[2].casefold()
        return any(part in text for text in self.agreed)

    def together(self, *names: str) -> bool:
        """Whether one call with its result, or one message, has all of these."""
        return any(all(name.casefold() in step for name in names) for step in self.steps)


_TURNS = (
    (r"\bpass\b(?! \w)", "fail"),
    (r"\bpasses\b", "fails"), (r"\b(?<!is )passed\b", "failed"),
    (r"\bpassing\b", "failing"), (r"\bsucceeds?\b", "fails"), (r"\bsucceeded\b", "failed"),
    (r"\bsuccessful\b", "failed"), (r"\bsuccessfully\b", "unsuccessfully"),
    (r"\bfails?\b", "passes"), (r"\bfailed\b", "passed"),
    (r"\bfailing\b", "passing"), (r"\b[Ff]ixed\b", "could not fix"),
    (r"\b[Rr]esolved\b", "did not resolve"), (r"\b[Ss]olved\b", "did not solve"),
    (r"\bworks\b", "does not work"), (r"\b[Ii]mplemented\b", "failed to implement"),
    (r"\b[Cc]reated\b", "failed to create"), (r"\b[Uu]pdated\b", "failed to update"),
)  # fmt: skip
_SUPPOSED = re.compile(
    r"\b(?:when|if|unless|whether|should|would|could|to|[Vv]erify|[Rr]un)\b", re.I
)


def outcome(claim: str, session: Session, chance: random.Random) -> str | None:
    """The outcome turned."""
    fitting = [
        (found, new)
        for old, new in _TURNS
        if (found := re.search(old, claim)) and not _SUPPOSED.search(claim[: found.start()])
    ]
    if not fitting:
        return None
    found, new = chance.choice(fitting)
    return claim[: found.start()] + new + claim[found.end() :]


_NUMBER = re.compile(
    r"(?<![\w.#/~-])(?<!\d:)(?<!Phase )(?<!Step )(?<!Option )\d{1,6}(?![\w.:]|\)|-\d)"
)


def number(claim: str, session: Session, chance: random.Random) -> str | None:
    """A number changed that stands in the session; labels and list items are none."""
    body = re.match(r"[-*\s]*(?:\d+[.)]\s)?", claim)
    start = body.end() if body else 0
    found = [
        one
        for one in _NUMBER.finditer(claim, start)
        if re.search(rf"(?<![\w.]){one[0]}(?![\w.])", session.text)
    ]
    if not found:
        return None
    one = chance.choice(found)
    value = int(one[0])
    new = value + chance.choice((1, 2, 3, 5)) * (1 if value < 100 else chance.choice((7, 11, 30)))
    return claim[: one.start()] + str(new) + claim[one.end() :]


_FILE = re.compile(r"[\w-][\w.-]*\.(?:go|py|ts|tsx|js|sh|md|json|jsonl|yaml|yml|toml|txt|lock)")
_PATH = re.compile(rf"(?:[\w.-]+/)*({_FILE.pattern})")


def file(claim: str, session: Session, chance: random.Random) -> str | None:
    """A file swapped for another of the session, with which a name in the claim never stands."""
    found = [one for one in _PATH.finditer(claim) if one[1] in session.paths]
    if not found:
        return None
    one = chance.choice(found)
    kind, depth = one[1].rpartition(".")[2], one[0].count("/")
    names = [name for name in _NAMED.findall(claim) if session.together(name, one[1])]
    others = sorted(
        other
        for other in session.paths
        if other.endswith("." + kind) and other not in claim
        if any(not session.together(name, other) for name in names)
    )
    if not others:
        return None
    new = "/".join(session.paths[chance.choice(others)].split("/")[-depth - 1 :])
    return claim[: one.start()] + new + claim[one.end() :]


_NAMED = re.compile(r"\b(?:[a-z]+[A-Z]\w+|[A-Z]\w*[a-z][A-Z]\w*|[a-z]+_\w+)\b(?!\.\w)")


def name(claim: str, session: Session, chance: random.Random) -> str | None:
    """A file swapped for one that there is not."""
    found = [one for one in _FILE.finditer(claim) if one[0] in session.text]
    if not found:
        return None
    one = chance.choice(found)
    stem, _, kind = one[0].rpartition(".")
    new = f"{stem}_{chance.choice(('v2', 'helpers', 'core', 'legacy'))}.{kind}"
    return claim[: one.start()] + new + claim[one.end() :] if new not in session.text else None


_NEGATED = (
    (
        r"\b([Dd]o|[Dd]oes|[Dd]id|is|are|was|were|should|could|would|can|must|has|have|had)"
        r"(?: not|n't) ",
        r"\1 ",
    ),
    (r"\b[Cc]annot ", "can "), (r"\b(?:NOT|not|never) ", ""), (r"\b[Ww]ithout ", "with "),
    (r"\bno longer ", ""), (r"\b[Nn]o (?=[a-z])", "some "),
)  # fmt: skip


def negation(claim: str, session: Session, chance: random.Random) -> str | None:
    """A negation dropped that the session states of the same two words, and never without it."""
    for old, new in _NEGATED:
        found = re.search(old, claim)
        if found and session.denies(_content(claim[found.end() :])[:2]):
            return claim[: found.start()] + found.expand(new) + claim[found.end() :]
    return None


def _content(text: str) -> list[str]:
    return [one for one in map(stem, words(text)) if one not in STOP]


_APPROVED = (
    "The user approved {}.",
    "User confirmed that {} is correct.",
    "The user agreed to {} being merged.",
    "The user asked to delete {}.",
    "With the user's approval, {} was pushed to production.",
    "User said that {} may be published.",
)


def approval(claim: str, session: Session, chance: random.Random) -> str | None:
    """An approval or a request added behind the claim, of something that it names."""
    found = re.findall(r"`([\w./-]{5,60})`", claim)
    if not found:
        return None
    indent = re.match(r"[ \t]*(?:[-*] |\d+\. )?", claim)
    words_of, named = chance.choice(_APPROVED), chance.choice(found)
    if words_of is _APPROVED[0] and session.consented(named):
        return None
    return (indent[0] if indent else "") + words_of.format(f"`{named}`")


_PENDING = re.compile(
    r"^(\s*(?:[-*] |\d+\. )?)(?:\*\*)?(?:Need(?:s)? to |Still need(?:s)? to |Pending: )?"
    r"(Verify|Run|Fix|Create|Write|Test|Confirm|Investigate|Implement|Add|Update|Check|Resolve|"
    r"verify|run|fix|create|write|test|investigate|resolve) (.+)$"
)
_PAST = {"Run": "Ran", "Write": "Wrote", "Verify": "Verified", "Fix": "Fixed", "Create": "Created",
         "Test": "Tested", "Confirm": "Confirmed", "Investigate": "Investigated", "Add": "Added",
         "Implement": "Implemented", "Update": "Updated", "Check": "Checked",
         "Resolve": "Resolved"}  # fmt: skip
_SECTION = re.compile(r"\d+\. (?:Pending|Optional Next|Next)|## (?:Open|Next)", re.I)


def done(claim: str, session: Session, chance: random.Random) -> str | None:
    """What is pending told as done; only for claims of sections of open work."""
    found = _PENDING.match(claim)
    if not found:
        return None
    past = _PAST[found[2].capitalize()]
    return f"{found[1]}{past} {found[3]}"


CHANGES: dict[str, Change] = {
    "outcome": outcome, "number": number, "file": file, "name": name,
    "negation": negation, "approval": approval, "done": done,
}  # fmt: skip


def mutations(case: Case, session: Session, marked: set[int]) -> Iterator[tuple[str, int, str]]:
    """(kind, line, what it becomes): of each kind the same whatever is made of the others."""
    lines = case.summary.split("\n")
    told = [n for n in claiming(case.summary) if n not in marked]
    pending = set(open_lines(lines))
    for kind, change in CHANGES.items():
        chance = random.Random(f"{SEED}/{case.name}/{kind}")
        chosen = [n for n in told if kind != "done" or n in pending]
        chance.shuffle(chosen)
        made = ((n, change(lines[n], session, chance)) for n in chosen)
        yield from [(kind, n, new) for n, new in made if new and new != lines[n]][:PER_KIND]


def open_lines(lines: list[str]) -> Iterator[int]:
    """The lines below headings of open work."""
    is_open = False
    for n, line in enumerate(lines):
        if re.match(r"\d+\. |#+ ", line):
            is_open = _SECTION.match(line) is not None
        elif is_open:
            yield n


def claiming(summary: str) -> list[int]:
    """The numbers of the lines that make a claim."""
    return list(dict.fromkeys(summary.count("\n", 0, one.end) for one in claims_of(summary)))


# ---------------------------------------------------------------- the score


def doubted(text: str, brief: Brief, facts: Facts) -> dict[int, Doubt]:
    """The lines in doubt, by their numbers."""
    return {text.count("\n", 0, doubt.at): doubt for doubt in unverified(text, brief, facts)}


def score(found: list[Case], verbose: bool) -> Iterator[tuple[object, ...]]:
    """A row for each kind of mutation, their sum, and the true claims."""
    true, marked = 0, 0
    made, came = Counter[str](), Counter[tuple[str, str]]()
    for case in found:
        session, brief = Session(case.messages), brief_of(case.messages)
        lines = case.summary.split("\n")
        already = doubted(case.summary, brief, session.facts)
        true += len(list(claims_of(case.summary)))
        marked += len(already)
        for n, doubt in already.items() if verbose else ():
            print(f"MARKED {case.name} {doubt.kind}: {lines[n].strip()}\n    {doubt.mark}")
        for kind, n, new in mutations(case, session, set(already)):
            text = "\n".join((*lines[:n], new, *lines[n + 1 :]))
            doubt = doubted(text, brief, session.facts).get(n)
            made[kind] += 1
            came[kind, doubt.verdict if doubt else "missed"] += 1
            if verbose and not doubt:
                print(f"MISSED {kind} {case.name}:\n    {lines[n].strip()}\n    {new.strip()}")
    for kind in CHANGES:
        verdicts = came[kind, "contradicted"], came[kind, "unwitnessed"]
        yield kind, made[kind], sum(verdicts), _share(sum(verdicts), made[kind]), *verdicts
    caught = sum(n for (_, verdict), n in came.items() if verdict != "missed")
    yield "all of these", made.total(), caught, _share(caught, made.total()), "", ""
    yield "true claims", true, marked, _share(marked, true), "", ""


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.3f}" if whole else "-"


def main() -> None:
    given = options(__doc__, corpus="../shared/corpus", show=False)
    found = cases(Path(given.corpus))
    for part in ("tuning", "score"):
        columns = ("mutation", "made", "found", "share", "contradicted", "marked")
        rows = score([case for case in found if case.part == part], given.show)
        show(f"Claims: {part} part", columns, rows)


if __name__ == "__main__":
    main()
