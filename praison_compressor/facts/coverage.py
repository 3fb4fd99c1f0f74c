"""What a text still holds of the facts, what it lacks, and the lines that it may be from."""

from __future__ import annotations

import heapq
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field, replace
from functools import lru_cache
from operator import itemgetter
from typing import NamedTuple

from .identifiers import Classifier
from .model import DONE, Attempt, CommandFact, Facts, FileFact, Todo
from .outcomes import BAD
from .wording import DENIES, UNITS, WENT_WELL, WENT_WRONG

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

_FAILS = re.compile(r"fail|error|exception|rais|panic|crash|broke|refus|denied|reject", re.I)
_MENDED = re.compile(r"\b(?:fix(?:e[ds]|ing)?|resolv\w+|solved|addressed|mended|no longer)\b", re.I)


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
        fails = item.still_fails and item.outcome == "failed"
        if fails and (names := _names_of_error(item.detail)):
            return self.says(item.detail) or self._tells_error(names)
        text = item.text[:COMMAND_CHARS]
        return self.says(text) and (self.outcome(text) == "failed") == (item.outcome in BAD)

    def _tells_error(self, names: set[str]) -> bool:
        """Whether a clause that tells of a failure has half of an error's names at least."""
        told = (one for one in _CLAUSE_ENDS.split(self.text) if _FAILS.search(one))
        clauses = (one for one in told if not _MENDED.search(one))
        return any(2 * len(names & set(map(stem, words(one)))) >= len(names) for one in clauses)

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


_SAYS_THAT_IT_FAILED = frozenset("fail failur pass error exit code test total".split())


def _names_of_error(detail: str) -> set[str]:
    """The words of an error that another error has not: no count, no time, not that it failed."""
    said = {stem(word) for word in words(detail) if len(word) > 2 and len(measured(word)) == 1}
    return said - _SAYS_THAT_IT_FAILED - STOP


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


# -------------------------------------------------------------- words


STOP = frozenset(
    "a an the of to in on at for and or is are was were be been being it its this that these those "
    "with by from as i we you they he she his her their my our your user has have had do does did "
    "so then also into which who what when where how if there here now all any each than but "
    "can could should would will may might about after before while during via up out over "
    "not no nor never without don doesn didn isn aren wasn weren won cannot t s ll re ve".split()
)
"""Words that say nothing of what a sentence is about; in small letters."""
_DIGITS = {word: str(n) for n, word in enumerate("zero one two three four five six seven".split())}
_ENDING = re.compile(r"(?:ations?|ings?|ed|es|ly|s|e)$")
_QUOTES = str.maketrans(dict.fromkeys("\u2019\u2018\u201c\u201d\u2026\u2192\u2013\u2014", " "))
_SPACED = bytes(
    32 if chr(n) in "!\"#$%&'()*+,-/:;<=>?@[\\]^`{|}~\t\r" else n + 32 * (65 <= n <= 90)
    for n in range(256)
)
"""Bytes are split and looked up in half the time that text takes."""


_THOUSANDS = re.compile(r",(?<=\d,)(?=\d{3}(?!\d))")


def ungrouped(text: str) -> str:
    """The text with its numbers in one run of digits: "2,787" as "2787"."""
    return _THOUSANDS.sub("", text)


def words(text: str) -> list[str]:
    """The words of a text in small letters; a dot within a name stays, a comma in a number goes.

    >>> words("Added `Run` to cli/app.py for $1,250.")
    ['added', 'run', 'to', 'cli', 'app.py', 'for', '1250']
    """
    raw = _plain(text).decode("utf-8", "replace")
    spaced = raw if raw.isascii() else raw.translate(_QUOTES).casefold()
    return [word for one in spaced.split() if (word := one.strip("._"))]


def _plain(text: str) -> bytes:
    return ungrouped(text).encode("utf-8", "replace").translate(_SPACED)


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """A word of `words` without its ending; a small number as its digits."""
    if len(word) < 5 or not word.isalpha():
        return _DIGITS.get(word, word)
    cut = f"{word[:-3]}y" if word.endswith("ies") else _ENDING.sub("", word)
    cut = cut[:-1] if len(cut) > 4 and cut[-1] == cut[-2] else cut
    return _DIGITS.get(word) or (cut if len(cut) >= 3 else word)


