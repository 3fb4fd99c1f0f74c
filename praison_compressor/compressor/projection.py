"""`Projector`: find a ledger's segments in transcripts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from ..config import CompressorConfig
from ..ledger.segments import (
    BLANK,
    DROPPED,
    Entry,
    Segment,
    Session,
    Skeleton,
    segments_in_force,
)
from ..ledger.stores import Store, redacts_secrets
from ..messages import Message, Transcript, digest, read_transcript
from ..messages.digests import CachedMessage, MessageCache, Originals
from ..messages.thinking import binds_thinking, signatures, without_thinking
from ..tokens.counter import TokenCounter
from ..view.frame import BRIDGE, is_framed, is_pinned, without_recall_tools
from ..view.masks import messages_to_keep
from ..view.renderer import ResultRenderer
from ..view.tiles import AddedMessage
from ..view.view import View
from .choices import apply_choices
from .decision import Previewed
from .request import Request


class Projector:
    """Find a store's segments in transcripts, with one model's counts; thread-safe."""

    def __init__(self, config: CompressorConfig, store: Store, tokens: TokenCounter) -> None:
        self.renderer = ResultRenderer(config, tokens, redacts_secrets=redacts_secrets(store))
        self._store = store
        self._tokens = tokens
        self._cache = tokens.cache
        self._recall = bool(config.recall)

    def open(self, request: Request) -> Session:
        """Return the request's session."""
        return self._store.open(*request.key, request.parent_id)

    def look(self, request: Request, session: Session, previewed: Previewed | None = None) -> View:
        """Return the view of the request's messages by the session's ledger.

        The user may name messages by the references of the newest preview.
        """
        view = self._read_view(request, session)
        if previewed is None:
            return apply_choices(request, view, {})
        if previewed.is_committed_by(request, view):
            own = previewed.request
            request = replace(request, keep=own.keep, since=own.since, until=own.until)
        return apply_choices(request, view, previewed.references_in(view))

    def _read_view(self, request: Request, session: Session) -> View:
        """Return the view before the user's choices."""
        transcript = read_transcript(request.messages)
        cached = self._cache.all(transcript.messages)
        counted = self._tokens.begin_count(cached)  # `expand` computes digests meanwhile
        originals = self.expand(transcript.messages, cached, session, request.pinned)
        tokens = counted()
        if originals is None:
            return self._make_view(request, session, transcript, cached, tokens)
        whole = read_transcript(originals)
        restored = self._cache.all(whole.messages)
        own = replace(request, messages=originals)
        view = self._make_view(own, session, whole, restored, self._tokens.each(restored))
        return replace(view, given_tokens=self._tokens.messages([]) + sum(tokens))

    def _make_view(
        self,
        request: Request,
        session: Session,
        transcript: Transcript,
        cached: Sequence[CachedMessage],
        tokens: Sequence[int],
    ) -> View:
        """Return the view of the request's transcript, which has no renderings."""
        # A host may edit its messages between digest and archive.
        copies = tuple(item.plain for item in cached)
        # A message that was restored with redacted secrets has another digest.
        aliases = _aliases(session)
        return View(
            transcript=replace(transcript, messages=copies),
            digests=tuple(aliases.get(item.digest, item.digest) for item in cached),
            tokens=tuple(tokens),
            segments=self._segments(session, request.budget.window_limit),
            head_tokens=request.budget.head_tokens,
            kept_out=messages_to_keep(copies, transcript.steps, request.config),
            pinned=request.pinned,
            bridge=AddedMessage(BRIDGE, self._tokens.message(BRIDGE)),
            caller_messages=transcript.messages,
            unrepaired_messages=Originals(self._cache.all(request.messages)),
            given_tokens=self._tokens.messages([]) + sum(tokens),
            session=session,
            window_limit=request.budget.window_limit,
            signed_tokens=self._signed_tokens(copies),
            binds_thinking=binds_thinking(self._tokens.model),
        )

    def _signed_tokens(self, messages: Sequence[Message]) -> dict[int, int]:
        """Return the messages with signed thinking, and their tokens without it."""
        signed = ((index, m) for index, m in enumerate(messages) if signatures(m))
        return {index: self._tokens.message(without_thinking(m)) for index, m in signed}

    def look_again(self, view: View, session: Session) -> View:
        """Return the view of the same transcript by a newer ledger."""
        return replace(view, session=session, segments=self._segments(session, view.window_limit))

    def _segments(self, session: Session, limit: int) -> tuple[Segment, ...]:
        """Return the session's segments, blank ones for far smaller windows."""
        fitting = (s if s.is_for(limit) else BLANK for s in segments_in_force(session.entries))
        return tuple(self.recount(s if self._recall else without_recall_tools(s)) for s in fitting)

    def recount(self, segment: Segment) -> Segment:
        """Return the segment with this model's count of its text."""
        tokens = self._tokens.message(segment.rendered)
        return segment if tokens == segment.tokens else replace(segment, tokens=tokens)

    # -------------------------------------------------------------- views that come back

    def originals_of(self, request: Request) -> list[Message] | None:
        """Return a view's transcript, or None for a transcript."""
        cached = self._cache.all(request.messages)
        return self.expand(request.messages, cached, self.open(request), request.pinned)

    def expand(
        self,
        messages: Sequence[Message],
        cached: Sequence[CachedMessage],
        session: Session,
        pinned: AddedMessage | None,
    ) -> list[Message] | None:
        """Return the messages with the session's renderings replaced by originals.

        Pinned texts are left out, because each view has its own. Return None if `messages` have
        neither renderings nor pinned texts.
        """
        rendered = renderings(session, self._cache)
        digests = [item.digest for item in cached]
        times = Counter(d for d in digests if d in rendered)
        pinned_digest = None if pinned is None else self._cache(pinned.message).digest
        if not times and pinned_digest not in digests:
            return None
        # Equal outputs have equal masks; the view shows the masks of the newest ones.
        waiting = {d: iter(rendered[d][-count:]) for d, count in times.items()}
        transcript: list[Message] = []
        for message, own, following in zip(messages, digests, [*messages[1:], {}], strict=True):
            # An earlier view of this session may have had other pinned texts.
            if own == pinned_digest or (times and is_pinned(message)):
                continue
            if message == BRIDGE and is_framed(following):
                continue
            entry = next(waiting[own], None) if own in waiting else None
            transcript += self._originals(session, entry) or [message]
        return transcript

    def _originals(self, session: Session, entry: Entry | None) -> list[Message] | None:
        """Return all originals of an entry, or None if some are gone."""
        originals = None if entry is None else self._store.originals(session, entry)
        return None if originals is None or DROPPED in originals else originals


