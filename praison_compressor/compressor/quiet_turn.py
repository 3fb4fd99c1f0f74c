"""`LastTurn`: a view below the trigger, extended by new messages.

A client sends the whole transcript at every turn. With the last view in memory, a turn that only
adds messages costs one comparison and the new messages. Any other turn is read in full.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, replace

from ..errors import InvalidMessages
from ..ledger.segments import Session
from ..messages import Message, is_result, read_transcript
from ..messages.digests import CachedMessage, MessageCache
from ..messages.thinking import signatures
from ..tokens.counter import TokenCounter
from ..view.tiles import AddedMessage, SentRun, lay_results, lay_summaries, replace_runs
from ..view.view import View
from .projection import renderings
from .request import Request
from .result import CompressResult

Basis = tuple[TokenCounter, float, int, AddedMessage | None]
"""Counter, its ratio, tokens of the head, pinned texts: the next turn must have the same."""


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
        """Return turn and result if the request only adds messages.

        None also if the view would have more than `limit` tokens.
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
        # The view has the caller's own messages: the caller may edit it.
        return replace(self, messages=messages, result=replace(result, messages=[])), result

    def _new_messages(self, request: Request, tokens: TokenCounter) -> list[CachedMessage] | None:
        """Return the new messages, or None if more than that changed."""
        messages = request.messages
        old = len(self.messages)
        if type(messages) is not list or len(messages) < old:
            return None
        if self.basis != _basis(request, tokens):
            return None
        try:
            # One comparison in C is the whole cost of a quiet turn.
            new = messages[old:]
            if messages[:old] != self.messages or not _starts_cleanly(new):
                return None
            cached = tokens.cache.all(new)
        except (AttributeError, TypeError, InvalidMessages):
            return None
        # Signed thinking moves the trigger, and may have to be left out.
        is_harmless = all(
            item.digest not in self.watched and item.comparable and not signatures(item.plain)
            for item in cached
        )
        return cached if is_harmless else None


def last_turn_of(
    request: Request, view: View, result: CompressResult, tokens: TokenCounter
) -> LastTurn | None:
    """Return the last turn of a recorded view, or None.

    None if the next turn may do more than add messages, or if `==` may miss an edit.
    """
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
    """Return the digests of messages that would change the view.

    None if every new message may change the view. A segment may apply once its messages are not the
    newest, or once the new message completes its run.
    """
    segments, users = view.segments, view.transcript.users
    if not users:
        return None
    # Messages up to the task always stay; of the later ones only the newest do.
    task = users[0]
    later_replaceable = [
        may_go if n <= task else n not in view.chosen for n, may_go in enumerate(view.replaceable)
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
