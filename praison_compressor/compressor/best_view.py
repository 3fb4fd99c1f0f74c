"""The view for a turn that must go on, whatever fails: no model, no store write."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from ..errors import BudgetTooSmall, LedgerError
from ..ledger.segments import Session
from ..messages import Message, read
from ..tokens.counter import TokenCounter
from ..view.layout import Layout
from ..view.shortening import shorten
from .call import CompressCall
from .executor import Executor
from .projection import Projector
from .result import CompressResult

__all__ = [
    "BestView",
]

logger = logging.getLogger(__name__)


SHORTENED_SHARE = 0.75
"""Share of the window for what may not be dropped, where it has to be shortened: the rest is for
a summary and a tail."""


class BestView:
    """Static texts, shortened messages, no ledger at all: what is left when nothing works."""

    def __init__(self, projector: Projector, executor: Executor, tokens: TokenCounter) -> None:
        self._projector = projector
        self._executor = executor
        self._tokens = tokens
        self._without_ledger = False

    def of(self, call: CompressCall, told: Exception | None = None) -> CompressResult:
        """The view and its counts; `told` is a failure that has been logged already."""
        try:
            session = self._projector.open(call)
            self._without_ledger = False
            return self._in(call, session)
        except LedgerError as error:
            # Once, until the ledger is there again: a turn comes every few seconds.
            is_news = not self._without_ledger and str(error) != str(told)
            self._without_ledger = True
            level = logging.WARNING if is_news else logging.DEBUG
            logger.log(level, "without the ledger for now: %s", error)
            nothing = Session(call.key[0], call.key[1], call.key[1], call.parent_id)
            return self._in(call, nothing)

    def _in(self, call: CompressCall, session: Session) -> CompressResult:
        """The view with what is missing written statically and committed nowhere."""
        try:
            return self._planned(call, session)
        except BudgetTooSmall as error:
            logger.info("shortened to go on: %s", error)  # each request; the caller says it once
        look = self._projector.laid(call, session)
        kept = _bare(look.layout)
        room = int(call.budget.limit * SHORTENED_SHARE)
        shorter = dict(zip(map(id, kept), shorten(kept, room, self._size), strict=True))
        messages = [shorter.get(id(message), message) for message in call.transcript.messages]
        whole = self._executor.result(call, look)
        try:
            fit = self._planned(replace(call, given=messages, transcript=read(messages)), session)
        except BudgetTooSmall:
            bare = shorten(kept, call.budget.limit, self._size)
            size = self._tokens.messages(bare)
            fit = replace(
                whole,
                messages=bare,
                tokens_after=size,
                summary_method=None,
                segments=(),
                masked=0,
            )
        # What is cut in its middle says so in its place, as a masked output does.
        status = "summarized" if fit.segments else "masked"
        return replace(fit, tokens_before=whole.tokens_before, context_status=status)

    def _planned(self, call: CompressCall, session: Session) -> CompressResult:
        look = self._projector.look(call, session)
        if look.plan is None:
            return self._executor.result(call, look)
        return self._executor.uncommitted(call, look, look.plan)

    def _size(self, messages: Sequence[Message]) -> int:
        return sum(self._tokens.each(self._tokens.cache.all(messages)))


def _bare(layout: Layout) -> list[Message]:
    """Only what may not be dropped: for a window that does not even take that."""
    pairs = zip(layout.transcript.messages, layout.allowed, strict=True)
    return [message for message, may_go in pairs if not may_go]
