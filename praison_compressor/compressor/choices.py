"""Resolve a user's choices: messages to keep, and a range to compress.

The ledger records a kept message: `PlanTexts.make_segments` makes a "keep" segment of its step, and
`Committer.commit` appends the segment. A range is not recorded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from ..config import short_repr
from ..errors import ConfigError
from ..ledger.segments import Segment, segments_in_force
from ..recall.references import Reference, parse_reference
from ..view.budget import Plan
from ..view.view import View
from .request import Choice, Request

# -------------------------------------------------------------- applied to a view


def resolve_choices(request: Request, view: View, references: Mapping[str, int]) -> Request:
    """Return the request with its choices as indices in the caller's list.

    Raises:
        ConfigError: no such message, or the range ends before its first message.
    """

    def resolve(option: str, choice: Choice) -> int:
        return _find_origin(view, references, option, choice)

    since = None if request.since is None else resolve("since", request.since)
    until = None if request.until is None else resolve("until", request.until)
    if since is not None and until is not None and since > until:
        raise ConfigError(
            f"since={short_repr(request.since)}: is after until={short_repr(request.until)}; "
            "expected a message before it"
        )
    keep = tuple(resolve("keep", choice) for choice in request.keep)
    return replace(request, keep=keep, since=since, until=until)


def requested_references(request: Request, resolved: Request, view: View) -> dict[str, int]:
    """Return reference -> transcript index, for the request's references."""
    pairs = zip(request.choices, resolved.choices, strict=True)
    index = view.transcript.origins.index
    return {choice: index(origin) for choice, origin in pairs if isinstance(choice, str)}


def apply_choices(request: Request, view: View, references: Mapping[str, int]) -> View:
    """Return the view with the user's kept messages and range."""
    if not request.has_choices and not recorded_keeps(view):
        return view
    resolved = resolve_choices(request, view, references)
    steps = view.transcript.steps
    index = view.transcript.origins.index
    recorded = {digest for segment in recorded_keeps(view) for digest in segment.run}
    kept = [*map(index, resolved.keep), *(n for n, d in enumerate(view.digests) if d in recorded)]
    user_kept = frozenset(i for step in steps if any(n in step for n in kept) for i in step)
    if not request.has_range:
        return replace(view, user_kept=user_kept)
    first = 0 if resolved.since is None else index(resolved.since)
    end = len(view.tokens) if resolved.until is None else index(resolved.until)
    outside = {i for step in steps if step.stop <= first or step.stop > end for i in step}
    return replace(view, user_kept=user_kept, kept_out=view.kept_out | outside)


def recorded_keeps(view: View) -> list[Segment]:
    """Return the "keep" segments of the session."""
    segments = segments_in_force(view.session.entries)
    return [segment for segment in segments if segment.kind == "keep"]


def new_keeps(view: View) -> Iterator[range]:
    """Yield the kept steps that the ledger does not have."""
    recorded = {segment.run for segment in recorded_keeps(view)}
    for step in view.transcript.steps:
        if step.start in view.user_kept and view.digests[step.start : step.stop] not in recorded:
            yield step


def _find_origin(view: View, references: Mapping[str, int], option: str, choice: Choice) -> int:
    """Return an index in the caller's list, from a reference or index."""
    origins = view.transcript.origins
    if isinstance(choice, int):
        if choice in origins:
            return choice
        raise ConfigError(
            f"{option}={choice}: the transcript has {len(view.unrepaired_messages)} messages"
        )
    reference = parse_reference(choice)
    if reference is not None and reference == Reference(reference.segment, reference.message):
        index = _find_index(view, references, reference.segment, reference.message or 1)
        # A message that repair inserted has no origin.
        if index is not None and (origin := origins[index]) is not None:
            return origin
    raise ConfigError(
        f"{option}={short_repr(choice)}: no message has this reference; "
        "a preview lists the references"
    )


def _find_index(view: View, references: Mapping[str, int], number: int, message: int) -> int | None:
    """Return the transcript index of the reference s<number>.<message>, or None."""
    if 1 <= number <= len(view.segments):
        indices = _indices_of_segment(view, view.segments[number - 1])
        if 1 <= message <= len(indices):
            return indices[message - 1]
    return references.get(f"s{number}.{message}")


def _indices_of_segment(view: View, segment: Segment) -> list[int]:
    for start, end, laid in view.all_tiles:
        if laid is segment:
            return sort_by_origin(view, range(start, end))
    indices = {digest: index for index, digest in enumerate(view.digests)}
    return [indices[digest] for digest in segment.run if digest in indices]


# -------------------------------------------------------------- references


def new_references(view: View, plan: Plan) -> dict[str, int]:
    """Return reference -> index, for the messages that a plan replaces."""
    runs = [range(job.start, job.end) for job in plan.jobs]
    runs += [range(index, index + 1) for index in sorted([*plan.masks, *plan.excerpted])]
    return _references_in(view, enumerate(runs, len(view.segments) + 1))


def known_references(view: View) -> dict[str, int]:
    """Return reference -> index, for the messages that the view replaces."""
    numbers = {id(segment): number for number, segment in enumerate(view.segments, 1)}
    return _references_in(view, ((numbers[id(s)], range(a, b)) for a, b, s in view.all_tiles))


def _references_in(view: View, runs: Iterable[tuple[int, range]]) -> dict[str, int]:
    return {
        f"s{number}.{message}": index
        for number, run in runs
        for message, index in enumerate(sort_by_origin(view, run), 1)
    }


def sort_by_origin(view: View, run: Iterable[int]) -> list[int]:
    """Return a run's indices in the caller's order, without inserted messages."""
    origins = view.transcript.origins
    pairs = [(origin, i) for i in run if (origin := origins[i]) is not None]
    return [index for _, index in sorted(pairs)]
