"""Check what a model's summary claims against the originals, and mark what they do not bear out.

A claim is a sentence or a list item. Its witness is a line of the originals or of an earlier
summary, or a row of the table of outcomes. Plain narrative is left alone. The rules of outcomes,
approvals and negations read English; names, numbers and files are checked in every wording.
"""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import islice

from ..facts import Facts, wording
from ..facts.coverage import (
    CODE,
    STOP,
    Line,
    Lines,
    Words,
    beside,
    code_names,
    names_in,
    short,
    sign,
    stem,
    words,
)
from ..facts.model import Attempt
from ..facts.outcomes import BAD
from ..facts.passages import dialogue, passages
from .protocol import Brief, Doubt
from .validation import MARK, NOT_THERE, Claim, claims_of, ungrounded

__all__ = ["WITNESS_CHARS", "quoted", "unverified"]

MOST_CLAIMS, LONGEST_CLAIM = 600, 600
"""Claims of a text, and characters of one, that are looked at: a long summary makes 150."""
LEAST_WORDS = 4  # of a claim that is compared with lines like it; a heading has fewer
ASKING_CHARS = 600  # at the end of a text: an answer to a question there may be to all of it
WITNESS_CHARS = 120  # of a witness that are quoted


def unverified(text: str, brief: Brief, facts: Facts) -> list[Doubt]:
    """The claims of a text that its originals contradict or do not bear out, in order.

    `facts` are those of the brief's messages. One doubt for each claim, the gravest.
    """
    claims = list(islice(claims_of(text), MOST_CLAIMS))
    reader = _Reader(text, brief, facts)
    found = {claim: doubt for claim in claims if (doubt := reader.doubt(claim))}
    made: defaultdict[Claim | None, list[str]] = defaultdict(list)
    for name in ungrounded(text, brief, facts.patterns):
        plain = name.casefold()
        made[next((one for one in claims if plain in one.text.casefold()), None)].append(name)
    for claim, names in made.items():
        named = claim or Claim("", len(text))
        verb = "are" if len(names) > 1 else "is"
        reason = f"{', '.join(names)} {verb} {NOT_THERE}"
        found[named] = Doubt(named.text, "unwitnessed", "name", reason, at=named.end)
    return sorted(found.values(), key=lambda doubt: doubt.at)


# -------------------------------------------------------------- witnesses


Found = tuple[str, str, Line | Attempt | None]
"""Verdict, reason, and the witness."""


