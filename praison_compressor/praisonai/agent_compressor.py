"""Show and control the compression of one agent: `agent.context_compressor`."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ..compressor.context_compressor import ContextCompressor
from ..compressor.preview import ContextUse, Preview
from ..compressor.result import CompressResult, ContextStatus
from ..concurrency import run
from ..config import CompressorConfig
from ..errors import SessionNotFound, StoreUnavailable
from ..events import Listener
from ..ledger.segments import Segment
from ..ledger.stores import DurableStore, Forgotten, SessionInfo, Store
from ..messages import Message, content_digest, leading_count
from ..messages.dropped_steps import CompletedRequest, history_from
from .agent_ledger import default_host_store, host_leftovers, host_store
from .agent_requests import AgentRequests
from .context_param import HostSettings, RequestedContext
from .conversation_finder import ConversationFinder, is_under, new_session_id
from .conversations import Choices, ChosenMessage, Conversation, Conversations, ShownMessage
from .journal import KeptSteps, count_kept_steps
from .model_compressors import ModelCompressors
from .notices import Notices
from .recall_tools import RecallTools, drop_copied_tools, wants_recall
from .running_turn import Turn, bot_conversation
from .wording import Status, status_of


class AgentCompressor:
    """Compress one agent's conversations; raise as `ContextCompressor` does."""

    def __init__(self, agent: Any, requested: RequestedContext, config: CompressorConfig) -> None:
        self._agent = weakref.ref(agent)
        self.requested = requested
        drop_copied_tools(agent)
        is_wanted = config.recall
        config = replace(config, recall=wants_recall(agent, is_wanted))
        self._conversations = Conversations()
        self._notices = Notices(self._agent, self._conversations.get)
        own_model = requested.own_model
        self._compressors = ModelCompressors(config, self._agent, own_model, self._notices)
        self._settings = HostSettings(agent, requested)
        self._finder = ConversationFinder(self._agent, self._compressors, self._conversations)
        self._recall = RecallTools(self._agent, self._finder, self._compressors)
        self.requests = AgentRequests(
            self._compressors,
            self._finder,
            self._notices,
            self._recall,
            automatic=requested.automatic,
        )
        if is_wanted:
            self._recall.give()

    def turn(self) -> Turn:
        """Return a new turn of the agent."""
        # A program may have replaced the settings since.
        self._settings.switch_off_compaction(self._agent())
        return self._finder.new_turn(self.requests)

    def leave(self) -> None:
        """Restore the agent's own settings and tools."""
        agent = self._agent()
        if agent is not None:
            self._recall.remove()
            self._settings.restore(agent)

    # ------------------------------------------------------------ the conversation now

    @property
    def config(self) -> CompressorConfig:
        """The options of the agent's own model."""
        return self._compressors.config

    @property
    def ledger(self) -> Store:
        """The store of this agent's conversations."""
        return self._compressors.open_ledger()

    @property
    def conversation(self) -> Conversation:
        """The running turn's conversation, else the conversation of `chat_history`."""
        return self._finder.current

    @property
    def session_id(self) -> str:
        """The conversation's session in the ledger."""
        return self.conversation.session_id

    @property
    def context_status(self) -> ContextStatus:
        """How the conversation's last request was sent: "full", "masked" or "summarized"."""
        result = self.last_result
        return "full" if result is None else result.context_status

    @property
    def last_result(self) -> CompressResult | None:
        """The result of the conversation's last request."""
        return self.conversation.current_request.result

    @property
    def notice(self) -> str | None:
        """The line that reported the conversation's last compression."""
        return self.conversation.notice

    def for_model(self, model: str | None = None) -> ContextCompressor:
        """Return the compressor for a model, by default the agent's own."""
        return self._compressors.for_model(model)

    def subscribe(self, listener: Listener) -> None:
        """Pass every event of this agent's compressions to `listener`."""
        self._notices.subscribe(listener)

    def status(self) -> Status:
        """Return the sizes of the conversation's last request."""
        conversation = self.conversation
        compressor = self.for_model(conversation.current_request.model)
        return status_of(conversation, compressor, compressor.bill(conversation.session_id))

    def kept_steps(self) -> KeptSteps:
        """Count the steps of earlier turns that the next request has."""
        return count_kept_steps(self._next_request().restored, self.for_model())

    def context_use(self) -> ContextUse:
        """Return the parts of the next request's window, in tokens."""
        conversation = self.conversation
        options, tools = conversation.options, conversation.current_request.tool_tokens
        messages = self._next_request().messages
        return self.for_model().context_use(messages, **options, overhead_tokens=tools)

    def next_messages(self) -> list[Message]:
        """Return the next request's messages before compression."""
        return self._next_request().messages

    def preview(self, *, write: bool = False) -> Preview:
        """Return what `compress` would keep, mask and summarize now; record nothing.

        With `write` a model writes the summaries, and the next `compress` uses them.
        """
        return self._show_preview(self.conversation.choices, write=write)

    def keep(self, references: Sequence[str]) -> Preview:
        """Keep messages of the last preview verbatim, by reference; return the preview."""
        choices = self.conversation.choices
        keep = dict.fromkeys((*choices.keep, *map(self._locate, references)))
        return self._show_preview(replace(choices, keep=tuple(keep)))

    def choose_range(self, since: str | None = None, until: str | None = None) -> Preview:
        """Compress next from reference `since` to before `until`; return the preview."""
        start, end = (end and self._locate(end) for end in (since, until))
        return self._show_preview(replace(self.conversation.choices, since=start, until=end))

    def set_focus(self, words: str) -> Preview:
        """Set the next summary's subject, "" for none; return the preview."""
        return self._show_preview(replace(self.conversation.choices, focus=words or None))

    def _locate(self, reference: str) -> ChosenMessage:
        """Return the message of the last preview, else the reference itself."""
        shown = self.conversation.last_preview or self.preview()
        if shown.repaired or not reference or reference not in shown.references:
            return reference
        index = shown.references.index(reference)
        digest = content_digest(shown.messages[index])
        return ShownMessage(index - leading_count(shown.messages), digest)

    def _show_preview(self, choices: Choices, *, write: bool = False) -> Preview:
        conversation = self.conversation
        messages = self._next_request().messages
        options = {**conversation.options, **choices.options(messages)}
        compressor = self._compressors.with_focus(choices.focus)
        preview = compressor.preview(messages, write=write, force=True, **options)
        conversation.choose(choices, preview)
        return preview

    def _next_request(self) -> CompletedRequest:
        conversation = self.conversation
        # The host keeps no system messages in its history.
        last, history = conversation.last_messages, self._finder.history or []
        messages = [*last[: leading_count(last)], *history[leading_count(history) :]]
        return conversation.journal.peek(messages, self.for_model())

    # ------------------------------------------------------------ compression and sessions

    async def acompress(self, focus: str | None = None) -> CompressResult:
        """Compress the conversation now; the summary keeps the subject `focus`."""
        conversation = self.conversation
        request = self._next_request()
        choices = replace(conversation.choices, focus=focus) if focus else conversation.choices
        async with self._notices.during(request.messages):
            compressor = await asyncio.to_thread(self._compressors.with_focus, choices.focus)
            options = {**conversation.options, **choices.options(request.messages), "force": True}
            result = await compressor.compress(request.messages, **options)
        if not result.vetoed:
            conversation.choose(Choices(), None)
        conversation.remember_next(result, request.restored, compressor)
        self.requests.finish_compression(conversation, result, compressor)
        return result

    def compress(self, focus: str | None = None) -> CompressResult:
        """Compress as `acompress` does, with or without a running event loop."""
        return run(self.acompress(focus))

    def idle(self) -> int:
        """Begin summaries of conversations whose cache is cold; return their number."""
        count = 0
        for conversation in self._conversations.newest():
            if messages := conversation.journal.transcript or conversation.last_messages:
                compressor = self.for_model(conversation.current_request.model)
                overhead = conversation.current_request.tool_tokens
                count += compressor.summarize_if_cold(
                    messages, **conversation.options, overhead_tokens=overhead
                )
        return count

    def pin(self, text: str) -> tuple[str, ...]:
        """Keep a text in every view word for word; return all pins."""
        conversation = self.conversation
        conversation.pin(text)
        return conversation.pinned

    def undo(self) -> tuple[Segment, ...]:
        """Undo the conversation's last compression, as `ContextCompressor.undo` does."""
        conversation = self.conversation
        compressor = self.for_model()
        undone = compressor.undo(conversation.session_id)
        if undone:
            request = self._next_request()
            result = compressor.fallback_view(request.messages, **conversation.options)
            conversation.remember_next(result, request.restored, compressor)
        return undone

    def new_session(self) -> str:
        """Begin a conversation with an empty archive; return its session id."""
        return self._finder.switch_to(new_session_id(self._finder.host_id), ()).session_id

    def resume(self, session_id: str) -> str:
        """Go on with a stored session; return its id.

        `session_id` may be the id of any epoch. The agent's history becomes the session's questions
        and answers. Without `keep_tool_steps` the history becomes the view.

        Raises:
            SessionNotFound: no such session in this namespace, or another bot user's session.
        """
        root = self.ledger.lineage(self.config.namespace, session_id)[-1].session_id
        agent = self._agent()
        if not is_under(root, bot_conversation(agent).bot_id):
            raise SessionNotFound(f"no session {session_id} of this conversation")
        if agent is None or (root == self.session_id and agent.chat_history):
            return root
        compressor = self.for_model()
        result = compressor.resume(root)
        history = self._resumed_history(root, result)
        self._finder.switch_to(root, history).remember_next(result, (), compressor)
        return root

    def _resumed_history(self, session_id: str, result: CompressResult) -> list[Message]:
        messages = result.messages
        if self.config.keep_tool_steps:
            transcript = self.ledger.transcript(self.ledger.open(self.config.namespace, session_id))
            messages = history_from(transcript, self.for_model().tokens.cache).without_work
        return list(messages[leading_count(messages) :])

    def sessions(self) -> list[SessionInfo]:
        """Return the stored sessions of the conversation's user, the newest first."""
        if not isinstance(self.ledger, DurableStore):
            return []
        host_id = self._finder.host_id
        own = self._finder.user_sessions()
        stored = self.ledger.sessions(self.config.namespace)
        listed = (s for s in stored if s.id in own or (host_id and is_under(s.id, host_id)))
        return sorted(listed, key=lambda session: session.updated, reverse=True)

    def save(self) -> int:
        """Record the conversations for `resume`; return how many are recorded."""
        self.for_model().save_bills()
        if self.config.keep_tool_steps and isinstance(self.ledger, DurableStore):
            compressor = self.for_model()
            return sum([c.journal.record(compressor) for c in self._conversations.newest()])
        return self.for_model().save_transcripts()

    def forget(self, target: str | None = None) -> Forgotten:
        """Remove a session or a message from the ledger.

        `target` is a session's id or a message's digest; None is the conversation's session.

        Raises:
            SessionNotFound: the namespace has no such session or message.
            StoreUnavailable: the store cannot be reached, or is in memory.
        """
        if not isinstance(self.ledger, DurableStore):
            raise StoreUnavailable(
                "the ledger is in memory: nothing of it is kept, and it ends with this process"
            )
        forgotten = self.ledger.forget(self.config.namespace, target or self.session_id)
        agent = self._agent()
        # The host's session outlives the agent.
        host = default_host_store() if agent is None else host_store(agent)
        left = host_leftovers(host, forgotten.sessions)
        return replace(forgotten, left=left)
