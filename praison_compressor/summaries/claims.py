"""Which claims of a model's summary the originals bear out, which they contradict, and the marks
that say so.

A claim is a sentence or a list item. Its witness is a line of what it was written from, or a row of
the table of outcomes. Deterministic; the originals are read once.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from ..facts import Facts
from ..facts.model import DONE
from ..facts.outcomes import BAD
from ..facts.passages import passages
from .protocol import Brief


class Doubt(NamedTuple):
    """A claim that is not borne out."""

    claim: str
    verdict: str
    """`contradicted` or `unwitnessed`."""
    kind: str
    """`outcome`, `number`, `file`, `negation`, `approval`, `completion` or `name`."""
    reason: str
    """In a few words."""
    at: int = 0
    """Where in the text the claim ends."""


# -------------------------------------------------------------- words

_EDGE = str.maketrans(dict.fromkeys("!\"#$%&'()*+,-/:;<=>?@[\\]^`{|}~\t’“”‘…→–—", " "))
_NUMBERS = "zero one two three four five six seven eight nine ten eleven twelve".split()
_STOP = frozenset(
    "a an the of to in on at for and or is are was were be been being it its this that these those "
    "with by from as i we you they he she his her their my our your user has have had do does did "
    "so then also into which who what when where how if there here now all any each than but "
    "can could should would will may might about after before while during via up out over "
    "not no nor never without don doesn didn isn aren wasn weren won cannot t s ll re ve".split()
)
_SUFFIX = re.compile(r"(?:ations?|ings?|ed|ies|es|ly|s|e)$")


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """A word without its ending; a number written out as its digits."""
    if word in _NUMBERS:
        return str(_NUMBERS.index(word))
    if len(word) < 5 or not word.isalpha():
        return word
    cut = _SUFFIX.sub("", word)
    cut = cut[:-1] if len(cut) > 4 and cut[-1] == cut[-2] else cut
    return cut if len(cut) >= 3 else word


def words(text: str) -> list[str]:
    """The words of a text, in small letters."""
    return [word for raw in text.translate(_EDGE).casefold().split() if (word := raw.strip("._"))]


def stems(text: str) -> list[str]:
    return [stem(word) for word in words(text)]


# -------------------------------------------------------------- the originals


class Line(NamedTuple):
    text: str
    source: str
    """As a passage's, or `summary` or `visible`."""
    at: int
    """The position of its message, -1 where it is none of the segment's."""
    passage: int


_LONGEST = 600
_WRITES = re.compile(r"edit|write|patch|replace|create|insert|update", re.I)
_YES = re.compile(
    r"\W*(?:yes|yeah|yep|yup|ok|okay|sure|go ahead|go for it|please do|do it|do that|lgtm|looks good|approved?|"
    r"agreed?|confirm(?:ed)?|proceed|great|let['’]?s|sounds good|perfect|ship it|that was the idea|i approve|i agree|i confirm|"
    r"ja|oui|sí|si|好|はい)(?!\w)(?!.{0,40}\b(?:not|n't|wait|but)\b)", re.I)


