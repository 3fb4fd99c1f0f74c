"""Reads a call: the transcript laid along its ledger; a quiet turn costs its new messages.

A transcript comes back whole every turn. `Projector.again` recognizes the part that it has laid
out before, message by message, and adds the rest; whatever is unusual takes the full way.
"""

from __future__ import annotations

import functools
import logging
import threading
from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from .budget import Budget
from .cache import Originals, Seen
from .config import CompressorConfig
from .errors import BudgetTooSmall, InvalidMessages, LedgerConflict
from .layout import Layout, arrange, lay_masks
from .ledger import Entry, Segment, Session, Store, lay
from .masks import kept_steps, mask, maskable, reference_of
from .messages import Message, Transcript, is_result, read
from .plan import Plan, plan
from .redact import Redactor, masks_secrets
from .tokens import TokenCounter

__all__ = ["Call", "Look", "Projector", "Quiet"]

logger = logging.getLogger(__name__)

REMEMBERED_SESSIONS = 64


@dataclass(frozen=True)
class Call:
    """One request to compress, read and budgeted."""

    given: Sequence[Any]
    transcript: Transcript
    config: CompressorConfig
    budget: Budget
    key: tuple[str, str]
    """Namespace and session."""
    parent_id: str | None
    model: str | None
    force: bool
    extends: bool
    pays: bool
    """Whether a model is there to be paid for a summary."""
    tools: tuple[Mapping[str, Any], ...] | None = None
    """The schemas sent along; None: not told, so that nothing can be asked on the prefix."""


@dataclass(frozen=True)
class Look:
    """The transcript as it stands in the ledger now, and what would have to be done."""

    session: Session
    raw: Sequence[Message]
    layout: Layout
    plan: Plan | None


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


