"""Make the view of each request, and bill the answer.

No error of ours may end a turn: a failure is logged, and the best possible view is sent.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from ..compressor.bills import Bill, RequestUsage
from ..compressor.context_compressor import ContextCompressor
from ..compressor.result import CompressResult
from ..events import Event
from ..messages import Message
from ..messages.transcript import common_length
from .conversation_finder import ConversationFinder
from .conversations import Choices, Conversation
from .model_compressors import ModelCompressors
from .notices import Notices
from .recall_tools import RecallTools
from .request_shapes import HostRequest, SentRequest
from .running_turn import Turn, running_turn

logger = logging.getLogger(__name__)

MOST_FAILURES = 100


class AgentRequests:
    """Make the views of one agent's requests."""

    def __init__(
        self,
        compressors: ModelCompressors,
        finder: ConversationFinder,
        notices: Notices,
        recall: RecallTools,
        *,
        automatic: bool,
    ) -> None:
        """`automatic`: False compresses only requests that the model would refuse."""
        self.compressors = compressors
        self._notices = notices
        self._recall = recall
        self._automatic = automatic
        self._finder = finder
        self.request_count = 0
        self._failures: set[str] = set()

    # ------------------------------------------------------------ turns

    def end_turn(self, turn: Turn, error: type[BaseException] | None) -> None:
        """Add a turn's answer; warn if the turn sent no request."""
        with self._log_failure("the turn's answer is not remembered"):
            self._finder.end_turn(turn)
            if turn.conversation is not None:
                compressor = self.compressors.for_model(None)
                history = self._finder.history or ()
                has_failed = error is not None and issubclass(error, Exception)
                turn.conversation.journal.end_turn(history, compressor, has_failed=has_failed)
        is_unseen = error is None and self.request_count == turn.request_count_before
        if is_unseen and self._is_first("unseen"):
            logger.warning(
                "agent %s: a turn ended and no request passed the compressor: something else "
                "answered, or the host has changed; run `praison-compressor doctor`",
                self._finder.agent_title,
            )

    def record_turn(self, turn: Turn) -> None:
        """Write a finished turn's bill and answer to the store; never raise."""
        conversation = turn.conversation
        if conversation is None:
            return
        with self._log_failure("the turn's answer is not recorded"):
            compressor = self.compressors.for_model(None)
            compressor.save_bill(conversation.session_id)
            conversation.journal.record(compressor)
            self._finder.conversations.bound_journals()

    @contextmanager
    def _log_failure(self, outcome: str) -> Iterator[None]:
        try:
            yield
        except Exception:
            logger.exception("agent %s: %s", self._finder.agent_title, outcome)

    # ------------------------------------------------------------ views

    async def make_view(self, request: HostRequest) -> Sequence[Message]:
        """Return the messages to send, without blocking the event loop."""
        self.request_count += 1
        conversation: Conversation | None = None
        try:
            conversation, request = await asyncio.to_thread(self._complete_request, request)
            is_uncertain = self.compressors.is_trial_uncertain(request.model)
            if conversation is not None and self._automatic and not is_uncertain:
                view = await self._compress(conversation, request)
            else:
                room = await asyncio.to_thread(self.compressors.room, request)
                view = await asyncio.to_thread(
                    self._fit_view, conversation, request, target_tokens=room
                )
        except Exception as error:
            view = await asyncio.to_thread(self._view_after_failure, conversation, request, error)
        with self._log_failure("sent with what the model has refused"):
            return self.compressors.adapt_view(request, view)
        return view

    def _complete_request(self, request: HostRequest) -> tuple[Conversation | None, HostRequest]:
        """Return the conversation (None for a title) and the completed request."""
        messages = self._finder.without_history_copy(request.messages)
        request = replace(request, messages=messages)
        if not self._finder.belongs_to_conversation(messages):
            logger.debug(
                "agent %s: a request of %d messages to %s is no part of the conversation: not "
                "recorded",
                self._finder.agent_title,
                len(messages),
                request.model,
            )
            return None, request
        turn = running_turn()
        if turn is None or turn.requests is not self:
            turn = self._finder.new_turn(self)
        conversation = self._finder.match_request(messages, turn)
        with self._log_failure("sent without the steps of earlier turns"):
            compressor = self.compressors.for_model(None)
            whole = conversation.journal.complete(messages, compressor, turn, turn.history_limit)
            request = replace(
                request, messages=whole.messages, restored=whole.restored, foreign=whole.foreign
            )
        return conversation, request

    async def _compress(
        self, conversation: Conversation, request: HostRequest
    ) -> Sequence[Message]:
        async with self._notices.during(request.messages):
            kept = Choices(keep=conversation.choices.keep)
            options = {**conversation.options, **kept.options(request.messages)}
            overhead = await asyncio.to_thread(self.compressors.overhead, request)
            compressor = self.compressors.for_model(request.model)
            result = await compressor.compress(
                request.messages, **options, overhead_tokens=overhead
            )
        if not result.vetoed:  # a vetoed compression records no kept messages
            conversation.drop_kept(len(kept.keep))
        conversation.remember_sent(result, request, compressor)
        self.finish_compression(conversation, result, compressor)
        return result.messages

    def finish_compression(
        self, conversation: Conversation, result: CompressResult, compressor: ContextCompressor
    ) -> None:
        """Give the recall tools; charge and report the compression."""
        if self.compressors.config.recall and (result.segments or result.masked):
            self._recall.give()
        self._notices.charge(result.usage)
        if result.written or result.newly_masked:
            self._notices.report_compression(conversation, compressor)

    def _view_after_failure(
        self, conversation: Conversation | None, request: HostRequest, error: Exception
    ) -> Sequence[Message]:
        cause = f"{type(error).__name__}: {error}"
        # Failures that differ only in numbers are logged once.
        if self._is_first(re.sub(r"\d+", "#", cause)):
            is_logged = conversation is not None and conversation.journal.has_logged(error)
            reason = "the store's failure, as logged" if is_logged else cause
            logger.warning(
                "agent %s: sent as well as it fits: %s", self._finder.agent_title, reason
            )
        self._notices(Event("failed", self._finder.running_or_new.session_id, {"reason": cause}))
        with self._log_failure("sent as it is"):
            overhead = self.compressors.overhead(request)
            return self._fit_view(conversation, request, logged=error, overhead_tokens=overhead)
        return request.messages

    def _fit_view(
        self, conversation: Conversation | None, request: HostRequest, **options: Any
    ) -> Sequence[Message]:
        compressor = self.compressors.for_model(request.model)
        target = conversation or self._finder.running_or_new
        result = compressor.fallback_view(request.messages, **target.options, **options)
        if conversation is not None:
            conversation.remember_sent(result, request, compressor)
        return result.messages

    def _is_first(self, failure: str) -> bool:
        if failure in self._failures:
            return False
        if len(self._failures) >= MOST_FAILURES:
            self._failures.clear()
        self._failures.add(failure)
        return True

    # ------------------------------------------------------------ answers

    def offer_recall(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the parameters; add the recall tools after the first compression."""
        with self._log_failure("sent without the recall tools"):
            return self._recall.add_to_request(params)
        return params

    async def record_calls(self, request: HostRequest, message: Message) -> None:
        """Record an answer's calls: the turn may stop before their results."""
        conversation = self._finder.running
        if conversation is None or not self.compressors.config.keep_tool_steps:
            return
        with self._log_failure("the calls of an answer are not recorded"):
            if self._finder.belongs_to_conversation(request.messages):
                compressor = self.compressors.for_model(request.model)
                await asyncio.to_thread(conversation.journal.add_calls, message, compressor)

    def record_usage(self, sent: SentRequest, usage: RequestUsage, previous: RequestUsage) -> None:
        """Bill a provider's usage since `previous`; learn from the usage."""
        with self._log_failure("nothing learned from the usage"):
            if not previous.prompt_tokens:
                self.compressors.learn_usage(sent, usage.prompt_tokens)
            conversation = self._finder.running
            request = sent.request
            if conversation is not None and usage != previous:
                compressor = self.compressors.for_model(request.model)
                bill = self._bill_report(request, conversation, usage, previous)
                compressor.add_to_bill(bill, session_id=conversation.session_id)
                messages = compressor.tokens.cache.all(request.messages)
                conversation.last_host_digests = tuple(m.digest for m in messages)

    def _bill_report(
        self,
        request: HostRequest,
        conversation: Conversation,
        usage: RequestUsage,
        previous: RequestUsage,
    ) -> Bill:
        is_new = not previous.prompt_tokens
        host_usage = self._host_usage(request, conversation, usage) if is_new else RequestUsage()
        host_usage = replace(
            host_usage, completion_tokens=usage.completion_tokens - previous.completion_tokens
        )
        bill = Bill.of(usage - previous, host_usage, request.model, is_new=is_new)
        kept = conversation.current_request.kept_steps
        return replace(bill, kept_steps=kept.steps, kept_tokens=kept.tokens) if is_new else bill

    def _host_usage(
        self, request: HostRequest, conversation: Conversation, usage: RequestUsage
    ) -> RequestUsage:
        """Estimate the usage if the host had sent its own messages."""
        tokens = self.compressors.for_model(request.model).tokens
        messages = tokens.cache.all(request.messages)
        sizes = tokens.each(messages)
        digests = [message.digest for message in messages]
        common = common_length(digests, conversation.last_host_digests)
        # A provider that caches only marked parts would cache nothing of the host's request.
        writes = usage.cache_write_tokens or usage.cache_write_1h_tokens
        is_warm = usage.cache_read_tokens > 0 and not writes
        all_tokens = sum(sizes) + request.schema_tokens(tokens)
        return RequestUsage(all_tokens, sum(sizes[:common]) if is_warm else 0)

    def learn_from_answer(self, sent: SentRequest) -> None:
        """Learn that the model accepts a request of this size."""
        with self._log_failure("nothing learned from an answer"):
            self.compressors.learn_pass(sent)

    async def next_view(self, sent: SentRequest, error: Exception) -> Sequence[Message] | None:
        """Return another view after a refusal, or None if none may pass."""
        is_learned = False
        with self._log_failure("the refusal is the turn's answer"):
            is_learned = await asyncio.to_thread(self.compressors.learn_refusal, sent, error)
        return await self.make_view(sent.request) if is_learned else None


def running_requests() -> AgentRequests | None:
    """Return the requests of the agent whose turn runs here, or None."""
    turn = running_turn()
    requests = None if turn is None else turn.requests
    return requests if isinstance(requests, AgentRequests) else None
