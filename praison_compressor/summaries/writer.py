"""Ask models in turn for a summary, or quote if all fail."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from ..config import CompressorConfig
from ..errors import SummaryError, SummaryRejected
from ..events import Event
from ..ledger.segments import TextMethod, Usage
from ..messages import Message
from ..messages.secrets import Redactor, wants_redaction
from ..quotes import Quotes, read_quotes
from ..quotes.rendering import HEADING, TITLES
from ..tokens.counter import TokenCounter
from ..tokens.learned import SummarizerWindows
from ..view.frame import IN_REACH, QUOTES_OPEN, SHORT_IN_REACH, frame_summary
from ..view.masks import MASK, mask_by_policy
from .breaker import LASTING_KINDS, RETRY_GROWTH_FACTOR, CircuitBreaker
from .litellm_client import LiteLLMSummarizer
from .model_calls import MOST_REQUESTS, ModelCaller, NoUsableAnswer, Tally
from .prompts import LEAST_PROSE_WORDS, tokens_of_words
from .protocol import Brief, SegmentText, Summarizer
from .segment_parts import Drafter

logger = logging.getLogger(__name__)


class SummaryWriter:
    """Write the summaries that briefs ask for.

    `summarizer`: None for the configured auxiliary model. `on_disk`: the store writes to a disk, so
    secrets are redacted.
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
        self._summarizer_windows = SummarizerWindows()
        self._on_disk = on_disk

    async def write(self, brief: Brief, *, model: str | None, session_id: str) -> SegmentText:
        """Return a summary within `brief.text_tokens` tokens; static if all models fail.

        Args:
            model: the model to ask in place of the configured auxiliary model.
        """
        brief, secrets = await asyncio.to_thread(self._redact, brief, model)
        if secrets:
            self.emit(Event("redacted", session_id, {"secrets": secrets}))
        summarizer = self._choose_summarizer(model)
        written, usage = None, Usage()
        if summarizer is not None and brief.prose_tokens:
            windows = self._summarizer_windows
            caller = ModelCaller(self.config, summarizer, self.emit, session_id, windows)
            written, usage = await self._ask_models(brief, caller, model)
        if written is None:
            written = await asyncio.to_thread(self._compose(brief, "static").without_model)
        return replace(written, usage=usage)

    def write_static(self, brief: Brief) -> SegmentText:
        """Return the summary without a model."""
        return self._compose(self._redact(brief, None)[0], "static").without_model()

    def _compose(self, brief: Brief, method: TextMethod) -> Composition:
        return Composition(brief, method, self.tokens, self.config.rule_sources)

    # -------------------------------------------------------------- secrets

    def _redact(self, brief: Brief, model: str | None) -> tuple[Brief, int]:
        if not wants_redaction(self.config, model, on_disk=self._on_disk):
            return brief, 0
        redact = Redactor(self.config.namespace).redact
        messages, secrets = redact(brief.messages)
        # Summaries are redacted too: another model's summary may have secrets.
        folded, in_folded = redact(brief.folded)
        earlier, in_earlier = redact(brief.earlier)
        secrets += in_folded + in_earlier
        if not secrets:
            return brief, 0
        model_messages, _ = redact(brief.model_messages)
        redacted = replace(brief, messages=messages, folded=folded, earlier=earlier)
        return replace(redacted, model_messages=model_messages), secrets

    # -------------------------------------------------------------- with a model

    def _choose_summarizer(self, model: str | None) -> Summarizer | None:
        config = self.config
        name = model or config.auxiliary_model
        if self.summarizer is not None or not name:
            return self.summarizer
        base, key = config.auxiliary_api_base, config.auxiliary_api_key
        return LiteLLMSummarizer(name, api_base=base, api_key=key)

    async def _ask_models(
        self, brief: Brief, caller: ModelCaller, model: str | None
    ) -> tuple[SegmentText | None, Usage]:
        """Return the first usable summary or None, and the cost."""
        size, words = await asyncio.to_thread(self._compose(brief, "model").measure)
        if words < LEAST_PROSE_WORDS:
            return None, Usage()
        brief = await asyncio.to_thread(self._mask_by_policy, brief)
        brief = replace(brief, prose_tokens=min(brief.prose_tokens, tokens_of_words(words)))
        tally = Tally()
        for name in (model or self.config.auxiliary_model, *self.config.fallback_models):
            if tally.calls >= MOST_REQUESTS:
                break
            if not self.breaker.allows(caller.session_id, name, size):
                data = {"model": name, "reason": "cooldown"}
                self.emit(Event("skipped", caller.session_id, data))
                continue
            unnamed = replace(tally, model=None)
            written, tally = await self._try_model(
                brief, replace(caller, model=name), size, unnamed
            )
            if written is not None:
                return written, tally.usage
        return None, tally.usage

    async def _try_model(
        self, brief: Brief, caller: ModelCaller, size: int, tally: Tally
    ) -> tuple[SegmentText | None, Tally]:
        """Return the model's summary or None, and the new tally."""
        calls_before = tally.calls
        try:
            prose, tally = await Drafter(caller, self.tokens).draft(brief, tally)
            compose = self._compose(brief, "model").with_prose
            written = await asyncio.to_thread(compose, mark_headings(prose), size)
        except NoUsableAnswer as failure:
            error, tally = failure.error, failure.tally
        except SummaryRejected as rejection:
            error = rejection
        else:
            self.breaker.record_success(caller.session_id, caller.model)
            return replace(written, model=tally.model), tally
        # A model that was asked has failed. So has a model that was not asked although no call was
        # spent: its window is too small. After other models' calls, too few calls may be left to
        # ask this model: that is not its failure.
        was_asked = tally.calls > calls_before
        if was_asked or not calls_before:
            self._report_failure(caller, error, size)
        return None, tally

    def _report_failure(self, caller: ModelCaller, error: SummaryError, size: int) -> None:
        pause = self.breaker.record_failure(caller.session_id, caller.model, size, error.kind)
        name = caller.model or "the auxiliary model"
        grows = f" unless the segment grows {RETRY_GROWTH_FACTOR:g}-fold"
        unless = "" if error.kind in LASTING_KINDS else grows
        logger.warning("no summary from %s, not retried for %g s%s: %s", name, pause, unless, error)
        data = {"model": caller.model, "reason": str(error)}
        self.emit(Event("fell_back", caller.session_id, data))

    def _mask_by_policy(self, brief: Brief) -> Brief:
        if MASK not in self.config.tool_policies.values():
            return brief
        # Secrets are already redacted: half a secret in a mask would not be recognized.
        tokens = list(map(self.tokens.message, brief.model_messages))
        masked = mask_by_policy(brief.model_messages, tokens, self.config)
        return replace(brief, model_messages=masked)


