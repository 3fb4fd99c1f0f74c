"""Search and read one session's archive verbatim, within a budget.

Each answer states its cost, and is never larger than its budget. The answers of one turn share a
budget too: an archive that is read whole again was compressed for nothing.
"""

from __future__ import annotations

import contextlib
import difflib
import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..errors import LedgerError
from ..ledger.segments import DROPPED, Session
from ..ledger.stores import Store
from ..ledger.words import Hit, distinct_words, document_of, find_hits, missing_chunks
from ..messages import Message
from ..messages.display import message_as_text, truncate_line
from .around import Around, ReadAround
from .fitting import LEAST_BESIDE_CHARS, LEAST_SHARE_TOKENS, OPENS, Fitting, both_ends, line_range
from .layout import shared_endings, split_lines
from .matches import COUNTED, FoundMessage, SearchAnswer, few_words, search_answer
from .outlines import join_in_pairs, masks_row, outline_rows, references_in_order, runs_of_entries
from .passages import query_terms
from .references import REFERENCE_HELP, Reference, in_runs, parse_reference
from .tables import table_of

__all__ = ["READ", "SEARCH", "TURN_TOKENS", "Recall"]

SEARCH, READ = "search_conversation_archive", "read_conversation_archive"
"""The tools' names."""
SEARCH_TOKENS, READ_TOKENS = 300, 800
"""Default sizes of a search's answer and of a read one."""
TURN_TOKENS = 4_000
"""All answers of one turn together."""
LEAST_TOKENS = 100
"""A smaller answer is of no use."""
PASSAGES = 4
"""Passages returned when `about` is given."""
ABOUT_SHARE = 0.4
"""Part of the budget for passages where `about` is given: the rest is saved."""
SHORT_TOKENS = 300
"""Messages up to this size are returned whole even when `about` is given."""
CHARS, HEAD_TOKENS = 2.5, 80
"""Characters of quoted lines for each token of an answer, but for what stands beside them."""
BEGINNING_TOKENS = 250
"""Size of a message's beginning and end, returned where nothing in it matches `about`."""
OVERVIEW_ROWS, OVERVIEW_MESSAGES = 12, 24
"""Rows of the overview, and a segment's messages that it reads."""
NAMED_NEIGHBOURS, FOUND_NEIGHBOURS = 32, 12
"""Messages before and after a named or a found one, among which calls and results are paired."""
COMPARED_WORDS = 5_000
"""Words of the archive that are compared with those of a query that finds nothing."""
BESIDE_PART = 7
"""Calls above take one part in seven of an answer at most, and so do results below."""
SAMPLED_MESSAGES = 100
"""Messages among which lines are looked for that end several."""
_NO_ARCHIVE = "Nothing of this conversation has been archived."
_QUERY_CHARS = 60  # characters
_QUOTE_MARKS = "\"'`“”"


