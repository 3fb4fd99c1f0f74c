"""`View`: a transcript with counts and the segments that replace its runs.

The same transcript and segments give the same view, byte for byte.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from itertools import accumulate, groupby
from typing import NamedTuple

from ..concurrency import computed_once
from ..ledger.segments import Segment, Session
from ..messages import Message, Transcript, is_result
from ..messages.digests import Originals
from ..messages.shapes import to_plain, without_thinking
from .masks import results_with_calls

NO_SESSION = Session("", "", "", None)
NO_ORIGINALS = Originals(())


@dataclass(frozen=True)
class View:
    """A transcript with its ledger's segments: the messages to send now."""

    transcript: Transcript
    digests: tuple[str, ...]
    tokens: tuple[int, ...]
    """Tokens of each original message."""
    segments: tuple[Segment, ...]
    """All segments of the ledger, oldest first; some match no message."""
    head_tokens: int
    """Upper bound of the tokens of the task and its answer."""
    kept_out: frozenset[int] = frozenset()
    """Messages that no new summary may replace, by a tool policy or a range."""
    user_kept: frozenset[int] = frozenset()
    """Messages that no segment may replace, because the user keeps them."""
    pinned: AddedMessage | None = None
    """The message with the pinned texts; it is sent once a segment replaces messages."""
    bridge: AddedMessage | None = None
    """The message to send between a tool result and a summary."""
    caller_messages: Sequence[Message] = ()
    """The caller's own dictionaries, and copies of repaired messages."""
    unrepaired_messages: Originals = NO_ORIGINALS
    """The messages before repair, for the archive."""
    given_tokens: int = 0
    """Tokens of the caller's messages; an earlier summary counts as one message."""
    session: Session = NO_SESSION
    """The ledger that the segments are from."""
    window_limit: int = 0
    """Upper bound of the view's tokens in the model's window; 0 for a requested size."""
    signed_tokens: Mapping[int, int] = field(default_factory=dict)
    """Index of a message with signed thinking → its tokens without thinking."""
    binds_thinking: bool = False
    """Whether the model refuses signed thinking after a changed prefix. Other models require the
    thinking of the running loop."""

    # ---------------------------------------------------------- what may be replaced

    @computed_once
    def replaceable(self) -> tuple[bool, ...]:
        """Whether a segment may replace each message.

        Leading system messages, the task, the newest user message, the newest step and `user_kept`
        are fixed.
        """
        transcript = self.transcript
        users = transcript.users
        fixed = {*range(transcript.leading), *self.user_kept}
        if users:
            fixed |= {*step_at(users[0], transcript), *step_at(users[-1], transcript)}
            # A greeting before the task belongs to the first exchange if it fits.
            greeting = range(transcript.leading, users[0])
            if sum(self.tokens[i] for i in greeting) <= self.head_tokens:
                fixed |= set(greeting)
        if transcript.steps:
            fixed |= set(transcript.steps[-1])
        return tuple(index not in fixed for index in range(len(transcript.messages)))

    def fixed(self) -> list[int]:
        """Return the indices of the messages that no segment may replace."""
        return [index for index, replaceable in enumerate(self.replaceable) if not replaceable]

    @computed_once
    def head_end(self) -> int:
        """The end of the head: system messages, task, a short answer."""
        # A call with results is no answer: some APIs refuse a user message after a result.
        end = [*self.replaceable, True].index(True)
        if end == self.transcript.leading or any(tile.start == end for tile in self.tiles):
            return end
        free_tokens = self.head_tokens - sum(self.tokens[self.transcript.leading : end])
        first = next((step for step in self.transcript.steps if step.start == end), range(end, end))
        is_answer = len(first) == 1 and sum(self.tokens[i] for i in first) <= free_tokens
        return first.stop if is_answer else end

    def without_first_step(self) -> View:
        """Return the view with only system messages and task as head."""
        leading, users = self.transcript.leading, self.transcript.users
        greeting = sum(self.tokens[leading : users[0]]) if users else 0
        return replace(self, head_tokens=min(self.head_tokens, greeting))

    # ---------------------------------------------------------- what is replaced

    @computed_once
    def tiles(self) -> tuple[Tile, ...]:
        """The runs that summaries replace, in order."""
        return tuple(lay_summaries(self.digests, self.segments, self.replaceable))

    @computed_once
    def result_segments(self) -> dict[int, Segment]:
        """Each message's recorded mask or excerpt, if any."""
        return lay_results(self.digests, self.segments, self.replaceable)

    def summaries(self) -> tuple[Segment, ...]:
        """Return the summaries that the view shows, in order."""
        return tuple(tile.segment for tile in self.tiles)

    def summaries_in(self, run: Run) -> tuple[Segment, ...]:
        """Return the summaries inside a run."""
        return tuple(s for start, end, s in self.tiles if run[0] <= start and end <= run[1])

    @computed_once
    def covered(self) -> frozenset[int]:
        """The messages that summaries replace."""
        return frozenset(index for tile in self.tiles for index in range(tile.start, tile.end))

    @computed_once
    def all_tiles(self) -> tuple[Tile, ...]:
        """The runs that summaries, masks and excerpts replace, in order."""
        results = [
            Tile(index, index + 1, segment)
            for index, segment in self.result_segments.items()
            if index not in self.covered
        ]
        return tuple(sorted([*self.tiles, *results], key=lambda tile: tile.start))

    @computed_once
    def sent_runs(self) -> tuple[SentRun, ...]:
        """The replaced runs with their messages, pinned texts and bridges."""
        tiles = self.all_tiles
        replaced = [SentRun(start, end, s.rendered) for start, end, s in tiles]
        if self.pinned is not None and tiles:
            before = step_at(min(self.head_end, tiles[0].start), self.transcript).start
            replaced.insert(0, SentRun(before, before, self.pinned.message))
        return tuple(self._add_bridges(replaced))

    def _add_bridges(self, replaced: Iterable[SentRun]) -> Iterator[SentRun]:
        last_end = -1  # end of the last replaced run, if its message is no tool result
        for start, end, message in replaced:
            follows_result = start != last_end and self.needs_bridge(start)
            is_user = message.get("role") == "user"
            if self.bridge is not None and follows_result and is_user:
                yield SentRun(start, start, self.bridge.message)
            yield SentRun(start, end, message)
            last_end = -1 if is_result(message) else end

    def needs_bridge(self, start: int) -> bool:
        """Return whether a summary at `start` would follow a tool result."""
        before = start - 1
        if before < 0 or before in self.covered:
            return False
        return is_result(self.transcript.messages[before])

    # ---------------------------------------------------------- signed thinking

    @property
    def has_running_thinking(self) -> bool:
        """Whether the running loop has signed thinking."""
        return bool(self.signed_tokens) and max(self.signed_tokens) > self._running_start

    @property
    def _running_start(self) -> int:
        return max(self.transcript.users, default=-1)

    @computed_once
    def stale_thinking(self) -> frozenset[int]:
        """The messages whose signed thinking is older than the newest compression.

        Without `binds_thinking`, the thinking of the running loop is never stale.
        """
        if not self.signed_tokens or not self.all_tiles:
            return frozenset()
        length = max(tile.segment.transcript_length for tile in self.all_tiles)
        later = (n for n, o in enumerate(self.transcript.origins) if o is not None and o >= length)
        end = next(later, len(self.tokens))
        if not self.binds_thinking:
            turns = (user for user in self.transcript.users if user >= end - 1)
            end = next(turns, self._running_start)
        return frozenset(index for index in self.signed_tokens if index < end)

    def without_earlier_thinking(self) -> View:
        """Recount the view as if a new segment made thinking stale."""
        end = len(self.tokens) if self.binds_thinking else self._running_start
        past = {index: tokens for index, tokens in self.signed_tokens.items() if index < end}
        if not past:
            return self
        return replace(self, tokens=tuple(past.get(n, t) for n, t in enumerate(self.tokens)))

    def _without_stale_thinking(self, messages: Sequence[Message]) -> Sequence[Message]:
        stale = self.stale_thinking
        if not stale:
            return messages
        return [without_thinking(m) if n in stale else m for n, m in enumerate(messages)]

    # ---------------------------------------------------------- what a plan may choose from

    @computed_once
    def starts(self) -> tuple[int, ...]:
        """Where a tail may start: after head and last summary."""
        earliest = max([self.head_end, *(tile.end for tile in self.tiles)])
        return tuple(step.start for step in self.transcript.steps if step.start >= earliest)

    def tail_tokens(self, start: int) -> int:
        """Return the tokens of the messages from `start` on."""
        return self.span_tokens(start, len(self.tokens))

    def longest_tail(self, most_tokens: int) -> int:
        """Return the start of the longest tail of at most `most_tokens`."""
        if not self.starts:
            return len(self.tokens)
        first = bisect_left(
            self.starts, True, key=lambda start: self.tail_tokens(start) <= most_tokens
        )
        return self.starts[min(first, len(self.starts) - 1)]

    @computed_once
    def open_runs(self) -> tuple[Run, ...]:
        """The runs after the head that summaries may replace."""
        return tuple(self._runs(self.kept_out))

    @computed_once
    def new_runs(self) -> tuple[Run, ...]:
        """The runs after the head that no summary replaces yet."""
        return tuple(self._runs(self.kept_out | self.covered))

    def _runs(self, shut: AbstractSet[int]) -> Iterator[Run]:
        inside = range(self.head_end, len(self.tokens))
        for is_open, run in groupby(inside, lambda i: self.replaceable[i] and i not in shut):
            if is_open:
                indices = list(run)
                yield indices[0], indices[-1] + 1

    # ---------------------------------------------------------- sizes

    def size(self) -> int:
        """Return the tokens of the view without the pinned texts."""
        summaries = sum(segment.tokens for segment in self.summaries())
        hidden = sum(self.span_tokens(tile.start, tile.end) for tile in self.tiles)
        shown = self.span_tokens(0, len(self.tokens)) - hidden + summaries
        return shown + sum(self.bridges(0, len(self.tokens)))

    def bridges(self, start: int, end: int) -> list[int]:
        """Return the tokens of each bridge inside a run."""
        if self.bridge is None:
            return []
        bridges = (r for r in self.sent_runs if r.message is self.bridge.message)
        return [self.bridge.tokens for bridge in bridges if start <= bridge.start < end]

    def pinned_tokens(self) -> int:
        """Return the tokens of the pinned texts that the view shows."""
        return 0 if self.pinned is None or not self.all_tiles else self.pinned.tokens

    def span_tokens(self, start: int, end: int) -> int:
        """Return a run's tokens without summaries, but with masks and excerpts."""
        return self._sums[max(start, end)] - self._sums[start]

    @computed_once
    def _sums(self) -> tuple[int, ...]:
        # Running sums: a plan measures many runs, each by one subtraction.
        sizes = self.tokens
        if self.result_segments or self.stale_thinking:
            sizes = tuple(map(self.message_tokens, range(len(sizes))))
        return (0, *accumulate(sizes))

    def message_tokens(self, index: int) -> int:
        """Return the tokens of one message, its mask or its excerpt."""
        segment = self.result_segments.get(index)
        if segment is not None:
            return segment.tokens
        return self.signed_tokens[index] if index in self.stale_thinking else self.tokens[index]

    def original_tokens(self, start: int, end: int) -> int:
        """Return the tokens of a run's original messages."""
        return sum(self.tokens[start:end])

    def shown_tokens(self, start: int, end: int) -> int:
        """Return a run's tokens in the view, with the summaries inside it."""
        total = self.span_tokens(start, end)
        for first, last, segment in self.tiles:
            total -= self.span_tokens(max(start, first), max(start, min(end, last)))
            total += segment.tokens if start <= first and last <= end else 0
        return total

    def fixed_tokens(self) -> int:
        """Return the tokens of the fixed messages."""
        return sum(map(self.message_tokens, self.fixed()))

    # ---------------------------------------------------------- messages

    def messages(self) -> list[Message]:
        """Return the messages to send; a host may edit them."""
        messages = self.caller_messages or self.transcript.messages
        return replace_runs(self._without_stale_thinking(messages), self.sent_runs)

    def originals(self, start: int, end: int) -> Sequence[Message]:
        """Return a run's messages before repair, in the caller's order."""
        places = self.transcript.origins_of(range(start, end))
        return self.unrepaired_messages.at(places)

    def with_segments(self, segments: Iterable[Segment]) -> View:
        """Return the view with more segments."""
        more = tuple(segments)
        return replace(self, segments=self.segments + more) if more else self


