"""Write the one message that stands for a segment: by a model, audited and repaired, or static."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace

from ..config import CompressorConfig, Event
from ..errors import SummarizerUnavailable, SummaryError, SummaryRejected
from ..facts import Facts, coverage
from ..ledger.outlines import outline
from ..ledger.segments import Usage
from ..messages import Message
from ..messages.secrets import Redactor, wants_redaction
from ..tokens.counter import TokenCounter
from ..view.frame import frame, unframe
from ..view.masks import MASK, masked_by_policy
from .claims import unverified
from .drafting import Drafter
from .protocol import Brief, Summarizer, Written
from .retries import MOST_CALLS, Asker, Breaker, LearnedWindows, Order
from .static import FactFinder, repair, static_summary
from .validation import marked, unmarked, unreserved

__all__ = ["SummaryWriter"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class SummaryWriter:
    """Carries out a brief: asks the models in turn, or writes the static summary where none serves.

    The only class that spends money.
    """

    config: CompressorConfig
    summarizer: Summarizer | None
    tokens: TokenCounter
    emit: Callable[[Event], None]
    breaker: Breaker
    windows: LearnedWindows
    finder: FactFinder
    on_disk: bool

    async def write(
        self,
        brief: Brief,
        *,
        model: str | None,
        session_id: str,
        force: bool = False,
    ) -> Written:
        """A summary that fits the brief's room; never raises for what a model does.

        `force`: a person asks now, so that no model is left alone for having failed before.
        """
        brief, secrets = await asyncio.to_thread(self._redacted, brief, model)
        if secrets:
            self.emit(Event("redacted", session_id, {"secrets": secrets}))
        facts = await asyncio.to_thread(self._facts, brief)
        order = Order(session_id, MOST_CALLS)
        for name in await asyncio.to_thread(self._models, brief, model):
            if not order.calls:
                break  # the model before has told why
            if not force and not self.breaker.allows(session_id, name, brief.tokens):
                self.emit(Event("skipped", session_id, {"model": name, "reason": "cooldown"}))
                continue
            left, order.model = order.calls, name
            try:
                written = await self._by_model(brief, facts, order)
            except SummaryError as error:
                # Not of one that was not asked, because those before have spent its calls.
                if left == MOST_CALLS or order.calls < left:
                    self._failed(brief, order, error)
                continue
            self.breaker.succeeded(session_id, name)
            return written
        return await asyncio.to_thread(self.static, brief, facts, order.usage)

    def _models(self, brief: Brief, model: str | None) -> list[str | None]:
        """The models to ask in order; none where no text of theirs could be taken."""
        if self.summarizer is None or not brief.by_model:
            return []
        frame = self._framed(brief, "", "model", self._rules(brief, "model"))
        if brief.longest - self.tokens.message(frame) < LEAST_PROSE_TOKENS:
            return []
        return [model or self.config.auxiliary_model, *self.config.fallback_models]

    def _failed(self, brief: Brief, order: Order, error: SummaryError) -> None:
        kind = error.kind if isinstance(error, SummarizerUnavailable) else "rejected"
        rest = self.breaker.failed(order.session_id, order.model, brief.tokens, kind)
        who = order.model or "the auxiliary model"
        logger.warning("no summary from %s, left alone for %g s: %s", who, rest, error)
        told = {"model": order.model, "reason": str(error)}
        self.emit(Event("fell_back", order.session_id, told))

    def _redacted(self, brief: Brief, model: str | None) -> tuple[Brief, int]:
        """The brief without secrets, and how many it had: neither a summarizer nor a stored summary
        is to have them."""
        if not wants_redaction(self.config, model, on_disk=self.on_disk):
            return brief, 0
        redactor, found = Redactor(self.config.namespace), 0

        def masked(text: str) -> str:
            nonlocal found
            safe, count = redactor.text(text)
            found += count
            return safe

        messages, in_messages = redactor.messages(brief.messages)
        safe = replace(
            brief,
            messages=messages,
            shown=redactor.messages(brief.shown).messages,
            # Earlier summaries may have been written by the agent's own model, from everything.
            folded=tuple(map(masked, brief.folded)),
            earlier=tuple(map(masked, brief.earlier)),
            rules=brief.rules.mapped(lambda text: redactor.text(text)[0]),
            prefix=None,  # has them: it is not what the summary is written from
        )
        found += in_messages
        return (safe, found) if found or safe.rules != brief.rules else (brief, 0)

    def again(self, brief: Brief, written: Written, model: str | None) -> Written:
        """The text for a brief of fewer messages, without its price: the model's prose as it is,
        the facts beside it read anew.

        Raises:
            SummaryRejected: the prose is too long for it.
        """
        brief, _ = self._redacted(brief, model)
        if written.method == "static":
            return self.static(brief)
        facts = self._facts(brief)
        rewritten = self._finish(brief, facts, written.prose)
        return replace(rewritten, model=written.model, parts=written.parts)

    # -------------------------------------------------------------- without a model

    def static(
        self, brief: Brief, facts: Facts | None = None, usage: Usage | None = None
    ) -> Written:
        """The summary without a model, in the brief's room."""
        facts = self._facts(brief) if facts is None else facts
        whole = brief.room - self.tokens.message(self._framed(brief, "", "static"))
        rules = self._rules(brief, "static")
        budget = whole - (self.tokens.text(rules) + 2 if rules else 0)
        told = outline(brief.messages, brief.references, users=False) if brief.references else ()
        while True:
            text = static_summary(
                brief.messages,
                budget_tokens=max(0, budget),
                count=self.tokens.text,
                facts=facts,
                previous=brief.folded,
                visible=f"{brief.visible}\n{rules}",
                outline=told,
            )
            message = self._framed(brief, text, "static", rules)
            # Text framed and text alone differ by a token or two at the seams.
            over = self.tokens.message(message) - brief.room
            if over <= 0 or budget <= 0:
                after = coverage(facts, unframe(message))
                return Written(message, "static", usage=usage or Usage(), after=after, facts=facts)
            budget -= over

    # -------------------------------------------------------------- with a model

    async def _by_model(self, brief: Brief, facts: Facts, order: Order) -> Written:
        """The summary that one model writes.

        Raises:
            SummaryError: it writes none that can be used.
        """
        asker = Asker(self.config, self.summarizer, self.emit, self.windows)
        masked = await asyncio.to_thread(self._masked, brief)
        text = unreserved(await Drafter(asker, self.tokens).draft(masked, order))
        written = await asyncio.to_thread(self._finish, brief, facts, text)
        return replace(
            written, model=order.answered_by, usage=order.usage, parts=tuple(order.parts)
        )

    def _masked(self, brief: Brief) -> Brief:
        """The brief as a model may see it: outputs whose tool's policy is to mask, as their lines.

        Made after secrets were taken out: a line that cuts one in two would hide half of it.
        """
        if MASK not in self.config.tool_policies.values():
            return brief
        tokens = list(map(self.tokens.message, brief.shown))
        shown = masked_by_policy(brief.shown, tokens, self.config)
        whole = [old for old, new in zip(brief.shown, shown, strict=True) if new is not old]
        has_them = brief.prefix and any(message in brief.prefix.messages for message in whole)
        return replace(brief, shown=shown, prefix=None if has_them else brief.prefix)

    def _finish(self, brief: Brief, facts: Facts, text: str) -> Written:
        """The model's text, audited, repaired within the room, and framed; without its price.

        Raises:
            SummaryRejected: the text does not fit, or is no smaller than its messages.
        """
        text = unmarked(text)
        doubts = unverified(text, brief, facts)
        shown = marked(text, doubts)
        rules = self._rules(brief, "model")
        size = self.tokens.message(self._framed(brief, shown, "model", rules))
        most = brief.longest
        if size > most:
            raise SummaryRejected("not smaller", f"{size} tokens, there is room for {most}")
        message = self._repaired(brief, facts, shown, rules, size)
        return Written(
            message=message,
            method="model",
            prose=text,
            before=coverage(facts, text),
            after=coverage(facts, unframe(message)),
            unverified=tuple(doubts),
            facts=facts,
        )

    def _repaired(self, brief: Brief, facts: Facts, text: str, rules: str, size: int) -> Message:
        """The text and the rules, `size` tokens when framed, with the facts that it lacks: within
        the room, but the user's words as if no prose were there, up to what a text may have at
        most."""
        budget, words = min(brief.facts, brief.room - size), min(brief.words, brief.most - size)
        while max(budget, words) > 0:
            added = repair(
                text,
                facts,
                budget_tokens=budget,
                count=self.tokens.text,
                visible=f"{brief.visible}\n{rules}",
                words_of=words,
            )
            if not added:
                break
            message = self._framed(brief, f"{text}\n\n{added}", "model", rules)
            over = self.tokens.message(message) - size - max(budget, words)
            if over <= 0:
                return message
            budget, words = budget - over, words - over
        return self._framed(brief, text, "model", rules)

    # -------------------------------------------------------------- both

    def _facts(self, brief: Brief) -> Facts:
        """What must survive, without what the user has lifted: nothing tells it as if it held."""
        facts = self.finder.of(brief.messages, brief.references)
        lifted = {rule.text for rule in brief.rules.rules if not rule.holds}
        said = (item for item in facts.user if item.superseded_by or item.text not in lifted)
        return replace(facts, user=tuple(said)) if lifted else facts

    def _rules(self, brief: Brief, method: str) -> str:
        """The rules that bind, as much of them as the room takes: all else gives way."""
        if not (brief.rules.rules or brief.rules.request):
            return ""
        room = brief.room - self.tokens.message(self._framed(brief, "", method)) - 4
        return brief.rules.text(room, self.tokens.text)

    def _framed(self, brief: Brief, text: str, method: str, rules: str = "") -> Message:
        count = len(brief.messages)
        text = f"{text}\n\n{rules}".strip() if rules else text
        content = frame(
            text, count=count, method=method, reference=brief.reference, recall=brief.recall
        )
        return {"role": "user", "content": content}


LEAST_PROSE_TOKENS = 60
"""Of the fifty words that are asked of a model at least: fewer say next to nothing."""
