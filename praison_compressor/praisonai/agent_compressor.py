"""`agent.context_compressor`: the views of an agent's requests, and its users' commands."""

from __future__ import annotations

import asyncio
import logging
import re
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from ..compressor.context_compressor import ContextCompressor
from ..compressor.preview import ContextUse
from ..compressor.result import CompressResult
from ..config import CompressorConfig
from ..errors import SessionNotFound, StoreUnavailable
from ..events import Event, Listener
from ..ledger.segments import Segment, Store
from ..ledger.sql.store import SqlStore
from ..ledger.tools import recall_tools
from ..messages import Message
from ..messages.completing import Carried, Completed, carried_in
from ..messages.forks import renewed
from ..summaries.threads import run
from ..tokens.refusals import overflow_of
from .conversations import Conversation, Turn, bound_by_host, is_under, named_by_host
from .engines import Engines, bill
from .journal import Kept, kept_of
from .notices import Notices, Status, status_of
from .options import RequestedContext, takes_whole_results
from .recall import RecallTools, drop_copied, wants_recall
from .requests import (
    ROLES,
    HostRequest,
    alternating,
    carries_conversation,
    conversation_now,
    refused_in,
    replace_conversation,
    unbound,
    without_window,
)
from .sessions import (
    Forgotten,
    archive_of,
    forget,
    host_session,
)
from .settings import Settings
from .whose import Whose

log = logging.getLogger(__name__)

TURN_MESSAGES = 40
"""After that number of messages a long turn may read of the archive again."""


