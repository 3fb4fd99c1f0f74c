"""A model's own text for a brief: in one call, or in parts that are merged where one is too small.

Every message is shown in exactly one part; `Spent.parts` says how many were shown in each.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import replace
from typing import Any

from ..config import CompressorConfig
from ..errors import SummarizerUnavailable, SummaryError
from ..events import Event
from ..messages import Message
from ..tokens.counter import TokenCounter
from .brief import Brief
from .cache_marks import is_same_model, prefix_request
from .packing import Piece, by_step, packed, shown_in
from .prompts import merge_request, request
from .retries import Asker, LearnedWindows, Order, Tools

__all__ = [
    "Drafter",
]

logger = logging.getLogger(__name__)

PART_CONCURRENCY = 4

WINDOW_MARGIN = 0.9  # the summarizer may count tokens otherwise than we do

LEAST_SPACE = 0.25  # of its window for the transcript: with less, parts become many and small

LEAST_PROSE = 50  # tokens

SummaryRequest = Callable[[Sequence[Piece]], "list[Message]"]
"""Makes the chat messages that ask for a summary of what it is given."""


class Drafter:
    """Fits what a brief shows to the summarizer's window, and asks."""

    def __init__(
        self,
        config: CompressorConfig,
        asker: Asker,
        tokens: TokenCounter,
        emit: Callable[[Event], None],
        windows: LearnedWindows,
    ) -> None:
        self._config = config
        self._asker = asker
        self._tokens = tokens
        self._emit = emit
        self._windows = windows

    async def draft(self, brief: Brief, order: Order) -> str:
        """The text. A refusal as too long is learned from, and the parts are cut smaller.

        Raises:
            SummaryError: there is none.
        """
        carefully = False
        while True:
            window = self._window(order)
            try:
                return await self._drafted(brief, order, carefully=carefully)
            except SummarizerUnavailable:
                carefully = True
                if self._window(order) == window:
                    raise

    async def _drafted(self, brief: Brief, order: Order, *, carefully: bool) -> str:
        order.spent.parts.clear()
        text = await self._on_prefix(brief, order)
        if text is not None:
            order.spent.parts.append(len(brief.shown))
            return text
        tokens = await asyncio.to_thread(self._counter, order)
        brief, order = self._fitting(brief, order, tokens)
        make, parts = await asyncio.to_thread(self._in_parts, brief, order, tokens)
        if len(parts) == 1:
            order.spent.parts.append(len(brief.shown))
            return await self._ask(make(parts[0]), order, tokens)
        # After a refusal one part shows whether this size is taken: all might be refused again.
        alone = 1 if carefully else 0
        texts = await self._each(make, parts, order, tokens, alone=alone)
        order.spent.parts += map(shown_in, parts)
        return await self._merged(texts, brief, order, tokens)

    def _counter(self, order: Order) -> TokenCounter:
        """What counts for the model that is asked: what was learned of the agent's own model is
        about no other."""
        name, own = self._asker.model_of(order), self._tokens
        if is_same_model(name, self._config.model) or (name is None and own.ratio >= 1):
            return own
        return TokenCounter(name or self._config.model)

    async def _ask(
        self,
        messages: list[Message],
        order: Order,
        tokens: TokenCounter,
        tools: Tools | None = None,
    ) -> str:
        """One accepted text; from a refusal as too long the model's window is learned."""
        try:
            return await self._asker.text(messages, order, tools)
        except SummarizerUnavailable as error:
            if error.kind == "context":
                sent = tokens.messages(messages) + tokens.tools(tools)
                model = self._asker.model_of(order)
                self._windows.learn(model, error, sent=sent, most=order.most)
            raise

    def _window(self, order: Order) -> int | None:
        """Tokens that the model reads and writes at most, as far as we know; None: any number."""
        return self._windows.of(self._asker.model_of(order), self._asker.window(order))

    async def _each(
        self,
        make: SummaryRequest,
        parts: list[list[Piece]],
        order: Order,
        tokens: TokenCounter,
        *,
        alone: int,
    ) -> list[str]:
        """The texts of all parts: those of the first `alone` in turn, the others side by side."""
        gate = asyncio.Semaphore(PART_CONCURRENCY)

        async def one(number: int, part: list[Piece]) -> str:
            async with gate:
                text = await self._ask(make(part), order, tokens)
            numbers = {"part": number, "parts": len(parts), "messages": shown_in(part)}
            self._emit(Event("part_summarized", order.session_id, numbers))
            return text

        numbered = list(enumerate(parts, 1))
        first = [await one(n, part) for n, part in numbered[:alone]]
        return first + await _all_or_none(one(n, part) for n, part in numbered[alone:])

    async def _merged(
        self, texts: list[str], brief: Brief, order: Order, tokens: TokenCounter
    ) -> str:
        """One summary out of consecutive partial ones, in rounds if they are many."""
        extra = self._config.summary_instructions
        make = functools.partial(merge_request, target_tokens=brief.prose, extra=extra)
        window = self._window(order)
        while len(texts) > 1 and order.spent.calls:
            taken = len(texts)
            if window is not None:
                space = int(window * WINDOW_MARGIN) - 2 * brief.prose
                while taken > 2 and tokens.messages(make(texts[:taken])) > space:
                    taken -= 1
            texts = [await self._ask(make(texts[:taken]), order, tokens), *texts[taken:]]
        return "\n\n".join(texts)

    # -------------------------------------------------------------- on the live prefix

    async def _on_prefix(self, brief: Brief, order: Order) -> str | None:
        """The text, asked on the agent's live prefix; None: ask in the ordinary way."""
        asked = self._prefix_request(brief, order)
        if asked is None or brief.prefix is None:
            return None
        try:
            return await self._ask(asked, order, self._tokens, brief.prefix.tools)
        except SummaryError as error:
            if getattr(error, "kind", "provider") != "provider":
                raise  # the ordinary request would meet the same: no network, no key, no time
            logger.info("no summary on the live prefix, asked without it: %s", error)
            return None

    def _prefix_request(self, brief: Brief, order: Order) -> list[Message] | None:
        """The request on the live prefix, where it can serve: by the agent's own model."""
        mine = is_same_model(self._asker.model_of(order), self._config.model)
        if brief.prefix is None or not mine or not self._asker.can_on_prefix():
            return None
        asked = prefix_request(
            brief.prefix, target_tokens=brief.prose, extra=self._config.summary_instructions
        )
        size = self._tokens.messages(asked) + self._tokens.tools(brief.prefix.tools)
        window = self._window(order)
        return asked if window is None or size + 2 * brief.prose <= window * WINDOW_MARGIN else None

    # -------------------------------------------------------------- in parts

    def _fitting(self, brief: Brief, order: Order, tokens: TokenCounter) -> tuple[Brief, Order]:
        """The brief asking for no more prose than the model's window has room for.

        Raises:
            SummarizerUnavailable: it has room for none.
        """
        window = self._window(order)
        if window is None:
            return brief, order
        # To merge, it reads two texts of twice the length asked for, and writes a third.
        most = _room(window, self._request(brief, ()), tokens) // 6
        if most < LEAST_PROSE:
            raise SummarizerUnavailable(
                f"it reads and writes {window} tokens, and the instructions leave no room; name an "
                "auxiliary model that reads more at once",
                kind="context",
            )
        prose = min(brief.prose, most)
        return replace(brief, prose=prose), replace(order, most=2 * prose)

    def _in_parts(
        self, brief: Brief, order: Order, tokens: TokenCounter
    ) -> tuple[SummaryRequest, list[list[Piece]]]:
        """What makes a request, and the texts for each, as many as the model's window asks.

        Raises:
            SummarizerUnavailable: the calls there are would show next to nothing of the messages.
        """
        window, groups = self._window(order), by_step(brief.shown)
        make = self._request(brief, brief.folded or brief.earlier)
        fit = functools.partial(
            packed, count=tokens.texts, longest=self._config.shown_message_tokens
        )
        if window is None:
            return make, fit(groups, None)
        answer = 2 * brief.prose
        space = _room(window, make, tokens) - answer
        if space < window * LEAST_SPACE:
            # Earlier summaries that leave no room: replaced ones are read like messages, in parts
            # of their own; the others stay in the view and need not be shown.
            groups = [*([(text, 0)] for text in brief.folded), *groups]
            make = self._request(brief, ())
            space = _room(window, make, tokens) - answer
        merged = (_room(window, self._request(brief, ()), tokens) - answer) // brief.prose
        return make, fit(groups, space, most=_affordable(order.spent.calls, merged))

    def _request(self, brief: Brief, earlier: Sequence[str]) -> SummaryRequest:
        def make(part: Sequence[Piece]) -> list[Message]:
            return request(
                [text for text, _ in part],
                earlier=earlier,
                rolled=bool(earlier and brief.folded),
                target_tokens=brief.prose,
                extra=self._config.summary_instructions,
            )

        return make


def _room(window: int, make: SummaryRequest, tokens: TokenCounter) -> int:
    """Tokens that the window has for what is shown and for the answer."""
    return int(window * WINDOW_MARGIN) - tokens.messages(make([("", 0)]))


def _affordable(calls: int, merged: int) -> int:
    """How many parts that many calls can read, and merge where one call takes `merged` texts."""
    merges = {n: -(-(n - 1) // (merged - 1)) for n in range(1, calls + 1)}
    return max((n for n in merges if n + merges[n] <= calls), default=1)


async def _all_or_none(asked: Iterable[Coroutine[Any, Any, str]]) -> list[str]:
    """All answers; when one fails the others are cancelled: nobody would read what they cost."""
    tasks = [asyncio.ensure_future(one) for one in asked]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
