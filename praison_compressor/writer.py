"""Writes the one message that stands for a segment: by a model, audited and repaired, or static."""

from __future__ import annotations

import asyncio
import functools
import logging
import re
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import chain
from typing import Any

from .breaker import Breaker
from .config import CompressorConfig
from .deadline import within
from .errors import SummarizerUnavailable, SummaryError, SummaryRejected
from .events import Event
from .facts import Coverage, Domain, Facts, coverage, extract
from .facts.identifiers import Classifier
from .ledger import Usage
from .messages import Message, steps, text_of, tool_calls_of
from .prefix import Prefix, is_same_model, prefix_request
from .prompts import (
    Summarizer,
    SummaryReply,
    accept,
    frame,
    merge_request,
    rendering,
    request,
    unframe,
)
from .redact import Redactor, wants_redaction
from .static import ADDED, repair, static_summary
from .tokens import TokenCounter

__all__ = ["Brief", "SummaryWriter", "Written"]

logger = logging.getLogger(__name__)

REJECTED_TRIES = 2  # a second text from one model may be good, a third is paid for nothing
PART_CONCURRENCY = 4
MANY_IDENTIFIERS = 10  # a segment with fewer may well be told without one of them
OWN_IDENTIFIERS = 3  # fewer that are not in the segment may be a model's own way to write a number
WINDOW_MARGIN = 0.9  # the summarizer may count tokens otherwise than we do
LEAST_SPACE = 0.25  # of its window for the transcript: with less, parts become many and small


@dataclass(frozen=True)
class Brief:
    """What one summary is written from."""

    messages: tuple[Message, ...]
    """All messages it stands for."""
    shown: tuple[Message, ...]
    """Those of them that no folded summary represents: what the model reads whole."""
    room: int
    """Tokens that the framed message should take at most."""
    most: int
    """Tokens that it may take where a model's text alone is longer."""
    tokens: int
    """Of the messages that it stands for: whether a model that failed is worth another try."""
    facts: int
    """Tokens of facts beside a model's text."""
    prose: int
    """Tokens asked of the model."""
    by_model: bool = True
    """False: not worth a call, the static summary will do."""
    folded: tuple[str, ...] = ()
    """Texts of summaries that this one replaces."""
    earlier: tuple[str, ...] = ()
    """Texts of summaries that stay in the view before it."""
    visible: str = ""
    """Text that stays verbatim in the view: it needs no room here."""
    recall: str | None = None
    """The reference by which the recall tool reads the originals, where that tool exists."""
    prefix: Prefix | None = None
    """What the agent's last request began with, where a summary may be asked on it."""


@dataclass(frozen=True)
class Written:
    """A rendered summary and how it came to be."""

    message: Message
    method: str
    model: str | None = None
    usage: Usage = field(default_factory=Usage)
    parts: tuple[int, ...] = ()
    """How many messages each call of the model was shown; their sum is all that were to show."""
    before: Coverage | None = None
    """Facts that the model's own text held."""
    after: Coverage | None = None
    """Facts that the finished text holds."""
    facts: Facts | None = None
    """What was found in the messages that the text stands for."""