def step_at(index: int, transcript: Transcript) -> range:
    """Return the step that contains a message."""
    at = bisect_right(transcript.steps, index, key=lambda step: step.start) - 1
    return transcript.steps[at]


def largest_fixed(view: View) -> str:
    """Describe the largest fixed message."""
    fixed = view.fixed()
    if not fixed:
        return ""
    index = max(fixed, key=view.message_tokens)
    messages = view.transcript.messages
    described = f"of the role {messages[index].get('role')}"
    for call in dict(results_with_calls(messages)).get(index, {}).values():
        described = f"the result of {call.name}: a tool that answers in less would help"
    given_at = view.transcript.origins[index]
    place = index if given_at is None else given_at
    return f"messages[{place}] with {view.message_tokens(index)}, {described}"


# -------------------------------------------------------------- tiles

Run = tuple[int, int]
"""Start and end (exclusive) of consecutive messages."""


class Tile(NamedTuple):
    """A run of a transcript, and the segment that replaces it."""

    start: int
    end: int
    segment: Segment


class SentRun(NamedTuple):
    """A run of a transcript, and the message that replaces it."""

    start: int
    end: int
    message: Message


class AddedMessage(NamedTuple):
    """A message that only the view has, not the ledger."""

    message: Message
    tokens: int


def lay_summaries(
    digests: Sequence[str], segments: Sequence[Segment], replaceable: Sequence[bool]
) -> list[Tile]:
    """Return the summaries that match runs of a transcript.

    The longest match is used, because a fold is longer than the summaries that it replaced. Of
    equally long matches the newest match is used. Each summary is used once.
    """
    newest_first = list(reversed(segments))
    by_first: dict[str, list[Segment]] = {}
    for segment in sorted(newest_first, key=lambda segment: -len(segment.run)):
        if segment.kind == "summary" and segment.run:
            by_first.setdefault(segment.run[0], []).append(segment)
    tiles: list[Tile] = []
    start = 0
    while by_first and start < len(digests):
        candidates = by_first.get(digests[start], [])
        ends = ((segment, start + len(segment.run)) for segment in candidates)
        fitting = (
            Tile(start, end, segment)
            for segment, end in ends
            if tuple(digests[start:end]) == segment.run and all(replaceable[start:end])
        )
        tile = next(fitting, None)
        if tile is not None:
            tiles.append(tile)
            candidates.remove(tile.segment)
        start = start + 1 if tile is None else tile.end
    return tiles


def lay_results(
    digests: Sequence[str], segments: Sequence[Segment], replaceable: Sequence[bool]
) -> dict[int, Segment]:
    """Return the mask or excerpt that matches each message, by index.

    Each segment is used once: an agent that repeats a call must see the second result, although it
    is equal. Excerpts also replace results in the newest step.
    """
    waiting: dict[tuple[str, str], list[Segment]] = {}
    for segment in segments:
        if segment.replaces_result:
            waiting.setdefault((segment.kind, segment.run[0]), []).append(segment)
    laid: dict[int, Segment] = {}
    if not waiting:
        return laid
    for index, digest in enumerate(digests):
        for kind in ("excerpt", "mask"):
            if waiting.get((kind, digest)) and (replaceable[index] or kind == "excerpt"):
                laid[index] = waiting[kind, digest].pop(0)
    return laid


def replace_runs(messages: Sequence[Message], sent: Iterable[SentRun]) -> list[Message]:
    """Return the messages with each run replaced by its sent message."""
    view: list[Message] = []
    at = 0
    for start, end, message in sent:
        view += [*messages[at:start], to_plain(message)]
        at = end
    return [*view, *messages[at:]]
