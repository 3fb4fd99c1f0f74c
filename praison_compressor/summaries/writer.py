"""Ask models in turn for a summary; else quote alone."""

from __future__ import annotations

import asyncio
import logging
import math
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from ..concurrency import renew_after_fork
from ..config import CompressorConfig
from ..errors import SummaryError, SummaryRejected
from ..events import Event
from ..ledger.segments import TextMethod, Usage
from ..messages.secrets import Redactor, wants_redaction
from ..tokens.counter import TokenCounter
from ..tokens.learned import LearnedWindows
from ..view.masks import MASK, mask_by_policy
from .composition import Composition, mark_headings
from .litellm_client import REFUSED, LiteLLMSummarizer
from .model_calls import MOST_CALLS, ModelCaller, NoUsableAnswer, Tally
from .prompts import LEAST_PROSE_WORDS, tokens_of_words
from .protocol import Brief, SegmentText, Summarizer
from .segment_parts import Drafter

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
        self._learned_windows = LearnedWindows()
        self._on_disk = on_disk

    def end_cooldowns(self, session_id: str) -> None:
        """End the session's cooldowns, so that its models are asked again."""
        self.breaker.end_cooldowns(session_id)

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
            windows = self._learned_windows
            caller = ModelCaller(self.config, summarizer, self.emit, session_id, windows)
            written, usage = await self._ask_models(brief, caller, model)
        if written is None:
            written = await asyncio.to_thread(self._compose(brief, "static").without_model)
        return replace(written, usage=usage)

    def write_static(self, brief: Brief) -> SegmentText:
        """Return the summary without a model: carried prose and quotes."""
        return self._compose(self._redact(brief, None)[0], "static").without_model()

    def _compose(self, brief: Brief, method: TextMethod) -> Composition:
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
        model_messages, _ = redact(brief.model_messages)
        redacted = replace(brief, messages=messages, folded=folded, earlier=earlier)
        return replace(redacted, model_messages=model_messages), secrets

    # -------------------------------------------------------------- with a model

    def _choose_summarizer(self, model: str | None) -> Summarizer | None:
        """Return the application's summarizer, else litellm's; None without a model."""
        config = self.config
        name = model or config.auxiliary_model
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
        brief = await asyncio.to_thread(self._mask_by_policy, brief)
        brief = replace(brief, prose_tokens=min(brief.prose_tokens, tokens_of_words(words)))
        tally = Tally()
        for name in (model or self.config.auxiliary_model, *self.config.fallback_models):
            if tally.calls >= MOST_CALLS:
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
        """Return one model's summary or None, and the new tally."""
        calls = tally.calls
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
        # If earlier models left too few calls, this model did not fail.
        if not calls or tally.calls > calls:
            self._report_failure(caller, error, size)
        return None, tally

    def _report_failure(self, caller: ModelCaller, error: SummaryError, size: int) -> None:
        kind = getattr(error, "kind", "rejected")
        pause = self.breaker.record_failure(caller.session_id, caller.model, size, kind)
        name = caller.model or "the auxiliary model"
        unless = "" if kind in LASTING_KINDS else f" unless the segment grows {RETRY_GROWTH:g}-fold"
        logger.warning("no summary from %s, not retried for %g s%s: %s", name, pause, unless, error)
        data = {"model": caller.model, "reason": str(error)}
        self.emit(Event("fell_back", caller.session_id, data))

    def _mask_by_policy(self, brief: Brief) -> Brief:
        if MASK not in self.config.tool_policies.values():
            return brief
        # Secrets were masked before, because a mask may cut a secret and show half.
        tokens = list(map(self.tokens.message, brief.model_messages))
        masked = mask_by_policy(brief.model_messages, tokens, self.config)
        return replace(brief, model_messages=masked)


# -------------------------------------------------------------- failing models

COOLDOWNS = (60.0, 300.0, 900.0)
"""Seconds after the first, second and every further failure in a row."""

FIRST_COOLDOWN = {"quota": 1, "auth": 2}
"""Kind of failure → its first index in COOLDOWNS; other kinds begin at 0."""

LASTING_KINDS = {"auth", REFUSED}
"""Kinds that end only with time; a longer segment does not retry the model earlier."""

RETRY_GROWTH = 1.5  # a segment longer by this factor is worth a try after other kinds

MAX_FAILURES = 1_024
"""Failures held; the oldest are forgotten, so that a long-lived process does not grow."""


class _Cooldown(NamedTuple):
    until: float
    """The clock's seconds at which the model may be asked again."""
    retry_tokens: float
    """A segment of this size is tried before that time."""
    step: int
    """Index in COOLDOWNS."""


class CircuitBreaker:
    """Pause a model that fails in a session; thread-safe. `clock` returns seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = renew_after_fork(threading.Lock())
        self._cooldowns: dict[tuple[str, str | None], _Cooldown] = {}

    def allows(self, session_id: str, model: str | None, tokens: int) -> bool:
        """Return whether the model may be asked for a segment of `tokens`."""
        cooldown = self._cooldowns.get((session_id, model))
        if cooldown is None:
            return True
        return self._clock() >= cooldown.until or tokens >= cooldown.retry_tokens

    def record_failure(self, session_id: str, model: str | None, tokens: int, kind: str) -> float:
        """Record a failure; return the seconds for which the model rests."""
        key, now = (session_id, model), self._clock()
        with self._lock:
            previous = self._cooldowns.pop(key, None)
            step = max(0 if previous is None else previous.step + 1, FIRST_COOLDOWN.get(kind, 0))
            step = min(step, len(COOLDOWNS) - 1)
            retry_tokens = math.inf if kind in LASTING_KINDS else RETRY_GROWTH * tokens
            self._cooldowns[key] = _Cooldown(now + COOLDOWNS[step], retry_tokens, step)
            while len(self._cooldowns) > MAX_FAILURES:
                del self._cooldowns[next(iter(self._cooldowns))]
            return COOLDOWNS[step]

    def end_cooldowns(self, session_id: str) -> None:
        """End the session's cooldowns, but keep the count of failures."""
        with self._lock:
            for key, cooldown in self._cooldowns.items():
                if key[0] == session_id:
                    self._cooldowns[key] = cooldown._replace(until=-math.inf)

    def record_success(self, session_id: str, model: str | None) -> None:
        """Forget the failures of a model that answers again."""
        with self._lock:
            self._cooldowns.pop((session_id, model), None)