# -------------------------------------------------------------- prose and quotes, or quotes alone

WORD_TOKENS = 3
"""Upper bound of a word's tokens, which are 1.8 to 2.8 in recorded summaries."""
CARRIED_SHARE = 0.4
"""Folded prose gets at least this share of a static text."""
SHORT_SUMMARY_TOKENS = 350
"""A shorter summary has `SHORT_IN_REACH`: `IN_REACH` would take over a tenth of it."""
SEAM_TOKENS = 4
"""Tokens between joined texts."""


@dataclass(frozen=True)
class Composition:
    """Fit a brief's prose and quotes into its tokens."""

    brief: Brief
    method: TextMethod
    tokens: TokenCounter
    rule_sources: tuple[str, ...] = ()

    def measure(self) -> tuple[int, int]:
        """Return the segment's tokens, and how many words of prose fit."""
        size = sum(self.tokens.each(self.tokens.cache.all(self.brief.messages)))
        inside = min(self.brief.text_tokens, size) - self._size("")
        return size, (inside - SEAM_TOKENS) // WORD_TOKENS

    def with_prose(self, prose: str, segment_tokens: int) -> SegmentText:
        """Return the model's prose, with quotes in the tokens that it leaves.

        Raises:
            SummaryRejected: the prose alone is too long.
        """
        brief, size = self.brief, self._size(prose)
        most = min(brief.text_tokens + brief.spare_tokens, segment_tokens)
        if size > most:
            raise SummaryRejected("not smaller", f"{size} tokens, at most {most} fit")
        most = min(brief.text_tokens, size + brief.quote_tokens)
        if most - size <= SEAM_TOKENS:
            return SegmentText(self._frame(prose), self.method)
        quotes = read_quotes(brief.messages, self.rule_sources)
        return SegmentText(self._add_quotes(prose, quotes, most), self.method)

    def without_model(self) -> SegmentText:
        """Return the folded prose and quotes."""
        quotes, prose = read_quotes(self.brief.messages, self.rule_sources), ""
        if self.brief.folded:
            # The prose gets the tokens that the quotes leave.
            inside = self.brief.text_tokens - self._size("")
            needed = self.tokens.text(self._quote(quotes, "", inside))
            most = max(int(inside * CARRIED_SHARE), inside - needed - 2 * SEAM_TOKENS)
            prose = self._carry_prose(most)
        message = self._add_quotes(prose, quotes, self.brief.text_tokens)
        return SegmentText(message, self.method)

    def _carry_prose(self, most_tokens: int) -> str:
        texts = self.brief.folded
        whole = "\n\n".join(texts)
        if self.tokens.text(whole) <= most_tokens:
            return whole
        share = most_tokens // len(texts)
        shortened = [cut_text(text, share, self.tokens.text) for text in texts]
        return "\n\n".join(filter(None, shortened))

    def _add_quotes(self, prose: str, quotes: Quotes, most_tokens: int) -> Message:
        budget = most_tokens - self._size(self._join(prose, "-"))
        while budget > 0 and (text := self._quote(quotes, prose, budget)):
            message = self._frame(self._join(prose, text))
            # Joined texts may have more tokens than their sum.
            excess = self.tokens.message(message) - most_tokens
            if excess <= 0:
                return message
            budget -= excess
        return self._frame(self._join(prose, ""))

    def _quote(self, quotes: Quotes, prose: str, budget: int) -> str:
        brief, is_static = self.brief, self.method == "static"
        text = quotes.render(
            budget,
            self.tokens.text,
            references=brief.references,
            visible=f"{brief.visible}\n{prose}",
            beside_prose=not is_static,
        )
        # A text without a heading has no quotes: it only counts what is left out. Beside prose
        # it is dropped.
        return text if is_static or HEADING in text else ""

    def _join(self, prose: str, quotes: str) -> str:
        if not prose or (self.method == "model" and not quotes):
            return prose or quotes
        return f"{prose}\n\n{QUOTES_OPEN}\n{quotes}"

    def _frame(self, text: str) -> Message:
        in_reach = SHORT_IN_REACH if self.brief.text_tokens < SHORT_SUMMARY_TOKENS else IN_REACH
        content = frame_summary(
            text,
            count=len(self.brief.messages),
            method=self.method,
            reference=self.brief.reference,
            in_reach=in_reach if self.brief.references else "",
        )
        return {"role": "user", "content": content}

    def _size(self, text: str) -> int:
        return self.tokens.message(self._frame(text))


def mark_headings(prose: str) -> str:
    """Return the prose with imitated headings of quotes marked.

    >>> mark_headings("## The user said")
    'The summarizer writes: The user said'
    """
    return _IMITATED_HEADING.sub("The summarizer writes: ", prose)


_IMITATED_HEADING = re.compile(
    rf"^[^\w\n]{{0,20}}(?={'|'.join(re.escape(t) for t in (QUOTES_OPEN[:-1], *TITLES))})",
    re.IGNORECASE | re.MULTILINE,
)


def cut_text(text: str, most_tokens: int, count: Callable[[str], int]) -> str:
    """Return a text's beginning in at most `most_tokens`, whole lines if possible."""
    size = count(text)
    while size > most_tokens and text:
        keep = max(0, int(len(text) * most_tokens / size) - 8)
        cut = text.rfind("\n", 0, keep)
        text = text[: cut if cut > 0 else keep].rstrip()
        size = count(text)
    return text