class Projector:
    """Lays transcripts along a store's ledger, as one model counts them; thread-safe."""

    def __init__(self, store: Store, tokens: TokenCounter) -> None:
        self._store = store
        self._tokens = tokens
        self._cache = tokens.cache
        self._lock = threading.Lock()
        self._quiet: OrderedDict[tuple[str, str], Quiet] = OrderedDict()
        self._reported: OrderedDict[tuple[str, str], None] = OrderedDict()

    # -------------------------------------------------------------- the full way

    def open(self, call: Call) -> Session:
        """The call's session."""
        namespace, session_id = call.key
        return self._store.open(namespace, session_id, call.parent_id)

    def look(self, call: Call, session: Session | None = None) -> Look:
        """What the ledger has for this transcript now, and the plan for what it lacks.

        Raises:
            BudgetTooSmall: what cannot be dropped exceeds the limit.
        """
        session = self.open(call) if session is None else session
        raw, layout = self.project(call, session)
        return Look(session, raw, layout, self.plan(call, layout))

    def renewed(self, call: Call, look: Look) -> Look:
        """The look as it is now: the same one while nobody has written to the session."""
        session = self.open(call)
        return look if _is_same(session, look.session) else self.look(call, session)

    def plan(self, call: Call, layout: Layout) -> Plan | None:
        """What to do about this layout; tools whose outputs are to be kept yield to the window."""
        self._report(call, layout)
        decide = functools.partial(
            plan, force=call.force, masks=self._masks(call, layout), by_model=call.pays
        )
        try:
            return decide(layout, call.budget)
        except BudgetTooSmall:
            if not layout.kept:
                raise
            layout = replace(layout, kept=frozenset())
            return decide(layout, call.budget)

    def _report(self, call: Call, layout: Layout) -> None:
        """Say once per session that its fixed part alone is above the trigger: it is not fought."""
        if layout.size() <= call.budget.trigger:
            return
        pairs = zip(layout.tokens, layout.allowed, strict=True)
        fixed = sum(tokens for tokens, may_go in pairs if not may_go)
        with self._lock:
            if fixed <= call.budget.trigger or call.key in self._reported:
                return
            self._reported[call.key] = None
            while len(self._reported) > REMEMBERED_SESSIONS:
                self._reported.popitem(last=False)
        logger.warning(
            "session %s: what cannot be dropped takes %d tokens, compression begins at %d: views "
            "stay above it; raise context_window or trigger_ratio, or send fewer tools",
            call.key[1],
            fixed,
            call.budget.trigger,
        )

    def snapshot(self, call: Call) -> Call:
        """The call with private copies of its messages: nobody can edit them meanwhile."""
        return replace(call, given=self.copies(call.given))

    def project(self, call: Call, session: Session) -> tuple[Sequence[Message], Layout]:
        """The transcript along a session's ledger, and the messages it was read from."""
        raw, transcript = call.given, call.transcript
        expanded = self.expanded(transcript.messages, session)
        if expanded is not None:
            raw, transcript = expanded, read(expanded)
        return raw, self._arranged(call, transcript, session)

    def _arranged(self, call: Call, transcript: Transcript, session: Session) -> Layout:
        messages = transcript.messages
        seen = self._cache.all(messages)
        layout = arrange(
            transcript,
            _digests(seen, session),
            self._tokens.each(seen),
            self._known(session),
            call.budget.head,
        )
        kept = kept_steps(messages, transcript.steps, call.config)
        return replace(layout, kept=kept) if kept else layout

    def copies(self, messages: Sequence[Any]) -> Originals:
        """Private copies of messages: the cache has them."""
        return Originals(self._cache.all(messages))

    def with_segments(self, look: Look, segments: Sequence[Segment]) -> Look:
        """The look as it would be with these segments in the ledger, without a plan."""
        return replace(look, layout=look.layout.adding(segments), plan=None)

    def within(self, look: Look, session: Session) -> Look:
        """The look with its segments as a commit of ours has recorded them in `session`.

        Nothing is read again: the commit was compare-and-set, so nobody else has written.
        """
        return replace(look, session=session, layout=look.layout.recorded_as(self._known(session)))

    def _known(self, session: Session) -> list[Segment]:
        return [self.recounted(entry.segment) for entry in session.entries]

    def settled(self, look: Look) -> Look:
        """The look with private copies of its messages, as they were when it was laid out.

        An agent may edit its own while a model writes: what is archived must be what was digested.

        Raises:
            LedgerConflict: they were edited since; look again.
        """
        seen = self._cache.all(look.layout.transcript.messages)
        if tuple(_digests(seen, look.session)) != look.layout.digests:
            raise LedgerConflict(f"session {look.session.id}: its messages were edited meanwhile")
        messages = tuple(each.plain for each in seen)
        transcript = replace(look.layout.transcript, messages=messages)
        return replace(
            look, raw=self.copies(look.raw), layout=replace(look.layout, transcript=transcript)
        )

    def recounted(self, segment: Segment) -> Segment:
        """The segment as this model counts it: it may have been written under another."""
        tokens = self._tokens.message(segment.rendered)
        return segment if tokens == segment.tokens else replace(segment, tokens=tokens)

    def expanded(self, messages: Sequence[Message], session: Session) -> list[Message] | None:
        """The messages with every rendering of this session replaced by its originals.

        None when there is none among them: they are the transcript itself.
        """
        rendered = self._rendered(session)
        if not rendered:
            return None
        digests = [seen.digest for seen in self._cache.all(messages)]
        times = Counter(found for found in digests if found in rendered)
        if not times:
            return None
        # Of equal renderings the newest ones stand in the view, in their order.
        waiting = {found: iter(rendered[found][-count:]) for found, count in times.items()}
        return [
            original
            for message, found in zip(messages, digests, strict=True)
            for original in self._originals(message, next(waiting.get(found, _NONE), None), session)
        ]

    def _rendered(self, session: Session) -> dict[str, list[Entry]]:
        """The session's entries by the digest of what stands in the view for them."""
        found: dict[str, list[Entry]] = {}
        for entry in session.entries:
            if not entry.forgotten:
                found.setdefault(self._cache(entry.segment.rendered).digest, []).append(entry)
        return found

    def _originals(self, message: Message, entry: Entry | None, session: Session) -> list[Message]:
        originals = self._store.originals(session, entry) if entry is not None else None
        return [message] if originals is None else originals

    # -------------------------------------------------------------- masks

    def _masks(self, call: Call, layout: Layout) -> dict[int, int]:
        """Tokens of each result that may be masked, as it would be then.

        Without a model a static summary is as cheap, and keeps more than masks do.
        """
        wanted = call.pays or call.config.tool_policies
        if not wanted or (layout.size() <= call.budget.trigger and not call.force):
            return {}
        return {
            index: self._tokens.message(message) for index, message in self.masked(call, layout)
        }

    def masked(self, call: Call, layout: Layout) -> list[tuple[int, Message]]:
        """The results that may be masked, and what each would say."""
        messages = layout.transcript.messages
        allowed = maskable(messages, layout.tokens, call.config)
        found = [
            mask(
                tool_call,
                messages[index],
                self._reference(call, messages[index]),
                host_prefixes=call.config.host_prefixes,
            )
            for index, tool_call in allowed.items()
        ]
        if masks_secrets(self._store):
            # As the store would write them, so that the plan counts what will be sent.
            found = [*Redactor(call.key[0]).messages(found).messages]
        return list(zip(allowed, found, strict=True))

    def _reference(self, call: Call, message: Message) -> str | None:
        return reference_of(self._cache(message).digest) if call.config.recall else None

    # -------------------------------------------------------------- the quiet way

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
        if not _is_same(self._store.open(*key), known.session):
            return None
        try:
            found = self._extended(known, messages)
        except (AttributeError, TypeError, InvalidMessages):
            return None
        if found is None or found.tokens_after - self._tokens.messages([]) > budget.trigger:
            return None
        if keep:
            self._keep(found)
        return replace(found, view=_built(found.pieces, messages))

    def _extended(self, known: Quiet, messages: list[Message]) -> Quiet | None:
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
        return replace(
            known,
            known=known.known + ([s.plain for s in seen] if known.comparable else seen),
            tokens_before=known.tokens_before + added,
            tokens_after=known.tokens_after + added,
        )

    def _is_known(self, messages: list[Message], known: Quiet) -> bool:
        # One comparison in C where it can be had: the whole cost of a quiet turn.
        return (messages if known.comparable else self._cache.all(messages)) == known.known

    def remember(self, call: Call, look: Look, before: int, after: int) -> None:
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
        return frozenset(unlaid.union(self._rendered(look.session)))

    def remembered(self) -> list[tuple[tuple[str, str], list[Message]]]:
        """The sessions whose newest transcripts are known, each by its key, as private copies."""
        with self._lock:
            known = list(self._quiet.items())
        return [
            (key, [m.plain if isinstance(m, Seen) else m for m in quiet.known])
            for key, quiet in known
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


_NONE: Iterator[Entry] = iter(())


def _digests(seen: Sequence[Seen], session: Session) -> list[str]:
    """What the ledger knows the messages by: those read back masked, by what they stand for."""
    aliases = _aliases(session)
    return [aliases.get(each.digest, each.digest) for each in seen]


def _aliases(session: Session) -> dict[str, str]:
    """What is archived with its secrets masked, by the digest of what it was archived for."""
    return {
        masked: original
        for entry in session.entries
        for masked, original in entry.segment.aliases().items()
    }


def _is_same(now: Session, before: Session) -> bool:
    """Whether nobody committed to the session or forgot a part of it meanwhile."""
    return (
        now.head_hash == before.head_hash
        and now.tip == before.tip
        and [entry.forgotten for entry in now.entries]
        == [entry.forgotten for entry in before.entries]
    )


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
            view += messages[piece]
        else:
            view.append(dict(piece))
    return view


def _is_sound(new: list[Message]) -> bool:
    """Whether messages can be added as they are: valid, and no result of an earlier call."""
    if new and is_result(new[0]):
        return False
    got = read(new)
    return all(a is b for a, b in zip(got.messages, new, strict=False)) and not got.repaired


def _is_as_given(call: Call) -> bool:
    messages = call.transcript.messages
    if len(messages) != len(call.given):
        return False
    return all(a is b for a, b in zip(messages, call.given, strict=True))
