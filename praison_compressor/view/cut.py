"""Fix the cut: where the tail starts, which runs before it are summarized, and in which room.

Texts get room for prose and quotes; the tail gets the newest messages that are asked for and fit
beside the texts. The quotes are measured: what they do not need goes to the tail.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import NamedTuple

from ..config import CompressorConfig
from ..errors import BudgetTooSmall
from ..messages.forks import lazy
from .budget import Budget
from .jobs import (
    ALL,
    BESIDE,
    FOLD,
    PROSE_SHARE,
    SMALLEST_SUMMARY,
    Measures,
    Plan,
    Run,
    Way,
    jobs_for,
    runs_of,
    size_without,
)
from .view import View, largest_fixed

# -------------------------------------------------------------- the tail


PLENTY = CompressorConfig.protect_last_n_tokens
"""From this `protect_last_n_tokens` on, the tail has half of the target beside the head."""

TURN_START_COST = 0.2
"""Share of the tail that a cut on a turn start may cost (tests/compressor/test_tails.py)."""


def _turn_tokens(view: View, turns: int) -> int:
    users = view.transcript.users
    if not turns or not users:
        return 0
    return view.span(users[max(0, len(users) - turns)], len(view.tokens))


def _starts(view: View) -> list[int]:
    """Return where a tail may start: at the steps after the head and the last summary."""
    earliest = max([view.head_end, *(tile.end for tile in view.tiles)])
    return [step.start for step in view.transcript.steps if step.start >= earliest]


def _tail(view: View, start: int) -> int:
    return view.span(start, len(view.tokens))


def oldest(view: View, room: int) -> int:
    """Return the start of the longest tail within `room`, of the newest step at least."""
    starts = _starts(view)
    fits = (start for start in starts if _tail(view, start) <= room)
    return next(fits, starts[-1] if starts else len(view.tokens))


def cut(view: View, room: int, floor: int) -> int:
    """Return where the tail starts: a step boundary, a turn start where that costs little.

    A turn start never brings the tail below `floor` tokens.
    """
    step, users = oldest(view, room), set(view.transcript.users)
    least = max(floor, _tail(view, step) * (1 - TURN_START_COST))
    turns = (start for start in _starts(view) if start >= step and start in users)
    return next((start for start in turns if _tail(view, start) >= least), step)


FILLED = 0.95
"""Share of its room that a tail keeps when its cut moves to a turn start
(tests/compressor/test_tails.py)."""


# -------------------------------------------------------------- summaries


class Split(NamedTuple):
    """A place for the cut, and what the view takes around the texts then."""

    start: int
    """The tail starts here."""
    way: Way
    kept: int
    """Tokens of the view outside the runs to replace."""
    texts: int
    """Tokens that the texts are given."""
    runs: tuple[Run, ...]
    """The runs that texts replace."""

    def fits(self, goal: int) -> bool:
        """Return whether texts make the view as small as the goal."""
        return bool(self.runs) and self.kept + self.texts <= goal


@dataclass(frozen=True)
class Summaries:
    """Plans the summaries of one view."""

    view: View
    budget: Budget
    measures: Measures
    by_model: bool

    def plan(self) -> Plan | None:
        """Return the plan, or None if nothing is gained.

        Raises:
            BudgetTooSmall: no plan comes down to the limit.
        """
        found = self.split()
        return found and if_it_pays(self._measured(*found), self.view.size(), self.budget)

    def split(self) -> tuple[Split, int] | None:
        """Return the cut for the target, else for half the way to the limit, else for the limit.

        With it comes the goal; None where a view that the limit takes comes no further down.

        Raises:
            BudgetTooSmall: no cut comes down to the limit.
        """
        target, limit, size = self.budget.target, self.budget.limit, self.view.size()
        least = size
        for goal in (target, (target + limit) // 2, limit):
            found = self._mildest(goal)
            if found.fits(goal):
                return found, goal
            least = min(least, found.kept + found.texts)
            if size <= limit:
                return None
        raise BudgetTooSmall(least, limit, culprit=largest_fixed(self.view))

    # ---------------------------------------------------------- the cut

    def _mildest(self, goal: int) -> Split:
        """Return the mildest way to the goal that leaves the tail its share, else the longest tail.

        If no way comes down to the goal, return the one that comes nearest.
        """
        enough = oldest(self.view, min(self._asked, self._share(goal)))
        ways = (FOLD, ALL) if self._old == 0 or self._is_full() else (BESIDE, FOLD, ALL)
        found = [self._longest(goal, way, self._reserve(goal, way)) for way in ways]
        roomy = [s for s in found if s.fits(goal) and self._has_room(goal, s.way)]
        for split in roomy:
            if split.start <= enough:
                return split
        if roomy:
            return min(roomy, key=lambda split: split.start)
        found.append(self._longest(goal, ALL, 0))  # the texts get what is left
        fitting = [split for split in found if split.fits(goal)]
        if not fitting:
            return min(found, key=lambda split: split.kept + split.texts)
        return min(fitting, key=lambda split: split.start)

    def _longest(self, goal: int, way: Way, reserve: int) -> Split:
        """Return the split with the longest tail that is asked for and fits."""
        view, starts, asked = self.view, _starts(self.view), self._asked
        if not starts:
            return self._split(len(view.tokens), way, 0)
        at = bisect_left(
            starts, True, key=lambda start: self._split(start, way, reserve).fits(goal)
        )
        fits = _tail(view, starts[min(at, len(starts) - 1)])
        share = self._share(goal)
        start = cut(view, min(asked, fits), share if asked >= share else 0)
        return self._split(start, way, reserve)

    def _split(self, start: int, way: Way, texts: int) -> Split:
        runs = tuple(runs_of(self.view, start, way))
        texts = max(SMALLEST_SUMMARY * len(runs), texts)
        return Split(start, way, size_without(self.view, runs), texts, runs)

    # ---------------------------------------------------------- shares

    @lazy
    def _asked(self) -> int:
        """Return the tokens that the tail asks for."""
        asked = max(self.budget.tail, _turn_tokens(self.view, self.budget.recent_turns))
        if self.budget.tail < PLENTY:
            return asked
        return max(asked, self._share(self.budget.target))

    def _share(self, goal: int) -> int:
        """Return the tail's share of the goal, in whole steps."""
        share = int(self._beside_head(goal) * self.budget.tail_share)
        sizes = (_tail(self.view, start) for start in reversed(_starts(self.view)))
        return next((size for size in sizes if size >= share), share)

    def _beside_head(self, goal: int) -> int:
        return max(0, goal - self.view.span(0, self.view.head_end))

    @lazy
    def _old(self) -> int:
        """Return the tokens of the summaries that are there."""
        return sum(segment.tokens for segment in self.view.summaries())

    @lazy
    def _said(self) -> int:
        """Return how many messages of the user summaries may have to quote."""
        view = self.view
        return sum(view.allowed[n] and n not in view.covered for n in view.transcript.users)

    @lazy
    def _prose(self) -> int:
        """Return the tokens to ask of a model."""
        return self.budget.prose_for(self.view.size())

    def _is_full(self) -> bool:
        """Return whether the next summary would stand beside more than summaries may take.

        A fold may fill its share and its prose twice what was asked. The next summary must still
        stand beside it, or each is a fold.
        """
        more = max(self._prose + self.budget.quotes, 2 * self._prose)
        return self._old > self.budget.fold + more

    def _due(self, goal: int, way: Way, quotes: int) -> int:
        """Return the tokens of a text, if only head and tail stand beside it.

        Where summaries are, little enough that a fold and two more can stand beside each other
        (tests/view/test_folds.py).
        """
        beside = self._beside_head(goal)
        most = beside // (5 if way.folds else 10) if self._old else self._besides_tail(beside, goal)
        return min(self._prose + self._quotes(way, quotes), most)

    def _besides_tail(self, room: int, goal: int) -> int:
        """Return a room without the tail's share, even if one huge step inflates the share."""
        return max(room - self._share(goal), int(room * (1 - self.budget.tail_share)))

    def _quotes(self, way: Way, quotes: int) -> int:
        """Return the tokens of quotes, where that many are set aside.

        Each message of the user gets room for its beginning; a fold takes what summaries may.
        """
        folded = self.budget.fold - self._prose if way.folds and self._old else 0
        return max(quotes, self.budget.said * self._said, folded if self.budget.said else 0)

    def _free(self, goal: int, way: Way) -> int:
        """Return the tokens that texts and tail share."""
        starts = _starts(self.view)
        runs = runs_of(self.view, starts[-1], way)
        return goal - size_without(self.view, runs) + _tail(self.view, starts[-1])

    def _reserve(self, goal: int, way: Way) -> int:
        """Return the tokens that the tail leaves to texts; it keeps the newest step."""
        starts = _starts(self.view)
        if not starts:
            return 0
        free, newest = self._free(goal, way), _tail(self.view, starts[-1])
        most = min(self._besides_tail(free, goal), free - newest)
        return max(0, min(self._due(goal, way, self.budget.most_quotes), most))

    def _has_room(self, goal: int, way: Way) -> bool:
        """Return whether the texts have at least half of the room that is due to them.

        Small runs that stay beside a tail may leave next to nothing for a summary of hundreds of
        messages (tests/compressor/test_tails.py).
        """
        least = self._due(goal, way, self.budget.quotes)
        return not _starts(self.view) or 2 * self._reserve(goal, way) >= least

    # ---------------------------------------------------------- the texts

    def _measured(self, split: Split, goal: int) -> Plan:
        """Return the plan with the cut fixed: what the quotes do not need goes to the tail."""
        # Cap the texts, or they are folded soon.
        quotes = self._quotes(split.way, self.budget.most_quotes)
        most = self._prose + quotes
        room = min(most, goal - split.kept)
        measure = self.measures.quotes
        needs = [measure(self.view, run, room, by_model=self.by_model) for run in split.runs]
        prose = min(self._prose, int(room * PROSE_SHARE)) if self.by_model else 0
        split = self._lengthened(split, goal, prose, min(most - prose, sum(needs)))
        room = min(most, goal - split.kept)
        # Where no budget is set, quotes take what the prose leaves.
        beside = room if self.budget.said else quotes
        # A text that was paid for may take half of what is free up to the trigger.
        spare = max(0, self.budget.trigger - goal) // 2
        jobs = jobs_for(self.view, split.runs, needs, prose, room, beside, spare)
        return Plan(split.start, split.kept + min(room, max(split.texts, prose)), jobs)

    def _lengthened(self, split: Split, goal: int, prose: int, quotes: int) -> Split:
        """Return the split with a longer tail where its texts need less than they are given.

        Quotes of a shorter middle need less in proportion.
        """
        view, tail, whole = self.view, _tail(self.view, split.start), self._source(split)

        def at(start: int) -> Split:
            found = self._split(start, split.way, 0)
            return found._replace(texts=prose + quotes * self._source(found) // whole)

        older = [s for s in _starts(view) if s < split.start and _tail(view, s) <= self._asked]
        longest = bisect_left(older, True, key=lambda start: at(start).fits(goal))
        if longest == len(older):
            return split._replace(texts=prose + quotes)
        room = _tail(view, older[longest])
        longer = at(cut(view, room, max(tail + 1, int(room * FILLED))))
        is_longer = len(longer.runs) == len(split.runs) and longer.fits(goal)
        return longer if is_longer else split._replace(texts=prose + quotes)

    def _source(self, split: Split) -> int:
        return sum(self.view.source(start, end) for start, end in split.runs)


def if_it_pays(found: Plan, size: int, budget: Budget) -> Plan | None:
    """Return the plan, or None if it frees too little and the provider takes the view."""
    pays = size - found.expected >= budget.min_gain * size
    return found if pays or size > budget.limit else None
