"""Read references: outlines, messages, lines, or the passages about something."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ..ledger.segments import DROPPED
from ..ledger.words import Hit, distinct_words, document_of, find_hits
from ..messages import Message, text_of
from ..messages.display import message_as_text, one_line, pluralize, truncate_line
from .archive import Neighbourhood, SessionArchive
from .fitting import LEAST_BESIDE_CHARS, LEAST_SHARE_TOKENS, QUOTE_NOTICE, Fitting, line_range
from .layout import count_fitting, line_numbers, split_lines, table_of
from .matches import FoundMessage
from .outlines import join_in_pairs, masks_row, outline_rows, references_in_order, runs_of_entries
from .passages import query_terms, terms_in
from .references import REFERENCE_HELP, Reference, in_runs, parse_reference
from .search import find_messages, lacking_words, search_answer

LEAST_TOKENS = 100
MOST_PASSAGES = 4
"""With `about`, at most this number of passages are quoted."""
ABOUT_SHARE = 0.72
"""With `about`, passages get this share of the budget."""
MOST_ELSEWHERE, COMPARED_WORDS = 3, 8
"""Without a match: upper limit of the messages that are named; of the words that are compared."""
OVERVIEW_ROWS, OVERVIEW_MESSAGES = 12, 24
"""Upper limit of the overview's rows; number of messages that are read of each segment."""
BESIDE_DIVISOR = 7
"""Calls get at least 1 / BESIDE_DIVISOR of an answer, and results too."""
ROW_CHARS = 200
"""A row of the user's words has at most this number of characters."""
OUTLINE_CHARS = 1_000
GAPS_TOKENS, HEAD_TOKENS, FRAME_TOKENS, GO_ON_TOKENS = 20, 10, 40, 34
"""Tokens for gap references, a message's head, the frame, the last line."""
QUERY_CHARS = 60

_GO_ON = "go on: "
_GAP_LINE = re.compile(r"^\[… (s\d+\.(\d+):\d+-\d+) …\]$", re.M)


