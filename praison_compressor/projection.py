"""Reads a call: the transcript laid along its ledger; a quiet turn costs its new messages.

A transcript comes back whole every turn. `Projector.again` recognizes the part that it has laid
out before, message by message, and adds the rest; whatever is unusual takes the full way.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from .cache import MessageCache, Seen
from .config import CompressorConfig
from .errors import InvalidMessages
from .ledger import Entry, Segment, Session, Store, lay
from .masks import kept_steps, mask, maskable
from .messages import Message, Transcript, is_result, read
from .plan import Budget, Layout, Plan, arrange, plan
from .tokens import TokenCounter

__all__ = ["Call", "Look", "Projector", "Quiet"]

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


@dataclass(frozen=True)
class Look:
    """The transcript as it stands in the ledger now, and what would have to be done."""

    session: Session
    raw: Sequence[Message]
    layout: Layout
    plan: Plan | None


@dataclass(frozen=True)
class Quiet:
    """A view under the trigger, remembered so that the next turn need only add to it."""

    session: Session
    seen: list[Seen]
    ratio: float
    head_tokens: int
    view: list[Message]
    tokens_before: int
    tokens_after: int
    segments: tuple[Segment, ...]
    masked: int


class Projector:
    """Lays transcripts along a store's ledger, as one model counts them; thread-safe."""

    def __init__(self, store: Store, tokens: TokenCounter) -> None:
        self._store = store
        self._tokens = tokens
        found = getattr(tokens, "cache", None)
        self._cache: MessageCache = MessageCache() if found is None else found
        self._lock = threading.Lock()
        self._quiet: OrderedDict[tuple[str, str], Quiet] = OrderedDict()

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

    def plan(self, call: Call, layout: Layout) -> Plan | None:
        """What to do about this layout; tools whose outputs are to be kept yield to the window."""
        found = plan(layout, call.budget, force=call.force, masks=self._masks(call, layout))
        if found is None and layout.kept and layout.size() > call.budget.trigger:
            return plan(replace(layout, kept=frozenset()), call.budget, force=call.force)
        return found

    def project(self, call: Call, session: Session) -> tuple[Sequence[Message], Layout]:
        """The transcript along a session's ledger, and the messages it was read from."""
        raw, transcript = call.given, call.transcript
        expanded = self.expanded(transcript.messages, session)
        if expanded is not None:
            raw, transcript = expanded, read(expanded)
        return raw, self._arranged(call, transcript, session)

    def _arranged(self, call: Call, transcript: Transcript, session: Session) -> Layout:
        messages = transcript.messages
        layout = arrange(
            transcript,
            [seen.digest for seen in self._cache.all(messages)],
            [self._tokens.message(message) for message in messages],
            [self.recounted(entry.segment) for entry in session.entries],
            call.budget.head,
        )
        kept = kept_steps(messages, transcript.steps, call.config)
        return replace(layout, kept=kept) if kept else layout

    def with_segments(self, look: Look, segments: Sequence[Segment]) -> Look:
        """The look as it would be with these segments in the ledger."""
        known = [self.recounted(entry.segment) for entry in look.session.entries]
        old = look.layout
        layout = arrange(
            old.transcript, old.digests, old.tokens, [*known, *segments], old.head_tokens
        )
        return replace(look, layout=layout, plan=None)

    def recounted(self, segment: Segment) -> Segment:
        """The segment as this model counts it: it may have been written under another."""
        tokens = self._tokens.message(segment.rendered)
        return segment if tokens == segment.tokens else replace(segment, tokens=tokens)

    def expanded(self, messages: Sequence[Message], session: Session) -> list[Message] | None:
        """The messages with every rendering of this session replaced by its originals.

        None when there is none among them: they are the transcript itself.
        """
        rendered = self._rendered(session)
        found = (
            [rendered.get(seen.digest) for seen in self._cache.all(messages)] if rendered else []
        )
        if not any(found):
            return None
        parts = [
            self._originals(message, entry, session)
            for message, entry in zip(messages, found, strict=True)
        ]
        return [message for part in parts for message in part]

    def _rendered(self, session: Session) -> dict[str, Entry]:
        return {self._cache(entry.segment.rendered).digest: entry for entry in session.entries}

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
        return [(index, mask(found, messages[index])) for index, found in allowed.items()]

    # -------------------------------------------------------------- the quiet way

    def again(self, messages: Any, key: tuple[str, str], budget: Budget) -> Quiet | None:
        """The view, if these messages are those of the last turn and more, and still fit.

        None: read them in full. Nothing is assumed: every old message is compared.
        """
        with self._lock:
            known = self._quiet.get(key)
        if known is None or type(messages) is not list:
            return None
        if known.ratio != self._ratio or known.head_tokens != budget.head:
            return None
        session = self._store.open(*key)
        if session.head_hash != known.session.head_hash or session.tip != known.session.tip:
            return None
        try:
            seen = self._cache.all(messages)
        except (AttributeError, TypeError, InvalidMessages):
            return None
        old = len(known.seen)
        if seen[:old] != known.seen:
            return None
        return self._extended(known, messages, seen, budget)

    def _extended(
        self, known: Quiet, messages: list[Message], seen: list[Seen], budget: Budget
    ) -> Quiet | None:
        new = messages[len(known.seen) :]
        if not _is_sound(new):
            return None
        rendered = self._rendered(known.session) if new else {}
        added = sum(self._tokens.message(message) for message in new)
        after = known.tokens_after + added
        if after - self._tokens.messages([]) > budget.trigger:
            return None
        if any(entry.digest in rendered for entry in seen[len(known.seen) :]):
            return None
        return self._keep(
            replace(
                known,
                seen=seen,
                view=known.view + new,
                tokens_before=known.tokens_before + added,
                tokens_after=after,
            )
        )

    def remember(
        self, call: Call, look: Look, view: list[Message], before: int, after: int
    ) -> None:
        """Keep a view for the next turn, where adding to it is all that can happen to it."""
        if look.plan is not None or look.raw is not call.given or not _is_as_given(call):
            return
        layout = look.layout
        everywhere = [index >= layout.head_end for index in range(len(layout.tokens))]
        segments = [self.recounted(entry.segment) for entry in look.session.entries]
        if tuple(lay(layout.digests, segments, everywhere)) != layout.tiles:
            return  # the newest words hide a segment that may show when they are no longer newest
        self._keep(
            Quiet(
                session=replace(look.session, id=call.key[1]),
                seen=self._cache.all(call.transcript.messages),
                ratio=self._ratio,
                head_tokens=call.budget.head,
                view=view,
                tokens_before=before,
                tokens_after=after,
                segments=tuple(t.segment for t in layout.tiles if t.segment is not None),
                masked=layout.masked(),
            )
        )

    def _keep(self, quiet: Quiet) -> Quiet:
        with self._lock:
            key = (quiet.session.namespace, quiet.session.id)
            self._quiet[key] = quiet
            self._quiet.move_to_end(key)
            while len(self._quiet) > REMEMBERED_SESSIONS:
                self._quiet.popitem(last=False)
        return quiet

    @property
    def _ratio(self) -> float:
        return float(getattr(self._tokens, "ratio", 1.0))


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
