"""Make views of transcripts by their session's ledger.

`Projector` finds the ledger's segments in a transcript. `LastTurn` keeps the last view: a turn that
only adds messages costs one comparison.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..config import CompressorConfig
from ..errors import InvalidMessages
from ..ledger.segments import BLANK, DROPPED, Entry, Segment, Session, Skeleton, segments_in_force
from ..ledger.stores import Store, redacts_secrets
from ..messages import Message, Transcript, digest, is_result, read_transcript
from ..messages.digests import CachedMessage, MessageCache, Originals
from ..messages.shapes import binds_thinking, signatures, without_thinking
from ..tokens.counter import TokenCounter
from ..view.frame import BRIDGE, is_framed, is_pinned, without_recall_tools
from ..view.masks import messages_to_keep
from ..view.renderer import ResultRenderer
from ..view.view import AddedMessage, SentRun, View, lay_results, lay_summaries, replace_runs
from .choices import apply_choices
from .decision import RememberedPreview
from .request import Request
from .result import CompressResult


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

    def look(
        self, request: Request, session: Session, previewed: RememberedPreview | None = None
    ) -> View:
        """Return the view of the request's messages by the session's ledger.

        The user may name messages by the references of the newest preview.
        """
        view = self._read_view(request, session)
        if previewed is None:
            return apply_choices(request, view, {})
        if previewed.is_committed_by(request, view):
            own = previewed.decision.request
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
        """Return the view of the request's transcript, which has only originals."""
        # The view gets copies: a host may edit a message between its digest and its archive.
        copies = tuple(item.plain for item in cached)
        # A message that was restored with redacted secrets gets its original digest.
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
        """Return index -> tokens without thinking, for each message with signed thinking."""
        signed = ((index, m) for index, m in enumerate(messages) if signatures(m))
        return {index: self._tokens.message(without_thinking(m)) for index, m in signed}

    def look_again(self, view: View, session: Session) -> View:
        """Return the view of the same transcript by a newer ledger."""
        return replace(view, session=session, segments=self._segments(session, view.window_limit))

    def _segments(self, session: Session, limit: int) -> tuple[Segment, ...]:
        """Return the session's segments; those made for far smaller windows are blank."""
        fitting = (s if s.is_for(limit) else BLANK for s in segments_in_force(session.entries))
        return tuple(self.recount(s if self._recall else without_recall_tools(s)) for s in fitting)

    def recount(self, segment: Segment) -> Segment:
        """Return the segment with this model's count of its text."""
        tokens = self._tokens.message(segment.rendered)
        return segment if tokens == segment.tokens else replace(segment, tokens=tokens)

    # -------------------------------------------------------------- views that come back

    def originals_of(self, request: Request) -> list[Message] | None:
        """Return the originals of a view's messages; None if all are originals."""
        cached = self._cache.all(request.messages)
        return self.expand(request.messages, cached, self.open(request), request.pinned)

    def expand(
        self,
        messages: Sequence[Message],
        cached: Sequence[CachedMessage],
        session: Session,
        pinned: AddedMessage | None,
    ) -> list[Message] | None:
        """Return the messages with rendered segments replaced by originals, or None.

        Pinned texts are left out. None: `messages` have neither rendered segments nor pinned texts.
        """
        rendered = renderings(session, self._cache)
        digests = [item.digest for item in cached]
        times = Counter(d for d in digests if d in rendered)
        pinned_digest = None if pinned is None else self._cache(pinned.message).digest
        if not times and pinned_digest not in digests:
            return None
        # Several entries may have equal masks. If a view shows some of these masks, they are those
        # of the newest entries.
        waiting = {d: iter(rendered[d][-count:]) for d, count in times.items()}
        transcript: list[Message] = []
        for message, own, following in zip(messages, digests, [*messages[1:], {}], strict=True):
            # Other pinned texts, which an earlier view of this session may have had, are left out
            # too.
            if own == pinned_digest or (times and is_pinned(message)):
                continue
            if message == BRIDGE and is_framed(following):
                continue
            entry = next(waiting[own], None) if own in waiting else None
            transcript += self._originals(session, entry) or [message]
        return transcript

    def _originals(self, session: Session, entry: Entry | None) -> list[Message] | None:
        originals = None if entry is None else self._store.originals(session, entry)
        return None if originals is None or DROPPED in originals else originals


def renderings(session: Session, cache: MessageCache) -> dict[str, list[Entry]]:
    """Return the session's entries by the digests of their rendered messages."""
    entries: dict[str, list[Entry]] = {}
    for entry in session.entries:
        if not entry.is_forgotten and not entry.segment.is_choice:
            entries.setdefault(cache(entry.segment.rendered).digest, []).append(entry)
            plain = without_recall_tools(entry.segment)
            if plain is not entry.segment:
                entries.setdefault(digest(plain.rendered), []).append(entry)
    return entries


def _aliases(session: Session) -> dict[str, str]:
    """Return redacted digest -> original digest."""
    return {
        redacted: original
        for entry in session.entries
        for redacted, original in entry.segment.aliases().items()
    }