class SummaryWriter:
    """The one who spends money: carries out a brief with the summarizer it was given."""

    def __init__(
        self,
        config: CompressorConfig,
        summarizer: Summarizer | None,
        tokens: TokenCounter,
        emit: Callable[[Event], None],
        *,
        breaker: Breaker | None = None,
        on_disk: bool = False,
    ) -> None:
        self._config = config
        self._domain = Domain.of(config)
        self._summarizer = summarizer
        self._tokens = tokens
        self._emit = emit
        self._breaker = breaker or Breaker()
        self._on_disk = on_disk

    async def write(
        self, brief: Brief, *, model: str | None, session_id: str, force: bool = False
    ) -> Written:
        """A summary that fits the brief's room; never raises for what a model does.

        `force`: a person asks now, so that no model is left alone for having failed before.
        """
        brief = await asyncio.to_thread(self._redacted, brief, model, session_id)
        facts = await asyncio.to_thread(extract, brief.messages, domain=self._domain)
        spent = _Spent()
        for name in self._models(model) if brief.by_model else []:
            if not force and not self._breaker.allows(session_id, name, brief.tokens):
                self._emit(Event("skipped", session_id, {"model": name, "reason": "cooldown"}))
                continue
            try:
                text = _unreserved(await self._by_model(brief, name, spent, session_id))
                written = await asyncio.to_thread(self._finish, brief, facts, text, spent)
            except SummaryError as error:
                kind = error.kind if isinstance(error, SummarizerUnavailable) else "rejected"
                rest = self._breaker.failed(session_id, name, brief.tokens, kind)
                who = name or "the auxiliary model"
                logger.warning("no summary from %s, left alone for %g s: %s", who, rest, error)
                self._emit(Event("fell_back", session_id, {"model": name, "reason": str(error)}))
                continue
            self._breaker.succeeded(session_id, name)
            return _audited(written, facts)
        return await asyncio.to_thread(self.static, brief, facts, spent.usage)

    def _redacted(self, brief: Brief, model: str | None, session_id: str) -> Brief:
        """The brief without secrets: neither a summarizer nor a stored summary is to have them."""
        if not wants_redaction(self._config, model, on_disk=self._on_disk):
            return brief
        redactor = Redactor(self._config.namespace)
        messages, count = redactor.messages(brief.messages)
        if not count:
            return brief
        self._emit(Event("redacted", session_id, {"secrets": count}))
        # The live prefix has them: it is not what the summary is written from.
        shown = redactor.messages(brief.shown).messages
        return replace(brief, messages=messages, shown=shown, prefix=None)

    def _models(self, model: str | None) -> list[str | None]:
        if self._summarizer is None:
            return []
        return [model or self._config.auxiliary_model, *self._config.fallback_models]

    # -------------------------------------------------------------- without a model

    def static(
        self, brief: Brief, facts: Facts | None = None, usage: Usage | None = None
    ) -> Written:
        """The summary without a model, in the brief's room."""
        facts = extract(brief.messages, domain=self._domain) if facts is None else facts
        budget = brief.room - self._frame_tokens(brief, "static")
        while True:
            text = static_summary(
                brief.messages,
                budget_tokens=max(0, budget),
                count=self._tokens.text,
                facts=facts,
                previous=brief.folded,
                visible=brief.visible,
            )
            message = self._framed(brief, text, "static")
            size = self._tokens.message(message)
            # Text framed and text alone differ by a token or two at the seams.
            if size <= brief.room or budget <= 0:
                return _audited(Written(message, "static", usage=usage or Usage()), facts)
            budget -= max(1, size - brief.room)

    # -------------------------------------------------------------- with a model

    def _finish(self, brief: Brief, facts: Facts, text: str, spent: _Spent) -> Written:
        """The model's text, audited, repaired within the room, and framed.

        Raises:
            SummaryRejected: the text is another conversation's, does not fit, or is no smaller than
                its messages.
        """
        if _is_unrelated(text, brief, facts):
            raise SummaryRejected("unrelated", "not one of its identifiers is in the messages")
        message = self._framed(brief, text, "model")
        size = self._tokens.message(message)
        if size > brief.most:
            raise SummaryRejected("not smaller", f"{size} tokens, there is room for {brief.most}")
        limit = max(size, min(brief.room, size + brief.facts))
        return Written(
            message=self._repaired(brief, facts, text, limit) or message,
            method="model",
            model=spent.model,
            usage=spent.usage,
            parts=tuple(spent.parts),
            before=coverage(facts, text),
        )

    def _repaired(self, brief: Brief, facts: Facts, text: str, limit: int) -> Message | None:
        """The text with the facts that it lacks, framed in at most `limit` tokens."""
        budget = limit - self._tokens.message(self._framed(brief, text, "model"))
        while budget > 0:
            added = repair(
                text,
                facts,
                brief.messages,
                budget_tokens=budget,
                count=self._tokens.text,
                visible=brief.visible,
            )
            message = self._framed(brief, f"{text}\n\n{added}", "model")
            over = self._tokens.message(message) - limit
            if over <= 0 or not added:
                return message if added else None
            budget -= over
        return None

    def _framed(self, brief: Brief, text: str, method: str) -> Message:
        count = len(brief.messages)
        content = frame(text, count=count, method=method, recall=brief.recall)
        return {"role": "user", "content": content}

    def _frame_tokens(self, brief: Brief, method: str) -> int:
        return self._tokens.message(self._framed(brief, "", method))

    async def _by_model(
        self, brief: Brief, model: str | None, spent: _Spent, session_id: str
    ) -> str:
        """The model's text: in one call, or in parts that are merged where one is too small."""
        spent.parts.clear()
        text = await self._on_prefix(brief, model, spent, session_id)
        if text is not None:
            spent.parts.append(len(brief.shown))
            return text
        make, parts = await asyncio.to_thread(self._in_parts, brief)
        ask = functools.partial(
            self._ask, brief=brief, model=model, spent=spent, session_id=session_id
        )
        if len(parts) == 1:
            spent.parts.append(len(brief.shown))
            return await ask(self._chat(make, parts[0], brief.prose))
        gate = asyncio.Semaphore(PART_CONCURRENCY)

        async def one(number: int, part: list[tuple[str, int]]) -> str:
            async with gate:
                text = await ask(self._chat(make, part, brief.prose))
            shown = sum(weight for _, weight in part)
            numbers = {"part": number, "parts": len(parts), "messages": shown}
            self._emit(Event("part_summarized", session_id, numbers))
            return text

        texts = await _all_or_none(one(n, part) for n, part in enumerate(parts, 1))
        spent.parts += [sum(weight for _, weight in part) for part in parts]
        return await self._merge(texts, brief, ask)

    async def _on_prefix(
        self, brief: Brief, model: str | None, spent: _Spent, session_id: str
    ) -> str | None:
        """The model's text, asked on the agent's live prefix; None: ask in the ordinary way."""
        asked = self._prefix_request(brief, model)
        if asked is None or brief.prefix is None:
            return None
        try:
            reply = await self._call(
                asked, 2 * brief.prose, model, session_id, tools=brief.prefix.tools
            )
            spent.add(reply)
            return accept(reply, asked)
        except SummaryError as error:
            if getattr(error, "kind", "provider") != "provider":
                raise  # the ordinary request would meet the same: no network, no key, no time
            logger.info("no summary on the live prefix, asked without it: %s", error)
            return None

    def _prefix_request(self, brief: Brief, model: str | None) -> list[Message] | None:
        """The request on the live prefix, where it can serve: by the agent's own model."""
        mine = model or getattr(self._summarizer, "model", None)
        can = getattr(self._summarizer, "summarize_on_prefix", None) is not None
        if brief.prefix is None or not can or not is_same_model(mine, self._config.model):
            return None
        asked = prefix_request(
            brief.prefix, target_tokens=brief.prose, extra=self._config.summary_instructions
        )
        size = self._tokens.messages(asked) + self._tokens.tools(brief.prefix.tools)
        fits = self._window is None or size + 2 * brief.prose <= self._window * WINDOW_MARGIN
        return asked if fits else None

    def _in_parts(
        self, brief: Brief
    ) -> tuple[Callable[..., list[Message]], list[list[tuple[str, int]]]]:
        """What makes a request, and the texts for each, as many as the model's window asks."""
        groups = [[(text, 1) for text in group] for group in _by_step(brief.shown)]
        make, space = self._request(brief, brief.folded or brief.earlier)
        if space is not None and space < self._least_space():
            # Earlier summaries that leave no room: replaced ones are read like messages, in parts
            # of their own; the others stay in the view and need not be shown.
            groups = [*([(text, 0)] for text in brief.folded), *groups]
            make, space = self._request(brief, ())
        return make, self._pack(groups, space)

    def _chat(
        self, make: Callable[..., list[Message]], part: Sequence[tuple[str, int]], prose: int
    ) -> list[Message]:
        texts = [text for text, _ in part]
        return make(texts, target_tokens=prose, extra=self._config.summary_instructions)

    def _request(
        self, brief: Brief, earlier: Sequence[str]
    ) -> tuple[Callable[..., list[Message]], int | None]:
        """What makes a request, and the tokens of transcript that one can carry; None: any."""
        make = functools.partial(request, earlier=earlier, rolled=bool(earlier and brief.folded))
        window = self._window
        if window is None:
            return make, None
        empty = self._tokens.messages(self._chat(make, [("", 0)], brief.prose))
        least = 200 if not earlier else 0
        return make, max(least, int(window * WINDOW_MARGIN) - empty - 2 * brief.prose)

    def _least_space(self) -> int:
        return int((self._window or 0) * LEAST_SPACE)

    @property
    def _window(self) -> int | None:
        return getattr(self._summarizer, "window", None)

    def _pack(
        self, groups: Sequence[list[tuple[str, int]]], space: int | None
    ) -> list[list[tuple[str, int]]]:
        """Pieces of text packed into requests, in order; a step is split only where it must be.

        Each piece carries how many messages end in it, so that the parts prove their coverage.
        """
        if space is None:
            return [[piece for group in groups for piece in group]]
        parts: list[list[tuple[str, int]]] = [[]]
        used = 0
        for group in groups:
            pieces = [part for piece in group for part in self._split(piece, space)]
            sizes = [self._tokens.text(text) + 2 for text, _ in pieces]
            if used and used + sum(sizes) > space:
                parts.append([])
                used = 0
            for piece, size in zip(pieces, sizes, strict=True):
                if used and used + size > space:
                    parts.append([])
                    used = 0
                parts[-1].append(piece)
                used += size
        return parts

    def _split(self, piece: tuple[str, int], space: int) -> list[tuple[str, int]]:
        """A message larger than a window, in consecutive pieces."""
        text, weight = piece
        size = self._tokens.text(text)
        if size <= space:
            return [piece]
        early, middle = len(text) // 4, len(text) // 2
        cut = text.rfind("\n", early, middle) + 1 or text.rfind(" ", early, middle) + 1 or middle
        return [*self._split((text[:cut], 0), space), *self._split((text[cut:], weight), space)]

    async def _merge(
        self, texts: list[str], brief: Brief, ask: Callable[[list[Message]], Awaitable[str]]
    ) -> str:
        """One summary out of consecutive partial ones, in rounds if they are many."""
        extra = self._config.summary_instructions
        make = functools.partial(merge_request, target_tokens=brief.prose, extra=extra)
        window = self._window
        while len(texts) > 1:
            taken = len(texts)
            if window is not None:
                space = int(window * WINDOW_MARGIN) - 2 * brief.prose
                while taken > 2 and self._tokens.messages(make(texts[:taken])) > space:
                    taken -= 1
            texts = [await ask(make(texts[:taken])), *texts[taken:]]
        return texts[0]

    async def _ask(
        self,
        messages: list[Message],
        *,
        brief: Brief,
        model: str | None,
        spent: _Spent,
        session_id: str,
    ) -> str:
        """One accepted text.

        Raises:
            SummaryError: the last reason, after the tries that this kind of failure deserves.
        """
        rejected = failed = 0
        while True:
            try:
                reply = await self._call(messages, 2 * brief.prose, model, session_id)
                spent.add(reply)
                return accept(reply, messages)
            except SummaryRejected:
                rejected += 1
                if rejected >= REJECTED_TRIES:
                    raise
            except SummarizerUnavailable as error:
                failed += 1
                if error.kind not in _PASSING or failed > self._config.summary_max_retries:
                    raise
                wait = error.retry_after if error.retry_after is not None else 0.5 * 2**failed
                if wait > self._config.timeout_seconds:
                    raise
                await asyncio.sleep(wait)

    async def _call(
        self,
        messages: list[Message],
        cap: int,
        model: str | None,
        session_id: str,
        tools: Sequence[Mapping[str, Any]] | None = None,
    ) -> SummaryReply:
        """One answer, and an event that tells what it took; with `tools` on the live prefix."""
        assert self._summarizer is not None
        prepare = getattr(self._summarizer, "prepare", None)
        if prepare is not None:
            await prepare()
        began = time.monotonic()
        told = {"model": model or getattr(self._summarizer, "model", None)}
        try:
            reply = await self._answer(self._summarizer, messages, cap, model, tools)
        except SummaryError as error:
            told["error"] = getattr(error, "kind", type(error).__name__)
            self._emit(Event("model_called", session_id, {**told, **_took(began)}))
            raise
        numbers = asdict(reply.usage)
        told["model"] = reply.model or told["model"]
        self._emit(Event("model_called", session_id, {**told, **numbers, **_took(began)}))
        return reply

    async def _answer(
        self,
        summarizer: Any,
        messages: list[Message],
        cap: int,
        model: str | None,
        tools: Sequence[Mapping[str, Any]] | None,
    ) -> SummaryReply:
        seconds = self._config.timeout_seconds
        ask: Callable[..., Awaitable[SummaryReply]] = summarizer.summarize
        if tools is not None:
            ask = functools.partial(summarizer.summarize_on_prefix, tools=tools)
        try:
            answer = ask(messages, max_tokens=cap, model=model, timeout_seconds=seconds)
            reply = await within(answer, seconds)
        except SummaryError:
            raise
        except (asyncio.TimeoutError, TimeoutError) as error:
            raise SummarizerUnavailable(f"no answer in {seconds:g} s", kind="timeout") from error
        except Exception as error:
            raise SummarizerUnavailable(f"{type(error).__name__}: {error}") from error
        if not isinstance(reply, SummaryReply):
            raise SummarizerUnavailable(f"it gave {type(reply).__name__}, not a SummaryReply")
        return reply


