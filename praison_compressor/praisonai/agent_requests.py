"""Make the view of each request; learn from answers and refusals."""

from __future__ import annotations

import asyncio
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
from ..concurrency import renew_after_fork
from ..events import Event
from ..ledger.segments import Usage
from ..messages import Message, text_of
from ..messages.dropped_steps import common_length
from ..messages.thinking import signatures, without_thinking
from ..tokens.refusals import overflow_of
from .agent_ledger import title_of
from .conversation_finder import ConversationFinder, carries_conversation, without_window
from .conversations import Choices, Conversation, Conversations
from .model_compressors import ModelCompressors
from .notices import Notices
from .provider_rules import ROLES, alternating, is_bound_elsewhere, refused_in, unbound
from .recall_tools import RecallTools
from .request_shapes import HostRequest
from .running_turn import Turn, running

log = logging.getLogger(__name__)


class AgentRequests:
    """The requests of one agent; no error of ours ends its turns.

    A `Conversation` holds the state of one conversation. This object holds the state that all
    conversations share: refused keys, invalid thinking, and failures that were logged once.
    """

    def __init__(
        self,
        agent: weakref.ref[Any],
        compressors: ModelCompressors,
        conversations: Conversations,
        notices: Notices,
        recall: RecallTools,
        *,
        automatic: bool,
    ) -> None:
        """`automatic`: False compresses only requests that the model would refuse."""
        self._agent = agent
        self._compressors = compressors
        self._conversations = conversations
        self._notices = notices
        self._recall = recall
        self._automatic = automatic
        self.finder = ConversationFinder(agent, compressors, conversations)
        self.passed = 0
        """Requests of this agent that have passed in this process."""
        self._failures: set[str] = set()
        self._refused: set[tuple[str | None, str]] = set()
        self._invalid_thinking: frozenset[str] = frozenset()
        """Signatures of thinking that a provider refused behind a changed prefix."""
        self._lock = renew_after_fork(threading.Lock())

    # ------------------------------------------------------------ turns

    @contextmanager
    def turn(self) -> Iterator[Turn]:
        """Run a turn of the agent; log once if no request passed."""
        before, turn = self.passed, self.finder.turn_of(self)
        has_failed = False
        try:
            yield turn
        except Exception:
            has_failed = True
            raise
        finally:
            self.finder.end(turn)
            if (conversation := self.finder.of(turn)) is not None:
                with self._harmless("the turn's answer is not remembered"):
                    engine, history = self._compressors.of(None), self.finder.history or ()
                    conversation.journal.end(history, engine, has_failed=has_failed)
        if self.passed == before and self._is_new("unseen"):
            log.warning(
                "agent %s: a turn ended and no request passed the compressor: something else "
                "answered, or the host has changed; run `praison-compressor doctor`",
                title_of(self._agent()),
            )

    def settle(self, turn: Turn) -> None:
        """Record a finished turn's bill and answer in the store; never raise."""
        conversation = self.finder.of(turn)
        if conversation is None:
            return
        with self._harmless("the turn's answer is not recorded"):
            engine = self._compressors.of(None)
            engine.account(conversation.session_id).settle(engine.store)
            if engine.config.keep_tool_steps:
                conversation.journal.settle(engine)
                self._conversations.bound_journals()

    @contextmanager
    def _harmless(self, what: str) -> Iterator[None]:
        """Log a failure of ours, which must not end the turn."""
        try:
            yield
        except Exception:
            log.exception("agent %s: %s", title_of(self._agent()), what)

    # ------------------------------------------------------------ views

    async def view(self, request: HostRequest) -> Sequence[Message]:
        """Return the messages to send; never block the event loop."""
        self.passed += 1
        conversation: Conversation | None = None
        try:
            # In a thread: the first request opens a store and reads a vocabulary.
            conversation, request = await asyncio.to_thread(self._completed, request)
            is_unsure = self._compressors.is_unsure
            if conversation is not None and self._automatic and not is_unsure(request.model):
                view = await self._compress(conversation, request)
            else:
                view = await asyncio.to_thread(self._in_room, conversation, request)
        except Exception as error:
            view = await asyncio.to_thread(self._best, conversation, request, error)
        return self._adapted(request, view)

    def _completed(self, request: HostRequest) -> tuple[Conversation | None, HostRequest]:
        """Return a request's conversation, and the request with its dropped steps.

        The conversation is None for a request that carries no part of one, such as a title's.
        """
        agent = self._agent()
        request = replace(request, messages=without_window(agent, request.messages))
        if not carries_conversation(agent, request.messages):
            log.debug(
                "agent %s: a request of %d messages to %s is no part of the conversation: not "
                "recorded",
                *(title_of(agent), len(request.messages), request.model),
            )
            return None, request
        here = running()
        turn = here if here is not None and here.owner is self else None
        conversation = self.finder.carrying(request.messages, turn or self.finder.turn_of(self))
        if self._compressors.config.keep_tool_steps:
            with self._harmless("sent without the steps of earlier turns"):
                done = conversation.journal.complete(
                    request.messages, self._compressors.of(None), turn
                )
                messages, back, foreign = done.messages, done.back, done.foreign
                request = replace(request, messages=messages, back=back, foreign=foreign)
        return conversation, request

    def _adapted(self, request: HostRequest, view: Sequence[Message]) -> Sequence[Message]:
        """Return the view without what the request's model has refused."""
        foreign = {id(message) for message in request.foreign}
        view = [unbound(message) if id(message) in foreign else message for message in view]
        if self._invalid_thinking:
            view = [
                without_thinking(m) if signatures(m) & self._invalid_thinking else m for m in view
            ]
        return alternating(view) if ROLES in self.refused(request) else view

    async def _compress(
        self, conversation: Conversation, request: HostRequest
    ) -> Sequence[Message]:
        async with self._notices.during(request):
            keep = Choices(keep=conversation.choices.keep)
            options = {**conversation.options, **keep.options(request.messages)}
            overhead = await asyncio.to_thread(self._compressors.overhead, request)
            engine = self._compressors.of(request.model)
            result = await engine.compress(request.messages, **options, overhead_tokens=overhead)
        conversation.choices = replace(
            conversation.choices, keep=conversation.choices.keep[len(keep.keep) :]
        )
        self.remember(conversation, request, result, self._compressors.measured(request))
        return result.messages

    def remember(
        self,
        conversation: Conversation,
        request: HostRequest,
        result: CompressResult,
        beside: int,
        is_sent: bool = True,
    ) -> None:
        """Remember a result; offer recall, bill and report the compression."""
        engine = self._compressors.of(request.model)
        conversation.remember(result, engine, request, beside, is_sent=is_sent)
        if self._compressors.config.recall and (result.segments or result.masked):
            self._recall.give(self._agent())
        _charge(self._agent(), result.usage)
        if result.written or result.newly_masked:
            conversation.notice = self._notices.compressed(conversation.status(engine))

    def _best(
        self, conversation: Conversation | None, request: HostRequest, error: Exception
    ) -> Sequence[Message]:
        """Return the best view after a failure; log the cause once.

        The failure must not end the turn.
        """
        cause = f"{type(error).__name__}: {error}"
        # A failure that differs only in its numbers is logged once.
        if self._is_new(re.sub(r"\d+", "#", cause)):
            is_logged = conversation is not None and conversation.journal.failure == str(error)
            said = "the store's failure, as logged" if is_logged else cause
            log.warning("agent %s: sent as well as it fits: %s", title_of(self._agent()), said)
        self._notices(Event("failed", self.finder.for_reading.session_id, {"reason": cause}))
        with self._harmless("sent as it is"):
            overhead = self._compressors.overhead(request)
            return self._fitted(conversation, request, logged=error, overhead_tokens=overhead)
        return request.messages

    def _in_room(
        self, conversation: Conversation | None, request: HostRequest
    ) -> Sequence[Message]:
        """Return the ledger's view, smaller only if the model would refuse it."""
        room = self._compressors.room(request)
        return self._fitted(conversation, request, target_tokens=room)

    def _fitted(
        self, conversation: Conversation | None, request: HostRequest, **options: Any
    ) -> Sequence[Message]:
        """Return the best view without recording it in the ledger."""
        engine, of = self._compressors.of(request.model), conversation or self.finder.for_reading
        result = engine.best(request.messages, **of.options, **options)
        if conversation is not None:
            conversation.remember(result, engine, request, self._compressors.measured(request))
        return result.messages

    def _is_new(self, failure: str) -> bool:
        """Return True the first time; remember it."""
        with self._lock:
            is_new = failure not in self._failures
            self._failures.add(failure)
        return is_new

    # ------------------------------------------------------------ answers

    def offering(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the request's parameters, with the recall tools after the first compression."""
        with self._harmless("sent without the recall tools"):
            return self._recall.offered(self._agent(), params)
        return params

    async def called(self, request: HostRequest, made: Message) -> None:
        """Record an answer's calls: the turn may stop before their results."""
        conversation = self.finder.running
        if conversation is None or not self._compressors.config.keep_tool_steps:
            return
        with self._harmless("the calls of an answer are not recorded"):
            if carries_conversation(self._agent(), request.messages):
                engine = self._compressors.of(request.model)
                await asyncio.to_thread(conversation.journal.call, made, engine)

    def used(
        self,
        request: HostRequest,
        sent: Sequence[Message],
        usage: RequestUsage,
        before: RequestUsage,
    ) -> None:
        """Learn from a provider's report of usage, and bill it.

        `before` is the report's state before its newest part: a stream reports in parts.
        """
        with self._harmless("nothing learned from the usage"):
            if not before.input:
                self._compressors.used(request, sent, usage.input)
            conversation = self.finder.running
            if conversation is not None and usage != before:
                engine = self._compressors.of(request.model)
                new = self._billed(request, conversation, usage, before)
                engine.account(conversation.session_id).add(new)
                seen = engine.tokens.cache.all(request.messages)
                conversation.last_sent = tuple(each.digest for each in seen)

    def _billed(
        self,
        request: HostRequest,
        conversation: Conversation,
        usage: RequestUsage,
        before: RequestUsage,
    ) -> Bill:
        """Return what a request's newest report adds to the bill."""
        is_new = not before.input
        hosts = self._as_the_host(request, conversation, usage) if is_new else RequestUsage()
        hosts = replace(hosts, output=usage.output - before.output)
        new = Bill.of(usage - before, hosts, request.model, is_new=is_new)
        kept = conversation.kept
        return replace(new, kept_steps=kept.steps, kept_tokens=kept.tokens) if is_new else new

    def _as_the_host(
        self, request: HostRequest, conversation: Conversation, usage: RequestUsage
    ) -> RequestUsage:
        """Return what the host's own request would have used, by our count."""
        tokens = self._compressors.of(request.model).tokens
        seen = tokens.cache.all(request.messages)
        sizes = tokens.each(seen)
        common = common_length([each.digest for each in seen], conversation.last_sent)
        # A provider that caches only marked parts would cache nothing of the host's request.
        is_warm = usage.cached > 0 and not (usage.written or usage.written_1h)
        whole = sum(sizes) + self._compressors.measured(request)
        return RequestUsage(whole, sum(sizes[:common]) if is_warm else 0)

    def accepted(self, request: HostRequest, sent: Sequence[Message]) -> None:
        """Learn from a request that the provider took."""
        with self._harmless("nothing learned from an answer"):
            self._compressors.passed(request, sent)

    # ------------------------------------------------------------ refusals

    def gave_up(self, request: HostRequest) -> None:
        """Forget the window that was tried for a request in vain."""
        self._compressors.gave_up(request)

    @property
    def cache_ttl(self) -> str | None:
        """Return the life of cache marks, or None for the provider's own."""
        return self._compressors.config.cache_ttl

    def refused(self, request: HostRequest) -> frozenset[str]:
        """Return what the request's model has refused."""
        return frozenset(what for model, what in self._refused if model == request.model)

    async def other_view(
        self, request: HostRequest, sent: Sequence[Message], error: Exception
    ) -> Sequence[Message] | None:
        """Return another view if the refusal teaches anything, else None."""
        learned = await asyncio.to_thread(self._learned, request, sent, error)
        return await self.view(request) if learned else None

    def _learned(self, request: HostRequest, sent: Sequence[Message], error: Exception) -> bool:
        """Learn from a refusal; return whether another view may pass."""
        if is_bound_elsewhere(error):
            thinking = frozenset[str]().union(*map(signatures, sent)) - self._invalid_thinking
            self._invalid_thinking |= thinking
            return bool(thinking)
        name, what = title_of(self._agent()), refused_in(error)
        if what is not None and what not in self.refused(request):
            log.info("agent %s: %s does not take %s", name, request.model, what)
            self._refused.add((request.model, what))
            return True
        size = self._compressors.size(request, sent)
        refused = overflow_of(error, size, map(text_of, sent))
        if refused is None or not self._compressors.shrink(request, sent, refused, str(error)):
            return False
        log.info("agent %s: %s refused a request as too long", name, request.model)
        return True


def _charge(agent: Any, usage: Usage) -> None:
    """Add the cost of summaries to the agent's `cost_summary`."""
    sums = ("_cost_lock", "_total_cost", "_total_tokens_in", "_total_tokens_out")
    if usage == Usage() or not all(hasattr(agent, name) for name in sums):
        return
    with agent._cost_lock:
        agent._total_cost += usage.cost or 0.0
        agent._total_tokens_in += usage.prompt_tokens
        agent._total_tokens_out += usage.completion_tokens