class _Reader:
    """The claims of one text beside their witnesses."""

    def __init__(self, text: str, brief: Brief, facts: Facts) -> None:
        self.facts = facts
        self.names = {_base(item.path) for item in facts.files}
        self.lines = Lines(text, self.names | _DENYING)
        self.about: defaultdict[str, set[str]] = defaultdict(set)
        self.changed: defaultdict[str, set[str]] = defaultdict(set)
        self.asked: list[frozenset[str]] = []
        self.agreed: list[frozenset[str]] = []
        self._last: frozenset[str] = frozenset()
        self._read(brief)
        self.wishes = frozenset().union(*self.asked, *self.agreed)
        self.touched = frozenset().union(*self.changed.values())

    def _read(self, brief: Brief) -> None:
        for earlier in (*brief.folded, *brief.earlier):
            bare_lines = (line for line in earlier.split("\n") if not MARK.search(line))
            self.lines.add("\n".join(bare_lines), "summary")
        self.lines.add(brief.visible, "visible")
        segment = {id(message) for message in brief.messages}
        others = [one for one in brief.originals if id(one) not in segment]
        for passage in passages(dialogue(others)):
            if passage.source in ("user", "assistant"):
                self._said(passage.source, passage.text, self.lines.shared(passage.text))
        for passage in passages(brief.messages):
            found = self.lines.add(passage.text, passage.source, passage.at)
            call = passage.call
            is_answer = passage.source == "result" and call and _ASKS_THE_USER.search(call.name)
            self._said("user" if is_answer else passage.source, passage.text, found)
            if call is not None:
                named = call.arguments
                near = self.lines.shared(named if len(named) < 800 else named[:400] + named[-200:])
                writes = passage.source == "call" and _WRITES.search(call.name)
                for name in self.names & near:
                    self.about[name] |= found
                    if writes:
                        self.changed[name] |= found
        for name in self.names:
            self.about[name].update(*(line.words for line in self.lines.having(name)))

    def _said(self, source: str, text: str, found: frozenset[str]) -> None:
        """Keep what the user asked for, and what was before him when he agreed."""
        if source == "user":
            self.asked.append(found)
            if wording.AGREES.match(text) or _HAS_AGREED.match(text):
                self.agreed.append(found | self._last)
        elif source == "assistant":
            self._last = found if "?" in text[-ASKING_CHARS:] else frozenset()

    def doubt(self, claim: Claim) -> Doubt | None:
        """What there is to be said against a claim: the first thing found."""
        text = claim.text[:LONGEST_CLAIM]
        said = Words(text)
        graver_first = (
            self.approval, self.number, self.outcome, self.completion, self.negation, self.file
        )  # fmt: skip
        for check in graver_first:
            if found := check(text, said):
                verdict, reason, witness = found
                if isinstance(witness, Line) and witness.source == "visible":
                    reason = "the conversation below tells otherwise"  # it may hold a secret
                source = self._source(witness)
                return Doubt(claim.text, verdict, check.__name__, reason, source, claim.end)
        return None

    def _source(self, witness: Line | Attempt | None) -> str:
        at = witness.at if isinstance(witness, Line) else witness.index if witness else -1
        known = self.facts.references
        return known[at] if 0 <= at < len(known) else ""

    # ---------------------------------------------------------- the user

    def approval(self, text: str, said: Words) -> Found | None:
        """An approval or a request that no message of the user says.

        What cannot be undone must be named in it; else it may be in what he agreed to.
        """
        approves = wording.TELLS_APPROVAL.search(text)
        if not approves and not wording.TELLS_REQUEST.search(text):
            return None
        is_plan = wording.ORDERS.match(text) or _SUPPOSED.search(text)
        if said.denied or is_plan or text.endswith(":"):
            return None
        parts = (said, Words(_ASIDE.sub("", text)))
        known = any(self._is_told(part, bool(approves)) for part in parts)
        return None if known else ("unwitnessed", "no message of the user says so", None)

    def _is_told(self, said: Words, approves: bool) -> bool:
        """Whether the user said or agreed to what these words name."""
        content = said.content - _OF_ASKING
        names = {one for one in content if not one.isalpha()} | code_names(said.text)
        acts = said.content & _ACTS
        if not approves and not acts:
            return len(content) < 2 or self.lines.cover(content, self.wishes) >= 0.2
        least, told = (0.5, self.agreed) if approves else (0.2, self.asked)
        return any(names | acts <= one and self.lines.cover(content, one) >= least for one in told)

    # ---------------------------------------------------------- numbers

    def number(self, text: str, said: Words) -> Found | None:
        """A number that the originals do not have, or that a line like the claim has otherwise."""
        if found := self._literal(text):
            return found
        rest = {one for one in said.content if not one.isdigit()}
        values = (one.replace(",", "") for one in _VALUE.findall(text))
        numbers = [one for one in values if int(one) > SMALL]
        for one in numbers:
            having = self.lines.having(one)
            if having and int(one) >= LARGE:
                continue
            own = max((self.lines.cover(rest, at.words) for at in having), default=-1.0)
            near = said.near(one)
            told = max((self.lines.cover(near, at.words) for at in having), default=0.0)
            for share, line in self.lines.nearest(rest) if len(numbers) <= MOST_NUMBERS else ():
                if share <= max(0.35, own):
                    break
                is_other = one not in line.words and line.source != "call"
                is_other = is_other and len(_VALUE.findall(line.text)) <= MOST_NUMBERS
                like = self.lines.cover(near, line.words)
                if is_other and like >= max(0.5, 1.5 * told) and beside(near, line.text):
                    return "contradicted", quoted(line.text), line
            if own < 0 and not wording.COUNTED.search(text):
                return "unwitnessed", f"the originals do not have {one}", None
        return None

    def _literal(self, text: str) -> Found | None:
        for span in (*CODE.findall(text), *_QUOTED.findall(text)):
            parts = sorted(re.split(r"\d+", span), key=len)
            if len(parts) < 2 or len(parts[-1]) < 4 or _PLACE.search(span) or self.lines.has(span):
                continue
            line = self.lines.find(parts[-1], re.compile(re.sub(r"\d+", r"\\d+", re.escape(span))))
            if line is not None:
                return "contradicted", quoted(line.text), line
        return None

    # ---------------------------------------------------------- outcomes

    def outcome(self, text: str, said: Words) -> Found | None:
        """An outcome of a run or of a try that the originals tell otherwise."""
        if found := self._undone(text, said):
            return found
        if wording.NOT_YET.search(text) or wording.ORDERS.match(text):
            return None
        clauses = (
            clause
            for clause in _CLAUSE.split(text)
            if bool(wording.WENT_WELL.search(clause)) != bool(wording.WENT_WRONG.search(clause))
        )
        return next(filter(None, map(self._turned, clauses)), None)

    def _turned(self, text: str) -> Found | None:
        good = wording.WENT_WELL.search(text) is not None
        same, other = wording.WENT_WELL, wording.WENT_WRONG
        same, other = (same, other) if good else (other, same)
        rest = {one for one in Words(text).content if not same.search(one)}
        own, score, line = 0.0, 0.0, None
        for share, at in self.lines.nearest(rest):
            if not own and same.search(at.text):
                own = share
            elif line is None and other.search(at.text):
                score, line = share, at
        if line is not None and len(rest) > 1 and own < 0.6 * score and score > 0.3:
            return "contradicted", quoted(line.text), line
        return self._of_runs(text, own) if good else None

    def _of_runs(self, text: str, own: float) -> Found | None:
        """What the table of outcomes says of checks that are told to have passed."""
        for kind, spoken in wording.CHECKS.items():
            passed = rf"{spoken}[^.,;]{{0,40}}?(?:{wording.WENT_WELL.pattern})"
            if not re.search(passed, text, re.I):
                continue
            rows = [row for row in self.facts.attempts if kind in row.checks]
            # Of several checks in one line it is not known which of them failed.
            rows = [row for row in rows if row.status == "ok" or len(row.checks) == 1]
            known = [row for row in rows if row.status in ("ok", *BAD)]
            if known and known[-1].status in BAD and not wording.EARLIER.search(text):
                return "contradicted", _told(known[-1]), known[-1]
            if not known and own < 0.35:
                return "unwitnessed", "no run in the originals shows it", None
        return None

    def _undone(self, text: str, said: Words) -> Found | None:
        """That something could not be done."""
        if not wording.UNDONE.search(text):
            return None
        rows = [row for row in self.facts.attempts if row.changes and _names(row) & said.files]
        if rows:
            return ("contradicted", _told(rows[-1]), rows[-1]) if rows[-1].status == "ok" else None
        for share, line in self.lines.nearest(said.content):
            if share > 0.6 and wording.UNDONE.search(line.text):
                return None
        return "unwitnessed", "nothing in the originals shows that it failed", None

    # ---------------------------------------------------------- completions

    def completion(self, text: str, said: Words) -> Found | None:
        """Something told as done that was refused, failed, or that no call did."""
        found = wording.TELLS_DONE.match(text)
        if wording.NOT_YET.search(text) or (not found and not wording.FILE_CHANGED.search(text)):
            return None
        if (changed := self._unchanged(text)) or not found or len(said.content) < 2:
            return changed
        return self._idle(text, said, found[1].casefold())

    def _unchanged(self, text: str) -> Found | None:
        found = wording.FILE_CHANGED.search(text) or wording.CHANGED_FILE.match(text)
        if not found or "user" in text.casefold():
            return None
        name = _base(found[1])
        rows = [row for row in self.facts.attempts if name in _names(row)]
        changes = [row for row in rows if row.changes]
        if changes and all(row.status in BAD for row in changes):
            return "contradicted", _told(changes[-1]), changes[-1]
        if rows and not changes and not self._told_before(name):
            return "unwitnessed", f"no call changed {name}", None
        return None

    def _told_before(self, name: str) -> bool:
        """Whether an earlier summary speaks of it."""
        return any(line.source == "summary" for line in self.lines.having(name))

    def _idle(self, text: str, said: Words, verb: str) -> Found | None:
        """Nothing that was done or said since fits it."""
        named = code_names(text)
        if verb in wording.CHANGED:
            known = not (named and self.touched) or bool(named & self.touched)
            known = known or any(map(self._told_before, named))
            return None if known else ("unwitnessed", "no call changed it", None)
        tried = [row.text for row in self.facts.attempts]
        if any(stem(verb) in map(stem, words(row)) for row in tried):
            return None
        if any(command in row for command in CODE.findall(text) for row in tried):
            return None
        least = 0.2 if verb in ("done", "completed", "finished") else 0.4
        for share, line in self.lines.nearest(said.content - {stem(verb)}):
            if line.source in ("call", "result") and named & line.words:
                return None
            is_told = line.source in _SPOKEN and wording.COMPLETED.search(line.text)
            if share >= least and is_told and not wording.NOT_YET.search(line.text):
                return None
        return "unwitnessed", "nothing in the originals shows it done", None

    # ---------------------------------------------------------- negations

    def negation(self, text: str, said: Words) -> Found | None:
        """What the originals deny and the claim does not."""
        if len(said.content) < LEAST_WORDS:
            return None
        told = map(self._misquoted, map(Words, _QUOTE.findall(text)))
        order = [one for one in said.stems if one not in STOP and not one.isdigit()]
        pairs = ((one, two) for at, one in enumerate(order) for two in order[at + 1 : at + 3])
        line = next(filter(None, told), None) or next(
            filter(None, (self._denied(one, two, said) for one, two in pairs)), None
        )
        return ("contradicted", quoted(line.text), line) if line else None

    def _misquoted(self, said: Words) -> Line | None:
        """A line that has almost these words, and denies one that they do not."""
        near = [pair[1] for pair in self.lines.nearest(said.content)[:8] if pair[0] > 0.6]
        near = [line for line in near if line.source in _SPOKEN]
        denies = [bool(Words(line.text).denied & (said.content - said.denied)) for line in near]
        return near[0] if len(said.content) > 2 and near and all(denies) else None

    def _denied(self, one: str, two: str, said: Words) -> Line | None:
        """A line like the claim that denies two of its words, where few have them undenied."""
        lines = [line for line in self.lines.having(one, two) if line.source in _PROSE][:60]
        signed = {line: sign(line.text, one, two) for line in lines if line.words & _DENYING}
        denying = [line for line, held in signed.items() if held < 0]
        if not denying or {one, two} & said.denied or sign(said.text, one, two) <= 0:
            return None
        plain = (signed.get(line) or sign(line.text, one, two) for line in lines)
        if len(denying) <= 2 * sum(held > 0 for held in plain):
            return None
        like = max(self.lines.cover(said.content, line.words) for line in denying)
        return denying[0] if like > (0.25 if len(denying) > 1 else 0.4) else None

    # ---------------------------------------------------------- files

    def file(self, text: str, said: Words) -> Found | None:
        """A file with which the names in the claim never stand, though they do with others."""
        files = said.files & self.names
        if len(files) != 1 or said.denied & {"exist", "found"}:
            return None
        [name] = files
        named = names_in(text) - said.files
        homes = {
            one: sorted(at for at in self.names - files if one in self.about[at]) for one in named
        }
        homes = {one: at for one, at in homes.items() if at}
        apart = sorted(one for one in homes if one not in self.about[name])
        if apart and len(apart) == len(homes):
            reason = f"the originals have {apart[0]} in {homes[apart[0]][0]}, not in {name}"
            return "unwitnessed", reason, None
        rest = {one for one in said.content - {*said.files, *name.split(".")} if not one.isdigit()}
        cover = {at: self.lines.cover(rest, frozenset(self.about[at])) for at in self.names}
        best = max(sorted(self.names - files), key=cover.__getitem__, default=name)
        if len(rest) < 3 or cover[best] < 0.7 or cover[name] >= 0.5 * cover[best]:
            return None
        return "unwitnessed", f"the originals have this of {best}, not of {name}", None