def _took(began: float) -> dict[str, float]:
    return {"seconds": time.monotonic() - began}


_PASSING = frozenset({"network", "provider", "quota"})
"""Kinds of failure that another try may mend; a timeout has already cost its whole time."""


def _unreserved(text: str) -> str:
    """The model's text without headings that are the extractor's: it cannot speak for the user."""
    return _RESERVED.sub(lambda found: f"The summarizer writes: {found[1]}", text)


_RESERVED = re.compile(
    rf"^[^\w\n]{{0,20}}(the user said\b|{re.escape(ADDED[:30])})",
    re.IGNORECASE | re.MULTILINE,
)


def _is_unrelated(text: str, brief: Brief, facts: Facts) -> bool:
    """Whether the text names things, and nothing that stands in what it should summarize.

    Prose without names may be an honest short summary: only names of its own convict a text.
    """
    if len(facts.identifiers) < MANY_IDENTIFIERS:
        return False
    named = {key.casefold() for key, *_ in Classifier().keys(text)}
    if len(named) < OWN_IDENTIFIERS:
        return False
    shown = map(_said, brief.messages)  # one by one: most often the first ones tell
    known = chain(brief.folded, brief.earlier, [brief.visible], shown)
    return not any(name in text for text in map(str.casefold, known) for name in named)


def _said(message: Message) -> str:
    calls = [part for call in tool_calls_of(message) for part in (call.name, call.arguments)]
    return "\n".join([text_of(message), *calls])


def _audited(written: Written, facts: Facts) -> Written:
    return replace(written, after=coverage(facts, unframe(written.message)), facts=facts)


class _Spent:
    """What the calls for one summary cost so far, rejected texts included."""

    def __init__(self) -> None:
        self.usage = Usage()
        self.model: str | None = None
        self.parts: list[int] = []

    def add(self, reply: SummaryReply) -> None:
        self.usage = self.usage + reply.usage
        self.model = reply.model or self.model


async def _all_or_none(asked: Iterable[Coroutine[Any, Any, str]]) -> list[str]:
    """All answers; when one fails the others are cancelled: nobody would read what they cost."""
    tasks = [asyncio.ensure_future(one) for one in asked]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()


def _by_step(messages: Sequence[Message]) -> list[list[str]]:
    texts = rendering(messages)
    return [[texts[index] for index in step] for step in steps(messages)]
