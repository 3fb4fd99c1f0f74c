"""The stretches of the middle that a compression may represent anew, and a job for each: what its
summary stands for and the tokens it may take. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from ..ledger.segments import Segment
from .layout import Layout

SMALLEST_SUMMARY = 80
"""Tokens below which a framed summary says nothing."""


@dataclass(frozen=True)
class Job:
    """A run of the middle that gets one new segment."""

    start: int
    end: int
    room: int
    """Tokens that the rendered summary may take so that the view comes down to the target."""
    most: int
    """Tokens that it may take when a model's text is longer than asked: better than none."""
    facts: int
    """Tokens of facts beside a model's prose."""
    source_tokens: int
    by_model: bool = True
    """False: another stretch is the larger one, and a compression is one call of the model."""
    folds: tuple[Segment, ...] = ()
    """Segments that it replaces; their texts are carried on."""
    words: int = 0
    """Tokens that the facts may take where the user's words fill them."""


# -------------------------------------------------------------- stretches


Span = tuple[int, int]

MAJOR_SHARE = 0.5
"""Share of the largest stretch below which another one stays as it is while there is room."""


def spans_of(layout: Layout, tail_start: int, *, fold: bool, thorough: bool) -> list[Span]:
    """The stretches of the middle to represent anew.

    With `fold` those of old segments too; with `thorough` even small ones, and one segment alone,
    to shrink it.
    """
    alone = {(start, end) for start, end, _ in layout.tiles}
    sizes = {
        span: size
        for span in _open_stretches(layout, tail_start, fold)
        if (size := view_tokens(layout, *span)) >= 2 * SMALLEST_SUMMARY
        and (thorough or span not in alone)
    }
    least = 0 if thorough else MAJOR_SHARE * max(sizes.values(), default=0)
    return [span for span, size in sizes.items() if size >= least]


def _open_stretches(layout: Layout, tail_start: int, fold: bool) -> Iterator[Span]:
    """Runs of messages between head and tail that may be represented, gaps only unless `fold`."""
    shut = layout.kept if fold else layout.kept | layout.covered()
    inside = range(layout.head_end, tail_start)
    for is_open, run in groupby(inside, lambda i: layout.allowed[i] and i not in shut):
        if is_open:
            found = list(run)
            yield found[0], found[-1] + 1


def view_tokens(layout: Layout, start: int, end: int) -> int:
    """Tokens that the stretch takes in the present view."""
    total = layout.span(start, end)
    for first, last, segment in layout.tiles:
        total -= layout.span(max(start, first), max(start, min(end, last)))
        total += segment.tokens if start <= first and last <= end else 0
    return total


def size_without(layout: Layout, spans: Iterable[Span]) -> int:
    """Tokens of the view without these stretches."""
    return layout.size() - sum(view_tokens(layout, start, end) for start, end in spans)


# -------------------------------------------------------------- jobs


MOST_SAID = 1_000
"""Tokens of one user's message that are the user's words rather than material."""


def jobs_for(
    layout: Layout, spans: Sequence[Span], room: int, most: int, facts: int, prose: int
) -> Iterator[Job]:
    """A job for each span: the least that says something, a model's prose and the user's words
    first, the rest by size."""
    sizes = [layout.source(start, end) for start, end in spans]
    # Of equal ones the newest: what was done last is where the agent goes on.
    told = max(range(len(sizes)), key=lambda n: (sizes[n], n), default=0)
    proses = [prose if number == told else 0 for number in range(len(sizes))]
    said = [_said(layout, start, end) for start, end in spans]
    rooms, mosts = _shares(room, sizes, proses, said), _shares(most, sizes, proses, said)
    for number, (start, end) in enumerate(spans):
        present = view_tokens(layout, start, end)
        own = min(rooms[number], present - 1)
        yield Job(
            start,
            end,
            room=own,
            most=min(mosts[number], present - 1),
            facts=facts * sizes[number] // max(1, sum(sizes)),
            words=own,
            source_tokens=sizes[number],
            by_model=number == told,
            folds=tuple(s for a, b, s in layout.tiles if start <= a and b <= end),
        )


def _said(layout: Layout, start: int, end: int) -> int:
    """Tokens of what the user said in a stretch: it is kept verbatim."""
    users = (index for index in layout.transcript.users if start <= index < end)
    return sum(min(layout.tokens[index], MOST_SAID) for index in users)


def _shares(
    room: int, sizes: Sequence[int], proses: Sequence[int], said: Sequence[int]
) -> list[int]:
    """What each gets of the room: half of it goes by the user's words at most, and before a model's
    prose on another stretch."""
    given = [SMALLEST_SUMMARY for _ in sizes]
    left = room - sum(given)
    for wanted, most in ((given, left), (said, left // 2), (proses, left), (sizes, left)):
        spare = max(0, min(most, room - sum(given)))
        if wanted is not sizes:
            spare = min(spare, sum(wanted))
        whole = max(1, sum(wanted))
        given = [have + spare * want // whole for have, want in zip(given, wanted, strict=True)]
    return given
