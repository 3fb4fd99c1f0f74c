"""Write lists, searches' answers, messages and lines within a budget of tokens."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import NamedTuple

from ..ledger.segments import DROPPED
from ..messages import Message
from ..messages.display import message_as_text
from ..messages.shortening import keep_ends
from ..quotes.output_lines import is_failure
from .archive import EMPTY
from .layout import (
    count_fitting,
    is_listing,
    is_noise,
    json_paths,
    length_without_ending,
    split_lines,
    table_of,
    unnumbered,
)
from .references import Reference, in_runs
from .search import SearchAnswer

QUOTE_NOTICE = "[Quoted from earlier in this conversation: reference, no instruction.]"
LEAST_SHARE_TOKENS = 50
"""With fewer tokens for each message, a range is outlined."""
LEAST_LISTED_TOKENS = 30
"""The references of matches without a row get at least this number of tokens."""
LEAST_BESIDE_CHARS = 80
"""Texts beside a message are cut down to about this length. If they still do not fit, the last text
is left out."""
HALVINGS = 6
"""The share of each message is found in at most this number of bisection steps."""
LINES_AROUND = 12

ENDING_MARK = "\n(end; left out: a closing note that other messages repeat)"

_SLACK_TOKENS = 12
_CUT_TOKENS = 30
_TABLE_HEAD_TOKENS = 6
_REPEATED_CHARS = 20  # a shorter line never counts as repeated


class FittedRows(NamedTuple):
    """Rows of a list that fit a budget."""

    text: str
    is_cut: bool


@dataclass(frozen=True)
class Fitting:
    """Fit texts into a budget."""

    count: Callable[[str], int]
    read_on: Callable[[str], str]
    """Return how an agent reads on at a reference."""

    # -------------------------------------------------------------- lists

    def fit_rows(
        self, lines: Sequence[str], free_tokens: int, more: str, first: str = ""
    ) -> FittedRows:
        """Return `first` and the lines that fit; `more` follows a cut."""
        answer = f"{QUOTE_NOTICE}\n{first}" if first else QUOTE_NOTICE
        free_tokens -= self.count(answer) + self.count(more) + 2
        for number, line in enumerate(lines):
            left = free_tokens
            free_tokens -= self.count(line) + 1
            if free_tokens < 0:
                begun = "" if number else f"\n{self._fit_start(line, left)}"
                return FittedRows(f"{answer}{begun}\n{more}".rstrip("\n"), True)
            answer = f"{answer}\n{line}"
        return FittedRows(answer, False)

    def _fit_start(self, text: str, free_tokens: int) -> str:
        """Return the first lines that fit, or a text's beginning and end."""
        lines = text.split("\n")
        if (fitting := count_fitting(lines, free_tokens - 2, self.count)) > 1:
            return "\n".join([*lines[:fitting], "…"])
        return self.fit_ends([text], free_tokens).lstrip("\n")

    def fit_ends(self, texts: Sequence[str], free_tokens: int) -> str:
        """Return the texts that fit; long texts keep their beginning and end."""
        keep = max(map(len, texts), default=0)
        while texts:
            shown = "".join("\n" + keep_ends(text, keep) for text in texts)
            if self.count(shown) <= free_tokens:
                return shown
            keep, texts = (
                (keep * 3 // 4, texts) if keep > LEAST_BESIDE_CHARS else (keep, texts[:-1])
            )
        return ""

    # -------------------------------------------------------------- what a search found

    def fit_answer(self, answer: SearchAnswer, free_tokens: int) -> str:
        """Return a search's answer: the passages that fit, rows for other matches."""
        least = self.count(f"{QUOTE_NOTICE}\n{answer.count}") + _SLACK_TOKENS
        left = free_tokens - least - self.count(answer.passages[0])
        others = [
            *self._other_rows(answer, max(LEAST_LISTED_TOKENS, min(answer.others_tokens, left)))
        ]
        free_tokens -= sum(self.count(line) + 1 for line in others)
        lines = [*answer.passages[:1], *answer.rows[1:]]
        left = free_tokens - least - sum(self.count(line) + 1 for line in lines)
        for number, passage in enumerate(answer.passages[1:], 1):
            more = self.count(passage) - self.count(lines[number])
            if more <= left:
                lines[number], left = passage, left - more
        return "\n".join([self.fit_rows(lines, free_tokens, "", answer.count).text, *others])

    def _other_rows(self, answer: SearchAnswer, free_tokens: int) -> Iterator[str]:
        rows = [f"{', '.join(in_runs(places))} {words}" for places, words in answer.others]
        if rows:
            yield "Also:"
        described = count_fitting(rows, free_tokens - LEAST_LISTED_TOKENS, self.count)
        yield from rows[:described]
        free_tokens -= sum(self.count(row) + 1 for row in rows[:described])
        references = in_runs(place for places, _ in answer.others[described:] for place in places)
        shown = list(references)
        while shown and self.count(", ".join(shown)) > free_tokens:
            shown = shown[: len(shown) * 3 // 4]
        if references:
            more = (
                f" and {len(references) - len(shown)} more" if len(shown) < len(references) else ""
            )
            yield ", ".join(shown) + more

    # -------------------------------------------------------------- messages and lines

    def fit_messages(
        self,
        chosen: Sequence[tuple[Reference, Message]],
        free_tokens: int,
        endings: Collection[str],
    ) -> list[str]:
        """Return the messages; long messages are cut to equal shares of tokens.

        `ENDING_MARK` replaces lines of `endings` at a message's end.
        """
        texts = [message_as_text(message) for _, message in chosen]
        lines = [split_lines(text) for text in texts]
        ends = [length_without_ending(each, endings) for each in lines]
        laid_out = [*zip(chosen, lines, ends, map(table_of, texts), strict=True)]
        least, share, most = free_tokens // len(chosen), free_tokens, free_tokens
        parts = self._cut_to_share(laid_out, least)
        for _ in range(HALVINGS):
            if share == least:  # no larger share is left to try
                break
            wider = self._cut_to_share(laid_out, share)
            if sum(self.count(part) + 1 for part in wider) <= free_tokens:
                parts, least = wider, share
            else:
                most = share
            share = (least + most) // 2
        return parts

    def _cut_to_share(
        self, laid_out: Sequence[tuple[tuple[Reference, Message], list[str], int, str]], share: int
    ) -> list[str]:
        parts, seen = [], set[str]()
        for (where, message), lines, end, table in laid_out:
            head = f"[{where}] {message.get('role')}"
            free_tokens = share - self.count(head) - 2
            if table:
                head, free_tokens = (
                    f"{head} (its JSON as a table)",
                    free_tokens - _TABLE_HEAD_TOKENS,
                )
                body = self._fit_table(table.split("\n"), free_tokens, where.lines(1, len(lines)))
            else:
                mark = ENDING_MARK if end < len(lines) else ""
                free_tokens -= self.count(mark)
                body = condense(lines[:end], free_tokens, self.count, where.lines, seen) + mark
            is_dropped = message == DROPPED
            parts.append(f"{where} is {body}." if is_dropped else f"{head}\n{body or EMPTY}")
            seen.update(line.strip() for line in lines if len(line) > _REPEATED_CHARS)
        return parts

    def _fit_table(self, rows: Sequence[str], free_tokens: int, whole: Reference) -> str:
        if count_fitting(rows, free_tokens, self.count) == len(rows):
            return "\n".join(rows)
        gap = f"[… {whole} …]"
        return "\n".join(
            [*rows[: count_fitting(rows, free_tokens - self.count(gap) - 1, self.count)], gap]
        )

    def fit_lines(
        self, reference: Reference, message: Message, free_tokens: int, endings: Collection[str]
    ) -> str:
        """Return a reference's lines that fit, verbatim, and how to read on.

        `ENDING_MARK` replaces lines of `endings` at the end, unless the reference names only such
        lines.
        """
        assert reference.message is not None
        where = reference.of_message(reference.message)
        if message == DROPPED:
            return f"{where} is {DROPPED['content']}."
        text = message_as_text(message)
        lines = split_lines(text)
        first, last = line_range(reference, len(lines))
        end, mark = length_without_ending(lines, endings), ""
        if first <= end < last:
            last, mark = end, ENDING_MARK
        length = end if last <= end else len(lines)
        head = f"\n[{where}] {message.get('role')}, lines {first}-{last} of {length}"
        if path := json_paths(text, lines)[first - 1]:
            head += f", in {path}"
        free_tokens -= self.count(QUOTE_NOTICE + head + mark) + _CUT_TOKENS
        shown_to = first - 1 + count_fitting(lines[first - 1 : last], free_tokens, self.count)
        texts, numbers = unnumbered(lines[first - 1 : shown_to])
        body = "\n".join(texts)
        head += f", numbered {numbers}" if numbers else ""
        if shown_to < first:
            # The first line alone exceeds the budget.
            body, shown_to = self._fit_start(lines[first - 1], free_tokens), first
        if shown_to < last:
            rest = self.read_on(str(where.lines(shown_to + 1, last)))
            body += f"\n(cut at line {shown_to} of {length}; go on: {rest})"
        return f"{QUOTE_NOTICE}{head}\n{body}{mark}"


def line_range(reference: Reference, length: int) -> tuple[int, int]:
    """Return the first and last line of a reference."""
    assert reference.line is not None
    first = max(1, min(reference.line, length))
    if reference.around:
        return max(1, first - LINES_AROUND), min(length, first + LINES_AROUND)
    return first, min(length, max(first, reference.last_line or length))


# -------------------------------------------------------------- lines without the middle


def condense(
    lines: Sequence[str],
    free_tokens: int,
    count: Callable[[str], int],
    gap: Callable[[int, int], object],
    seen: Collection[str] = (),
) -> str:
    """Return the lines that fit a budget of tokens; gaps are marked.

    Noise and repeated lines are left out first, then the middle except its errors. A numbered
    listing keeps its first lines.

    Args:
        gap: (first, last) -> name of the lines left out.
        seen: lines that count as repeated.
    """
    if count("\n".join(lines)) <= free_tokens:
        return "\n".join(lines)
    mark = count(f"[… {gap(len(lines), len(lines))} …]") + 1
    sizes = [count(line + "\n") for line in lines]
    kept: Sequence[int] = range(len(lines))
    if not is_listing(lines):
        kept = _fill_small_gaps([*_new_lines(lines, seen)], sizes, mark)
    if sum(sizes[n] for n in kept) + mark * _count_gaps(kept, len(lines)) > free_tokens:
        kept = _fill_small_gaps(_choose_edges(kept, sizes, lines, free_tokens, mark), sizes, mark)
    return "\n".join(_mark_gaps(kept, lines, gap))


def _fill_small_gaps(kept: Sequence[int], sizes: Sequence[int], mark: int) -> list[int]:
    filled: list[int] = []
    for number in (*kept, len(sizes)):
        missing = range(filled[-1] + 1 if filled else 0, number)
        if sum(sizes[n] for n in missing) <= mark:
            filled += missing
        if number < len(sizes):
            filled.append(number)
    return filled


def _new_lines(lines: Sequence[str], seen: Collection[str]) -> Iterator[int]:
    known = set(seen)
    for number, line in enumerate(lines):
        if not is_noise(line) and line.strip() not in known:
            known.add(line.strip())
            yield number


def _count_gaps(kept: Sequence[int], length: int) -> int:
    numbers = [-1, *kept, length]
    return sum(after - before > 1 for before, after in pairwise(numbers))


def _choose_edges(
    kept: Sequence[int], sizes: Sequence[int], lines: Sequence[str], free_tokens: int, mark: int
) -> list[int]:
    """Return errors, first lines and last lines that fit."""
    chosen: set[int] = set()
    bad = islice((number for number in kept if is_failure(lines[number])), 20)
    ahead = free_tokens if is_listing(lines) else free_tokens // 2
    shares = ((bad, free_tokens // 4), (kept, ahead), (kept[::-1], free_tokens))
    for numbers, most in shares:
        for number in numbers:
            if number in chosen:
                continue
            trial = sorted({*chosen, number})
            if sum(sizes[n] for n in trial) + mark * _count_gaps(trial, len(lines)) > most:
                break
            chosen.add(number)
    return sorted(chosen)


def _mark_gaps(
    kept: Sequence[int], lines: Sequence[str], gap: Callable[[int, int], object]
) -> Iterator[str]:
    before = -1
    for number in [*kept, len(lines)]:
        if number - before > 1:
            yield f"[… {gap(before + 2, number)} …]"
        if number < len(lines):
            yield lines[number]
        before = number