@lru_cache(maxsize=65_536)
def _stems(word: str) -> tuple[str, ...]:
    """The stem of a word; of a dotted name also those of its parts, of `2.50s` also its number."""
    if word[:1].isdigit() and not word.isdigit() and (parts := measured(word)) != (word,):
        return (word, parts[0])
    if "." not in word:
        return (stem(word),)
    return (word, *(stem(part) for part in word.split(".") if part))


def measured(word: str) -> tuple[str, ...]:
    """A number and its unit; any other word as it is.

    >>> measured("2.50s"), measured("12"), measured("item")
    (('2.5', 's'), ('12',), ('item',))
    """
    found = _MEASURED.fullmatch(word)
    if not found:
        return (word,)
    bare = found[1].rstrip("0").rstrip(".") if "." in word else found[1]
    return (bare, found[2]) if found[2] else (bare,)


_MEASURED = re.compile(rf"(\d+(?:\.\d+)?)({UNITS})?")


def base_name(path: str) -> str:
    """A file's name as `words` has it: the last of its parts."""
    return (words(path) or [""])[-1]


class Words:
    """The words of a text: what it is about, and which of them it denies."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.all = words(text)
        self.stems = [stem(word) for word in self.all]
        self.content = {one for one in self.stems if one not in STOP}
        self.files = {word for word in self.all if _FILENAME.fullmatch(word)}
        self.denied: set[str] = set()
        for n, word in enumerate(self.all):
            if word in DENIES:
                self.denied.update([one for one in self.stems[n + 1 :] if one not in STOP][:2])


_FILENAME = re.compile(r"[\w-][\w.-]*\.[a-z][a-z0-9]{0,6}")
CODE = re.compile(r"`([^`\n]{3,120})`")


def code_names(text: str) -> set[str]:
    """The words in backticks that are names rather than plain words."""
    found = (word for span in CODE.findall(text) for word in words(span))
    return {stem(word) for word in found if not word.isalpha() or len(word) > 12}


def names_in(text: str) -> set[str]:
    """Names of code: `max_retries`, MaxRetries."""
    return {stem(word) for raw in _NAME.findall(text) for word in words(raw)}


_NAME = re.compile(r"\b(?:[a-z]+[A-Z]\w+|[A-Z]\w*[a-z][A-Z]\w*|[a-z]\w*_\w+)\b(?!\.[a-z])")


def differs(said: Words, told: Words, beside: Set[str]) -> bool:
    """Whether one has a number or outcome that the other has not, or denies what it does not."""
    if told.denied & (said.content - said.denied):
        return True
    added = set(said.all).difference(told.all, beside)
    return any(
        one.isdigit() or one in DENIES or WENT_WELL.fullmatch(one)
        or WENT_WRONG.fullmatch(one) for one in added
    )  # fmt: skip


def _is_filler(word: str) -> bool:
    return word in STOP or word.endswith("ly")


def sign(text: str, one: str, two: str) -> int:
    """-1 where a clause denies the two words, 1 where it has the one before the other, else 0."""
    for clause in _CLAUSES.split(text):
        raw = words(clause)
        order = [stem(word) for word in raw]
        for at, word in enumerate(order):
            if word == one and two in order[at + 1 : at + 4]:
                before = reversed(raw[max(0, at - 3) : at])
                nearest = next((w for w in before if w in DENIES or not _is_filler(w)), "")
                return -1 if nearest in DENIES else 1
    return 0


_CLAUSES = re.compile(r"[,;.] ")


# -------------------------------------------------------------- lines


LONGEST_LINE = 600
NEAREST = 200


class Line(NamedTuple):
    """A line of the originals, and those of its words that the text at hand has too."""

    text: str
    source: str
    """As a passage's, or `summary` or `visible`."""
    at: int
    """The position of its message in the segment; -1: it is of none."""
    words: frozenset[str]