@dataclass
class Recall:
    """Searches and reads one session's archive within a budget of tokens."""

    store: Callable[[], Store]
    """Returns the store at each call."""
    session: Callable[[], Session]
    """Returns the session whose archive is read, at each call."""
    count: Callable[[str], int]
    """Tokens of a text, as the agent's model counts them."""
    turn: Callable[[], Hashable] | None = None
    """Returns the agent's turn; a new turn has a new budget. None: one budget for all answers."""
    turn_tokens: int | None = TURN_TOKENS
    """None: no bound."""
    reading: Callable[[str], str] = str
    """Returns the reference, or the command, that reads on there."""
    _spent: tuple[Hashable, int] = field(default=(None, 0), init=False)
    _known_endings: tuple[str, frozenset[str]] = field(default=("", frozenset()), init=False)

    @property
    def _fitting(self) -> Fitting:
        return Fitting(self.count, self.reading)

    # -------------------------------------------------------------- what the tools answer

    def search(self, query: str, limit: int = 3, budget: int = SEARCH_TOKENS) -> str:
        """Return the number of matches, best passages, and other references."""
        return self._answer_within_turn(
            budget, lambda session, room: self._search(session, query, max(1, limit), room)
        )

    def read(self, reference: str = "", budget: int = READ_TOKENS, about: str = "") -> str:
        """Return the text at the references; "" lists the segments.

        With `about`, long messages are cut to the passages that match.
        """
        references = _BETWEEN_REFERENCES.split(reference.strip())
        return self._answer_within_turn(
            budget,
            lambda session, room: self._read_references(session, references, about.strip(), room),
        )

    def _answer_within_turn(self, budget: int, answer: Callable[[Session, int], str]) -> str:
        session = self.session()
        if not session.entries:
            return _NO_ARCHIVE
        turn = self.turn() if self.turn else None
        spent = self._spent[1] if self._spent[0] == turn else 0
        room = max(LEAST_TOKENS, budget)
        if self.turn_tokens is not None:
            room = min(room, self.turn_tokens - spent)
            if room < LEAST_TOKENS:
                again = " The next turn has it again." if self.turn else ""
                return (
                    f"(The budget for the archive, {self.turn_tokens:,} tokens, is spent: go on "
                    f"with what you have read.{again})"
                )
        text = answer(session, room - _FOOTER_TOKENS)
        size = self.count(text) + _FOOTER_TOKENS
        self._spent = turn, spent + size
        if self.turn_tokens is None:
            return f"{text}\n({size} tokens)"
        left = f"{self.turn_tokens - spent - size:,} left{' this turn' if self.turn else ''}"
        return f"{text}\n({size} tokens, {left})"

    # -------------------------------------------------------------- searching

    def _search(self, session: Session, query: str, limit: int, room: int) -> str:
        if not distinct_words(query):
            return f'Nothing was asked: give a query, or {READ}("") for what is archived.'
        query = query.strip().strip(_QUOTE_MARKS)
        # Other messages stand in the view, the user's question among them.
        archived = self.store().search(
            session.namespace, query, session.id, COUNTED, archived_only=True
        )
        places = {e.hash: n for n, e in enumerate(session.entries, 1) if not e.forgotten}
        found = [
            FoundMessage(
                *(places[hit.entry], hit.ordinal, hit.message, hit.score),
                *(hit.is_whole, hit.is_complete),
            )
            for hit in archived
            if hit.entry in places
        ]
        if not found:
            return self._explain_no_match(session, query, room)
        quoted = max(1, round(room / SEARCH_TOKENS))
        answer = self._rank_matches(session, query, found, limit, room, quoted)
        return self._fitting.found(answer, room)

    def _rank_matches(
        self,
        session: Session,
        query: str,
        found: Sequence[FoundMessage],
        limit: int,
        room: int,
        quoted: int,
    ) -> SearchAnswer:
        read_around, chars = (
            self._neighbour_reader(session),
            int(max(0, room - HEAD_TOKENS) * CHARS),
        )
        return search_answer(query, found, limit, *read_around, whole=chars, quoted=quoted)

    def _neighbour_reader(self, session: Session) -> tuple[ReadAround, frozenset[str]]:
        """Return a reader of nearby messages, and lines ending several."""
        shared = self._read_endings(session)

        def read_around(segment: int, ordinal: int) -> Around:
            start = max(0, ordinal - FOUND_NEIGHBOURS)
            wanted = slice(start, ordinal + FOUND_NEIGHBOURS + 1)
            entry = session.entries[segment - 1]
            originals = self.store().originals(session, entry, wanted) or []
            return Around(segment, start, originals[wanted], shared)

        return read_around, shared

    def _read_endings(self, session: Session) -> frozenset[str]:
        """Return lines that end several of the session's messages."""
        if self._known_endings[0] != session.head_hash:
            texts: list[str] = []
            for entry in reversed(session.entries):
                wanted = slice(max(0, SAMPLED_MESSAGES - len(texts)))
                with contextlib.suppress(LedgerError):
                    found = self.store().originals(session, entry, wanted) or []
                    texts += map(message_as_text, found[wanted])
                if len(texts) >= SAMPLED_MESSAGES:
                    break
            self._known_endings = session.head_hash, shared_endings(texts)
        return self._known_endings[1]

    def _explain_no_match(self, session: Session, query: str, room: int) -> str:
        """Say what the view has instead, or which similar words occur."""
        said = f"Nothing archived of this conversation matches {_quote_query(query)}."
        standing = self.store().search(session.namespace, query, session.id, 3)
        if seen := [hit for hit in standing if not hit.entry and hit.is_whole]:
            wanted = query_terms(query)
            shown = "; ".join(
                f"{each.message.get('role')}: {few_words(message_as_text(each.message), wanted)}"
                for each in seen
            )
            return both_ends(f"{said} It is still in view: {shown}", room * 3)
        held = _similar_words(query, self._newest_words(session))
        if held:
            said += f" Words that do occur: {', '.join(held)}."
        return said + f' Newer messages are in view. {READ}("") lists what is archived.'

    def _newest_words(self, session: Session) -> list[str]:
        """Return distinct words of the newest segments."""
        found: dict[str, None] = {}
        for entry in reversed(session.entries):
            for message in self.store().originals(session, entry) or ():
                if message != DROPPED:
                    found.update(dict.fromkeys(distinct_words(message_as_text(message))))
            if len(found) > COMPARED_WORDS:
                break
        return list(found)

    # -------------------------------------------------------------- reading

    def _read_references(
        self, session: Session, references: Sequence[str], about: str, room: int
    ) -> str:
        """Return the texts at several references, each within its share of what is left."""
        references = list(dict.fromkeys(references))
        asked = [named for reference in references if (named := parse_reference(reference))]
        parts: list[str] = []
        for number, reference in enumerate(references):
            share = max(LEAST_TOKENS, room // (len(references) - number))
            part = self._read_reference(session, reference, asked, about, share)
            parts.append(part.removeprefix(f"{OPENS}\n") if parts else part)
            room -= self.count(part)
            if room < LEAST_TOKENS and number + 1 < len(references):
                parts.append(f"(more: {self.reading(', '.join(references[number + 1 :]))})")
                break
        return "\n".join(parts)

    def _read_reference(
        self, session: Session, reference: str, asked: Sequence[Reference], about: str, room: int
    ) -> str:
        """Return the text at a reference, one of those asked for together."""
        if not reference.strip():
            return self._list_segments(session, room)
        named = parse_reference(reference)
        if named is None:
            return f"{_quote_query(reference)} is no reference; {REFERENCE_HELP}."
        if not 1 <= named.segment <= len(session.entries):
            return f"There is no segment s{named.segment}; there are s1 to s{len(session.entries)}."
        entry = session.entries[named.segment - 1]
        originals = self.store().originals(session, entry, named.messages)
        if originals is None:
            return f"Segment s{named.segment} was forgotten."
        if entry.segment.kind in ("keep", "undo"):
            return f"Segment s{named.segment} takes others back, and holds no messages."
        if named.message is not None and not 1 <= named.message <= len(originals):
            return (
                f"Segment s{named.segment} has the messages s{named.segment}.1 to "
                f"s{named.segment}.{len(originals)}."
            )
        if named.message is None and len(originals) == 1:
            named = named.of_message(1)
        if about:
            said = self._read_about(session, named, asked, originals, about, room)
            if said is not None:
                return said
        return self._read_whole(session, named, asked, originals, room)

    def _read_whole(
        self,
        session: Session,
        named: Reference,
        asked: Sequence[Reference],
        originals: Sequence[Message],
        room: int,
    ) -> str:
        """Return an outline, lines or messages."""
        if named.message is None:
            return self._fit_outline(
                outline_rows(originals, references_in_order(named.segment, originals)), room
            )
        if named.line is not None:
            return self._fitting.lines(named, originals[named.message - 1], room)
        return self._read_messages(session, named, asked, originals, room)

    def _read_about(
        self,
        session: Session,
        named: Reference,
        asked: Sequence[Reference],
        originals: Sequence[Message],
        about: str,
        room: int,
    ) -> str | None:
        """Return passages about something, a remark, or None.

        The results of a message's calls belong to it; its own call is searched after these.
        """
        last = min(named.messages.stop or len(originals), len(originals))
        places = range((named.message or 1) - 1, last)
        pool = {
            n: _keep_named_lines(named, originals[n]) for n in places if originals[n] != DROPPED
        }
        calls: dict[int, Message] = {}
        if len(places) == 1 and named.line is None:
            around = self._messages_around(session, named)
            pool |= around.messages_not_asked(around.results_of(places[0]), asked)
            made = (around.start + one.at for one in around.calls_answered_by(places[0]))
            calls = around.messages_not_asked(made, asked)
        held = _search_pool(about, pool)
        if calls and not held and (held := _search_pool(about, pool | calls)):
            pool |= calls
        remark = (
            ""
            if any(hit.ordinal in places for hit in held)
            else _no_match_remark(named, about, held)
        )
        texts = map(message_as_text, pool.values())
        is_short = sum(self.count(table_of(text) or text) for text in texts) <= SHORT_TOKENS
        if is_short and named.message and not remark:
            return None
        if held and not (is_short and named.message):
            found = [
                FoundMessage(named.segment, h.ordinal, h.message, h.score, h.is_whole) for h in held
            ]
            room = max(LEAST_TOKENS, int(room * ABOUT_SHARE))
            answer = self._rank_matches(session, about, found, PASSAGES, room, PASSAGES)
            if len(places) == 1:
                lacking = _lacking_remark(named, map(message_as_text, pool.values()), about)
                answer = replace(answer, count=remark or lacking)
            after = f"go on: {self.reading(answer.after)}" if answer.after else ""
            ending = "; ".join(filter(None, (answer.further, after)))
            ending = f"\n({ending})" if ending else ""
            return self._fitting.found(answer, room - self.count(ending)) + ending
        room = (room if is_short else min(room, BEGINNING_TOKENS)) - self.count(remark)
        return f"{remark}\n{self._read_whole(session, named, asked, originals, room)}"

    def _list_segments(self, session: Session, room: int) -> str:
        """Return the newest segments, each with the beginning of its outline."""
        older = '(older segments: read "s1", "s2" …)'
        lines: list[str] = []
        for run in runs_of_entries(session.entries):
            if len(lines) == OVERVIEW_ROWS:
                lines.append(older)
                break
            number, entry = run[-1]
            if entry.segment.kind == "mask":
                lines.append(masks_row(run))
                continue
            originals = self.store().originals(session, entry, slice(OVERVIEW_MESSAGES))
            if originals is None:
                lines.append(f"s{number}: forgotten")
                continue
            first = originals[:OVERVIEW_MESSAGES]
            rows = max(2, OVERVIEW_ROWS // len(session.entries))
            begins = outline_rows(first, references_in_order(number, first))[:rows]
            lines.append("\n  ".join([f"s{number}: {len(originals)} messages", *begins]))
        return self._fitting.rows(lines, room, older)

    def _fit_outline(self, rows: Sequence[str], room: int) -> str:
        """Return an outline, its rows cut or joined until all fit."""
        more = "(the rest does not fit: read the messages)"
        most = OUTLINE_CHARS
        while True:
            answer = self._fitting.rows([truncate_line(row, most) for row in rows], room, more)
            if not answer.endswith(more) or len(rows) == 1:
                return answer
            # A row cut below LEAST_CHARS says nothing: then rows share their line.
            most, rows = (
                LEAST_BESIDE_CHARS,
                rows if most > LEAST_BESIDE_CHARS else join_in_pairs(rows),
            )

    def _read_messages(
        self,
        session: Session,
        named: Reference,
        asked: Sequence[Reference],
        originals: Sequence[Message],
        room: int,
    ) -> str:
        """Return the named messages, each within its share of the budget.

        The calls that named results answer stand above, the results of named calls below; those
        that are `asked` for too are shown there alone.
        """
        assert named.message is not None
        last = min(named.messages.stop, len(originals))
        chosen = [(named.of_message(n), originals[n - 1]) for n in range(named.message, last + 1)]
        if len(chosen) * LEAST_SHARE_TOKENS > room:
            where = [str(reference) for reference, _ in chosen]
            return self._fit_outline(
                outline_rows([each for _, each in chosen], where, most=1), room
            )
        around = self._messages_around(session, named)
        size = sum(self.count(message_as_text(each)) for _, each in chosen)
        above, ending = self._calls_and_results(
            around, range(named.messages.start, last), asked, room, size
        )
        room -= self.count(OPENS + above) + self.count(ending)
        if size > room - _FRAME_TOKENS:
            room -= _GO_ON_TOKENS
        parts = self._fitting.messages(chosen, room, around.shared)
        if holes := self._gap_references(named, "\n".join(parts)):
            ending += f"\n(go on: {self.reading(holes)})"
        return "\n".join([OPENS + above, *parts]) + ending

    def _gap_references(self, named: Reference, text: str) -> str:
        """Return the references of a text's gaps, or the messages that have them.

        What was asked for is not named again: then the first two gaps are.
        """
        holes = {found[0]: int(found[1]) for found in _GAP_LINE.findall(text)}
        messages = in_runs((named.segment, number) for number in holes.values())[::-1]
        for form in map(", ".join, (holes, messages)):
            if self.count(form) <= GAPS_TOKENS and form != str(named):
                return form
        return ", ".join([*holes][:2])

    def _messages_around(self, session: Session, named: Reference) -> Around:
        """Return the messages around the named ones."""
        start = max(0, named.messages.start - NAMED_NEIGHBOURS)
        wanted = slice(start, named.messages.stop + NAMED_NEIGHBOURS)
        entry, found = session.entries[named.segment - 1], list[Message]()
        # A damaged message beside the named ones does not keep these from being read.
        with contextlib.suppress(LedgerError):
            found = (self.store().originals(session, entry, wanted) or [])[wanted]
        return Around(named.segment, start, found, self._read_endings(session))

    def _calls_and_results(
        self, around: Around, places: range, asked: Sequence[Reference], room: int, size: int
    ) -> tuple[str, str]:
        """Return the calls that named results answer, and the results of named calls.

        Both have a share of the room, and what named messages of that size leave.
        """
        places = range(places.start, min(places.stop, around.start + len(around.messages)))
        least, left = room // BESIDE_PART, room - size - _FRAME_TOKENS
        fitted = self._fitting.ends_of_all
        above = fitted(around.calls_above(places, asked), max(least, left - least))
        left -= self.count(above)
        return above, fitted(around.results_below(places, asked), max(least, left))


OUTLINE_CHARS = 1_000
"""Characters of an outline's row where all rows fit."""
GAPS_TOKENS = 20
"""References of what a range leaves out."""
_FOOTER_TOKENS = 14
LACKING_CHARS = 100
_FRAME_TOKENS = 40
_GAP_LINE = re.compile(r"^\[… (s\d+\.(\d+):\d+-\d+) …\]$", re.M)
_GO_ON_TOKENS = 34
_BETWEEN_REFERENCES = re.compile(r"\s*(?:[,;]|\band\b)\s*(?=\W*s\d)|\s+(?=\W?s\d)")


def _similar_words(query: str, known: Sequence[str]) -> list[str]:
    """Return the known words that are most like those of a query."""
    near = [
        difflib.get_close_matches(each, known, n=2, cutoff=0.8)
        for each in distinct_words(query)[:8]
    ]
    return list(dict.fromkeys(word for some in near for word in some))


def _search_pool(about: str, pool: Mapping[int, Message]) -> list[Hit]:
    """Return the matching messages of a pool by ordinal, best first."""
    texts = {str(n): document_of(each) for n, each in sorted(pool.items())}
    return find_hits(about, texts, max(1, len(texts)), lambda n: ("", "", int(n)), [list(texts)])


def _no_match_remark(named: Reference, about: str, held: Sequence[Hit]) -> str:
    """Return a remark that nothing matches there, and which calls or results do."""
    places = ", ".join(in_runs((named.segment, hit.ordinal + 1) for hit in held))
    part = "" if not held or held[0].is_whole else " in part"
    elsewhere = f"; {places} matches{part}" if held else ""
    return f"Nothing in {named} matches {_quote_query(about)}{elsewhere}."


def _lacking_remark(named: Reference, texts: Iterable[str], about: str) -> str:
    """Return a remark on the words that no text has, "" for none."""
    lacking = missing_chunks(about, list(texts))
    return (
        truncate_line(f"(not in {named}: {', '.join(lacking)})", LACKING_CHARS) if lacking else ""
    )


def _keep_named_lines(named: Reference, message: Message) -> Message:
    """Return a message with its other lines blank, if the reference names lines."""
    if named.line is None:
        return message
    lines = split_lines(message_as_text(message))
    first, last = line_range(named, len(lines))
    shown = [line if first <= n <= last else "" for n, line in enumerate(lines, 1)]
    return {"role": message.get("role"), "content": "\n".join(shown)}


def _quote_query(asked: str) -> str:
    """Return a quoted query, shortened: an answer has a budget."""
    return repr(asked if len(asked) <= _QUERY_CHARS else asked[:_QUERY_CHARS] + "…")
