"""Project: lay a transcript along the session's ledger, and plan what would have to be done."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from ..errors import LedgerConflict
from ..ledger.segments import Entry, Segment, Session, Store
from ..messages import Message, Transcript, digest, read
from ..messages.digests import MessageCache, Originals, Seen
from ..messages.secrets import Redactor, masks_secrets
from ..tokens.counter import TokenCounter
from ..view.layout import Layout, arrange
from ..view.masks import MaskLines, kept_steps, unreferenced
from ..view.plan import Plan, plan, planned
from .call import CompressCall, Look

__all__ = [
    "Projector",
    "renderings",
]


class Projector:
    """Lays transcripts along a store's ledger, as one model counts them; thread-safe.

    `recall`: who is sent the views has the recall tools that renderings may name.
    """

    def __init__(self, store: Store, tokens: TokenCounter, *, recall: bool = False) -> None:
        self._store = store
        self._tokens = tokens
        self._cache = tokens.cache
        self._recall = recall
        self._mask_lines = MaskLines(tokens.cache)

    def open(self, call: CompressCall) -> Session:
        """The call's session."""
        namespace, session_id = call.key
        return self._store.open(namespace, session_id, call.parent_id)

    def look(self, call: CompressCall, session: Session | None = None) -> Look:
        """What the ledger has for this transcript now, and the plan for what it lacks.

        Raises:
            BudgetTooSmall: what cannot be dropped exceeds the limit.
        """
        laid = self.laid(call, session)
        return replace(laid, plan=self.plan(call, laid.layout))

    def laid(self, call: CompressCall, session: Session | None = None) -> Look:
        """What the ledger has for this transcript now; no plan is made."""
        session = self.open(call) if session is None else session
        return Look(session, *self.project(call, session), plan=None)

    def renewed(self, call: CompressCall, look: Look) -> Look:
        """The look as it is now: the same one while nobody has written to the session."""
        session = self.open(call)
        return look if session.is_as(look.session) else self.look(call, session)

    def plan(self, call: CompressCall, layout: Layout) -> Plan | None:
        """What to do about this layout."""
        decide = functools.partial(
            plan,
            budget=call.budget,
            force=call.force,
            masks=self._masks(call, layout),
            by_model=call.pays,
        )
        return planned(layout, decide)

    def snapshot(self, call: CompressCall) -> CompressCall:
        """The call with private copies of its messages: nobody can edit them meanwhile."""
        return replace(call, given=self.copies(call.given))

    def project(self, call: CompressCall, session: Session) -> tuple[Sequence[Message], Layout]:
        """The transcript along a session's ledger, and the messages it was read from."""
        raw, transcript = call.given, call.transcript
        expanded = self.expanded(transcript.messages, session)
        if expanded is not None:
            raw, transcript = expanded, read(expanded)
        return raw, self._arranged(call, transcript, session)

    def _arranged(self, call: CompressCall, transcript: Transcript, session: Session) -> Layout:
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
        found = (entry.segment for entry in session.entries)
        return [self.recounted(each if self._recall else unreferenced(each)) for each in found]

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
        rendered = renderings(session, self._cache)
        if not rendered:
            return None
        digests = [seen.digest for seen in self._cache.all(messages)]
        times = Counter(found for found in digests if found in rendered)
        if not times:
            return None
        # Of equal renderings (masks of equal outputs) the newest ones stand in the view.
        waiting = {found: iter(rendered[found][-count:]) for found, count in times.items()}
        return [
            original
            for message, found in zip(messages, digests, strict=True)
            for original in self._originals(message, next(waiting.get(found, _NONE), None), session)
        ]

    def _originals(self, message: Message, entry: Entry | None, session: Session) -> list[Message]:
        originals = self._store.originals(session, entry) if entry is not None else None
        return [message] if originals is None else originals

    # -------------------------------------------------------------- masks

    def _masks(self, call: CompressCall, layout: Layout) -> dict[int, int]:
        """Tokens of each result that may be masked, as it would be then.

        Without a model a static summary is as cheap, and keeps more than masks do.
        """
        wanted = call.pays or call.config.tool_policies
        if not wanted or (layout.size() <= call.budget.trigger and not call.force):
            return {}
        return {
            index: self._tokens.message(message) for index, message in self.masked(call, layout)
        }

    def masked(self, call: CompressCall, layout: Layout) -> list[tuple[int, Message]]:
        """The results that may be masked, and what each would say."""
        found = self._mask_lines(layout.transcript.messages, layout.tokens, call.config)
        if not masks_secrets(self._store):
            return found
        # As the store would write them, so that the plan counts what will be sent.
        safe = Redactor(call.key[0]).messages([line for _, line in found]).messages
        return [(index, line) for (index, _), line in zip(found, safe, strict=True)]


_NONE: Iterator[Entry] = iter(())


def renderings(session: Session, cache: MessageCache) -> dict[str, list[Entry]]:
    """The session's entries by the digest of what stands in the view for them."""
    found: dict[str, list[Entry]] = {}
    for entry in session.entries:
        if not entry.forgotten:
            found.setdefault(cache(entry.segment.rendered).digest, []).append(entry)
            plain = unreferenced(entry.segment)
            if plain is not entry.segment:
                found.setdefault(digest(plain.rendered), []).append(entry)
    return found


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