class AgentCompressor:
    """Compress the conversations of one agent. Nothing raises into a turn of the agent.

    What is remembered between turns is a conversation's (`conversations`). The agent's are what
    holds for every conversation: learned windows, refused keys, and failures that were logged once.
    """

    def __init__(self, agent: Any, asked: RequestedContext, config: CompressorConfig) -> None:
        self._agent = weakref.ref(agent)
        self.asked = asked
        drop_copied(agent)
        asked_recall = config.recall
        config = replace(config, recall=wants_recall(agent, asked_recall))
        self._notices = Notices(self._agent, self._named)
        self._engines = Engines(config, self._agent, asked.own_model, self._notices)
        self._whose = Whose(self._agent, self, self._engines)
        self._failures: set[str] = set()
        self._refused: set[tuple[str | None, str]] = set()
        self._lock = renewed(threading.Lock())
        self._passed = 0
        self._settings = Settings(self._agent, takes_whole_results(agent, asked))
        self._recall = RecallTools(self._recall_tools)
        if asked_recall:
            self._recall.give(agent)

    @property
    def config(self) -> CompressorConfig:
        """Return the options in force."""
        return self._engines.config

    @property
    def conversation(self) -> Conversation:
        """Return the running turn's conversation, else the one that the history carries now."""
        return self._whose.now

    @property
    def session_id(self) -> str:
        """Return the ledger's session of the conversation."""
        return self.conversation.session_id

    @property
    def context_status(self) -> str:
        """Return "full", "masked" or "summarized", for the conversation's last request."""
        last = self.conversation.result
        return "full" if last is None else last.context_status

    @property
    def last_result(self) -> CompressResult | None:
        """Return the result of the conversation's last request."""
        return self.conversation.result

    @property
    def has_sent(self) -> bool:
        """Return whether a request of this agent has passed in this process."""
        return self._passed > 0

    @property
    def notice(self) -> str | None:
        """Return the line that reported the conversation's last compression."""
        return self.conversation.notice

    @property
    def ledger(self) -> Store:
        """Return the store of this agent's conversations."""
        return self._engines.open()

    def engine(self, model: str | None = None) -> ContextCompressor:
        """Return the compressor for a model's window; this agent's compressors share a ledger."""
        return self._engines.of(model)

    def subscribe(self, listener: Listener) -> None:
        """Pass every event of this agent's compressions to `listener`, with its numbers."""
        self._notices.subscribe(listener)

    def leave(self) -> None:
        """Give the agent back what it had."""
        agent = self._agent()
        if agent is not None:
            self._recall.take_back(agent)
        self._settings.restore()

    # ------------------------------------------------------------ turns

    @contextmanager
    def turn(self) -> Iterator[Turn]:
        """Run a turn of the agent; log once if no request of a turn passed us.

        Then the host has moved, or another system answers for the model.
        """
        self._settings.compress_alone()
        before, turn = self._passed, self._whose.begun()
        turn.bound = bound_by_host(self._agent())
        has_failed = False
        try:
            yield turn
        except Exception:
            has_failed = True
            raise
        finally:
            self._whose.end(turn)
            self._end(turn, self._whose.history or (), has_failed=has_failed)
        if self._passed == before and "unseen" not in self._failures:
            self._failures.add("unseen")
            log.warning(
                "agent %s: a turn ended and no request passed the compressor: another answered for "
                "the model, or the host has moved (`praison-compressor doctor` tries it)",
                self._name(),
            )

    # ------------------------------------------------------------ requests

    def _end(self, turn: Turn, history: Sequence[Any], *, has_failed: bool) -> None:
        """Add a turn's answer to what its conversation carried; never raise."""
        if turn.conversation is None:
            return
        try:
            turn.conversation.journal.end(history, self.engine(), has_failed=has_failed)
        except Exception:
            log.exception("agent %s: the turn's answer is not remembered", self._name())

    def settle(self, turn: Turn) -> None:
        """Record a finished turn's answer where its conversation is recorded; never raise."""
        if turn.conversation is None or not self.config.keep_tool_steps:
            return
        try:
            turn.conversation.journal.settle(self.engine())
            self._whose.all.bound_journals()
        except Exception:
            log.exception("agent %s: the turn's answer is not recorded", self._name())

    async def view(self, request: HostRequest) -> Sequence[Message]:
        """Return the messages to send instead of the request's. Never block the event loop."""
        self._passed += 1
        try:
            request = replace(request, messages=without_window(self._agent(), request.messages))
            if self._compresses(request) and not self._engines.is_unsure(request.model):
                view: Sequence[Message] = (await self._run(request)).messages
            else:
                view = await asyncio.to_thread(self._projected, request)
        except Exception as error:
            view = await asyncio.to_thread(self._best, request, error)
        foreign = self._whose.for_reading.journal.of_another_model()
        if foreign:
            view = [unbound(message) if id(message) in foreign else message for message in view]
        return alternating(view) if ROLES in self.refused(request) else view

    async def called(self, request: HostRequest, made: Message | None) -> None:
        """Take the calls of an answer: a turn that is stopped in them shows that they were made."""
        found = self._whose.running
        if made is None or found is None or not self.config.keep_tool_steps:
            return
        try:
            if carries_conversation(self._agent(), request.messages):
                await asyncio.to_thread(found.journal.call, made, self.engine(request.model))
        except Exception:
            log.exception("agent %s: the calls of an answer are not recorded", self._name())

    def offering(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the request's parameters, with the recall tools after the first compression."""
        try:
            return self._recall.offered(self._agent(), params)
        except Exception:
            log.exception("agent %s: sent without the recall tools", self._name())
            return params

    def _recall_tools(self) -> list[Callable[..., str]]:
        weak = weakref.ref(self)

        def ours() -> AgentCompressor:
            found = weak()  # the agent holds its tools, and must not hold its compressor
            if found is None:
                raise StoreUnavailable("the conversation's archive is closed")
            return found

        return recall_tools(
            # Asked at each call: a store may come late, and each turn has its own conversation.
            lambda: ours()._archive(),
            lambda: ours().ledger.open(ours().config.namespace, ours()._whose.asking.session_id),
            lambda text: ours().engine().tokens.text(text),
            turn=lambda: (ours()._whose.asking.session_id, ours()._whose.asking.progress),
        )

    def _archive(self) -> Store:
        found, namespace = self._whose.asking, self.config.namespace
        return archive_of(self.ledger, namespace, found.session_id, found.reads)

    def used(self, request: HostRequest, sent: Sequence[Message], reported: int) -> None:
        """Learn from the prompt tokens that the provider reports for what was sent."""
        try:
            window = self._engines.used(request, sent, reported)
        except Exception:
            log.exception("agent %s: nothing learned from the usage", self._name())
            return
        if window is not None:
            log.warning(
                "agent %s: %s silently reads at most %d tokens of a request: its window is now "
                "taken as that",
                *(self._name(), request.model, window),
            )

    def passed(self, request: HostRequest, sent: Sequence[Message]) -> None:
        """Learn that the provider took what was sent."""
        try:
            window = self._engines.passed(request, sent)
        except Exception:
            log.exception("agent %s: nothing learned from an answer", self._name())
            return
        if window is not None:
            log.warning(
                "agent %s: the window of %s is now taken as %d tokens, by what it refused and took",
                *(self._name(), request.model, window),
            )

    def gave_up(self, request: HostRequest) -> None:
        """Forget what the refusals of a request taught: no view of it was taken."""
        self._engines.gave_up(request)

    def refused(self, request: HostRequest) -> frozenset[str]:
        """Return what the request's model has refused."""
        return frozenset(what for model, what in self._refused if model == request.model)

    async def other_view(
        self, request: HostRequest, sent: Sequence[Message], error: Exception
    ) -> Sequence[Message] | None:
        """Return the view after a refusal that says what to change; None after any other."""
        learned = await asyncio.to_thread(self._learned, request, sent, error)
        return await self.view(request) if learned else None

    def _compresses(self, request: HostRequest) -> bool:
        """Return whether the request may move its session on: it carries the conversation."""
        if not self.asked.automatic:
            return False
        if carries_conversation(self._agent(), request.messages):
            return True
        said = (
            "agent %s: a request of %d messages to %s is no part of the conversation: not recorded"
        )
        log.debug(said, self._name(), len(request.messages), request.model)
        return False

    def _projected(self, request: HostRequest) -> Sequence[Message]:
        """Return the request as the ledger has it; only what would be refused is made to fit."""
        self._engines.open()
        return self._fitted(request, target_tokens=self._engines.room(request))

    def _fitted(self, request: HostRequest, **options: Any) -> Sequence[Message]:
        """Return the best view, recorded nowhere; the status has it where the request counts."""
        counts = carries_conversation(self._agent(), request.messages)
        found, engine = self._whose.for_reading, self.engine(request.model)
        if counts:
            found = self._whose.carrying(request)
            request = self._completed(request, found)
        result = engine.best(request.messages, **_of(found), **options)
        if counts:
            found.remember(result, self._engines.measured(request), request.model)
            found.kept = found.journal.kept(result.messages, engine)
        return result.messages

    def _completed(self, request: HostRequest, found: Conversation) -> HostRequest:
        """Return the request with what the host left out of its conversation."""
        if not self.config.keep_tool_steps:
            return request
        turn = self._whose.turn
        bound = 0 if turn is None else turn.bound
        try:
            messages = found.journal.complete(
                request.messages, self.engine(), turn=turn, bound=bound
            )
        except Exception:
            log.exception("agent %s: sent without the steps of earlier turns", self._name())
            return request
        return replace(request, messages=messages)

    async def _run(
        self,
        request: HostRequest,
        found: Conversation | None = None,
        *,
        forced: bool = False,
        focus: str | None = None,
    ) -> CompressResult:
        async with self._notices.during(request):
            # In a thread: a store may have to be opened, a vocabulary to be read.
            prepared = asyncio.to_thread(self._prepared, request, found, forced, focus)
            found, request, engine, beside, options = await prepared
            result = await engine.compress(request.messages, **_of(found), **options)
        found.remember(result, beside, request.model)
        found.kept = found.journal.kept(result.messages, engine)
        if self.config.recall and (result.segments or result.masked):
            self._recall.give(self._agent())
        users = sum(message.get("role") == "user" for message in request.messages)
        found.progress = users, len(request.messages) // TURN_MESSAGES
        bill(self._agent(), result.usage)
        if result.written or result.newly_masked:
            found.notice = self._notices.compressed(self._status_of(found))
        return result

    def _prepared(
        self, request: HostRequest, found: Conversation | None, forced: bool, focus: str | None
    ) -> tuple[Conversation, HostRequest, ContextCompressor, int, dict[str, Any]]:
        """Return whose request it is, all of it, the engine, tokens beside it, the options."""
        self._engines.open()
        if found is None:
            found = self._whose.carrying(request)
            request = self._completed(request, found)
        engine, beside = self.engine(request.model), self._engines.measured(request)
        if forced:
            engine, beside = self._engines.focused(focus), found.overhead_tokens
            return found, request, engine, beside, {"force": True}
        return found, request, engine, beside, {"overhead_tokens": self._engines.overhead(request)}

    def _best(self, request: HostRequest, error: Exception) -> Sequence[Message]:
        """Return the best view after a failure of ours; log the cause once.

        The failure must not end the turn.
        """
        cause = f"{type(error).__name__}: {error}"
        kind = re.sub(r"\d+", "#", cause)  # the same again, with other numbers, is not news
        with self._lock:
            is_new = kind not in self._failures
            self._failures.add(kind)
        if is_new:
            said = "the store's failure, as logged" if self._is_logged(error) else cause
            log.warning("agent %s: sent as well as it fits: %s", self._name(), said)
        self._notices(Event("failed", self._whose.for_reading.session_id, {"reason": cause}))
        try:
            overhead = self._engines.overhead(request)
            return self._fitted(request, logged=error, overhead_tokens=overhead)
        except Exception:
            log.exception("agent %s: sent as it is", self._name())
            return request.messages

    def _is_logged(self, error: Exception) -> bool:
        """Return whether the running conversation's journal has logged this failure."""
        found = self._whose.running
        return found is not None and found.journal.failure == str(error)

    def _learned(self, request: HostRequest, sent: Sequence[Message], error: Exception) -> bool:
        """Learn from a refusal what the model takes; return whether the refusal says that."""
        what = refused_in(error)
        if what is not None and what not in self.refused(request):
            log.info("agent %s: %s does not take %s", self._name(), request.model, what)
            self._refused.add((request.model, what))
            return True
        refused = overflow_of(error, self._engines.size(request, sent))
        if refused is None or not self._engines.shrink(request, sent, refused, str(error)):
            return False
        log.info("agent %s: %s refused a request as too long", self._name(), request.model)
        return True

    def _named(self, session_id: str) -> Conversation | None:
        return self._whose.all.named(session_id)

    def _name(self) -> str:
        return str(getattr(self._agent(), "display_name", "(gone)"))

    # ------------------------------------------------------------ commands

    def _now(self) -> HostRequest:
        """Return the conversation between two turns, with the system prompt that was sent last."""
        now = conversation_now(self._agent(), self.conversation.transcript)
        return replace(now, messages=self._at_rest(now).messages)

    def _at_rest(self, now: HostRequest) -> Completed:
        if not self.config.keep_tool_steps:
            return Completed([*now.messages], Carried(), [], [])
        return self.conversation.journal.at_rest(now.messages, self.engine())

    def kept(self) -> Kept:
        """Return the steps of earlier turns that a request would carry now, before compression."""
        now = conversation_now(self._agent(), self.conversation.transcript)
        return kept_of(self._at_rest(now).back, self.engine())

    def status(self) -> Status:
        """Return the conversation's tokens, window and session as of its last request."""
        return self._status_of(self.conversation)

    def _status_of(self, found: Conversation) -> Status:
        engine = self.engine(found.model)
        status = status_of(found.result, found.overhead_tokens, engine, found.session_id)
        return replace(status, earlier=found.kept)

    def context_use(self) -> ContextUse:
        """Return what would fill the window if the conversation were sent now.

        Raises:
            CompressorError: as `ContextCompressor.context_use` does.
        """
        found = self.conversation
        return self.engine().context_use(
            self._now().messages,
            session_id=found.session_id,
            overhead_tokens=found.tool_tokens,
        )

    async def acompress(self, focus: str | None = None) -> CompressResult:
        """Compress the conversation now; `focus` names what the summary must keep.

        Raises:
            CompressorError: as `ContextCompressor.compress` does; this is no turn of the agent.
        """
        return await self._run(self._now(), self.conversation, forced=True, focus=focus)

    def compress(self, focus: str | None = None) -> CompressResult:
        """Compress the conversation now, from anywhere."""
        return run(self.acompress(focus))

    def pin(self, text: str) -> tuple[str, ...]:
        """Keep a text word for word in every compressed view; return the conversation's pins."""
        found = self.conversation
        found.pinned = tuple(dict.fromkeys((*found.pinned, text)))
        return found.pinned

    def undo(self) -> tuple[Segment, ...]:
        """Take the conversation's last compression back, as `ContextCompressor.undo` does.

        Raises:
            LedgerError: the store cannot be read or written.
        """
        return self.engine().undo(self.session_id)

    def new_session(self) -> str:
        """Begin a conversation with an empty archive; return its session id."""
        agent = self._agent()
        if agent is not None:
            agent.clear_history()
        return self._whose.all.begin(self._whose.key).session_id

    def resume(self, session_id: str, token_budget: int | None = None) -> str:
        """Go on with a session that the store has; any of its epochs' ids names it.

        The agent's history becomes the session's questions and answers; tool steps come back with
        the next request. With `token_budget`, or without `keep_tool_steps`, it becomes the whole
        transcript where that fits, else its view. An agent that is in that session already keeps
        its own history.

        Raises:
            SessionNotFound: the store has none of that name in this namespace, or it is another
                person's: in a bot's turn only the sessions under the bot's own key are found.
            BudgetTooSmall: what cannot be dropped exceeds `token_budget`.
        """
        root = self.ledger.lineage(self.config.namespace, session_id)[-1].session_id
        agent = self._agent()
        if not is_under(root, named_by_host(agent)):
            raise SessionNotFound(f"no session {session_id} of this conversation")
        if agent is None or (root == self.session_id and agent.chat_history):
            return root
        result = self.engine().resume(root, token_budget)
        messages = result.messages
        if self.config.keep_tool_steps and token_budget is None:
            messages = self._spoken(root)
        replace_conversation(agent, messages)
        history, whose = self._whose.history, self._whose
        found = whose.all.adopt(whose.key, root, whose.seen(history), history)
        found.remember(result, 0, None)
        return root

    def _spoken(self, session_id: str) -> list[Message]:
        """Return the questions and answers of a stored session."""
        engine = self.engine()
        session = engine.store.open(self.config.namespace, session_id)
        return carried_in(engine.store.transcript(session), engine.tokens.cache).spoken

    def save(self) -> int:
        """Record the conversations as they are, for `resume` in another process.

        With `keep_tool_steps` and a store on disk each request and each answer is recorded by
        itself. Returns how many sessions are recorded.
        """
        if self.config.keep_tool_steps and isinstance(self.ledger, SqlStore):
            return self._whose.all.settle(self.engine())
        return self.engine().save_all()

    def forget(self, target: str | None = None) -> Forgotten:
        """Remove a session (None: this one) or a message (by its digest) from the ledger.

        The agent's own history stays, and so does the transcript in the host's session store.

        Raises:
            SessionNotFound: the store has none of that name in this namespace.
            StoreUnavailable: it cannot be reached, or it is this process's memory.
        """
        session = host_session(self._agent())
        there = None if session is None else session[0]
        return forget(self.ledger, self.config.namespace, target or self.session_id, there)


def _of(found: Conversation) -> dict[str, Any]:
    """Return the options of a compression that are the conversation's."""
    pins = {"pinned": found.pinned} if found.pinned else {}
    return {"session_id": found.session_id, **pins}


def model_of(agent: Any) -> str | None:
    """Return the agent's own model, by the host's name for it."""
    model = getattr(agent, "llm", None)
    return model if isinstance(model, str) else None