class Lines:
    """The lines of many texts, found by the words (stems) that they share with one text."""

    def __init__(self, text: str, also: Iterable[str] = ()) -> None:
        self._wanted = {one for word in words(text) for one in _stems(word)}.union(also)
        self._known: set[bytes] = set()
        self._hits: dict[bytes, list[str]] = {}
        self._read: dict[bytes, frozenset[str]] = {}
        self._places: defaultdict[str, list[int]] = defaultdict(list)
        self._sets: dict[str, frozenset[int]] = {}
        self._lines: list[Line] = []

    def add(self, text: str, source: str, at: int = -1) -> frozenset[str]:
        """Take in a text's lines; the words that they share with the text at hand."""
        found: set[str] = set()
        for line in text.split("\n"):
            for start in range(0, len(line), LONGEST_LINE):
                piece = line[start : start + LONGEST_LINE] if len(line) > LONGEST_LINE else line
                shared = self._shared(_plain(piece))
                if shared:
                    found |= shared
                    for one in shared:
                        self._places[one].append(len(self._lines))
                    self._lines.append(Line(piece, source, at, shared))
        return frozenset(found)

    def shared(self, text: str) -> frozenset[str]:
        """The words that a text shares with the text at hand."""
        return self._shared(_plain(text))

    def _shared(self, line: bytes) -> frozenset[str]:
        found = self._read.get(line)
        if found is None:
            raw = set(line.split())
            for word in raw - self._known:
                self._known.add(word)
                if parts := self._stems(word):
                    self._hits[word] = parts
            hits = raw & self._hits.keys()
            found = frozenset([one for word in hits for one in self._hits[word]])
            self._read[line] = found
        return found

    def _stems(self, word: bytes) -> list[str]:
        text = word.decode("utf-8", "replace")
        parts = [text.strip("._")] if word.isascii() else words(text)
        return [one for part in parts for one in _stems(part) if one in self._wanted]

    def weight(self, word: str) -> float:
        """How much a word tells: the rarer, the more."""
        return max(0.1, math.log((len(self._lines) + 1) / (len(self._places.get(word, ())) + 0.5)))

    def cover(self, given: Iterable[str], found: frozenset[str]) -> float:
        """The share of the words' weight that is in `found`: 0 to 1."""
        held = whole = 0.0
        for one in given:
            weight = self.weight(one)
            whole += weight
            held += weight if one in found else 0.0
        return held / whole if whole else 0.0

    def nearest(self, given: Iterable[str]) -> list[tuple[float, Line]]:
        """The lines that have most of the words' weight, the best first, each with its share.

        Words that are everywhere bring no line of their own.
        """
        weights = {one: self.weight(one) for one in given}
        whole = sum(weights.values()) or 1.0
        often = max(60, len(self._lines) // 25)
        score: defaultdict[int, float] = defaultdict(float)
        for one, weight in weights.items():
            places = self._places.get(one, ())
            if len(places) <= often:
                for n in places:
                    score[n] += weight
        best = heapq.nlargest(NEAREST, score.items(), key=itemgetter(1))
        return [(held / whole, self._lines[n]) for n, held in best]

    def having(self, *given: str) -> list[Line]:
        """The newest lines that have all of these words."""
        first, *rest = sorted(map(self._places_of, given), key=len)
        found = sorted(first.intersection(*rest))[-NEAREST:]
        return [self._lines[n] for n in reversed(found)]

    def beside(self, one: str, others: Iterable[str]) -> list[Line]:
        """The lines that have the one word and any of the others."""
        near = frozenset[int]().union(*map(self._places_of, others))
        return [self._lines[n] for n in sorted(self._places_of(one) & near)]

    def _places_of(self, word: str) -> frozenset[int]:
        found = self._sets.get(word)
        if found is None:
            found = self._sets[word] = frozenset(self._places.get(word, ()))
        return found

    def find(self, literal: str, pattern: re.Pattern[str]) -> Line | None:
        """The first line with the pattern, of which `literal` is a part; None without."""
        lines = (line for line in self._lines if literal in line.text)
        return next((line for line in lines if pattern.search(line.text)), None)

    def has(self, literal: str) -> bool:
        """Whether a line has the text itself."""
        return any(literal in line.text for line in self._lines)


# -------------------------------------------------------------- witnesses


WITNESS_CHARS = 120  # of a witness that are quoted


def quoted(text: str) -> str:
    """A witness in quotation marks, on one line."""
    flat = " ".join(text.split())
    return f'"{flat if len(flat) <= WITNESS_CHARS else flat[: WITNESS_CHARS - 1] + "…"}"'


def told_row(row: Attempt) -> str:
    """A row of the table in a few words."""
    if row.paths:
        named = f"`{row.text.split()[0]} {short(row.paths[0])}` {row.status}"
        return named if row.status == "ok" else f"{named}: {row.detail[:WITNESS_CHARS]}"
    text = " ".join(row.text.split())
    named = f"`{text if len(text) <= 60 else text[:59] + '…'}` {row.status}"
    return f"{named}: {row.detail[:WITNESS_CHARS]}" if row.detail else named
