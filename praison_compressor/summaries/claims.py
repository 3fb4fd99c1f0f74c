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
from ..facts.commands import with_failing
from ..facts.coverage import (
    CODE,
    STOP,
    Line,
    Lines,
    Words,
    base_name,
    code_names,
    differs,
    names_in,
    quoted,
    sign,
    stem,
    told_row,
    words,
)
from ..facts.model import Attempt, CommandFact
from ..facts.outcomes import BAD
from ..facts.passages import dialogue, passages
from .numbers import Found, Numbers
from .protocol import Brief, Doubt
from .validation import MARK, NOT_THERE, Claim, claims_of, ungrounded


def unverified(text: str, brief: Brief, facts: Facts) -> list[Doubt]:
    """The claims of a text that its originals contradict or do not bear out, in order.

    `facts` are those of the brief's messages. One doubt for each claim, the gravest.
    """
    claims = list(islice(claims_of(text), wording.MOST_CLAIMS))
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


class _Reader:
    """The claims of one text beside their witnesses."""

    def __init__(self, text: str, brief: Brief, facts: Facts) -> None:
        self.facts = facts
        self.names = {base_name(item.path) for item in facts.files}
        self.lines = Lines(text, self.names | _DENYING)
        self.numbers = Numbers(self.lines)
        self.about: defaultdict[str, set[str]] = defaultdict(set)
        self.changed: defaultdict[str, set[str]] = defaultdict(set)
        self.asked: list[frozenset[str]] = []
        self.agreed: list[list[frozenset[str]]] = []
        self._last = ""
        self._read(brief)
        self.wishes = frozenset().union(*self.asked, *(line for one in self.agreed for line in one))
        self.touched = frozenset().union(*self.changed.values())
        self.calls: defaultdict[str, list[Attempt]] = defaultdict(list)
        self.commands = {item.text for item in facts.commands if item.kind == "command"}
        for row in facts.attempts:
            self.calls[row.text.split(" ")[0].rpartition("__")[2]].append(row)

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
            self.numbers.see(passage, found)
            call = passage.call
            asks = call is not None and wording.ASKS_THE_USER.search(call.name)
            is_answer = passage.source == "result" and asks
            self._said("user" if is_answer else passage.source, passage.text, found)
            if call is not None:
                named = call.arguments
                near = self.lines.shared(named if len(named) < 800 else named[:400] + named[-200:])
                writes = passage.source == "call" and wording.WRITES.search(call.name)
                for name in self.names & near:
                    self.about[name] |= found
                    if writes:
                        self.changed[name] |= found
        for name in self.names:
            self.about[name].update(*(line.words for line in self.lines.having(name)))

    def _said(self, source: str, text: str, found: frozenset[str]) -> None:
        """Keep what the user asked for, and what was before him when he agreed."""
        if source == "user":
            if len(text) < wording.OPTION_CHARS and (option := text.strip(" .)\n")):
                chosen = re.compile(rf"\W*(?:option )?{re.escape(option)}\b", re.I)
                found |= self.lines.shared("\n".join(filter(chosen.match, self._last.split("\n"))))
            self.asked.append(found)
            if wording.AGREES.match(text) or wording.HAS_AGREED.match(text):
                before = map(self.lines.shared, self._last.split("\n"))
                self.agreed.append([found, *before])
        elif source == "assistant":
            self._last = text if "?" in text[-wording.ASKING_CHARS :] else ""

    def doubt(self, claim: Claim) -> Doubt | None:
        """What there is to be said against a claim: the first thing found."""
        text = claim.text[: wording.LONGEST_CLAIM]
        said = Words(text)
        graver_first = (
            self.approval, self.quote, self.numbers.number, self.outcome, self.completion,
            self.negation, self.file,
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
        is_plan = wording.ORDERS.match(text) or wording.AWAITS_USER.search(text)
        if said.denied or is_plan or text.endswith(":"):
            return None
        parts = (said, Words(wording.ASIDE.sub("", text)))
        known = any(self._is_told(part, bool(approves)) for part in parts)
        return None if known else ("unwitnessed", "no message of the user says so", None)

    def _is_told(self, said: Words, approves: bool) -> bool:
        """Whether the user said or agreed to what these words name."""
        content = said.content - _OF_ASKING
        acts = said.content & _ACTS
        if approves:
            return any(self._is_agreed(said, content, one) for one in self.agreed)
        if not acts:
            return len(content) < 2 or self.lines.cover(content, self.wishes) >= 0.2
        needed = acts | {one for one in content if not one.isalpha()} | code_names(said.text)
        return any(needed <= one and self.lines.cover(content, one) >= 0.2 for one in self.asked)

    def _is_agreed(self, said: Words, content: set[str], told: list[frozenset[str]]) -> bool:
        """Whether he agreed to it: an act or a verdict stands in one line with what it is of."""
        acts = content & _ACTS
        spans = (span.rpartition("/")[2] for span in CODE.findall(said.text))
        named = {stem(word) for span in spans for word in words(span)}
        named |= {one for one in content if not one.isalpha()}
        whole = frozenset().union(*told)
        beside = not acts or any(acts | named <= line for line in told)
        return beside and named <= whole and self.lines.cover(content, whole) >= 0.5

    # ---------------------------------------------------------- quotes

    def quote(self, text: str, said: Words) -> Found | None:
        """Somebody's words with another number, outcome or negation than he said."""
        parts = (
            part
            for quote in wording.QUOTED_WORDS.findall(text)
            for part in wording.ELIDED.split(quote)
        )
        line = next(filter(None, map(self._misquoted, map(Words, parts))), None)
        return ("contradicted", quoted(line.text), line) if line else None

    def _misquoted(self, said: Words) -> Line | None:
        if len(said.content) < 3 or self.lines.has(said.text):
            return None
        best = self.lines.nearest(said.content)[:8]
        near = [line for share, line in best if share > 0.75 and line.source in wording.SPOKEN]
        differ = (differs(said, Words(line.text), self._beside(line, said)) for line in near)
        return near[0] if near and all(differ) else None

    def _beside(self, line: Line, said: Words) -> set[str]:
        """The words that stand in other lines of the same message."""
        lines = {one: self.lines.having(stem(one)) for one in set(said.all)}
        return {one for one, at in lines.items() if any(each.at == line.at for each in at)}

    # ---------------------------------------------------------- outcomes

    def outcome(self, text: str, said: Words) -> Found | None:
        """An outcome of a run or of a try that the originals tell otherwise."""
        if found := self._undone(text, said):
            return found
        if wording.NOT_YET.search(text) or wording.ORDERS.match(text):
            return None
        clauses = (
            clause
            for clause in wording.CLAUSE.split(text)
            if bool(wording.WENT_WELL.search(clause)) != bool(wording.WENT_WRONG.search(clause))
        )
        return next(filter(None, map(self._turned, clauses)), None)

    def _turned(self, text: str) -> Found | None:
        good = wording.WENT_WELL.search(text) is not None
        was = good and wording.BY_NOW.search(text) is not None  # what failed before tells nothing
        same, other = wording.WENT_WELL, wording.WENT_WRONG
        same, other = (same, other) if good else (other, same)
        rest = {one for one in Words(text).content if not same.search(one)}
        own, score, line = 0.0, 0.0, None
        for share, at in self.lines.nearest(rest):
            if not own and same.search(at.text):
                own = share
            elif line is not None or was or not other.search(at.text):
                continue
            elif not good or not self._is_resolved(at, text):
                score, line = share, at
        if line is not None and len(rest) > 1 and own < 0.6 * score and score > 0.3:
            return "contradicted", quoted(line.text), line
        return self._of_runs(text, own, good=good)

    def _is_resolved(self, line: Line, text: str) -> bool:
        """Whether what failed in this result worked later: all of it, or what the claim names."""
        rows = [row for row in self.facts.attempts if row.index >= line.at]
        failed = next((row for row in rows if row.index == line.at and row.status in BAD), None)
        if failed is None or line.source != "result":
            return False
        named = Words(text).files
        for row in rows:
            if row.status == "ok" and self._does(row, failed):
                return True
            on = named.intersection(map(base_name, row.text.split()))
            if row.status == "ok" and on and on == named and self._does(failed, row):
                return True
        return False

    def _does(self, wider: Attempt, row: Attempt) -> bool:
        """Whether a call is another one again, or a check of at least the same."""
        if wider.text == row.text or not row.checks or not {*row.checks} <= {*wider.checks}:
            return wider.text == row.text
        first, then = (
            CommandFact(one.text, status, one.text, at, kind=self._kind(one))
            for at, (one, status) in enumerate(((row, "failed"), (wider, "ok")))
        )
        return not any(item.still_fails for item in with_failing((first, then)))

    def _kind(self, row: Attempt) -> str:
        return "command" if row.text in self.commands else "call"

    def _of_runs(self, text: str, own: float, *, good: bool) -> Found | None:
        """What the table of outcomes says of tools and checks that are told to pass, or to fail."""
        came = (wording.WENT_WELL if good else wording.WENT_WRONG).pattern
        for tool, rows in self.calls.items():
            all_else = all(row.status in BAD if good else row.status == "ok" for row in rows)
            if all_else and re.search(rf"`{re.escape(tool)}`[^.,;]{{0,40}}?(?:{came})", text, re.I):
                return "contradicted", told_row(rows[-1]), rows[-1]
        for kind, spoken in wording.CHECKS.items() if good else ():
            if not re.search(rf"{spoken}[^.,;]{{0,40}}?(?:{came})", text, re.I):
                continue
            rows = [row for row in self.facts.attempts if kind in row.checks]
            # Of several checks in one line it is not known which of them failed.
            known = [row for row in rows if row.status == "ok" or row.checks == (kind,)]
            known = [row for row in known if row.status in ("ok", *BAD)]
            went_well = bool(known) and known[-1].status == "ok"
            if known and not went_well and not wording.EARLIER.search(text):
                return "contradicted", told_row(known[-1]), known[-1]
            if not known and own < 0.35:
                return "unwitnessed", "no run in the originals shows it", None
        return None

    def _undone(self, text: str, said: Words) -> Found | None:
        """That something could not be done."""
        undone = wording.UNDONE.search(text)
        if not undone:
            return None
        rows = [row for row in self.facts.attempts if row.changes and _names(row) & said.files]
        if rows:
            return (
                ("contradicted", told_row(rows[-1]), rows[-1]) if rows[-1].status == "ok" else None
            )
        tried = said.content - {stem(undone[1].casefold())}
        calls = [(self.lines.shared(row.text), row.status) for row in self.facts.attempts]
        came = [status for told, status in calls if self.lines.cover(tried, told) > 0.5]
        if came and came[-1] in BAD:
            return None
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
        name = base_name(found[1])
        rows = [row for row in self.facts.attempts if name in _names(row)]
        changes = [row for row in rows if row.changes]
        if changes and all(row.status in BAD for row in changes):
            return "contradicted", told_row(changes[-1]), changes[-1]
        # An editor may work on the file that was opened before.
        blind = any(wording.WRITES.match(row.text) and not row.paths for row in self.facts.attempts)
        if rows and not changes and not blind and not self._told_before(name):
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
        if any(base_name(row.split(" ")[0]) in said.all for row in tried):
            return None
        least = 0.2 if verb in ("done", "completed", "finished") else 0.4
        for share, line in self.lines.nearest(said.content - {stem(verb)}):
            if line.source in ("call", "result") and named & line.words:
                return None
            is_told = line.source in wording.SPOKEN and wording.COMPLETED.search(line.text)
            if share >= least and is_told and not wording.NOT_YET.search(line.text):
                return None
        return "unwitnessed", "nothing in the originals shows it done", None

    # ---------------------------------------------------------- negations

    def negation(self, text: str, said: Words) -> Found | None:
        """What the originals deny and the claim does not."""
        if len(said.content) < wording.LEAST_WORDS:
            return None
        order = [one for one in said.stems if one not in STOP and not one.isdigit()]
        pairs = ((one, two) for at, one in enumerate(order) for two in order[at + 1 : at + 3])
        line = next(filter(None, (self._denied(one, two, said) for one, two in pairs)), None)
        return ("contradicted", quoted(line.text), line) if line else None

    def _denied(self, one: str, two: str, said: Words) -> Line | None:
        """A line like the claim that denies two of its words, where few have them undenied."""
        lines = [line for line in self.lines.having(one, two) if line.source in wording.PROSE][:60]
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
        parts = text.split("; ")
        found = (self._of_file(part, Words(part) if len(parts) > 1 else said) for part in parts)
        return next(filter(None, found), None)

    def _of_file(self, text: str, said: Words) -> Found | None:
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


def _names(row: Attempt) -> set[str]:
    return set(map(base_name, row.paths))


# -------------------------------------------------------------- words of claims
_OF_ASKING = frozenset(map(stem, wording.OF_ASKING))
_ACTS = frozenset(map(stem, wording.IRREVERSIBLE | wording.VERDICTS))
_DENYING = frozenset(map(stem, wording.DENIES))