def skeleton_of(view: View) -> Skeleton:
    """Return the transcript with segment numbers in place of replaced runs.

    The skeleton has no summary's text: a summary must never become an original.
    """
    numbers = {id(segment): number for number, segment in enumerate(view.segments)}
    skeleton: list[Message | int | None] = list(view.unrepaired_messages)
    for start, end, segment in view.all_tiles:
        origins = view.transcript.origins_of(range(start, end))
        # If repair moved a result, the run has gaps in the caller's list: the run's messages stay.
        if origins and origins[-1] - origins[0] + 1 == len(origins):
            skeleton[origins[0]] = numbers[id(segment)]
            for origin in origins[1:]:
                skeleton[origin] = None
    return tuple(part for part in skeleton if part is not None)


# -------------------------------------------------------------- a turn that only adds messages

Basis = tuple[TokenCounter, float, int, AddedMessage | None]
"""Counter, its ratio, tokens of the head, pinned texts. `LastTurn` is extended only if the next
turn has equal values."""


@dataclass(frozen=True)
class LastTurn:
    """A view below the trigger, and the values that must not change."""

    session: Session
    messages: list[Message]
    """Private copies of the view's original messages."""
    basis: Basis
    sent_runs: tuple[SentRun, ...]
    """Runs of the transcript, and the messages sent in their place."""
    watched: frozenset[str]
    """Digests that no new message may have: such a message would change the view."""
    result: CompressResult
    """The result, without its messages."""

    def extend(
        self, request: Request, limit: int, tokens: TokenCounter
    ) -> tuple[LastTurn, CompressResult] | None:
        """Return turn and result if the request only adds messages, else None.

        Return None too if the view would exceed `limit` tokens.
        """
        cached = self._new_messages(request, tokens)
        if cached is None:
            return None
        added = sum(tokens.each(cached))
        most = request.budget.most_result_tokens
        if most is not None and added > most:
            return None
        result = replace(
            self.result,
            messages=replace_runs(request.messages, self.sent_runs),
            tokens_before=self.result.tokens_before + added,
            tokens_after=self.result.tokens_after + added,
            summary_method="reused" if self.result.segments else None,
        )
        pinned = request.pinned.tokens if request.pinned is not None and self.sent_runs else 0
        if result.tokens_after - tokens.messages([]) - pinned > limit:
            return None
        messages = [*self.messages, *(item.plain for item in cached)]
        # The result is stored without messages, because the caller may edit its list.
        return replace(self, messages=messages, result=replace(result, messages=[])), result

    def _new_messages(self, request: Request, tokens: TokenCounter) -> list[CachedMessage] | None:
        """Return the new messages, or None if anything else changed."""
        messages = request.messages
        old = len(self.messages)
        if type(messages) is not list or len(messages) < old:
            return None
        if self.basis != _basis(request, tokens):
            return None
        try:
            new = messages[old:]
            if messages[:old] != self.messages or not _starts_cleanly(new):
                return None
            cached = tokens.cache.all(new)
        except (AttributeError, TypeError, InvalidMessages):
            return None
        # A message with signed thinking is not harmless: it moves the trigger, and its thinking may
        # have to be left out.
        is_harmless = all(
            item.digest not in self.watched and item.comparable and not signatures(item.plain)
            for item in cached
        )
        return cached if is_harmless else None


def last_turn_of(
    request: Request, view: View, result: CompressResult, tokens: TokenCounter
) -> LastTurn | None:
    """Return the turn to extend; None if extending it is unsafe."""
    own = view.caller_messages
    if not request.is_recorded or len(view.segments) > len(view.session.entries):
        return None
    if len(own) != len(request.messages) or not all(map(operator.is_, own, request.messages)):
        return None
    watched = _watched_digests(view, tokens.cache)
    if watched is None or not view.unrepaired_messages.comparable or view.signed_tokens:
        return None
    return LastTurn(
        session=view.session,
        messages=list(view.transcript.messages),
        basis=_basis(request, tokens),
        sent_runs=view.sent_runs,
        watched=watched,
        result=replace(result, messages=[]),
    )


def _basis(request: Request, tokens: TokenCounter) -> Basis:
    return tokens, tokens.ratio, request.budget.head_tokens, request.pinned


def _watched_digests(view: View, cache: MessageCache) -> frozenset[str] | None:
    """Return the digests of new messages that would change the view.

    None: any new message may change the view.
    """
    segments, users = view.segments, view.transcript.users
    if not users:
        return None
    # When more messages have come, only the head and the user's kept messages are fixed. If a
    # segment then replaces messages that are fixed now, any new message may change the view.
    task = users[0]
    later_replaceable = [
        replaceable if n <= task else n not in view.user_kept
        for n, replaceable in enumerate(view.replaceable)
    ]
    if tuple(lay_summaries(view.digests, segments, later_replaceable)) != view.tiles:
        return None
    if lay_results(view.digests, segments, later_replaceable) != view.result_segments:
        return None
    applied = [tile.segment for tile in view.tiles]
    unapplied = {d for s in segments if s not in applied for d in (*s.run, *s.aliases())}
    if view.digests[-1] in unapplied:
        return None
    return frozenset(unapplied.union(renderings(view.session, cache)))


def _starts_cleanly(new: list[Message]) -> bool:
    """Return whether new messages are valid and answer no earlier call."""
    if new and is_result(new[0]):
        return False
    got = read_transcript(new)
    return all(a is b for a, b in zip(got.messages, new, strict=False)) and not got.stub_count
