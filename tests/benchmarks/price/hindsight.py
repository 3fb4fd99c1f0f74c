"""The cheapest schedule of summaries for one who knows what comes, by dynamic programming."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import NamedTuple

from praison_compressor.view.budget import FORCED_SHARE, Budget

from .prices import Provider, Run, Session

LEVELS = 24
"""Sizes of a view after a compression: shares of the target, rounded up."""
COLD_SHARE = 0.5
"""Share of the trigger above which a cold cache is a moment: `idle_trigger_ratio`'s default."""
REQUEST_TOKENS = 700
"""Tokens of a summarizer's request beside the messages."""


@dataclass(frozen=True)
class Course:
    """What comes in a session, and what a summary takes; in tokens."""

    sizes: Sequence[int]
    """Of the whole transcript at each request."""
    warm: Sequence[bool]
    """Whether the provider's cache is warm at each request."""
    head: int
    summary: int
    """Of a summary in the view."""
    words: int
    """Of a model's answer."""
    budget: Budget

    def after(self, view: int, *, is_deep: bool) -> int:
        """Return the tokens of a view after a compression."""
        least = int(view * FORCED_SHARE) if is_deep else view
        return min(self.budget.target, least)


def course_of(
    session: Session, budget: Budget, pauses: Sequence[float], at: Provider, like: Run
) -> Course:
    """Return the course of a session whose texts are like those of a run of ours."""
    words = [out for _, out in like.asked]
    own = sum(words) // len(words) if words else 0
    return Course(
        sizes=list(accumulate(_growth(session, like))),
        warm=[pause <= at.seconds for pause in pauses],
        head=session.size(range(session.head())),
        summary=own + budget.quote_tokens // 2,
        words=own,
        budget=budget,
    )


def _growth(session: Session, run: Run) -> Iterator[int]:
    """Yield the tokens that each request adds, as they are first sent: large results are short."""
    ends = [0, *(len(request) for request in session.requests)]
    for view, (last, end) in zip(run.requests, pairwise(ends), strict=True):
        yield session.size(view[last - end :])


class _State(NamedTuple):
    """The cheapest way to a compression."""

    dollars: float
    summaries: int


def cheapest(course: Course, at: Provider, *, at_any_depth: bool) -> float:
    """Return the least money for which a schedule of summaries sends the session.

    A state is a request at which the view was compressed, and the view's size then. A summary may
    be written at any request above our mark for a cold cache. It leaves what ours leaves: with a
    warm cache the target, with a cold one, or `at_any_depth`, FORCED_SHARE of a smaller view.
    """
    states: dict[tuple[int, int], _State] = {(-1, 0): _State(0.0, 0)}
    least = float("inf")
    for place in range(-1, len(course.sizes)):
        for level in range(LEVELS + 1):
            state = states.get((place, level))
            if state is not None:
                left = course.budget.target * level // LEVELS
                for key, next_state in _onward(
                    course, at, place, left, state, at_any_depth=at_any_depth
                ):
                    if key[0] == len(course.sizes):
                        least = min(least, next_state.dollars)
                    elif key not in states or next_state.dollars < states[key].dollars:
                        states[key] = next_state
    return least


def _onward(
    course: Course, at: Provider, place: int, left: int, state: _State, *, at_any_depth: bool
) -> Iterator[tuple[tuple[int, int], _State]]:
    """Yield each next compression after the one at a request, and the session's end."""
    cold = int(course.budget.trigger * COLD_SHARE)
    start = course.sizes[place] if place >= 0 else 0
    spent, view, end = state.dollars, left, len(course.sizes)
    for k in range(place + 1, end):
        before, view = view, left + course.sizes[k] - start
        is_warm = course.warm[k]
        after = course.after(view, is_deep=at_any_depth or not is_warm)
        if view > max(cold, after):
            cost = _compressed(course, at, view, after, state.summaries, is_warm=is_warm)
            key = (k, -(-after * LEVELS // course.budget.target))
            yield key, _State(spent + cost, state.summaries + 1)
        if view > course.budget.limit:
            return
        spent += at.request(view, before if is_warm else 0)
    yield (end, 0), _State(spent, state.summaries)


def _compressed(
    course: Course, at: Provider, view: int, after: int, summaries: int, *, is_warm: bool
) -> float:
    """Return the dollars of a summary and of the request; head and older ones are cached."""
    cached = min(course.head + summaries * course.summary, after) if is_warm else 0
    asked = view - after + course.summary + REQUEST_TOKENS
    return at.request(after, cached) + asked * at.fresh + course.words * at.output