def renderings(session: Session, cache: MessageCache) -> dict[str, list[Entry]]:
    """Return the session's entries by the digests of their renderings."""
    entries: dict[str, list[Entry]] = {}
    for entry in session.entries:
        if not entry.is_forgotten and entry.segment.kind not in ("keep", "undo"):
            entries.setdefault(cache(entry.segment.rendered).digest, []).append(entry)
            plain = without_recall_tools(entry.segment)
            if plain is not entry.segment:
                entries.setdefault(digest(plain.rendered), []).append(entry)
    return entries


def _aliases(session: Session) -> dict[str, str]:
    """Return redacted digest -> original digest of all entries."""
    return {
        redacted: original
        for entry in session.entries
        for redacted, original in entry.segment.aliases().items()
    }


def skeleton_of(view: View) -> Skeleton:
    """Return the transcript with segment numbers in place of replaced runs.

    Skeleton and ledger together restore a session exactly. The skeleton has no summary's text: a
    summary must never become an original.
    """
    numbers = {id(segment): number for number, segment in enumerate(view.segments)}
    skeleton: list[Message | int | None] = list(view.unrepaired_messages)
    for start, end, segment in view.all_tiles:
        origins = view.transcript.origins_of(range(start, end))
        # If repair moved a result, the messages stay in the caller's order.
        if origins and origins[-1] - origins[0] + 1 == len(origins):
            skeleton[origins[0]] = numbers[id(segment)]
            for origin in origins[1:]:
                skeleton[origin] = None
    return tuple(part for part in skeleton if part is not None)
