"""Send the requests of one agent as their views; learn from answers and refusals."""

from __future__ import annotations

import asyncio
import itertools
import logging
import re
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from ..compressor.bills import Bill, RequestUsage
from ..compressor.result import CompressResult
from ..concurrency import renewed
from ..events import Event
from ..messages import Message, text_of
from ..messages.dropped_steps import Completed
from ..messages.thinking import signatures, without_thinking
from ..tokens.refusals import overflow_of
from .conversations import Choices, Conversation, Turn
from .engines import Engines, bill
from .known_conversations import KnownConversations
from .notices import Notices
from .provider_rules import ROLES, alternating, is_bound_elsewhere, refused_in, unbound
from .recall import RecallTools
from .requests import HostRequest, carries_conversation, without_window

log = logging.getLogger(__name__)

TURN_MESSAGES = 40
"""After that number of messages a long turn may read of the archive again."""


class Sender:
    """Send an agent's requests; raise nothing of ours into its turns.

    What is remembered between turns is a conversation's (`conversations`). The agent's are what
    holds for every conversation: learned windows, refused keys, and failures that were logged once.
    """

    def __init__(
        self,
        agent: weakref.ref[Any],
        engines: Engines,
        notices: Notices,
        recall: RecallTools,
        *,
        automatic: bool,
    ) -> None:
        """`automatic`: False compresses only what the model would refuse."""
        self._agent = agent
        self._engines = engines
        self._notices = notices
        self._recall = recall
        self._automatic = automatic
        self.known = KnownConversations(agent, self, engines)
        self.passed = 0
        """Requests of this agent that have passed in this process."""
        self._failures: set[str] = set()
        self._refused: set[tuple[str | None, str]] = set()
        self._invalid_thinking: frozenset[str] = frozenset()
        """Signatures of thinking that a provider refused behind a changed prefix."""
        self._lock = renewed(threading.Lock())

    # ------------------------------------------------------------ turns

    @contextmanager
    def turn(self) -> Iterator[Turn]:
        """Run a turn of the agent; log once if no request passed.

        Then the host has moved, or another system answers for the model.
        """
        before, turn = self.passed, self.known.begun()
        has_failed = False
        try:
            yield turn
        except Exception:
            has_failed = True
            raise
        finally:
            self.known.end(turn)
            if turn.conversation is not None:
                with self._harmless("the turn's answer is not remembered"):
                    journal, history = turn.conversation.journal, self.known.history or ()
                    journal.end(history, self._engines.of(None), has_failed=has_failed)
        if self.passed == before and self._is_new("unseen"):
            log.warning(
                "agent %s: a turn ended and no request passed the compressor: another answered for "
                "the model, or the host has moved (`praison-compressor doctor` tries it)",
                self._name(),
            )

    def settle(self, turn: Turn) -> None:
        """Record a finished turn's bill and, where it is recorded, its answer; never raise."""
        if turn.conversation is None:
            return
        with self._harmless("the turn's answer is not recorded"):
            engine = self._engines.of(None)
            engine.account(turn.conversation.session_id).settle(engine.store)
            if engine.config.keep_tool_steps:
                turn.conversation.journal.settle(engine)
                self.known.bound_journals()

    @contextmanager
    def _harmless(self, what: str) -> Iterator[None]:
        """Log a failure of ours, which must not end the turn."""
        try:
            yield
        except Exception:
            log.exception("agent %s: %s", self._name(), what)

    # ------------------------------------------------------------ views

    async def view(self, request: HostRequest) -> Sequence[Message]:
        """Return the messages to send; never block the event loop."""
        self.passed += 1
        found: Conversation | None = None
        try:
            # In a thread: a store may have to be opened, a vocabulary to be read.
            found, request = await asyncio.to_thread(self._carried, request)
            if found is not None and self._automatic and not self._engines.is_unsure(request.model):
                view = await self._compress(found, request)
            else:
                view = await asyncio.to_thread(self._projected, found, request)
        except Exception as error:
            view = await asyncio.to_thread(self._best, found, request, error)
        return self._adapted(request, view)

    def _carried(self, request: HostRequest) -> tuple[Conversation | None, HostRequest]:
        """Return the conversation that a request carries, and the request completed.

        None for a request of the agent that is no part of the conversation.
        """
        request = replace(request, messages=without_window(self._agent(), request.messages))
        if not carries_conversation(self._agent(), request.messages):
            log.debug(
                "agent %s: a request of %d messages to %s is no part of the conversation: not "
                "recorded",
                *(self._name(), len(request.messages), request.model),
            )
            return None, request
        found = self.known.carrying(request)
        if self._engines.config.keep_tool_steps:
            with self._harmless("sent without the steps of earlier turns"):
                own, turn = self._engines.of(None), self.known.turn
                bound = 0 if turn is None else turn.bound
                done = found.journal.complete(request.messages, own, turn=turn, bound=bound)
                request = replace(
                    request, messages=done.messages, back=done.back, foreign=done.foreign
                )
        return found, request

    def _adapted(self, request: HostRequest, view: Sequence[Message]) -> Sequence[Message]:
        """Return the view without what the request's model is known to refuse."""
        foreign = {id(message) for message in request.foreign}
        view = [unbound(message) if id(message) in foreign else message for message in view]
        if self._invalid_thinking:
            view = [
                without_thinking(m) if signatures(m) & self._invalid_thinking else m for m in view
            ]
        return alternating(view) if ROLES in self.refused(request) else view

    async def _compress(self, found: Conversation, request: HostRequest) -> Sequence[Message]:
        async with self._notices.during(request):
            keep = Choices(keep=found.choices.keep)
            options = {**found.options, **keep.options(request.messages)}
            overhead = await asyncio.to_thread(self._engines.overhead, request)
            engine = self._engines.of(request.model)
            result = await engine.compress(request.messages, **options, overhead_tokens=overhead)
        found.choices = replace(found.choices, keep=found.choices.keep[len(keep.keep) :])
        self._remember(found, request, result, self._engines.measured(request))
        return result.messages

    async def compress_now(
        self, done: Completed, found: Conversation, choices: Choices
    ) -> CompressResult:
        """Compress a conversation between two turns, as its user chooses.

        Raises:
            CompressorError: as `ContextCompressor.compress` does; this is no turn of the agent.
        """
        now = HostRequest(done.messages, back=done.back)
        async with self._notices.during(now):
            engine = await asyncio.to_thread(self._engines.focused, choices.focus)
            options = {**found.options, **choices.options(now.messages), "force": True}
            result = await engine.compress(now.messages, **options)
        found.choices, found.shown = Choices(), None
        self._remember(found, now, result, found.overhead_tokens, is_sent=False)
        return result

    def idle(self) -> int:
        """Begin the next summaries of resting conversations; return how many.

        Raises:
            CompressorError: as `ContextCompressor.idle` does.
        """
        begun = 0
        for found in self.known.newest():
            if messages := found.journal.transcript or found.transcript:
                engine, overhead = self._engines.of(found.model), found.tool_tokens
                begun += engine.idle(messages, **found.options, overhead_tokens=overhead)
        return begun

    def _remember(
        self,
        found: Conversation,
        request: HostRequest,
        result: CompressResult,
        beside: int,
        is_sent: bool = True,
    ) -> None:
        """Remember a result; offer recall, bill and report the compression."""
        engine = self._engines.of(request.model)
        found.remember(result, engine, beside, request.model, request.back, is_sent=is_sent)
        if self._engines.config.recall and (result.segments or result.masked):
            self._recall.give(self._agent())
        users = sum(message.get("role") == "user" for message in request.messages)
        found.progress = users, len(request.messages) // TURN_MESSAGES
        bill(self._agent(), result.usage)
        if result.written or result.newly_masked:
            status = found.status(self._engines.of(found.model))
            found.notice = self._notices.compressed(status)

    def _projected(self, found: Conversation | None, request: HostRequest) -> Sequence[Message]:
        """Return the ledger's view, smaller only if the model would refuse it."""
        return self._fitted(found, request, target_tokens=self._engines.room(request))

    def _best(
        self, found: Conversation | None, request: HostRequest, error: Exception
    ) -> Sequence[Message]:
        """Return the best view after a failure; log the cause once.

        The failure must not end the turn.
        """
        cause = f"{type(error).__name__}: {error}"
        # The same again, with other numbers, is not news.
        if self._is_new(re.sub(r"\d+", "#", cause)):
            is_logged = found is not None and found.journal.failure == str(error)
            said = "the store's failure, as logged" if is_logged else cause
            log.warning("agent %s: sent as well as it fits: %s", self._name(), said)
        self._notices(Event("failed", self.known.for_reading.session_id, {"reason": cause}))
        with self._harmless("sent as it is"):
            overhead = self._engines.overhead(request)
            return self._fitted(found, request, logged=error, overhead_tokens=overhead)
        return request.messages

    def _fitted(
        self, found: Conversation | None, request: HostRequest, **options: Any
    ) -> Sequence[Message]:
        """Return the best view without recording it in the ledger."""
        engine, of = self._engines.of(request.model), found or self.known.for_reading
        result = engine.best(request.messages, **of.options, **options)
        if found is not None:
            beside = self._engines.measured(request)
            found.remember(result, engine, beside, request.model, request.back)
        return result.messages

    def _is_new(self, failure: str) -> bool:
        """Return True the first time; remember it."""
        with self._lock:
            is_new = failure not in self._failures
            self._failures.add(failure)
        return is_new

    # ------------------------------------------------------------ answers and refusals

    def offering(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the request's parameters, with the recall tools after the first compression."""
        with self._harmless("sent without the recall tools"):
            return self._recall.offered(self._agent(), params)
        return params

    async def called(self, request: HostRequest, made: Message) -> None:
        """Record an answer's calls: the turn may stop before their results."""
        found = self.known.running
        if found is None or not self._engines.config.keep_tool_steps:
            return
        with self._harmless("the calls of an answer are not recorded"):
            if carries_conversation(self._agent(), request.messages):
                engine = self._engines.of(request.model)
                await asyncio.to_thread(found.journal.call, made, engine)

    def used(
        self,
        request: HostRequest,
        sent: Sequence[Message],
        usage: RequestUsage,
        before: RequestUsage,
    ) -> None:
        """Learn and bill what the provider reports.

        `before`: its earlier report for the same answer; a stream reports in parts.
        """
        with self._harmless("nothing learned from the usage"):
            is_new = not before.input
            window = self._engines.used(request, sent, usage.input) if is_new else None
            self._bill(request, usage, before)
            if window is not None:
                log.warning(
                    "agent %s: %s silently reads at most %d tokens of a request: its window is "
                    "now taken as that",
                    *(self._name(), request.model, window),
                )

    def _bill(self, request: HostRequest, usage: RequestUsage, before: RequestUsage) -> None:
        """Add what the provider reports to the running conversation's bill."""
        found, is_new = self.known.running, not before.input
        if found is None or usage == before:
            return
        hosts = self._as_the_host(request, found, usage) if is_new else RequestUsage()
        hosts = replace(hosts, output=usage.output - before.output)
        bill = Bill.of(usage - before, hosts, request.model, is_new=is_new)
        if is_new:
            kept = found.kept
            bill = replace(bill, kept_steps=kept.steps, kept_tokens=kept.tokens)
        self._engines.of(request.model).account(found.session_id).add(bill)

    def took(self, request: HostRequest, sent: Sequence[Message]) -> None:
        """Learn that the provider took what was sent."""
        with self._harmless("nothing learned from an answer"):
            window = self._engines.passed(request, sent)
            if window is not None:
                log.warning(
                    "agent %s: the window of %s is now taken as %d tokens, by what it refused and "
                    "took",
                    *(self._name(), request.model, window),
                )

    def gave_up(self, request: HostRequest) -> None:
        """Forget what a request's refusals taught: no view was taken."""
        self._engines.gave_up(request)

    def _as_the_host(
        self, request: HostRequest, found: Conversation, usage: RequestUsage
    ) -> RequestUsage:
        """Return what the host's own request would have used, by our count."""
        engine = self._engines.of(request.model)
        seen = engine.tokens.cache.all(request.messages)
        sizes, names = list(engine.tokens.each(seen)), tuple(each.digest for each in seen)
        pairs = zip(names, found.before, strict=False)
        common = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
        found.before = names
        # A cache that wants marks has none of the host's; a cold one has nothing of either.
        is_warm = usage.cached > 0 and not (usage.written or usage.written_1h)
        whole = sum(sizes) + self._engines.measured(request)
        return RequestUsage(whole, sum(sizes[:common]) if is_warm else 0)

    @property
    def cache_ttl(self) -> str | None:
        """Return the life of cache marks, or None for the provider's own."""
        return self._engines.config.cache_ttl

    def refused(self, request: HostRequest) -> frozenset[str]:
        """Return what the request's model has refused."""
        return frozenset(what for model, what in self._refused if model == request.model)

    async def other_view(
        self, request: HostRequest, sent: Sequence[Message], error: Exception
    ) -> Sequence[Message] | None:
        """Return another view if the refusal says what to change, else None."""
        learned = await asyncio.to_thread(self._learned, request, sent, error)
        return await self.view(request) if learned else None

    def _learned(self, request: HostRequest, sent: Sequence[Message], error: Exception) -> bool:
        """Learn from a refusal what the model takes; return whether anything."""
        if is_bound_elsewhere(error):
            thinking = frozenset[str]().union(*map(signatures, sent)) - self._invalid_thinking
            self._invalid_thinking |= thinking
            return bool(thinking)
        what = refused_in(error)
        if what is not None and what not in self.refused(request):
            log.info("agent %s: %s does not take %s", self._name(), request.model, what)
            self._refused.add((request.model, what))
            return True
        said = map(text_of, sent)
        refused = overflow_of(error, self._engines.size(request, sent), said)
        if refused is None or not self._engines.shrink(request, sent, refused, str(error)):
            return False
        log.info("agent %s: %s refused a request as too long", self._name(), request.model)
        return True

    def _name(self) -> str:
        return str(getattr(self._agent(), "display_name", "(gone)"))
