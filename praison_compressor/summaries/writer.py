"""Write the one message that stands for a segment: by a model, audited and repaired, or static."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

from ..config import CompressorConfig, Event
from ..errors import SummaryError, SummaryRejected
from ..facts import Domain, Facts, coverage
from ..facts.coverage import WITNESS_CHARS, quoted
from ..ledger.outlines import outline
from ..ledger.segments import Usage
from ..messages import Message
from ..messages.secrets import Redactor, wants_redaction
from ..tokens.counter import TokenCounter
from ..view.frame import escape, frame, unframe
from ..view.masks import MASK, masked_by_policy
from .claims import unverified
from .drafting import Drafter, Piece
from .litellm_client import default_summarizer
from .prompts import LEAST_WORDS, judge_request, rendering, tokens_for
from .protocol import Brief, Doubt, Summarizer, SummaryReply, Written
from .retries import LASTING, MOST_CALLS, Asker, Breaker, LearnedWindows
from .static import FactFinder, repair, static_summary
from .validation import Claim, claims_of, marked, strip_reasoning, unmarked, unreserved

logger = logging.getLogger(__name__)


class SummaryWriter:
    """Carries out a brief: asks the models in turn, or writes the static summary where none serves.

    The only class that spends money. `summarizer` is None where no model is configured, and until
    the one that is is needed; never the one that a single call names: its model is for that call.
    `on_disk`: what is written goes to a store that masks secrets.
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
        self._windows = LearnedWindows()
        self._finder = FactFinder(Domain.of(config))
        self._on_disk = on_disk

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
        summarizer = self._summarizer_for(model)
        asker = Asker(self.config, summarizer, self.emit, self._windows, session_id)
        names = [model or self.config.auxiliary_model, *self.config.fallback_models]
        most = await asyncio.to_thread(self._most_words, brief) if summarizer is not None else 0
        brief = replace(brief, prose=min(brief.prose, tokens_for(most)))
        for name in names if most >= LEAST_WORDS else ():
            if not asker.calls:
                break  # the model before has told why
            if not force and not self.breaker.allows(session_id, name, brief.tokens):
                self.emit(Event("skipped", session_id, {"model": name, "reason": "cooldown"}))
                continue
            left, asker.model = asker.calls, name
            try:
                written = await self._by_model(brief, facts, asker)
            except SummaryError as error:
                # Not of one that was not asked, because those before have spent its calls.
                if left == MOST_CALLS or asker.calls < left:
                    self._failed(brief, asker, error)
                continue
            self.breaker.succeeded(session_id, name)
            return written
        return await asyncio.to_thread(self.static, brief, facts, asker.usage)

    def _summarizer_for(self, model: str | None) -> Summarizer | None:
        if self.summarizer is None and self.config.auxiliary_model:
            self.summarizer = default_summarizer(self.config, self.config.auxiliary_model)
        if self.summarizer is None and model:
            return default_summarizer(self.config, model)
        return self.summarizer

    def _most_words(self, brief: Brief) -> int:
        """Words of a model's text that could be taken, whatever they are."""
        frame = self._framed(brief, "", "model", self._rules(brief, "model"))
        # Text framed and text alone differ by a token or two at the seams.
        room = brief.longest - self.tokens.message(frame) - 2
        return room // WORD_TOKENS if brief.by_model else 0

    def _failed(self, brief: Brief, asker: Asker, error: SummaryError) -> None:
        kind = getattr(error, "kind", "rejected")
        rest = self.breaker.failed(asker.session_id, asker.model, brief.tokens, kind)
        who = asker.model or "the auxiliary model"
        unless = "" if kind in LASTING else ", or until there is half as much again to summarize"
        logger.warning("no summary from %s, left alone for %g s%s: %s", who, rest, unless, error)
        told = {"model": asker.model, "reason": str(error)}
        self.emit(Event("fell_back", asker.session_id, told))

    def _redacted(self, brief: Brief, model: str | None) -> tuple[Brief, int]:
        """The brief without secrets, and how many it had: neither a summarizer nor a stored summary
        is to have them."""
        if not wants_redaction(self.config, model, on_disk=self._on_disk):
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
        doubts = [doubt for doubt in written.unverified if doubt.kind == JUDGED]
        rewritten = self._finish(brief, facts, written.prose, doubts)
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

    async def _by_model(self, brief: Brief, facts: Facts, asker: Asker) -> Written:
        """The summary that one model writes.

        Raises:
            SummaryError: it writes none that can be used.
        """
        masked, drafter = await asyncio.to_thread(self._masked, brief), Drafter(asker, self.tokens)
        text = unreserved(await drafter.draft(masked))
        written = await asyncio.to_thread(self._finish, brief, facts, text)
        if self.config.verify_with == "model" and (
            doubts := await judged(written, masked, drafter)
        ):
            try:
                written = await asyncio.to_thread(self._finish, brief, facts, text, doubts)
            except SummaryRejected as error:  # the text alone had room
                logger.warning("the model's doubts of its summary are left out: %s", error)
        return replace(
            written, model=asker.answered_by, usage=asker.usage, parts=tuple(asker.parts)
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

    def _finish(
        self, brief: Brief, facts: Facts, text: str, judged: Sequence[Doubt] = ()
    ) -> Written:
        """The model's text, audited, repaired within the room, and framed; without its price.

        `judged` are a model's own doubts of it; where a rule has one too, the rule's counts.

        Raises:
            SummaryRejected: the text does not fit, or is no smaller than its messages.
        """
        text = unmarked(text)
        doubts = unverified(text, brief, facts)
        by_rules, known = {doubt.at for doubt in doubts}, {*brief.references}
        doubts += [
            doubt if doubt.source in known else doubt._replace(source="")
            for doubt in judged
            if doubt.at not in by_rules
        ]
        shown = marked(text, doubts)
        most = brief.longest
        rules = self._rules(brief, "model")
        size = self.tokens.message(self._framed(brief, shown, "model", rules))
        if size > most and rules:
            # A text that was paid for is worth more than what the user merely states.
            left = self.tokens.text(rules) - (size - most) - 2
            fewer = brief.rules.beside(left, self.tokens.text)
            rules = rules if fewer is None else fewer
            size = self.tokens.message(self._framed(brief, shown, "model", rules))
        if size > most:
            raise SummaryRejected("not smaller", f"{size} tokens, there is room for {most}")
        message = self._repaired(brief, facts, shown, rules, size)
        return Written(
            message=message,
            method="model",
            prose=text,
            before=coverage(facts, text),
            after=coverage(facts, unframe(message)),
            unverified=tuple(sorted(doubts, key=lambda doubt: doubt.at)),
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
        facts = self._finder.of(brief.messages, brief.references)
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


WORD_TOKENS = 3
"""Of a word where ids and numbers stand close: strong models' summaries of eight recorded sessions
have 1.8 to 2.8. A text that is too long was paid for nothing."""


# -------------------------------------------------------------- a model's own judgement

# It may err, fail, or be misled by what it reads: a claim is corrected only by a line that stands
# in the originals, and whatever comes of the question, the summary stays.

JUDGED = "judged"
"""The kind of a model's doubts."""

MOST_CLAIMS = 100
"""Asked about: a long summary makes 150, and the gravest of them rules have checked."""

ANSWER_TOKENS, ANSWER_CHARS = 800, 20_000
"""Of an answer at most: twenty lines of the transcript, and of what is read."""

LEAST_QUOTED = 8
"""Characters: what is shorter stands in every transcript."""

FEW = 3
"""Claims that may be without support in any text. A model that finds none for more, and for more
than half of them, has not read the transcript."""


async def judged(written: Written, brief: Brief, drafter: Drafter) -> list[Doubt]:
    """The model's doubts of claims that no rule doubts; none where it fails. One request, which is
    on the summary's bill. The brief shows what the model may see."""
    doubted = {doubt.at for doubt in written.unverified}
    left = (claim for claim in claims_of(written.prose) if claim.end not in doubted)
    claims = list(islice(left, MOST_CLAIMS))
    if not claims or not brief.shown:
        return []
    drafter.asker.most = ANSWER_TOKENS
    earlier, texts = (*brief.folded, *brief.earlier), [claim.text for claim in claims]

    def request(part: Sequence[Piece]) -> list[Message]:
        return judge_request([piece.text for piece in part], texts, earlier)

    try:
        asked, is_whole = await asyncio.to_thread(drafter.in_one, brief, request)
        reply = await drafter.asker.answer(asked)
    except SummaryError as error:
        logger.warning("session %s: nobody judged its summary: %s", drafter.asker.session_id, error)
        return []
    doubts = await asyncio.to_thread(lambda: list(_doubts(reply, claims, brief)))
    unsupported = [doubt for doubt in doubts if doubt.verdict == "unwitnessed"]
    # Who wrote on the live prefix knew more than the transcript of this request.
    if is_whole and brief.prefix is None and len(unsupported) <= max(FEW, len(claims) // 2):
        return doubts
    return [doubt for doubt in doubts if doubt.verdict == "contradicted"]


_VERDICT = re.compile(
    r"^[^\w\n]{0,20}(\d{1,3})[^\w\n]{1,20}(?:contradicted[ :,*–—-]+(\S.*)|unsupported[^\w\n]*)$",
    re.I | re.M,
)

_QUOTED = re.compile(r"[\"“”`«](.+)[\"“”`»]")


def _doubts(reply: SummaryReply, claims: Sequence[Claim], brief: Brief) -> Iterator[Doubt]:
    """What an answer says of the claims, as far as it can be believed."""
    text = reply.text[:ANSWER_CHARS] if isinstance(reply.text, str) else ""
    verdicts = {int(one[1]): one[2] for one in _VERDICT.finditer(strip_reasoning(text))}
    sources = list(map(_lines, rendering(brief.messages))) if verdicts else []
    for number, said in sorted(verdicts.items()):
        if not 0 < number <= len(claims):
            continue
        claim = claims[number - 1]
        if said is None:
            reason = "a model finds nothing in the originals that shows it"
            yield Doubt(claim.text, "unwitnessed", JUDGED, reason, at=claim.end)
        elif found := _witness(said, claim, sources):
            at, line = found
            source = brief.references[at] if brief.references else ""
            reason = f"{quoted(line)}, as a model judges"
            yield Doubt(claim.text, "contradicted", JUDGED, reason, source, claim.end)


def _lines(text: str) -> list[str]:
    """A message's lines as they were shown, without the first, which says whose it is."""
    return list(filter(None, map(_flat, escape(text).split("\n")[1:])))


def _witness(said: str, claim: Claim, sources: Sequence[list[str]]) -> tuple[int, str] | None:
    """The newest message in which a quoted line stands, and the line: the whole of it where it is
    short, so that no "not" is left out."""
    inner = _QUOTED.search(said)  # else all that is said is the quotation
    for quote in (_flat(inner[1] if inner else ""), _flat(said)):
        if len(quote) < LEAST_QUOTED or quote.casefold() in _flat(claim.text).casefold():
            continue
        # Arguments are JSON: a line of a file that was written may begin behind its "\t".
        opens = r"(?:(?<![A-Za-z0-9_])|(?<=\\[nt]))"
        stands = re.compile(rf"{opens}{re.escape(quote)}(?![A-Za-z0-9_])")
        for at in reversed(range(len(sources))):
            text = " ".join(sources[at])
            if quote in text and stands.search(text):
                line = next(filter(stands.search, sources[at]), quote)
                return at, line if len(line) <= WITNESS_CHARS else quote
    return None


def _flat(text: str) -> str:
    return " ".join(text.split())
