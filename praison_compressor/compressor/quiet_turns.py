"""Turns to which nothing has to be done: each costs only its new messages.

A transcript comes back whole every turn. The part that was laid out before is recognized, message
by message, and the rest is added; whatever is unusual takes the full way.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..errors import InvalidMessages
from ..ledger.segments import Segment, Session, Store
from ..messages import Message, is_result, read
from ..messages.digests import Seen
from ..messages.forks import renewed
from ..tokens.counter import TokenCounter
from ..view.budget import Budget
from ..view.layout import Layout, lay, lay_masks
from .call import CompressCall, Look
from .projection import renderings

__all__ = [
    "Quiet",
    "QuietTurns",
]


REMEMBERED_SESSIONS = 64


@dataclass(frozen=True)
class Quiet:
    """A layout under the trigger, remembered so that the next turn need only add to it."""

    session: Session
    known: list[Any]
    """Private copies of its messages, or what the cache has of them where not `comparable`."""
    comparable: bool
    """Whether `==` with a copy finds every edit."""
    ratio: float
    head_tokens: int
    pieces: tuple[slice | Message, ...]
    """The view: stretches of the transcript, the last one open, and what stands between them."""
    watched: frozenset[str]
    """Digests that a new message must not have: a segment of the ledger could begin with it."""
    tokens_before: int
    tokens_after: int
    segments: tuple[Segment, ...]
    masked: int
    secrets: int
    view: list[Message] = field(default_factory=list)
    """Built anew for every caller, from the messages of his call: his to edit."""


class QuietTurns:
    """Remembers how the newest transcripts were laid out; thread-safe."""

    def __init__(self, store: Store, tokens: TokenCounter) -> None:
        self._store = store
        self._tokens = tokens
        self._cache = tokens.cache
        self._lock = renewed(threading.Lock())
        self._quiet: OrderedDict[tuple[str, str], Quiet] = OrderedDict()

    def again(
        self, messages: Any, key: tuple[str, str], budget: Budget, *, keep: bool = True
    ) -> Quiet | None:
        """The view, if these messages are those of the last turn and more, and still fit.

        None: read them in full. Nothing is assumed: every old message is compared. `keep` says
        whether the next turn goes on from these messages.
        """
        with self._lock:
            known = self._quiet.get(key)
        if known is None or type(messages) is not list or len(messages) < len(known.known):
            return None
        if known.ratio != self._ratio or known.head_tokens != budget.head:
            return None
        if not self._store.open(*key).is_as(known.session):
            return None
        try:
            found = self._extended(known, messages, keep=keep)
        except (AttributeError, TypeError, InvalidMessages):
            return None
        if found is None or found.tokens_after - self._tokens.messages([]) > budget.trigger:
            return None
        if keep:
            self._keep(found)
        return replace(found, view=_built(found.pieces, messages))

    def _extended(self, known: Quiet, messages: list[Message], *, keep: bool) -> Quiet | None:
        old = len(known.known)
        if not self._is_known(messages[:old], known):
            return None
        new = messages[old:]
        seen = self._cache.all(new)
        if not _is_sound(new) or any(entry.digest in known.watched for entry in seen):
            return None
        if known.comparable and not all(entry.comparable for entry in seen):
            return None
        added = sum(self._tokens.each(seen))
        more = [entry.plain for entry in seen] if known.comparable else seen
        return replace(
            known,
            known=known.known + more if keep else known.known,
            tokens_before=known.tokens_before + added,
            tokens_after=known.tokens_after + added,
        )

    def _is_known(self, messages: list[Message], known: Quiet) -> bool:
        # One comparison in C where it can be had: the whole cost of a quiet turn.
        return (messages if known.comparable else self._cache.all(messages)) == known.known

    def remember(self, call: CompressCall, look: Look, before: int, after: int) -> None:
        """Keep a layout for the next turn, where adding to it is all that can happen to it."""
        if look.plan is not None or look.raw is not call.given or not _is_as_given(call):
            return
        watched = self._watched(look)
        if watched is None or not call.extends:
            return
        layout = look.layout
        seen = self._cache.all(call.transcript.messages)
        comparable = all(entry.comparable for entry in seen)
        self._keep(
            Quiet(
                session=replace(look.session, id=call.key[1]),
                known=[entry.plain for entry in seen] if comparable else seen,
                comparable=comparable,
                ratio=self._ratio,
                head_tokens=call.budget.head,
                pieces=tuple(_pieces(layout)),
                watched=watched,
                tokens_before=before,
                tokens_after=after,
                segments=tuple(t.segment for t in layout.tiles if t.segment is not None),
                masked=layout.masked(),
                secrets=layout.secrets(),
            )
        )

    def _watched(self, look: Look) -> frozenset[str] | None:
        """What a new message must not be for the layout to stay; None: it may change anyway.

        It may where the newest messages hide a segment that shows when they are no longer the
        newest, or where they are the beginning of one.
        """
        layout = look.layout
        segments, users = layout.segments, layout.transcript.users
        if not users:
            return None
        # Up to the task what stays stays for good; after it only the newest does, for now.
        fixed = layout.allowed[: users[0] + 1]
        everywhere = [*fixed, *[True] * (len(layout.tokens) - len(fixed))]
        if tuple(lay(layout.digests, segments, everywhere)) != layout.tiles:
            return None
        if lay_masks(layout.digests, segments, everywhere) != layout.replaced:
            return None
        laid = [tile.segment for tile in layout.tiles]
        unlaid = {found for s in segments if s not in laid for found in (*s.run, *s.aliases())}
        if layout.digests[-1] in unlaid:
            return None
        return frozenset(unlaid.union(renderings(look.session, self._cache)))

    def remembered(self) -> list[tuple[Session, list[Message]]]:
        """The sessions whose newest transcripts are known, as they were then, with private copies
        of those transcripts."""
        with self._lock:
            known = list(self._quiet.values())
        return [
            (quiet.session, [m.plain if isinstance(m, Seen) else m for m in quiet.known])
            for quiet in known
            if quiet.session.entries
        ]

    def _keep(self, quiet: Quiet) -> None:
        with self._lock:
            key = (quiet.session.namespace, quiet.session.id)
            self._quiet[key] = quiet
            self._quiet.move_to_end(key)
            while len(self._quiet) > REMEMBERED_SESSIONS:
                self._quiet.popitem(last=False)

    @property
    def _ratio(self) -> float:
        return self._tokens.ratio


def _pieces(layout: Layout) -> Iterator[slice | Message]:
    """The view as stretches of the transcript and what stands between them."""
    start = 0
    for tile in layout.tiles:
        if tile.segment is not None:
            yield slice(start, tile.start)
            yield tile.segment.rendered
            start = tile.end
            continue
        for index in range(tile.start, tile.end):
            found = layout.replaced.get(index)
            if found is not None:
                yield slice(start, index)
                yield found.rendered
                start = index + 1
    yield slice(start, None)


def _built(pieces: Sequence[slice | Message], messages: list[Message]) -> list[Message]:
    view: list[Message] = []
    for piece in pieces:
        if isinstance(piece, slice):
            # The first stretch is most often all: it is copied once.
            view = view + messages[piece] if view else messages[piece]
        else:
            view.append(dict(piece))
    return view


def _is_sound(new: list[Message]) -> bool:
    """Whether messages can be added as they are: valid, and no result of an earlier call."""
    if new and is_result(new[0]):
        return False
    got = read(new)
    return all(a is b for a, b in zip(got.messages, new, strict=False)) and not got.repaired


def _is_as_given(call: CompressCall) -> bool:
    messages = call.transcript.messages
    if len(messages) != len(call.given):
        return False
    return all(a is b for a, b in zip(messages, call.given, strict=True))
