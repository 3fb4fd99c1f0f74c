"""Write the message that replaces a segment: prose by a model beside quotes, or quotes alone."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from ..config import CompressorConfig
from ..errors import SummaryError, SummaryRejected
from ..events import Event
from ..ledger.outlines import outline
from ..ledger.segments import Usage
from ..messages import Message
from ..messages.secrets import Redactor, wants_redaction
from ..quotes import Quotes, read_quotes
from ..quotes.rendering import HEADING, TITLES
from ..tokens.counter import TokenCounter
from ..view.frame import QUOTED, frame
from ..view.masks import MASK, masked_by_policy
from .litellm_client import LiteLLMSummarizer
from .prompts import LEAST_WORDS, tokens_for
from .protocol import Brief, Summarizer, Written
from .retries import LASTING, MOST_CALLS, Asker, AuxiliaryWindows, Breaker
from .splitting import Drafter

logger = logging.getLogger(__name__)

WORD_TOKENS = 3
"""Tokens of a word between ids and numbers: 1.8 to 2.8 in recorded summaries by strong models."""

CARRIED_SHARE = 0.4
"""Share of a static text's room that carried prose may take before the quotes."""


class SummaryWriter:
    """Carry out briefs by models in turn, or without a model.

    The only class that spends money. `summarizer` None means the configured auxiliary model.
    `on_disk`: the store masks secrets, so the text must too.
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
        self.breaker = Breaker()
        self._windows = AuxiliaryWindows()
        self._on_disk = on_disk

    async def write(
        self, brief: Brief, *, model: str | None, session_id: str, force: bool = False
    ) -> Written:
        """Return a summary of at most `brief.room` tokens.

        A model's failure gives the static text.

        Args:
            model: asked in place of the configured auxiliary model.
            force: ask models that rest after a failure, too.
        """
        brief, secrets = await asyncio.to_thread(self._redacted, brief, model)
        if secrets:
            self.emit(Event("redacted", session_id, {"secrets": secrets}))
        summarizer = self._summarizer_for(model)
        asker = Asker(self.config, summarizer, self.emit, self._windows, session_id)
        if summarizer is not None and brief.prose:
            written = await self._by_models(brief, asker, model, force)
            if written is not None:
                return written
        return await asyncio.to_thread(self._static, brief, asker.usage)

    def static(self, brief: Brief) -> Written:
        """Return the text without a model: carried prose and quotes."""
        safe, _ = self._redacted(brief, None)
        return self._static(safe, Usage())

    # -------------------------------------------------------------- secrets

    def _redacted(self, brief: Brief, model: str | None) -> tuple[Brief, int]:
        """Return the brief with secrets masked, and their number."""
        if not wants_redaction(self.config, model, on_disk=self._on_disk):
            return brief, 0
        redactor = Redactor(self.config.namespace)
        messages, found = redactor.messages(brief.messages)
        # Another model may have written earlier summaries, from everything.
        folded, earlier = map(redactor.text, brief.folded), map(redactor.text, brief.earlier)
        prose = [[*folded], [*earlier]]
        found += sum(count for texts in prose for _, count in texts)
        if not found:
            return brief, 0
        shown = redactor.messages(brief.shown).messages
        safe, before = (tuple(text for text, _ in texts) for texts in prose)
        return replace(brief, messages=messages, shown=shown, folded=safe, earlier=before), found

    # -------------------------------------------------------------- with a model

    def _summarizer_for(self, model: str | None) -> Summarizer | None:
        """Return the application's summarizer, else litellm's for the model or the configured."""
        name = self.config.auxiliary_model or model
        if self.summarizer is not None or not name:
            return self.summarizer
        config = self.config
        return LiteLLMSummarizer(
            name, api_base=config.auxiliary_api_base, api_key=config.auxiliary_api_key
        )

    async def _by_models(
        self, brief: Brief, asker: Asker, model: str | None, force: bool
    ) -> Written | None:
        """Return the first usable summary of the models in turn, or None."""
        size, words = await asyncio.to_thread(self._measured, brief)
        if words < LEAST_WORDS:
            return None
        brief = replace(brief, prose=min(brief.prose, tokens_for(words)))
        for name in (model or self.config.auxiliary_model, *self.config.fallback_models):
            if not asker.calls:
                break
            if not force and not self.breaker.allows(asker.session_id, name, size):
                data = {"model": name, "reason": "cooldown"}
                self.emit(Event("skipped", asker.session_id, data))
                continue
            left, asker.model = asker.calls, name
            try:
                written = await self._by_model(brief, asker, size)
            except SummaryError as error:
                # A model that had no call left did not fail.
                if left == MOST_CALLS or asker.calls < left:
                    self._failed(asker, error, size)
                continue
            self.breaker.succeeded(asker.session_id, name)
            return written
        return None

    def _measured(self, brief: Brief) -> tuple[int, int]:
        """Return the segment's tokens, and the words that surely fit."""
        size = sum(self.tokens.each(self.tokens.cache.all(brief.messages)))
        room = min(brief.room, size) - self.tokens.message(self._framed(brief, "", "model"))
        return size, (room - SEAM_TOKENS) // WORD_TOKENS

    def _failed(self, asker: Asker, error: SummaryError, size: int) -> None:
        kind = getattr(error, "kind", "rejected")
        rest = self.breaker.failed(asker.session_id, asker.model, size, kind)
        who = asker.model or "the auxiliary model"
        unless = "" if kind in LASTING else ", or until there is half as much again to summarize"
        logger.warning("no summary from %s, not retried for %g s%s: %s", who, rest, unless, error)
        data = {"model": asker.model, "reason": str(error)}
        self.emit(Event("fell_back", asker.session_id, data))

    async def _by_model(self, brief: Brief, asker: Asker, size: int) -> Written:
        """Return the summary that one model writes.

        Raises:
            SummaryError: the model writes none that can be used.
        """
        shown = await asyncio.to_thread(self._masked, brief)
        text = await Drafter(asker, self.tokens).draft(shown)
        written = await asyncio.to_thread(self._finished, brief, own_words(text), size)
        return replace(written, model=asker.answered_by, usage=asker.usage)

    def _masked(self, brief: Brief) -> Brief:
        """Return the brief with the outputs that a policy masks as lines.

        Secrets are out by then: a mask's line might cut a secret in two and show half of it.
        """
        if MASK not in self.config.tool_policies.values():
            return brief
        tokens = list(map(self.tokens.message, brief.shown))
        return replace(brief, shown=masked_by_policy(brief.shown, tokens, self.config))

    def _finished(self, brief: Brief, prose: str, size: int) -> Written:
        """Return the model's prose with quotes beside it in the room left.

        Raises:
            SummaryRejected: the prose alone exceeds room and spare, or the segment.
        """
        alone = self._framed(brief, prose, "model")
        tokens, most = self.tokens.message(alone), min(brief.room + brief.spare, size)
        if tokens > most:
            raise SummaryRejected("not smaller", f"{tokens} tokens, there is room for {most}")
        room = min(brief.room, tokens + brief.quotes)
        message = alone
        if room - tokens > SEAM_TOKENS:
            quotes = read_quotes(brief.messages, self.config.rule_sources)
            message = self._filled(brief, quotes, prose, "model", room)
        return Written(message, "model")

    # -------------------------------------------------------------- without a model

    def _static(self, brief: Brief, usage: Usage) -> Written:
        quotes = read_quotes(brief.messages, self.config.rule_sources)
        room = brief.room - self.tokens.message(self._framed(brief, "", "static"))
        prose = ""
        if brief.folded:
            # Where there is little to quote, carried prose need not be cut.
            needed = self.tokens.text(self._quoted(brief, quotes, "", "static", room))
            prose = self._carried(
                brief.folded, max(int(room * CARRIED_SHARE), room - needed - 2 * SEAM_TOKENS)
            )
        message = self._filled(brief, quotes, prose, "static", brief.room)
        return Written(message, "static", usage=usage)

    def _carried(self, texts: Sequence[str], room: int) -> str:
        """Return earlier prose, each text cut to an equal share."""
        whole = "\n\n".join(texts)
        if self.tokens.text(whole) <= room:
            return whole
        cut = [cut_to(text, room // len(texts), self.tokens.text) for text in texts]
        return "\n\n".join(filter(None, cut))

    # -------------------------------------------------------------- both

    def _filled(self, brief: Brief, quotes: Quotes, prose: str, method: str, room: int) -> Message:
        """Return the framed text with as many quotes as the room takes."""
        base = self._framed(brief, _joined(prose, "-", method), method)
        budget = room - self.tokens.message(base)
        while budget > 0:
            text = self._quoted(brief, quotes, prose, method, budget)
            if method == "model" and HEADING not in text:
                break  # It only counts what is left out.
            message = self._framed(brief, _joined(prose, text, method), method)
            # Texts counted apart and together differ by some tokens at the seams.
            over = self.tokens.message(message) - room
            if over <= 0:
                return message
            budget -= over
        return self._framed(brief, _joined(prose, "", method), method)

    def _quoted(self, brief: Brief, quotes: Quotes, prose: str, method: str, budget: int) -> str:
        is_static = method == "static"
        return quotes.text(
            budget,
            self.tokens.text,
            references=brief.references,
            visible=f"{brief.visible}\n{prose}",
            beside_prose=not is_static,
            outline=outline(brief.messages, brief.references, users=False)
            if is_static and brief.references
            else (),
        )

    def _framed(self, brief: Brief, text: str, method: str) -> Message:
        content = frame(
            text,
            count=len(brief.messages),
            method=method,
            reference=brief.reference,
            recall=bool(brief.references),
        )
        return {"role": "user", "content": content}


SEAM_TOKENS = 4
"""Tokens by which a framed text and its parts may differ."""


def _joined(prose: str, quotes: str, method: str) -> str:
    """Return prose and quotes as one text; `prose_of` parses it."""
    if not prose or (method == "model" and not quotes):
        return prose or quotes
    return f"{prose}\n\n{QUOTED}\n{quotes}"


def own_words(prose: str) -> str:
    """Return prose in which no line poses as a heading of quotes.

    >>> own_words("## The user said")
    'The summarizer writes: The user said'
    """
    return _POSING.sub("The summarizer writes: ", prose)


_POSING = re.compile(
    rf"^[^\w\n]{{0,20}}(?={'|'.join(re.escape(t) for t in (QUOTED[:-1], *TITLES.values()))})",
    re.IGNORECASE | re.MULTILINE,
)


def cut_to(text: str, room: int, count: Callable[[str], int]) -> str:
    """Return a text's first lines, or first characters, in the room."""
    size = count(text)
    while size > room and text:
        keep = max(0, int(len(text) * room / size) - 8)
        cut = text.rfind("\n", 0, keep)
        text = text[: cut if cut > 0 else keep].rstrip()
        size = count(text)
    return text
