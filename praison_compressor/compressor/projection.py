"""Project: lay a transcript along its session's ledger, and plan what would have to be done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ..facts import Domain
from ..facts.rules import binding
from ..ledger.segments import Entry, Segment, Session, Store
from ..messages import Message, digest
from ..messages.digests import MessageCache, Seen
from ..messages.secrets import Redactor, masks_secrets
from ..tokens.counter import TokenCounter
from ..view.frame import unreferenced
from ..view.layout import arrange
from ..view.masks import kept_steps, mask_lines
from ..view.plan import Plan, plan
from .call import CompressCall, Look, Reading

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

    def open(self, call: CompressCall) -> Session:
        """The call's session."""
        namespace, session_id = call.key
        return self._store.open(namespace, session_id, call.parent_id)

    def look(self, call: CompressCall, session: Session | None = None) -> Look:
        """The transcript with what the ledger has for it now."""
        session = self.open(call) if session is None else session
        reading = call.reading
        expanded = self._expanded(reading.own, reading.seen, session)
        if expanded is not None:
            reading = Reading.of(expanded, self._cache)
        transcript, seen = reading.transcript, reading.seen
        # What was read back masked is known by what it stands for.
        aliases = _aliases(session)
        found = (entry.segment for entry in session.entries)
        layout = arrange(
            transcript,
            [aliases.get(each.digest, each.digest) for each in seen],
            self._tokens.each(seen),
            [self.recounted(each if self._recall else unreferenced(each)) for each in found],
            call.budget.head,
            kept_steps(transcript.messages, transcript.steps, call.config),
        )
        return Look(session, reading, layout)

    def plan(self, call: CompressCall, look: Look) -> Plan | None:
        """What to do about it; None while it fits, or nothing would be gained.

        Raises:
            BudgetTooSmall: what cannot be dropped exceeds the limit.
        """
        return plan(
            look.layout,
            call.budget,
            force=call.force,
            masks=self._mask_sizes(call, look),
            by_model=call.pays,
        )

    def recounted(self, segment: Segment) -> Segment:
        """The segment as this model counts it: it may have been written under another."""
        tokens = self._tokens.message(segment.rendered)
        return segment if tokens == segment.tokens else replace(segment, tokens=tokens)

    def expanded(self, messages: Sequence[Message], session: Session) -> list[Message] | None:
        """The messages with every rendering of this session replaced by its originals.

        None when there is none among them: they are the transcript itself.
        """
        return self._expanded(messages, self._cache.all(messages), session)

    def _expanded(
        self, messages: Sequence[Message], seen: Sequence[Seen], session: Session
    ) -> list[Message] | None:
        rendered = renderings(session, self._cache)
        if not rendered:
            return None
        digests = [each.digest for each in seen]
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

    def masks(
        self, call: CompressCall, look: Look, names: Mapping[int, str] | None = None
    ) -> dict[int, Message]:
        """The results that may be masked, and what each would say; with `names` those named."""
        if look.lines and names is None:
            return look.lines
        layout = look.layout
        found = mask_lines(layout.transcript.messages, layout.tokens, call.config, names)
        if masks_secrets(self._store):
            # As the store would write them, so that the plan counts what will be sent.
            safe = Redactor(call.key[0]).messages(list(found.values())).messages
            found = dict(zip(found, safe, strict=True))
        if names is None:
            # One line would hide what binds: it goes with a summary, which tells it verbatim.
            texts = binding(layout.transcript.messages, Domain.of(call.config))
            bind = {passage.at for passage, _ in texts if passage.source == "result"}
            found = {index: line for index, line in found.items() if index not in bind}
            look.lines.update(found)
        return found

    def _mask_sizes(self, call: CompressCall, look: Look) -> dict[int, int]:
        """Tokens of each result that may be masked, as it would be then.

        Without a model a static summary is as cheap, and keeps more than masks do.
        """
        wanted = call.pays or call.config.tool_policies
        if not wanted or (look.layout.size() <= call.budget.trigger and not call.force):
            return {}
        return {index: self._tokens.message(line) for index, line in self.masks(call, look).items()}


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


def _aliases(session: Session) -> dict[str, str]:
    """What is archived with its secrets masked, by the digest of what it was archived for."""
    return {
        masked: original
        for entry in session.entries
        for masked, original in entry.segment.aliases().items()
    }