def _base(path: str) -> str:
    """A file's name as `words` has it: the last of its parts."""
    return (words(path) or [""])[-1]


def _names(row: Attempt) -> set[str]:
    return set(map(_base, row.paths))


def quoted(text: str) -> str:
    """A witness in quotation marks, on one line."""
    flat = " ".join(text.split())
    return f'"{flat if len(flat) <= WITNESS_CHARS else flat[: WITNESS_CHARS - 1] + "…"}"'


def _told(row: Attempt) -> str:
    """A row of the table in a few words."""
    if row.paths:
        named = f"`{row.text.split()[0]} {short(row.paths[0])}` {row.status}"
        return named if row.status == "ok" else f"{named}: {row.detail[:WITNESS_CHARS]}"
    text = " ".join(row.text.split())
    named = f"`{text if len(text) <= 60 else text[:59] + '…'}` {row.status}"
    return f"{named}: {row.detail[:WITNESS_CHARS]}" if row.detail else named


# -------------------------------------------------------------- words of claims
_OF_ASKING = frozenset(map(stem, wording.OF_ASKING))
_ACTS = frozenset(map(stem, wording.IRREVERSIBLE))
SMALL = 2
"""Numbers that a writer uses as words; larger ones are looked for."""
LARGE = 100
"""A number from which on it is no accident that the originals have it."""
MOST_NUMBERS = 4
"""What has more is a table: which of them stands beside what is not told by its words."""
_SPOKEN = ("assistant", "user", "summary")
_PROSE = (*_SPOKEN, "visible")
_DENYING = frozenset(map(stem, wording.DENIES))
_LABEL = "asks teps tep ptions ption about around Phase".split()
"""Ends of words with which a number is a name, or no more than about right."""
_VALUE = re.compile(
    rf"(?<![\w.#/~≈:-]){''.join(f'(?<!{word} )' for word in _LABEL)}(?<!\d[,.])(?<!` )(?<!` \()"
    r"(?:\d{1,3}(?:,\d{3})+|\d{1,9})(?![\w]|[.,:–-]\d|\. [a-z])"
)
_QUOTE = re.compile(r"[\"“]([^\"“”]{12,})[\"”]")
_QUOTED = re.compile(r"(?<!\w)[\"“]([^\"“”]{5,120}?)[.,]?[\"”]")
_CLAUSE = re.compile(r"[,;]\s|\s[-–—]\s|\bbut\b")
_ASIDE = re.compile(r" ?\([^()]*\)")
_SUPPOSED = re.compile(r"\b(?:on|upon|after|once|until|pending) (?:the )?(?:user|customer)\b", re.I)
_PLACE = re.compile(r"\.\w+:\d")
"""A line of a file: another place in it is no contradiction."""
_ASKS_THE_USER = re.compile(
    r"(?:^|[._])ask_?(?:the_?)?(?:user|human|follow_?up|question)|^exit_?plan_?mode$|"
    r"^request_user_input$",
    re.I,
)
"""Tools whose results are the user's own answers: by the whole word, a `Task` is none."""
_HAS_AGREED = re.compile(r"\W*(?:the )?user (?:has )?(?:approved|agreed|confirmed|accepted)", re.I)
_WRITES = re.compile(r"edit|write|patch|replace|create|insert|update", re.I)