@dataclass(frozen=True)
class Reading:
    """Read an archive at references that were asked for together."""

    archive: SessionArchive
    fitting: Fitting
    references: Sequence[Reference]
    about: str
    """Words to search for; "": read everything."""
    answered: str = ""
    """The turn's earlier answers."""

    def read(self, written: str, free_tokens: int) -> str:
        """Return the text at a reference in at most `free_tokens`."""
        if not written.strip():
            return self._list_segments(free_tokens)
        reference = parse_reference(written)
        if reference is None:
            return f"{quote_query(written)} is no reference; {REFERENCE_HELP}."
        originals = self._originals_or_refusal(reference)
        if isinstance(originals, str):
            return originals
        if reference.message is None and len(originals) == 1:
            reference = reference.of_message(1)
        if reference.line is not None:
            reference = _as_message_lines(reference, originals)
        read = self._read_about if self.about else self._read_whole
        return read(reference, originals, free_tokens)

    def _originals_or_refusal(self, reference: Reference) -> list[Message] | str:
        entries, segment = self.archive.entries, f"s{reference.segment}"
        if not 1 <= reference.segment <= len(entries):
            known = "s1 alone" if len(entries) == 1 else f"s1 to s{len(entries)}"
            return f"There is no segment {segment}; there is {known}."
        entry = entries[reference.segment - 1]
        originals = self.archive.originals(entry, reference.messages)
        if originals is None:
            return f"Segment {segment} was forgotten."
        if entry.segment.kind == "undo":
            return f"Segment {segment} undoes others, and holds no messages."
        if entry.segment.kind == "keep":
            return (
                f"Segment {segment} records that you kept messages; read them by their earlier "
                "reference or in the conversation."
            )
        if reference.message is not None and not 1 <= reference.message <= len(originals):
            return f"Segment {segment} has the messages {segment}.1 to {segment}.{len(originals)}."
        return originals

    # -------------------------------------------------------------- segments

    def _list_segments(self, free_tokens: int) -> str:
        older = '(older segments: read "s1", "s2" …)'
        lines: list[str] = []
        for run in runs_of_entries(self.archive.entries):
            if len(lines) == OVERVIEW_ROWS:
                lines.append(older)
                break
            number, entry = run[-1]
            if entry.segment.kind == "mask":
                lines.append(masks_row(run))
                continue
            originals = self.archive.originals(entry, slice(OVERVIEW_MESSAGES))
            if originals is None:
                lines.append(f"s{number}: forgotten")
                continue
            first = originals[:OVERVIEW_MESSAGES]
            rows = max(2, OVERVIEW_ROWS // len(self.archive.entries))
            begins = outline_rows(first, references_in_order(number, first))[:rows]
            head = f"s{number}: {pluralize(len(originals), 'message')}"
            lines.append("\n  ".join([head, *begins]))
        return self.fitting.fit_rows(lines, free_tokens, older).text

    def _fit_outline(self, rows: Sequence[str], free_tokens: int) -> str:
        """Return an outline; its rows are cut or joined until all fit."""
        more = "(the rest does not fit: read the messages)"
        chars = OUTLINE_CHARS
        while True:
            fitted = self.fitting.fit_rows(
                [truncate_line(row, chars) for row in rows], free_tokens, more
            )
            if not fitted.is_cut or len(rows) == 1:
                return fitted.text
            # Join rows now: a row that is cut further says nothing.
            rows = rows if chars > LEAST_BESIDE_CHARS else join_in_pairs(rows)
            chars = LEAST_BESIDE_CHARS

    # -------------------------------------------------------------- passages

    def _read_about(
        self, reference: Reference, originals: Sequence[Message], free_tokens: int
    ) -> str:
        """Return the text if it fits, else its passages or matches elsewhere."""
        places = range(*reference.messages.indices(len(originals)))
        pool = self._pool(reference, originals, places)
        hits = _search_pool(self.about, pool)
        if reference.message is None and not hits:
            return self._read_whole(reference, originals, free_tokens)
        # A result is shown below the named call that it answers.
        named = [hit for hit in hits if hit.ordinal in places]
        found = [FoundMessage(reference.segment, hit) for hit in hits]
        elsewhere = [] if hits else find_messages(self.archive, self.about)[:MOST_ELSEWHERE]
        remark = "" if named else self._no_match_remark(reference, found or elsewhere)
        if reference.message is not None and self._fits(pool.values(), free_tokens):
            remark = "" if reference.line is not None else remark
            text = self._read_whole(reference, originals, free_tokens - self.fitting.count(remark))
            return f"{remark}\n{text}".lstrip("\n")
        if not hits:
            is_quoted = elsewhere and len(self.references) == 1
            return (
                self._quote(elsewhere, remark, free_tokens, self.answered) if is_quoted else remark
            )
        if len(places) > 1:
            answer = self._quote([each for each in found if each.hit in named], None, free_tokens)
            if reference.message is None:
                return answer
            unmatched = sorted({*places} - {hit.ordinal for hit in named})
            left = free_tokens - self.fitting.count(answer)
            return answer + self._user_rows(reference, {n: originals[n] for n in unmatched}, left)
        lacking = self._lacking_remark(reference, pool.values())
        own = [hit.message for hit in named]
        # Show calls and results too if these have words that the named messages lack: a call that
        # writes a file has the file's text, and its result only the path.
        is_less = self._fits(own, free_tokens) and self._lacking_remark(reference, own) != lacking
        shown = hits if is_less or not named else named
        return self._quote(
            [each for each in found if each.hit in shown], remark or lacking, free_tokens
        )

    def _user_rows(
        self, reference: Reference, unmatched: Mapping[int, Message], free_tokens: int
    ) -> str:
        """Return rows of the user's other words, such as "no"."""
        rows = [
            f"[{reference.of_message(n + 1)}] user: {one_line(text_of(message))}"
            for n, message in unmatched.items()
            if message.get("role") == "user"
        ]
        shown = [f"\n{row}" for row in rows if len(row) <= ROW_CHARS]
        return "".join(shown[: count_fitting(shown, free_tokens, self.fitting.count)])

    def _pool(
        self, reference: Reference, originals: Sequence[Message], places: range
    ) -> dict[int, Message]:
        """Return named messages by ordinal; add a single message's calls and results."""
        pool = {n: _keep_lines(reference, originals[n]) for n in places if originals[n] != DROPPED}
        if len(places) == 1 and reference.line is None:
            around = self.archive.around(reference.segment, places)
            pool |= around.messages_not_asked(around.paired_with(places[0]), self.references)
        return pool

    def _fits(self, messages: Iterable[Message], free_tokens: int) -> bool:
        count = self.fitting.count
        texts = (table_of(text) or text.strip("\n") for text in map(message_as_text, messages))
        return sum(count(text) + HEAD_TOKENS for text in texts) + count(QUOTE_NOTICE) <= free_tokens

    def _lacking_remark(self, reference: Reference, messages: Iterable[Message]) -> str:
        lacking = lacking_words(self.about, [message_as_text(each) for each in messages])
        return f"(not in {reference}: {lacking})" if lacking else ""

    def _no_match_remark(self, reference: Reference, found: Sequence[FoundMessage]) -> str:
        """State that nothing matches, and name other messages that match."""
        remark = f"Nothing in {reference} matches {quote_query(self.about)}"
        if not found:
            return f"{remark}.{occurring_words(self.about, self.archive)}"
        places = ", ".join(in_runs((each.segment, each.hit.ordinal + 1) for each in found))
        match = "matches" if len(found) == 1 else "match"
        return f"{remark}; {places} {match}{'' if found[0].hit.is_whole else ' in part'}."

    def _quote(
        self, found: Sequence[FoundMessage], count: str | None, free_tokens: int, answered: str = ""
    ) -> str:
        """Return the best passages and the rest.

        Passages in `answered` are not quoted again.
        """
        table_tokens, free_tokens = free_tokens, max(LEAST_TOKENS, int(free_tokens * ABOUT_SHARE))
        answer = search_answer(
            self.about,
            found,
            MOST_PASSAGES,
            self.archive,
            free_tokens=free_tokens,
            table_tokens=table_tokens,
            most_tokens=table_tokens,
            answered=answered,
        )
        if count is not None:
            answer = replace(answer, count=count)
        after = f"go on: {self.fitting.read_on(answer.after)}" if answer.after else ""
        ending = "; ".join(filter(None, (answer.further, after)))
        ending = f"\n({ending})" if ending else ""
        return (
            self.fitting.fit_answer(answer, answer.free_tokens - self.fitting.count(ending))
            + ending
        )

    # -------------------------------------------------------------- messages

    def _read_whole(
        self, reference: Reference, originals: Sequence[Message], free_tokens: int
    ) -> str:
        """Return a segment's outline, a message's lines, or messages."""
        if reference.message is None:
            rows = outline_rows(originals, references_in_order(reference.segment, originals))
            return self._fit_outline(rows, free_tokens)
        further = self._listed_further(reference)
        free_tokens -= self.fitting.count(further)
        if reference.line is not None:
            message = originals[reference.message - 1]
            text = self.fitting.fit_lines(reference, message, free_tokens, self._endings)
            return text if _GO_ON in text else text + further
        last = min(reference.messages.stop, len(originals))
        numbers = range(reference.message, last + 1)
        chosen = [(reference.of_message(number), originals[number - 1]) for number in numbers]
        if len(chosen) * LEAST_SHARE_TOKENS > free_tokens:
            where = [str(reference) for reference, _ in chosen]
            rows = outline_rows([message for _, message in chosen], where, most=1)
            return self._fit_outline(rows, free_tokens)
        text = self._read_messages(reference, chosen, free_tokens)
        return text if _GO_ON in text else text + further

    def _listed_further(self, reference: Reference) -> str:
        if reference.message is None or reference.last_message is not None:
            return ""
        at = reference.message - 1
        around = self.archive.around(reference.segment, range(at, at + 1))
        if not around.messages:
            return ""
        length = len(around.lines(at - around.start))
        if reference.line is not None and line_range(reference, length)[1] < length:
            return ""
        where = around.listed_after(at)
        return f"\n(goes on at {self.fitting.read_on(str(where))})" if where else ""

    def _read_messages(
        self, reference: Reference, chosen: Sequence[tuple[Reference, Message]], free_tokens: int
    ) -> str:
        """Return the messages; calls stand above their results, results below their calls."""
        count, places = self.fitting.count, range(reference.messages.start, reference.messages.stop)
        around = self.archive.around(reference.segment, places)
        size = sum(count(message_as_text(message)) for _, message in chosen)
        above, below = self._calls_and_results(around, places, free_tokens, size)
        free_tokens -= count(QUOTE_NOTICE + above) + count(below)
        if size > free_tokens - FRAME_TOKENS:
            free_tokens -= GO_ON_TOKENS
        parts = self.fitting.fit_messages(chosen, free_tokens, self._endings)
        if gaps := self._gap_references(reference, "\n".join(parts)):
            below += f"\n(go on: {self.fitting.read_on(gaps)})"
        return "\n".join([QUOTE_NOTICE + above, *parts]) + below

    def _calls_and_results(
        self, around: Neighbourhood, places: range, free_tokens: int, size: int
    ) -> tuple[str, str]:
        """Return the calls above named results, and the results below named calls.

        `size`: tokens of the named messages.
        """
        places = range(places.start, min(places.stop, around.start + len(around.messages)))
        least, left = free_tokens // BESIDE_DIVISOR, free_tokens - size - FRAME_TOKENS
        fit = self.fitting.fit_ends
        above = fit(around.calls_above(places, self.references), max(least, left - least))
        left -= self.fitting.count(above)
        return above, fit(around.results_below(places, self.references), max(least, left))

    @property
    def _endings(self) -> list[str]:
        wanted = query_terms(self.about)
        return [line for line in self.archive.endings if not terms_in(line, wanted)]

    def _gap_references(self, reference: Reference, text: str) -> str:
        """Return the references of a text's gaps, or of messages with gaps."""
        gaps = {gap[0]: int(gap[1]) for gap in _GAP_LINE.findall(text)}
        messages = in_runs((reference.segment, number) for number in gaps.values())[::-1]
        for form in map(", ".join, (gaps, messages)):
            if self.fitting.count(form) <= GAPS_TOKENS and form != str(reference):
                return form
        return ", ".join([*gaps][:2])


def _search_pool(about: str, pool: Mapping[int, Message]) -> list[Hit]:
    texts = {str(n): document_of(each, ("", "", n)) for n, each in sorted(pool.items())}
    return find_hits(about, texts, max(1, len(texts)), [list(texts)])


def _as_message_lines(reference: Reference, originals: Sequence[Message]) -> Reference:
    """Return the reference; a listing's numbers become line numbers of its message.

    Only a number greater than the message's number of lines can be a listing's number.
    """
    assert reference.message is not None
    assert reference.line is not None
    lines = split_lines(message_as_text(originals[reference.message - 1]))
    if reference.line <= len(lines):
        return reference
    wanted = range(reference.line, (reference.last_line or reference.line) + 1)
    named = [n for n, number in enumerate(line_numbers(lines), 1) if number in wanted]
    last = named[-1] if named and reference.last_line else None
    return replace(reference, line=named[0], last_line=last) if named else reference


def _keep_lines(reference: Reference, message: Message) -> Message:
    if reference.line is None:
        return message
    lines = split_lines(message_as_text(message))
    first, last = line_range(reference, len(lines))
    shown = [line if first <= n <= last else "" for n, line in enumerate(lines, 1)]
    return {"role": message.get("role"), "content": "\n".join(shown)}


def occurring_words(query: str, archive: SessionArchive) -> str:
    """Return the archive's words that are like the query's, or ""."""
    known = archive.newest_words()
    asked = distinct_words(query)[:COMPARED_WORDS]
    near = [difflib.get_close_matches(word, known, n=2, cutoff=0.8) for word in asked]
    similar = list(dict.fromkeys(word for some in near for word in some))
    return f" Words that do occur: {', '.join(similar)}." if similar else ""


def quote_query(query: str) -> str:
    """Return the shortened query in quotation marks."""
    return repr(query if len(query) <= QUERY_CHARS else query[:QUERY_CHARS] + "…")
