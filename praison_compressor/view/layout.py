"""A transcript with its token counts and the segments found along it by digest and position: the
view is read off it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from ..ledger.segments import Segment
from ..messages import Message, Transcript
from ..messages.forks import lazy
from .masks import answered

# -------------------------------------------------------------- laying


class Tile(NamedTuple):
    """A stretch of a transcript (`start` to `end`, exclusive) and the segment found for it."""

    start: int
    end: int
    segment: Segment


def lay(digests: Sequence[str], segments: Sequence[Segment], allowed: Sequence[bool]) -> list[Tile]:
    """Lay summaries along a transcript by position, longest first.

    A fold is longer than what it replaced; of equally long ones the newest is taken. `allowed[i]`
    says whether message i may be represented at all. Each segment is used once.
    """
    newest_first = list(reversed(segments))
    starting: dict[str, list[Segment]] = {}
    for segment in sorted(newest_first, key=lambda segment: -len(segment.run)):
        if segment.kind == "summary" and segment.run:
            starting.setdefault(segment.run[0], []).append(segment)
    tiles: list[Tile] = []
    position = 0
    while position < len(digests):
        candidates = starting.get(digests[position], ())
        fits = (s for s in candidates if _is_at(s, digests, position, allowed))
        found = next(fits, None)
        if found is None:
            position += 1
            continue
        tiles.append(Tile(position, position + len(found.run), found))
        position += len(found.run)
        starting[found.run[0]].remove(found)
    return tiles


def _is_at(segment: Segment, digests: Sequence[str], at: int, allowed: Sequence[bool]) -> bool:
    end = at + len(segment.run)
    return tuple(digests[at:end]) == segment.run and all(allowed[at:end])


def lay_masks(
    digests: Sequence[str], segments: Sequence[Segment], allowed: Sequence[bool]
) -> dict[int, Segment]:
    """Lay recorded masks and excerpts along a transcript by position; each is used once.

    A later result of the same words and id (ids come again) is another one: the agent asked for
    it anew and must see it. An excerpt stands in the newest step too, till its result is masked.
    """
    waiting: dict[tuple[str, str], list[Segment]] = {}
    for segment in segments:
        if segment.kind in ("mask", "excerpt"):
            waiting.setdefault((segment.kind, segment.run[0]), []).append(segment)
    found: dict[int, Segment] = {}
    for index, name in enumerate(digests if waiting else ()):
        for kind in ("excerpt", "mask"):
            if waiting.get((kind, name)) and (allowed[index] or kind == "excerpt"):
                found[index] = waiting[kind, name].pop(0)
    return found


# -------------------------------------------------------------- layout


@dataclass(frozen=True)
class Layout:
    """A transcript with its counts and the segments found along it."""

    transcript: Transcript
    digests: tuple[str, ...]
    tokens: tuple[int, ...]
    head_tokens: int
    """Room that the first exchange was given."""
    head_end: int
    """The first exchange ends before this index; everything before it stays verbatim."""
    allowed: tuple[bool, ...]
    """Which messages may be represented by a segment."""
    segments: tuple[Segment, ...]
    """All that the ledger has, in its order, whether found along the transcript or not."""
    tiles: tuple[Tile, ...]
    """The summaries that stand in the view, in order."""
    replaced: dict[int, Segment]
    """Messages outside the summaries that a recorded mask or excerpt stands for."""
    kept: frozenset[int] = frozenset()
    """Messages that a policy keeps out of every summary."""

    def size(self) -> int:
        """Tokens of the view."""
        covered = sum(self.span(start, end) for start, end, _ in self.tiles)
        summaries = sum(segment.tokens for segment in self.summaries())
        return self.span(0, len(self.tokens)) - covered + summaries

    def span(self, start: int, end: int) -> int:
        """Tokens of a stretch of messages as they stand outside summaries."""
        return self._sums[max(start, end)] - self._sums[start]

    @lazy
    def _sums(self) -> tuple[int, ...]:
        """Tokens of the messages before each index: a plan asks for many stretches."""
        return (0, *accumulate(map(self.message_tokens, range(len(self.tokens)))))

    def message_tokens(self, index: int) -> int:
        """Tokens of one message as it stands outside summaries."""
        found = self.replaced.get(index)
        return self.tokens[index] if found is None else found.tokens

    def source(self, start: int, end: int) -> int:
        """Tokens of the original messages of a stretch."""
        return sum(self.tokens[start:end])

    def standing(self) -> Iterator[Tile]:
        """Each stretch that a segment stands for in the view, summaries and masks, in order."""
        shorter = self.replaced.keys() - self.covered() if self.replaced else ()
        found = [Tile(index, index + 1, self.replaced[index]) for index in shorter]
        yield from sorted([*self.tiles, *found], key=lambda tile: tile.start)

    def summaries(self) -> tuple[Segment, ...]:
        """The summaries that stand in the view, in order."""
        return tuple(tile.segment for tile in self.tiles)

    def covered(self) -> set[int]:
        """The messages that a summary stands for."""
        return {index for tile in self.tiles for index in range(tile.start, tile.end)}

    def view(
        self, start: int = 0, end: int | None = None, own: Sequence[Message] | None = None
    ) -> list[Message]:
        """The messages to send; those for a stretch of the transcript, where one is given.

        `own` is sent in place of the transcript's messages. Rendered ones are copies: a host may
        edit what it sends.
        """
        stop = len(self.tokens) if end is None else end
        found = ((a, b, segment) for a, b, segment in self.standing() if start < b and a < stop)
        return shown(self.transcript.messages if own is None else own, found, start, stop)

    # -------------------------------------------------------------- another ledger

    def adding(self, segments: Sequence[Segment]) -> Layout:
        """The transcript along the same ledger with these segments in it too."""
        every = (*self.segments, *segments)
        return arrange(
            self.transcript, self.digests, self.tokens, every, self.head_tokens, self.kept
        )


def shown(
    messages: Sequence[Message],
    standing: Iterable[tuple[int, int, Segment]],
    start: int = 0,
    stop: int | None = None,
) -> list[Message]:
    """The messages with, in place of each stretch, what stands for it."""
    found: list[Message] = []
    for begin, end, segment in standing:
        found += [*messages[start:begin], dict(segment.rendered)]
        start = end
    found += messages[start:stop]
    return found


def arrange(
    transcript: Transcript,
    digests: Sequence[str],
    tokens: Sequence[int],
    segments: Sequence[Segment],
    head_tokens: int,
    kept: frozenset[int] = frozenset(),
) -> Layout:
    """Lay what the ledger has along the transcript."""
    allowed = _allowed(transcript, tokens, head_tokens)
    tiles = lay(digests, segments, allowed)
    return Layout(
        transcript=transcript,
        digests=tuple(digests),
        tokens=tuple(tokens),
        head_tokens=head_tokens,
        head_end=_head_end(transcript, tokens, allowed, tiles, head_tokens),
        allowed=tuple(allowed),
        segments=tuple(segments),
        tiles=tuple(tiles),
        replaced=lay_masks(digests, segments, allowed),
        kept=kept,
    )


def _allowed(transcript: Transcript, tokens: Sequence[int], head_tokens: int) -> list[bool]:
    """Leading system messages, the task, the newest user message and the newest step stay."""
    fixed = set(range(transcript.leading))
    users = transcript.users
    if users:
        fixed |= {*_step_of(users[0], transcript), *_step_of(users[-1], transcript)}
        # A greeting before the task belongs to the first exchange where it fits.
        greeting = range(transcript.leading, users[0])
        fixed |= set(greeting) if sum(tokens[i] for i in greeting) <= head_tokens else set()
    if transcript.steps:
        fixed |= set(transcript.steps[-1])
    return [index not in fixed for index in range(len(transcript.messages))]


def _step_of(index: int, transcript: Transcript) -> range:
    """The step that the message is in: what a user says beside a result belongs to its call."""
    at = bisect_right(transcript.steps, index, key=lambda step: step.start) - 1
    return transcript.steps[at]


def _head_end(
    transcript: Transcript,
    tokens: Sequence[int],
    allowed: Sequence[bool],
    tiles: Sequence[Tile],
    head_tokens: int,
) -> int:
    """System, task and, where it fits, the first step after the task."""
    end = 0
    while end < len(allowed) and not allowed[end]:
        end += 1
    if end == transcript.leading or any(tile.start == end for tile in tiles):
        return end
    room = head_tokens - sum(tokens[transcript.leading : end])
    first = next((step for step in transcript.steps if step.start == end), range(end, end))
    return first.stop if sum(tokens[i] for i in first) <= room else end


def largest_fixed(layout: Layout) -> str:
    """Names the largest message of what cannot be dropped: its index, whose it is, its tokens; ""
    where all can."""
    fixed = [index for index, may_go in enumerate(layout.allowed) if not may_go]
    if not fixed:
        return ""
    index = max(fixed, key=layout.message_tokens)
    messages = layout.transcript.messages
    who = f"of the role {messages[index].get('role')}"
    for call in dict(answered(messages)).get(index, {}).values():
        who = f"the result of {call.name}: a tool that answers in less would help"
    place, tokens = layout.transcript.origins[index], layout.message_tokens(index)
    return f"messages[{index if place is None else place}] with {tokens}, {who}"
