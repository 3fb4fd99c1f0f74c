"""Carry out a plan: summaries written and committed, one compression at a time for a session."""

from __future__ import annotations

import asyncio
import functools
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from ..config import CompressorConfig
from ..errors import LedgerConflict
from ..events import Event
from ..facts import Domain
from ..ledger.segments import Segment, Store, Usage
from ..messages import Message
from ..messages.secrets import masks_secrets
from ..summaries.protocol import Summarizer, Written, billed
from ..summaries.retries import MOST_CALLS, Breaker, LearnedWindows
from ..summaries.static import FactFinder
from ..summaries.threads import run
from ..summaries.writer import SummaryWriter
from ..tokens.counter import TokenCounter
from ..view.plan import Plan
from .background import Flights, leased
from .call import CompressCall, Look
from .defaults import default_summarizer
from .projection import Projector
from .result import CompressResult, of_look
from .work import briefs_for, outline_of, segments_of, widened

__all__ = [
    "Executor",
]

logger = logging.getLogger(__name__)


MOST_CONFLICTS = 8
"""Races lost in one call. Each means that another writer got on; a store whose tip was damaged
loses them for ever."""


class Executor:
    """Does what a look says is to be done, with a model's money or without; thread-safe."""

    def __init__(
        self,
        config: CompressorConfig,
        summarizer: Summarizer | None,
        store: Store,
        projector: Projector,
        tokens: TokenCounter,
        emit: Callable[[Event], None],
    ) -> None:
        self.summarizer = summarizer
        """Who writes; None until one is needed, and where none is configured. Never the one that a
        single call names: its model is for that call alone."""
        self.breaker = Breaker()
        self._windows = LearnedWindows()
        self._finder = FactFinder(Domain.of(config))
        self._config = config
        self._store = store
        self._projector = projector
        self._tokens = tokens
        self._emit = emit
        self._flights = Flights()

    # -------------------------------------------------------------- committed

    async def compress(self, call: CompressCall, look: Look) -> CompressResult:
        """The view after what the plan asks for has been written and committed, by whomever.

        Raises:
            LedgerError: the store cannot be read or written.
        """
        lost = 0
        spent: list[Usage] = []
        while look.plan is not None:
            key = _key(look)
            flying = self._flights.enter(key)
            if flying is not None:
                await asyncio.wrap_future(flying)
                look = await asyncio.to_thread(self._projector.look, call)
                continue
            try:
                async with leased(self._store, look.session):
                    # Another may have finished between our look and our turn.
                    look = await asyncio.to_thread(self._projector.renewed, call, look)
                    if look.plan is not None:
                        return await self._carry_out(call, look, look.plan, spent)
            except LedgerConflict:
                lost += 1
                if lost >= MOST_CONFLICTS:
                    raise
                look = await asyncio.to_thread(self._projector.look, call)
            finally:
                self._flights.leave(key)
        found = self.result(call, look)
        return replace(found, usage=sum(spent, found.usage))

    def mask(self, call: CompressCall, look: Look, todo: Plan) -> CompressResult:
        """Masks need no model: they are committed at once, unless a summary that is being written
        would lose the race to them, and its price with it."""
        key = _key(look)
        if self._flights.enter(key) is None:
            try:
                return run(self._carry_out(call, look, todo, []))
            except LedgerConflict:
                logger.debug("session %s moved on: its masks are not recorded", key[1])
            finally:
                self._flights.leave(key)
        return self.uncommitted(call, look, todo)

    async def _carry_out(
        self, call: CompressCall, look: Look, todo: Plan, spent: list[Usage]
    ) -> CompressResult:
        """`spent` is the bill of texts that lost a race: it goes on the next, as theirs goes to it.

        Raises:
            LedgerConflict: another has committed meanwhile.
        """
        given = look.layout.transcript
        look = self._projector.settled(look)
        started = time.monotonic()
        numbers = {"tokens": look.layout.size(), "messages": len(look.layout.tokens)}
        self._emit(Event("started", look.session.id, numbers))
        try:
            written = billed(await self._write(call, look, todo), spent)
            spent[:] = [text.usage for text in written] or spent
            todo, written = await asyncio.to_thread(self._widened, call, look, todo, written)
            after = await asyncio.to_thread(self._commit, call, look, todo, written)
        except BaseException as error:
            self._emit(Event("abandoned", look.session.id, {"error": type(error).__name__}))
            raise
        # The caller's own messages: the settled ones are the cache's, and a view may be edited.
        shown = replace(after, layout=replace(after.layout, transcript=given))
        result = replace(self.result(call, shown, written), newly_masked=len(todo.masks))
        self._emit(result.committed(look, seconds=time.monotonic() - started))
        return result

    async def _write(self, call: CompressCall, look: Look, todo: Plan) -> list[Written]:
        writer, briefs = self._writer(call), briefs_for(call, look, todo)
        write = functools.partial(
            writer.write, model=call.model, session_id=look.session.id, force=call.force
        )
        asking = [number for number, brief in enumerate(briefs) if brief.by_model]
        # Shared out evenly; where they are fewer than the briefs, the newest may ask.
        calls = {n: (MOST_CALLS + i) // len(asking) for i, n in enumerate(asking)}
        return await asyncio.gather(
            *(write(brief, calls=calls.get(n, 0)) for n, brief in enumerate(briefs))
        )

    def _commit(
        self, call: CompressCall, look: Look, todo: Plan, written: Sequence[Written]
    ) -> Look:
        entries = self._segments(call, look, todo, written)
        after = self._projector.with_segments(look, [segment for segment, _ in entries])
        outline = outline_of(after.raw, after.layout)
        return self._projector.within(after, self._store.commit(look.session, entries, outline))

    # -------------------------------------------------------------- without a model

    def uncommitted(self, call: CompressCall, look: Look, todo: Plan) -> CompressResult:
        """The view with what is missing written without a model, and recorded nowhere."""
        shown, written = self.drafted(call, look, todo)
        return self.result(call, shown, written)

    def drafted(self, call: CompressCall, look: Look, todo: Plan) -> tuple[Look, list[Written]]:
        """The look as it would be after the plan, and the texts for it, without a model."""
        todo, written = self.statically(call, look, todo)
        segments = [segment for segment, _ in self._segments(call, look, todo, written)]
        return self._projector.with_segments(look, segments), written

    def statically(self, call: CompressCall, look: Look, todo: Plan) -> tuple[Plan, list[Written]]:
        """The plan with its texts written without a model."""
        writer = self._writer(call)
        written = [writer.static(brief) for brief in briefs_for(call, look, todo)]
        return self._widened(call, look, todo, written)

    def result(
        self, call: CompressCall, look: Look, written: Sequence[Written] = ()
    ) -> CompressResult:
        """What a look shows, after `written`."""
        opening = self._tokens.messages([])
        before = self._tokens.messages(call.transcript.messages)
        return of_look(look, written, before=before, opening=opening, model=self._config.model)

    # -------------------------------------------------------------- pieces

    def _writer(self, call: CompressCall) -> SummaryWriter:
        if self.summarizer is None and self._config.auxiliary_model:
            self.summarizer = default_summarizer(self._config)
        summarizer = self.summarizer
        if summarizer is None and call.model:
            summarizer = default_summarizer(replace(self._config, auxiliary_model=call.model))
        return SummaryWriter(
            self._config,
            summarizer,
            self._tokens,
            self._emit,
            breaker=self.breaker,
            windows=self._windows,
            finder=self._finder,
            on_disk=masks_secrets(self._store),
        )

    def _widened(
        self, call: CompressCall, look: Look, todo: Plan, written: Sequence[Written]
    ) -> tuple[Plan, list[Written]]:
        return widened(
            call,
            look,
            todo,
            written,
            decide=lambda call, look: self._projector.plan(call, look.layout),
            writer=self._writer(call),
            size=self._tokens.message,
        )

    def _segments(
        self, call: CompressCall, look: Look, todo: Plan, written: Sequence[Written]
    ) -> list[tuple[Segment, Sequence[Message]]]:
        return segments_of(
            call, look, todo, written, projector=self._projector, tokens=self._tokens
        )


def _key(look: Look) -> tuple[str, str]:
    return look.session.namespace, look.session.id