class Originals:
    """The lines that a summary's claims can be from, by the words that the summary has too."""

    def __init__(self, brief: Brief, facts: Facts, text: str) -> None:
        self.facts = facts
        self.lines: list[Line] = []
        self.spoken: list[tuple[str, str, frozenset[str]]] = []
        self.found: list[frozenset[str]] = []
        self.posting: defaultdict[str, list[int]] = defaultdict(list)
        self.context: list[frozenset[str]] = []
        self.wanted = {s for word in set(words(text)) for s in _parts(word)}
        self.files = {item.path.rpartition("/")[2].casefold() for item in facts.files}
        self.wanted |= self.files
        self.changed: defaultdict[str, set[str]] = defaultdict(set)
        self.touched: set[str] = set()
        self.about: defaultdict[str, set[str]] = defaultdict(set)
        self._memo: dict[bytes, tuple[str, ...]] = {}
        self._lines: dict[bytes, frozenset[str]] = {}
        for passage in passages(brief.messages):
            call = passage.call.arguments[:400] + passage.call.arguments[-200:] if passage.call else ""
            self._add(passage.text, passage.source, passage.at, call, passage.source == "call" and _WRITES.search(passage.call.name) is not None)
        for earlier in (*brief.folded, *brief.earlier):
            self._add(earlier, "summary", -1)
        self._add(brief.visible, "visible", -1)
        for passage in passages([m for m in brief.originals if m.get("role") == "user"]):
            if passage.source == "user":
                self._add(passage.text, "user", -1)
        self.count = len(self.lines) + 1
        self.text = "\n".join(line.text for line in self.lines)
        self.asked: list[frozenset[str]] = []
        self.agreements: list[frozenset[str]] = []
        before: frozenset[str] = frozenset()
        for source, text, found in self.spoken:
            if source == "user":
                self.asked.append(found)
                if _YES.match(text):
                    self.agreements.append(found | before)
            elif source == "assistant":
                before = found
        self.agreed = bool(self.agreements)

    def _known(self, raw: bytes) -> tuple[str, ...]:
        """The stems of a word of theirs that the summary has too."""
        known = self._memo.get(raw)
        if known is None:
            found = (s for word in words(raw.decode("utf-8", "replace")) for s in _parts(word))
            known = self._memo[raw] = tuple(s for s in found if s in self.wanted)
        return known

    def _stems(self, raw: bytes) -> frozenset[str]:
        return frozenset(s for word in raw.split() for s in self._known(word))

    def _add(self, text: str, source: str, at: int, call: str = "", changes: bool = False) -> None:
        """Bytes are split and looked up in half the time."""
        number = len(self.context)
        self.context.append(self._stems(_plain(call)))
        files = self.files & self.context[-1]
        lines = len(self.found)
        shown = _broken(text)
        for piece, raw in zip(shown, _plain("\n".join(shown)).split(b"\n"), strict=True):
            found = self._lines.get(raw)
            if found is None:
                found = self._lines[raw] = self._stems(raw)
            if found:
                for one in found:
                    self.posting[one].append(len(self.lines))
                self.lines.append(Line(piece, source, at, number))
                self.found.append(found)
                for name in self.files & found:
                    self.about[name] |= found
        if source in ("user", "assistant"):
            self.spoken.append((source, text, frozenset().union(*self.found[lines:])))
        for name in files:
            self.about[name].update(*self.found[lines:])
            if changes:
                self.touched.update(*self.found[lines:])
                self.changed[name].update(*self.found[lines:])

    def weight(self, one: str) -> float:
        return math.log(self.count / (len(self.posting.get(one, ())) + 0.5))

    def best(self, given: Iterable[str]) -> list[tuple[float, int]]:
        """Lines with the share of the words' weight that they have, the best first."""
        chosen = {one for one in given if one not in _STOP}
        weights = {one: max(0.1, self.weight(one)) for one in chosen}
        total = sum(weights.values()) or 1.0
        score: Counter[int] = Counter()
        for one in chosen:
            if len(self.posting.get(one, ())) <= max(60, self.count // 25):
                for n in self.posting.get(one, ()):
                    score[n] += weights[one]
        return [(value / total, n) for n, value in score.most_common(200)]


_SPACED = bytes(
    32 if chr(n) in "!\"#$%&'()*+,-/:;<=>?@[\\]^`{|}~\t\r" else ord(chr(n).lower()) if n < 128 else n
    for n in range(256)
)


def _plain(text: str) -> bytes:
    return text.encode("utf-8", "replace").translate(_SPACED)


def _broken(text: str) -> list[str]:
    """The lines of a text, long ones in pieces."""
    out: list[str] = []
    for line in text.split("\n"):
        out += [line[n : n + _LONGEST] for n in range(0, max(1, len(line)), _LONGEST)]
    return out


@lru_cache(maxsize=65_536)
def _parts(word: str) -> tuple[str, ...]:
    word = word.strip("._")
    if "." in word:
        return (word, *(stem(part) for part in word.split(".") if part))
    return (stem(word),)


# -------------------------------------------------------------- claims


class Claim(NamedTuple):
    text: str
    start: int
    end: int
    section: str
    """The heading that it stands below."""


_FENCED = re.compile(r"^[ \t]*```.*?(?:^[ \t]*```|\Z)", re.S | re.M)
_HEADING = re.compile(r"^(?:#+ |\d+\. |\*\*)(.*)$")
_SENTENCE = re.compile(r"(?<=[^\d\s][.!?])[\"'`*)]*\s+(?=[A-Z`\"*(])")
_BULLET = re.compile(r"\s*(?:[-*•] |\d+[.)] )?\s*")


def claims_of(text: str) -> Iterator[Claim]:
    """The sentences and list items of a summary; code in fences claims nothing."""
    bare = _FENCED.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    at, section = 0, ""
    for line in bare.split("\n"):
        heading = _HEADING.match(line)
        if heading and line[:1] != " ":
            section = heading[1]
        start = _BULLET.match(line).end()  # type: ignore[union-attr]
        cuts = [start, *(found.end() for found in _SENTENCE.finditer(line, start)), len(line)]
        for first, last in zip(cuts, cuts[1:], strict=False):
            piece = line[first:last].rstrip()
            if len(piece.split()) > 1 and any(map(str.isalpha, piece)):
                yield Claim(piece, at + first, at + first + len(piece), section)
        at += len(line) + 1


# -------------------------------------------------------------- checks

_NEGATION = frozenset(
    "not no never without cannot nor don doesn didn isn aren wasn weren won hasn haven hadn couldn "
    "shouldn wouldn can't nothing none".split()
)
_FUTURE = re.compile(
    r"\b(?:need(?:s|ed)? to|let me|let's|i'll|will|next|should|to do|todo|pending|remaining|still|"
    r"going to|want(?:s|ed)? to|not yet|later|would|could|can|may|might|if|must|plan(?:ned)? to|"
    r"in progress|was (?:in the process|about to))\b",
    re.I,
)
_FILE = re.compile(r"[\w-][\w.-]*\.[a-z][a-z0-9]{0,6}")


class Slot(NamedTuple):
    """How well the originals bear out one detail of a claim: 0 to 1."""

    own: float
    """The words beside it that the best line with this detail has, by weight."""
    other: float
    """The same of the best line that has another in its place."""
    line: int = -1
    """That line."""


def _slot(best: Sequence[tuple[float, int]], same: Callable[[int], bool], other: Callable[[int], bool]) -> Slot:
    own = alt = 0.0
    line = -1
    for score, n in best:
        if own and alt:
            break
        if same(n):
            own = own or score
        elif not alt and other(n):
            alt, line = score, n
    return Slot(own, alt, line)


class Reader:
    """The claims of one summary beside their witnesses."""

    def __init__(self, originals: Originals) -> None:
        self.o = originals
        self.facts = originals.facts

    def doubt(self, claim: Claim) -> Doubt | None:
        said = Said(claim.text)
        for check in (self.approval, self.number, self.change, self.outcome, self.undone, self.todo, self.done, self.negation, self.file):
            if found := check(claim, said):
                verdict, reason = found
                return Doubt(claim.text, verdict, check.__name__, reason, claim.end)
        return None

    def told(self, n: int) -> str:
        """A line as a witness, short, and where it stands."""
        line = self.o.lines[n]
        text = " ".join(line.text.split())
        text = text if len(text) <= WITNESS_CHARS else text[: WITNESS_CHARS - 1] + "…"
        return f'"{text}" {self.facts.at(line.at) if line.at >= 0 else ""}'.strip()

    # ---------------------------------------------------------- numbers

    def number(self, claim: Claim, said: Said) -> tuple[str, str] | None:
        if other := self._literal(claim.text):
            return "contradicted", other
        numbers = [one for one in _VALUE.findall(claim.text) if int(one) > 2]
        if not numbers:
            return None
        rest = said.content - said.numbers
        best = [(self._cover(rest, self.o.found[n]), n) for _, n in self.o.best(rest)[:60]]
        for one in numbers:
            own = max((self._cover(rest, self.o.found[n]) for n in self.o.posting.get(one, ())[:2000]), default=0.0)
            other, line = max(((c, n) for c, n in best if one not in self.o.found[n] and _DIGIT.search(self.o.lines[n].text)), default=(0.0, -1))
            if own < 0.03 or (own < 0.4 * other and len(one) < 3):
                if listed(claim.text, int(one)):
                    continue
                if other > 0.5 and self._beside(claim.text, one, self.o.lines[line].text):
                    return "contradicted", self.told(line)
                return "unwitnessed", one + f" {own:.2f} {other:.2f}"
        return None

    def _beside(self, text: str, number: str, line: str) -> bool:
        """Whether the line has another number at the same word."""
        mine, theirs = [stem(w) for w in words(text)], [stem(w) for w in words(line)]
        near = {mine[at + step] for at, one in enumerate(mine) if one == number for step in (-1, 1) if 0 <= at + step < len(mine)} - _STOP
        return any(one.isdigit() and near & set(theirs[max(0, at - 1) : at + 2]) for at, one in enumerate(theirs))

    def _literal(self, text: str) -> str:
        """Code with a number in it, as the originals have it with another."""
        for span in _SPAN.findall(text):
            if not _DIGIT.search(span) or span in self.o.text:
                continue
            pattern = re.sub(r"\d+", r"\\d+", re.escape(span))
            found = re.search(pattern, self.o.text) if any(part in self.o.text for part in re.split(r"\d+", span) if len(part) > 3) else None
            if found:
                return f"`{found[0]}`"
        return ""

    # ---------------------------------------------------------- files

    def file(self, claim: Claim, said: Said) -> tuple[str, str] | None:
        files = said.files & self.o.files
        rest = said.content - said.files - said.numbers
        rest -= {part for name in said.files for part in _parts(name)}
        if not files or len(rest) < 3:
            return None
        weights = {one: max(0.1, self.o.weight(one)) for one in rest}
        total = sum(weights.values())

        def cover(name: str) -> float:
            return sum(w for one, w in weights.items() if one in self.o.about.get(name, ())) / total

        other = max(self.o.files - files, key=cover, default="")
        if _CHANGES.search(claim.text):
            def made(name: str) -> float:
                return sum(w for one, w in weights.items() if one in self.o.changed.get(name, ())) / total

            most = max(self.o.changed.keys() - files, key=made, default="")
            for name in files & self.o.changed.keys():
                if made(name) < 0.5 * made(most) and made(most) > 0.9:
                    return "contradicted", f"made {name} {made(name):.2f} {most} {made(most):.2f}"
        for name in files:
            if cover(name) < FILE_RATIO * cover(other) and cover(other) > 0.7:
                return "contradicted", f"{name} {cover(name):.2f} {other} {cover(other):.2f}"
        return None

    def change(self, claim: Claim, said: Said) -> tuple[str, str] | None:
        """A change to a file that no call made, or that failed or was refused."""
        found = _CHANGED.match(claim.text)
        name = found and (found[1] or found[2])
        if not name or _FUTURE.search(claim.text) or "user" in said.words:
            return None
        name = name.rpartition("/")[2]
        rows = [row for row in self.facts.attempts if any(path.rpartition("/")[2] == name for path in row.paths)]
        if not rows:
            return None
        changes = [row for row in rows if row.changes]
        if changes and all(row.status in BAD for row in changes):
            return "contradicted", changes[-1].detail
        if not changes and not any(name in row.text for row in self.facts.attempts if not row.paths):
            return "unwitnessed", f"no change to {name}"
        return None

    # ---------------------------------------------------------- outcomes

    def outcome(self, claim: Claim, said: Said) -> tuple[str, str] | None:
        if _FUTURE.search(claim.text) or _IMPERATIVE.match(claim.text):
            return None
        for clause in _CLAUSE.split(claim.text):
            if found := self._turned(clause, Said(clause)):
                return found
        return None

    def _turned(self, text: str, said: Said) -> tuple[str, str] | None:
        good, bad = _GOOD.search(text), _BAD.search(text)
        if bool(good) == bool(bad):
            return None
        same, other = (_GOOD, _BAD) if good else (_BAD, _GOOD)
        rest = {one for one in said.content if not same.search(one)}
        lines = self.o.lines
        found = _slot(
            self.o.best(rest),
            lambda n: same.search(lines[n].text) is not None,
            lambda n: other.search(lines[n].text) is not None,
        )
        if len(rest) > 1 and found.own < 0.6 * found.other and found.other > 0.35:
            return "contradicted", self.told(found.line)
        for spoken, runs in _KINDS:
            if not re.search(rf"(?:{spoken})\b[^.,;]{{0,40}}?(?:{(_GOOD if good else _BAD).pattern})", text, re.I):
                continue
            rows = [row for row in self.facts.attempts if runs.search(row.text) and not row.paths]
            known = [row for row in rows if row.status != "unknown"]
            if good and known and known[-1].status in BAD and not _PAST.search(text):
                return "contradicted", f"`{known[-1].text[:60]}` {known[-1].status}: {known[-1].detail[:80]}"
            if good and not known and found.own < 0.35:
                return "unwitnessed", f"no run that passed {found.own:.2f}"
            if bad and known and not any(row.status in BAD for row in rows):
                return "contradicted", f"`{known[-1].text[:60]}` {known[-1].status}"
            if bad and not rows and found.own < 0.2:
                return "unwitnessed", "no failing run"
        return None

    def undone(self, claim: Claim, said: Said) -> tuple[str, str] | None:
        """That something could not be done."""
        found = _UNDONE.search(claim.text)
        if not found:
            return None
        verb = stem(found[1].casefold())
        best = self.o.best(said.content)
        lines = self.o.lines
        slot = _slot(best, lambda n: verb in self.o.found[n] and any(stem(one[1].casefold()) == verb for one in _UNDONE.finditer(lines[n].text)), lambda n: False)
        if slot.own > 0.3:
            return None
        rows = [row for row in self.facts.attempts if row.changes and {path.rpartition("/")[2].casefold() for path in row.paths} & said.files]
        if rows and rows[-1].status == "ok":
            return "contradicted", f"{rows[-1].text[:60]} ok"
        return "unwitnessed", f"undone {slot.own:.2f}"

    def done(self, claim: Claim, said: Said) -> tuple[str, str] | None:
        found = _DONE.match(claim.text)
        if not found or _IMPERATIVE.match(claim.text):
            return None
        if _CHANGES.match(found[0].strip("*_- ")):
            named = {stem(w) for part in re.findall(r"`([^`]+)`", claim.text) for w in words(part) if not w.isalpha() or len(w) > 12}
            return ("unwitnessed", f"never changed {named}") if named and not named & self.o.touched else None
        content = said.content - {stem(w) for w in words(found[0])}
        lines = self.o.lines
        kind = _checked(claim.text)
        if kind and re.match(r"[\W_]*(?:verified|ran|tested)", claim.text, re.I) and not _PAST.search(claim.text):
            changed = max((row.index for row in self.facts.attempts if row.changes), default=-1)
            if not any(row.index > changed for row in self.facts.attempts if kind.search(row.text) and not row.paths):
                return "unwitnessed", "no run after the last change"
        named = {stem(w) for part in re.findall(r"`([^`]+)`", claim.text) for w in words(part)}
        if named and any(named & self.o.found[n] for score, n in self.o.best(content) if lines[n].source in ("call", "result")):
            return None

        def same(n: int) -> bool:
            line = lines[n]
            return line.source in ("assistant", "summary", "user") and _COMPLETE.search(line.text) is not None and not _FUTURE.search(line.text)

        slot = _slot(self.o.best(content), same, lambda n: False)
        return ("unwitnessed", f"done {slot.own:.2f}") if slot.own < 0.4 else None

    def todo(self, claim: Claim, said: Said) -> tuple[str, str] | None:
        """What the newest list of work has as open, told as done."""
        if not re.match(r"[\W_]*\w+(?:ed|ran|wrote)\b|[\W_]*(?:ran|wrote|done)\b", claim.text, re.I) or _FUTURE.search(claim.text):
            return None
        for item in self.facts.todos:
            mine = {one for one in stems(item.text) if one not in _STOP}
            if item.status not in DONE and len(mine) > 2 and self._cover(said.content, frozenset(mine)) > 0.6:
                return "contradicted", item.text
        return None

    # ---------------------------------------------------------- negations

    def negation(self, claim: Claim, said: Said) -> tuple[str, str] | None:
        for quote in _QUOTE.findall(claim.text):
            q = Said(quote)
            if len(q.content) < 3:
                continue
            near = [(score, n) for score, n in self.o.best(q.content)[:8] if score > 0.6 and self.o.lines[n].source in ("user", "assistant", "summary")]
            differ = [n for score, n in near if Said(self.o.lines[n].text).negated & (q.content - q.negated)]
            if differ and len(differ) == len(near):
                return "contradicted", self.told(differ[0])
        if said.negated:
            return None
        order = [one for one in map(stem, said.words) if one not in _STOP]
        for at, one in enumerate(order):
            for two in order[at + 1 : at + 3]:
                if one == two or one.isdigit() or two.isdigit():
                    continue
                both = set(self.o.posting.get(one, ())) & set(self.o.posting.get(two, ()))
                signs = [(sign, n) for n in list(both)[:60] if self.o.lines[n].source not in ("result", "call") for sign in [_sign(self.o.lines[n].text, one, two)] if sign]
                denied = [n for sign, n in signs if sign < 0]
                like = max((self._cover(said.content, self.o.found[n]) for n in denied), default=0.0)
                if denied and len(denied) > NEG_RATIO * (len(signs) - len(denied)) and (like > 0.4 or len(denied) > 1 and like > 0.25):
                    return "contradicted", f"{one} {two} {len(denied)}/{len(signs)} {like:.2f}" + self.told(denied[-1])
        return None

    # ---------------------------------------------------------- the user

    def approval(self, claim: Claim, said: Said) -> tuple[str, str] | None:
        approves = _APPROVES.search(claim.text)
        if not approves and not _ASKS.search(claim.text):
            return None
        content = said.content - _TALKED
        names = {one for one in content if not one.isalpha()} | {stem(w) for part in re.findall(r"`([^`]+)`", claim.text) for w in words(part)}
        if len(content) < 2 and not names:
            return None if self.o.agreed or not approves else ("unwitnessed", "no approval")
        acts = {one for one in said.content if one in _ACTS}
        witnesses = self.o.agreements if approves else self.o.asked
        if not approves and not acts:
            everything = frozenset().union(*self.o.asked, *self.o.agreements)
            cover = self._cover(content, everything)
            return ("unwitnessed", f"asked {cover:.2f}") if cover < 0.2 else None
        least = 0.5 if approves else 0.2
        for one in witnesses:
            if (names | acts) <= one and self._cover(content, one) >= least:
                return None
        return "unwitnessed", f"approval {acts} {names}"

    def _cover(self, content: set[str], found: frozenset[str]) -> float:
        weights = {one: max(0.1, self.o.weight(one)) for one in content}
        return sum(w for one, w in weights.items() if one in found) / (sum(weights.values()) or 1.0)


class Said:
    """The words of a text, and which of them are negated."""

    def __init__(self, text: str) -> None:
        self.words = words(text)
        found = [stem(word) for word in self.words]
        self.content = {one for one in found if one not in _STOP}
        self.files = {word for word in self.words if _FILE.fullmatch(word)}
        self.numbers = {one for one in self.content if one.isdigit()}
        self.negated: set[str] = set()
        for n, word in enumerate(self.words):
            if word in _NEGATION:
                self.negated.update([one for one in found[n + 1 :] if one not in _STOP][:2])


WITNESS_CHARS = 120
_SPAN = re.compile(r"`([^`\n]{5,120})`")
NEG_RATIO = 2
_CHANGES = re.compile(r"\b(?:added|removed|updated|changed|rewrote|refactored|simplified|implemented|deleted|created|moved|renamed|modified|wrote|fixed)\b", re.I)
_QUOTE = re.compile(r"[\"“]([^\"“”]{12,})[\"”]")


def _sign(text: str, one: str, two: str) -> int:
    """-1 where a line denies the two words, 1 where it has them side by side, else 0."""
    raw = words(text)
    order = [stem(word) for word in raw]
    for at, word in enumerate(order):
        if word == one and two in order[at + 1 : at + 6]:
            return -1 if any(w in _NEGATION for w in raw[max(0, at - 3) : at]) else 1
    return 0


_VALUE = re.compile(
    r"(?<![\w.#/~≈-])(?<!about )(?<!around )(?<!Phase )(?<!Step )(?<!Option )(?<!\d[,.])\d{1,9}(?![\w]|[.,]\d)"
)
FILE_RATIO = 0.5
_DIGIT = re.compile(r"\d")
_CHANGED = re.compile(
    r"[\W_]*(?:[\w./-]*/)?([\w.-]+\.[a-z]\w{0,6})[`*]*\W+(?:\(?(?:created|modified|updated|edited|new file|deleted)\b|(?:added|removed|updated|changed|rewrote|refactored|fixed|simplified|implemented|deleted|created|moved|renamed)\b)"
    r"|(?:added|removed|updated|changed|rewrote|refactored|fixed|simplified|implemented|deleted|created|moved|renamed|modified|edited|wrote)\b[^.;]*?[` ]((?:[\w.-]+/)*[\w.-]+\.(?:go|py|ts|tsx|js|jsx|rs|java|rb|c|cpp|h|sh|md|json|yaml|yml|toml|txt|html|css|sql))\b(?!:\d)",
    re.I,
)
_GOOD = re.compile(r"\b(?:pass(?:es|ed|ing)?|succe\w+|works|worked|no (?:errors?|failures?|issues?))\b|✅|✓", re.I)
_BAD = re.compile(r"\b(?:fail\w*|broken?|breaks|crash\w*|(?:not|n't) work\w*|unsuccessful\w*)\b|❌|✗", re.I)
_IMPERATIVE = re.compile(
    r"[\W_]*(?:run|verify|fix|create|write|test|check|confirm|ensure|make|need|complete|continue|"
    r"investigate|add|update|implement|then|once|if|when)\b", re.I)
_BAD_OR_NOT = re.compile(_BAD.pattern + r"|\berrors?\b|\bnot\b|n't\b|\bunable\b|\bcannot\b", re.I)
_UNDONE = re.compile(r"\b(?:could not|couldn't|failed to|unable to|did not|didn't|was not|wasn't|were not|not) (?:be )?(fix\w*|resolve\w*|solve\w*|implement\w*|create\w*|update\w*|add\w*|work|run|build|compile|complete\w*)\b", re.I)
_DONE = re.compile(r"[\W_]*(?:done|completed|finished|✅|verified|ran|tested|checked|confirmed|deployed|pushed|merged|added|removed|updated|changed|rewrote|refactored|simplified|implemented|deleted|created|moved|renamed|modified|wrote|fixed)\b[:* ]*", re.I)
_COMPLETE = re.compile(r"\b(?:done|complete[ds]?|finished|pass(?:es|ed|ing)?|works?|verified|confirmed|success\w*|fixed|created|added|implemented|updated|\w{3,}ed)\b|✅|✓", re.I)
_PAST = re.compile(r"\b(?:initially|first|then|at first|before|previously|earlier|were|was)\b", re.I)
_APPROVES = re.compile(
    r"\b(?:user|customer|client|owner|they)\b.{0,30}\b(?:approv\w+|confirm\w+|agree[ds]?|accept(?:s|ed)?|authoriz\w+|authoris\w+|okayed|consent\w*|permit\w*|allow(?:s|ed)?|signed off|gave (?:the |their |his |her )?(?:go-ahead|ok|permission|approval|consent)|said (?:that )?.{0,60}\b(?:may|can)\b)"
    r"|\b(?:approved|confirmed|authorized|authorised|accepted|agreed|requested|permitted) by (?:the )?(?:user|customer)|\b(?:user|customer)['’]s (?:approval|permission|consent|go-ahead|confirmation)",
    re.I,
)
_ASKS = re.compile(r"\b(?:user|customer|client)\b.{0,20}\b(?:ask(?:s|ed)|request(?:s|ed)|want(?:s|ed)|told|instruct\w+|demand\w+|said|insist\w+|prefer\w*|decided|chose|selected)\b", re.I)
_ACTS = frozenset(stem(w) for w in "delete merge merged push pushed publish published deploy deployed release released drop overwrite send refund cancel production".split())
_TALKED = frozenset(stem(w) for w in "approve approved confirmed confirm agreed agree accepted accept authorized asked ask requested request wants wanted told said correct being may approval user customer permission".split())
_KINDS = (
    (r"\btests?\b|\bspecs?\b|\btest suite\b", re.compile(r"\btest|pytest|jest|vitest|rspec", re.I)),
    (r"\blint\w*", re.compile(r"lint|ruff|eslint|clippy|check", re.I)),
    (r"\bbuilds?\b|\bcompil\w+", re.compile(r"build|compile|tsc|\bmake\b|cargo check|go vet", re.I)),
)
_CLAUSE = re.compile(r"[,;]\s|\s[-–—]\s|\bbut\b")


def _checked(text: str) -> re.Pattern[str] | None:
    return next((runs for spoken, runs in _KINDS if re.search(spoken, text, re.I)), None)


def listed(text: str, number: int) -> bool:
    """Whether the claim itself lists as many things."""
    inside = re.search(r"\(([^()]*)\)|:(.*)", text)
    return inside is not None and (inside[1] or inside[2] or "").count(",") + 1 == number > 1


def unverified(text: str, brief: Brief, facts: Facts) -> list[Doubt]:
    reader = Reader(Originals(brief, facts, text))
    return [doubt for claim in claims_of(text) if (doubt := reader.doubt(claim))]
