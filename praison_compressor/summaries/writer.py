"""Write a segment's summary: prose with quotes, or quotes alone."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from ..config import CompressorConfig
from ..errors import SummaryError, SummaryRejected
from ..events import Event
from ..ledger.segments import Usage
from ..messages import Message
from ..messages.secrets import Redactor, wants_redaction
from ..quotes import Quotes, read_quotes
from ..quotes.rendering import HEADING, TITLES
from ..recall.outlines import outline_rows
from ..tokens.counter import TokenCounter
from ..view.frame import QUOTED, frame_summary
from ..view.masks import MASK, mask_by_policy
from .litellm_client import LiteLLMSummarizer
from .model_calls import (
    LASTING_KINDS,
    MOST_CALLS,
    RETRY_GROWTH,
    CircuitBreaker,
    ModelCaller,
    NoUsableAnswer,
    Tally,
)
from .prompts import LEAST_PROSE_WORDS, tokens_of_words
from .protocol import Brief, SegmentText, Summarizer
from .splitting import Drafter

logger = logging.getLogger(__name__)

WORD_TOKENS = 3  # tokens of a word in prose with ids and numbers; 1.8 to 2.8 in recorded summaries
CARRIED_SHARE = 0.4  # share of a static text's room for carried prose, if the quotes need the rest


class SummaryWriter:
    """Write the summaries that briefs ask for. Only this class spends money.

    `summarizer` None means the configured auxiliary model. `on_disk` masks secrets, since the store
    writes to a disk.
    """

    def __init__(
        self,
        config: CompressorConfig,
        summarizer: Summarizer | None,
        tokens: TokenCounter,
        emit: Callable[[Event], None],
        *,
        on_disk: bool = False,
    ) -> None:
        self.config = config
        self.summarizer = summarizer
        self.tokens = tokens
        self.emit = emit
        self.breaker = CircuitBreaker()
        self._windows: dict[str | None, int] = {}
        """Model -> the window that its refusals teach."""
        self._on_disk = on_disk

    async def write(self, brief: Brief, *, model: str | None, session_id: str) -> SegmentText:
        """Return a summary within `brief.room_tokens` tokens; static if all models fail.

        Args:
            model: asked in place of the configured auxiliary model.
        """
        brief, secrets = await asyncio.to_thread(self._redact, brief, model)
        if secrets:
            self.emit(Event("redacted", session_id, {"secrets": secrets}))
        summarizer = self._choose_summarizer(model)
        written, usage = None, Usage()
        if summarizer is not None and brief.prose_tokens:
            caller = ModelCaller(self.config, summarizer, self.emit, session_id)
            written, usage = await self._ask_models(brief, caller, model)
        if written is None:
            written = await asyncio.to_thread(self._static, brief)
        return replace(written, usage=usage)

    def static(self, brief: Brief) -> SegmentText:
        """Return the summary without a model: carried prose and quotes."""
        return self._static(self._redact(brief, None)[0])

    # -------------------------------------------------------------- secrets

    def _redact(self, brief: Brief, model: str | None) -> tuple[Brief, int]:
        """Return the brief with secrets masked, and their number."""
        if not wants_redaction(self.config, model, on_disk=self._on_disk):
            return brief, 0
        redactor = Redactor(self.config.namespace)
        messages, found = redactor.redact(brief.messages)
        # Earlier summaries may have been written from messages with secrets, by another model.
        folded, in_folded = redactor.redact(brief.folded)
        earlier, in_earlier = redactor.redact(brief.earlier)
        secrets = found + in_folded + in_earlier
        if not secrets:
            return brief, 0
        shown, _ = redactor.redact(brief.shown)
        safe = replace(brief, messages=messages, shown=shown, folded=folded, earlier=earlier)
        return safe, secrets

    # -------------------------------------------------------------- with a model

    def _choose_summarizer(self, model: str | None) -> Summarizer | None:
        """Return the application's summarizer, else litellm's; None without a model."""
        config = self.config
        name = config.auxiliary_model or model
        if self.summarizer is not None or not name:
            return self.summarizer
        base, key = config.auxiliary_api_base, config.auxiliary_api_key
        return LiteLLMSummarizer(name, api_base=base, api_key=key)

    async def _ask_models(
        self, brief: Brief, caller: ModelCaller, model: str | None
    ) -> tuple[SegmentText | None, Usage]:
        """Return the first usable summary of the models in turn, or None, and all models' cost."""
        size, words = await asyncio.to_thread(self._measure, brief)
        if words < LEAST_PROSE_WORDS:
            return None, Usage()
        brief = replace(brief, prose_tokens=min(brief.prose_tokens, tokens_of_words(words)))
        spent = Tally()
        for name in (model or self.config.auxiliary_model, *self.config.fallback_models):
            if spent.calls >= MOST_CALLS:
                break
            if not self.breaker.allows(caller.session_id, name, size):
                data = {"model": name, "reason": "cooldown"}
                self.emit(Event("skipped", caller.session_id, data))
                continue
            before = Tally(spent.calls, spent.usage)  # without another model's name and window
            written, spent = await self._try_model(brief, replace(caller, model=name), size, before)
            if written is not None:
                return written, spent.usage
        return None, spent.usage

    async def _try_model(
        self, brief: Brief, caller: ModelCaller, size: int, before: Tally
    ) -> tuple[SegmentText | None, Tally]:
        """Return one model's summary or None, and the new tally; record success or failure."""
        name = caller.model_name
        caller = replace(caller, learned_window=self._windows.get(name))
        try:
            written, spent = await self._ask_model(brief, caller, size, before)
        except NoUsableAnswer as failure:
            written, spent = None, failure.spent
            # Too few calls were left by earlier models: that is no failure of this one.
            if not before.calls or spent.calls > before.calls:
                self._report_failure(caller, failure.error, size)
        else:
            self.breaker.record_success(caller.session_id, caller.model)
        if spent.window is not None:
            # Another summary of this model may have learned a smaller one meanwhile.
            self._windows[name] = min(spent.window, self._windows.get(name, spent.window))
        return written, spent

    def _measure(self, brief: Brief) -> tuple[int, int]:
        """Return the segment's tokens, and the number of words that surely fit."""
        size = sum(self.tokens.each(self.tokens.cache.all(brief.messages)))
        room = min(brief.room_tokens, size) - self.tokens.message(self._frame(brief, "", "model"))
        return size, (room - SEAM_TOKENS) // WORD_TOKENS

    def _report_failure(self, caller: ModelCaller, error: SummaryError, size: int) -> None:
        kind = getattr(error, "kind", "rejected")
        rest = self.breaker.record_failure(caller.session_id, caller.model, size, kind)
        who = caller.model or "the auxiliary model"
        unless = "" if kind in LASTING_KINDS else f" unless the segment grows {RETRY_GROWTH:g}-fold"
        logger.warning("no summary from %s, not retried for %g s%s: %s", who, rest, unless, error)
        data = {"model": caller.model, "reason": str(error)}
        self.emit(Event("fell_back", caller.session_id, data))

    async def _ask_model(
        self, brief: Brief, caller: ModelCaller, size: int, before: Tally
    ) -> tuple[SegmentText, Tally]:
        """Return one model's summary and the new tally.

        Raises:
            Unanswered: the model gave no usable text.
        """
        shown = await asyncio.to_thread(self._mask_by_policy, brief)
        text, spent = await Drafter(caller, self.tokens).draft(shown, before)
        try:
            written = await asyncio.to_thread(self._finish, brief, mark_headings(text), size)
        except SummaryRejected as error:
            raise NoUsableAnswer(error, spent) from error
        return replace(written, model=spent.model), spent

    def _mask_by_policy(self, brief: Brief) -> Brief:
        """Return the brief with outputs masked by tool policies."""
        if MASK not in self.config.tool_policies.values():
            return brief
        # Secrets were masked before: a line may cut a secret and show half of it.
        tokens = list(map(self.tokens.message, brief.shown))
        return replace(brief, shown=mask_by_policy(brief.shown, tokens, self.config))

    def _finish(self, brief: Brief, prose: str, size: int) -> SegmentText:
        """Return the model's prose, with quotes in the room left.

        Raises:
            SummaryRejected: the prose alone exceeds room and spare, or the segment.
        """
        message = self._frame(brief, prose, "model")
        tokens, most = (
            self.tokens.message(message),
            min(brief.room_tokens + brief.spare_tokens, size),
        )
        if tokens > most:
            raise SummaryRejected("not smaller", f"{tokens} tokens, at most {most} fit")
        room = min(brief.room_tokens, tokens + brief.quotes_tokens)
        if room - tokens > SEAM_TOKENS:
            quotes = read_quotes(brief.messages, self.config.rule_sources)
            message = self._add_quotes(brief, quotes, prose, "model", room)
        return SegmentText(message, "model")

    # -------------------------------------------------------------- without a model

    def _static(self, brief: Brief) -> SegmentText:
        quotes = read_quotes(brief.messages, self.config.rule_sources)
        room = brief.room_tokens - self.tokens.message(self._frame(brief, "", "static"))
        prose = ""
        if brief.folded:
            # Few quotes leave more room for carried prose.
            needed = self.tokens.text(self._quote(brief, quotes, "", "static", room))
            most = max(int(room * CARRIED_SHARE), room - needed - 2 * SEAM_TOKENS)
            prose = self._carry_prose(brief.folded, most)
        message = self._add_quotes(brief, quotes, prose, "static", brief.room_tokens)
        return SegmentText(message, "static")

    def _carry_prose(self, texts: Sequence[str], room: int) -> str:
        """Return earlier prose, each text cut to an equal share."""
        whole = "\n\n".join(texts)
        if self.tokens.text(whole) <= room:
            return whole
        cut = [cut_text(text, room // len(texts), self.tokens.text) for text in texts]
        return "\n\n".join(filter(None, cut))

    # -------------------------------------------------------------- both

    def _add_quotes(
        self, brief: Brief, quotes: Quotes, prose: str, method: str, room: int
    ) -> Message:
        """Return the framed prose with the quotes that fit the room."""
        base = self._frame(brief, _join_prose(prose, "-", method), method)
        budget = room - self.tokens.message(base)
        while budget > 0 and (text := self._quote(brief, quotes, prose, method, budget)):
            message = self._frame(brief, _join_prose(prose, text, method), method)
            # The tokens of texts together differ from the sum of each.
            over = self.tokens.message(message) - room
            if over <= 0:
                return message
            budget -= over
        return self._frame(brief, _join_prose(prose, "", method), method)

    def _quote(self, brief: Brief, quotes: Quotes, prose: str, method: str, budget: int) -> str:
        is_static, lines = method == "static", list[str]()
        if is_static and brief.references:
            lines = outline_rows(brief.messages, brief.references, users=False)
        text = quotes.text(
            budget,
            self.tokens.text,
            references=brief.references,
            visible=f"{brief.visible}\n{prose}",
            beside_prose=not is_static,
            outline=lines,
        )
        # Without a heading the text only counts what is left out.
        return text if is_static or HEADING in text else ""

    def _frame(self, brief: Brief, text: str, method: str) -> Message:
        content = frame_summary(
            text,
            count=len(brief.messages),
            method=method,
            reference=brief.reference,
            recall=bool(brief.references),
        )
        return {"role": "user", "content": content}


SEAM_TOKENS = 4  # tokens by which a framed text may exceed the sum of its parts


def _join_prose(prose: str, quotes: str, method: str) -> str:
    """Return prose and quotes as one text; `prose_of` parses it."""
    if not prose or (method == "model" and not quotes):
        return prose or quotes
    return f"{prose}\n\n{QUOTED}\n{quotes}"


def mark_headings(prose: str) -> str:
    """Return the prose with each imitated heading of quotes marked.

    >>> mark_headings("## The user said")
    'The summarizer writes: The user said'
    """
    return _IMITATED_HEADING.sub("The summarizer writes: ", prose)


_IMITATED_HEADING = re.compile(
    rf"^[^\w\n]{{0,20}}(?={'|'.join(re.escape(t) for t in (QUOTED[:-1], *TITLES))})",
    re.IGNORECASE | re.MULTILINE,
)


def cut_text(text: str, room: int, count: Callable[[str], int]) -> str:
    """Return a text's first lines, or its first characters, within the room."""
    size = count(text)
    while size > room and text:
        keep = max(0, int(len(text) * room / size) - 8)
        cut = text.rfind("\n", 0, keep)
        text = text[: cut if cut > 0 else keep].rstrip()
        size = count(text)
    return text
