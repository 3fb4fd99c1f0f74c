"""Write summaries: ask one model after another, else compose quotes alone."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace

from ..config import CompressorConfig
from ..errors import SummaryError, SummaryRejected
from ..events import Event
from ..ledger.segments import Usage
from ..messages.secrets import Redactor, wants_redaction
from ..tokens.counter import TokenCounter
from ..view.masks import MASK, mask_by_policy
from .composition import Composition, mark_headings
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


class SummaryWriter:
    """Write the summaries that briefs ask for. Only this class spends money.

    `summarizer` None means the configured auxiliary model. `on_disk` masks secrets, because the
    store writes to a disk.
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
            written = await asyncio.to_thread(self._compose(brief, "static").without_model)
        return replace(written, usage=usage)

    def static(self, brief: Brief) -> SegmentText:
        """Return the summary without a model: carried prose and quotes."""
        return self._compose(self._redact(brief, None)[0], "static").without_model()

    def _compose(self, brief: Brief, method: str) -> Composition:
        return Composition(brief, method, self.tokens, self.config.rule_sources)

    # -------------------------------------------------------------- secrets

    def _redact(self, brief: Brief, model: str | None) -> tuple[Brief, int]:
        """Return the brief with secrets masked, and their number."""
        if not wants_redaction(self.config, model, on_disk=self._on_disk):
            return brief, 0
        redact = Redactor(self.config.namespace).redact
        messages, secrets = redact(brief.messages)
        # Earlier summaries may have been written from messages with secrets, by another model.
        folded, in_folded = redact(brief.folded)
        earlier, in_earlier = redact(brief.earlier)
        secrets += in_folded + in_earlier
        if not secrets:
            return brief, 0
        shown, _ = redact(brief.shown)
        return replace(
            brief, messages=messages, shown=shown, folded=folded, earlier=earlier
        ), secrets

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
        """Return the first usable summary or None, and all models' cost."""
        size, words = await asyncio.to_thread(self._compose(brief, "model").measure)
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
            before = Tally(spent.calls, spent.usage)  # the next model has its own name and window
            written, spent = await self._try_model(brief, replace(caller, model=name), size, before)
            if written is not None:
                return written, spent.usage
        return None, spent.usage

    async def _try_model(
        self, brief: Brief, caller: ModelCaller, size: int, before: Tally
    ) -> tuple[SegmentText | None, Tally]:
        """Return one model's summary or None, and the new tally."""
        name = caller.model_name
        caller = replace(caller, learned_window=self._windows.get(name))
        try:
            written, spent = await self._ask_model(brief, caller, size, before)
        except NoUsableAnswer as failure:
            written, spent = None, failure.spent
            # If earlier models left too few calls, this model did not fail.
            if not before.calls or spent.calls > before.calls:
                self._report_failure(caller, failure.error, size)
        else:
            self.breaker.record_success(caller.session_id, caller.model)
        if spent.window is not None:
            # Another summary of this model may have learned a smaller window meanwhile.
            self._windows[name] = min(spent.window, self._windows.get(name, spent.window))
        return written, spent

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
            NoUsableAnswer: the model gave no usable text.
        """
        shown = await asyncio.to_thread(self._mask_by_policy, brief)
        text, spent = await Drafter(caller, self.tokens).draft(shown, before)
        try:
            compose = self._compose(brief, "model").with_prose
            written = await asyncio.to_thread(compose, mark_headings(text), size)
        except SummaryRejected as error:
            raise NoUsableAnswer(error, spent) from error
        return replace(written, model=spent.model), spent

    def _mask_by_policy(self, brief: Brief) -> Brief:
        """Return the brief with outputs masked by tool policies."""
        if MASK not in self.config.tool_policies.values():
            return brief
        # Secrets were masked before, because a mask may cut a secret and show half.
        tokens = list(map(self.tokens.message, brief.shown))
        return replace(brief, shown=mask_by_policy(brief.shown, tokens, self.config))
