"""Project: lay a transcript along its session's ledger, and plan what would have to be done."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..config import CompressorConfig
from ..errors import LedgerError
from ..ledger.segments import DROPPED, Entry, Outline, Segment, Session, Store, in_force
from ..messages import Message, digest
from ..messages.digests import MessageCache, Seen
from ..messages.secrets import Redactor, masks_secrets
from ..tokens.counter import TokenCounter
from ..view.frame import unreferenced
from ..view.layout import arrange
from ..view.masks import LIKE_A_NAME, excerpt, kept_steps, large_results, mask, maskable
from ..view.plan import Plan, plan
from .call import CompressCall, Look, Reading

logger = logging.getLogger(__name__)


class Projector:
    """Lays transcripts along a store's ledger, as one model counts them; thread-safe."""

    def __init__(self, config: CompressorConfig, store: Store, tokens: TokenCounter) -> None:
        self._store = store
        self._tokens = tokens
        self._cache = tokens.cache
        self._namespace = config.namespace
        self._recall = bool(config.recall)
        most = config.archive_limit_mb or getattr(store, "limit_mb", None)
        self._archive_limit = None if most is None else int(most * 1_000_000)

    def open(self, call: CompressCall) -> Session:
        """The call's session."""
        namespace, session_id = call.key
        return self._store.open(namespace, session_id, call.parent_id)

    def look(self, call: CompressCall, session: Session | None = None) -> Look:
        """The transcript with what the ledger has for it now."""
        session = self.open(call) if session is None else session
        reading = call.reading
        expanded = self.expanded(reading.own, reading.seen, session)
        if expanded is not None:
            reading = Reading.of(expanded, self._cache)
        transcript, seen = reading.transcript, reading.seen
        # What was read back masked is known by what it stands for.
        aliases = _aliases(session)
        found = in_force(session.entries)
        layout = arrange(
            transcript,
            [aliases.get(each.digest, each.digest) for each in seen],
            self._tokens.each(seen),
            [self.recounted(each if self._recall else unreferenced(each)) for each in found],
            call.budget.head,
            kept_steps(transcript.messages, transcript.steps, call.config),
        )
        return Look(call, session, reading, layout)

    def plan(self, look: Look) -> Plan | None:
        """What to do about it; None while it fits, or nothing would be gained.

        Raises:
            BudgetTooSmall: what cannot be dropped exceeds the limit.
        """
        layout, excerpts = look.layout, self.excerpts(look)
        if excerpts:
            gone = sum(map(layout.message_tokens, excerpts))
            size = layout.size() - gone + sum(map(self._tokens.message, excerpts.values()))
            return Plan((), len(layout.tokens), size, excerpts=tuple(excerpts))
        call, masks = look.call, self._mask_sizes(look)
        return plan(layout, look.budget, force=call.force, masks=masks, by_model=call.pays)

    def recounted(self, segment: Segment) -> Segment:
        """The segment as this model counts it: it may have been written under another."""
        tokens = self._tokens.message(segment.rendered)
        return segment if tokens == segment.tokens else replace(segment, tokens=tokens)

    def expanded(
        self, messages: Sequence[Message], seen: Sequence[Seen], session: Session
    ) -> list[Message] | None:
        """The messages with every rendering of this session replaced by its originals.

        None when there is none among them: they are the transcript itself.
        """
        rendered = renderings(session, self._cache)
        if not rendered:
            return None
        digests = [each.digest for each in seen]
        times = Counter(found for found in digests if found in rendered)
        if not times:
            return None
        # Of equal renderings (masks of equal outputs) the newest ones stand in the view.
        waiting = {found: iter(rendered[found][-count:]) for found, count in times.items()}
        transcript: list[Message] = []
        for message, found in zip(messages, digests, strict=True):
            entry = next(waiting[found], None) if found in waiting else None
            originals = self._store.originals(session, entry) if entry is not None else None
            known = originals is not None and DROPPED not in originals
            transcript += originals if originals and known else [message]
        return transcript

    # -------------------------------------------------------------- the archive's limit

    def with_room(self, look: Look, plan: Plan) -> Look:
        """The look with room in the archive for what the plan adds to it, and with what the archive
        has no room for: nothing that is written now leads there."""
        if self._archive_limit is None:
            return look
        layout, given = look.layout, look.reading.given
        known = {i for start, end, _ in layout.standing() for i in range(start, end)}
        new = {i for job in plan.jobs for i in range(job.start, job.end)}
        new = new.union(plan.masks, plan.excerpts) - known
        self.trim(free=sum(len(str(layout.transcript.messages[i])) for i in new))
        digests = given.content_digests()
        gone = self._store.dropped(self._namespace, digests)
        return replace(look, dropped=frozenset(n for n, d in enumerate(digests) if d in gone))

    def trim(self, *, free: int = 0) -> None:
        """Hold the archive to its limit, less the bytes that are to be free."""
        if self._archive_limit is None:
            return
        try:
            self._store.trim(self._namespace, max(0, self._archive_limit - free))
        except LedgerError as error:  # the next commit tries again
            logger.warning("the archive is not held to its limit: %s", error)

    # -------------------------------------------------------------- masks

    def masks(self, look: Look, names: Mapping[int, str] | None = None) -> dict[int, Message]:
        """The results that may be masked, and what each would say; with `names` those named."""
        if look.lines and names is None:
            return look.lines
        config, layout = look.call.config, look.layout
        messages = layout.transcript.messages
        found = {
            index: mask(
                calls,
                messages[index],
                LIKE_A_NAME if names is None else names[index],
                host_prefixes=config.host_prefixes,
            )
            for index, calls in maskable(messages, layout.tokens, config).items()
            if names is None or index in names
        }
        # As the store would write them, so that the plan counts what will be sent.
        found = dict(zip(found, self._stored(list(found.values())), strict=True))
        if names is None:
            look.lines.update(found)
        return found

    def excerpts(self, look: Look, names: Mapping[int, str] | None = None) -> dict[int, Message]:
        """The results that are too large to stay whole, as their first and last lines.

        `names` has the references under which they will be archived.
        """
        call, layout, most = look.call, look.layout, look.budget.large
        if most is None or sum(layout.tokens) <= most:
            return {}
        messages, steps = layout.transcript.messages, layout.transcript.steps
        large = large_results(messages, layout.tokens, steps, call.config, most)
        shown = {*layout.replaced, *(layout.covered() if large else ())}
        found: dict[int, Message] = {}
        for index in sorted(large.keys() - shown):
            # Masked before it is cut: half a secret has no shape to know it by.
            (message,) = self._stored([messages[index]])
            name = LIKE_A_NAME if names is None else names.get(index, "")
            tokens, reads = layout.tokens[index], self._recall
            short = excerpt(large[index], message, tokens, name, reads=reads)
            if self._tokens.message(short) <= tokens // 2:
                found[index] = short
        return found

    def _stored(self, messages: Sequence[Message]) -> Sequence[Message]:
        """The messages as the store would write them."""
        if not masks_secrets(self._store):
            return messages
        return Redactor(self._namespace).messages(messages).messages

    def _mask_sizes(self, look: Look) -> dict[int, int]:
        """Tokens of each result that may be masked, as it would be then.

        Without a model a static summary is as cheap, and keeps more than masks do.
        """
        call = look.call
        is_due = call.force or look.layout.size() > look.budget.trigger
        if not is_due or not (call.pays or call.config.tool_policies):
            return {}
        return {index: self._tokens.message(line) for index, line in self.masks(look).items()}


def renderings(session: Session, cache: MessageCache) -> dict[str, list[Entry]]:
    """The session's entries by the digest of what stands in the view for them."""
    found: dict[str, list[Entry]] = {}
    for entry in session.entries:
        if not entry.forgotten and entry.segment.kind != "undo":
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


def outline_of(look: Look) -> Outline:
    """The transcript with, in place of every segment, its number: from it and the ledger a session
    is given back as it came. It names no summary, so that none is ever baked in."""
    given, layout = look.reading.given, look.layout
    numbers = {id(segment): number for number, segment in enumerate(layout.segments)}
    found: list[Message | int | None] = list(given)
    for start, end, segment in layout.standing():
        origins = sorted(o for o in layout.transcript.origins[start:end] if o is not None)
        # Where repair moved a result out of its place, the messages stand as they came.
        if origins and origins[-1] - origins[0] + 1 == len(origins):
            found[origins[0]] = numbers[id(segment)]
            for place in origins[1:]:
                found[place] = None
    return tuple(part for part in found if part is not None)
