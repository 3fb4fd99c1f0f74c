"""One agent's compression: the view of each of its requests, its recall tools and its commands."""

from __future__ import annotations

import asyncio
import logging
import operator
import re
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..compressor.context_compressor import ContextCompressor
from ..compressor.pipeline import mask_segment
from ..compressor.result import CompressResult
from ..config import CompressorConfig
from ..errors import CompressorError, StoreUnavailable
from ..events import Listener
from ..ledger.recall import recall_tools
from ..ledger.segments import Segment, Store
from ..messages import Message, Transcript, digest, read, to_plain
from ..messages.forks import renewed
from ..summaries.threads import off_loop
from ..tokens.overflow import overflow_of
from ..view.layout import lay
from ..view.masks import MaskLines
from .engines import Engines
from .host_compaction import PassThroughManager, manager_for
from .notices import Notices
from .options import RequestedContext
from .requests import (
    HostRequest,
    alternating,
    carries_conversation,
    conversation_now,
    refused_key,
    refuses_roles,
    replace_conversation,
    without_window,
)
from .sessions import Mirror, SessionName, place_of
from .status import Status, status_of
from .wire import bill

if TYPE_CHECKING:
    from .sessions import Forgotten

__all__ = [
    "AgentCompressor",
    "RecallTools",
    "prune",
]


# -------------------------------------------------------------- pruning


def prune(engine: ContextCompressor, messages: Sequence[Any], session_id: str) -> int:
    """Record a mask for every large output before the newest turn; returns how many.

    Raises:
        LedgerError: the store cannot be read or written.
    """
    session = engine.store.open(engine.config.namespace, session_id)
    segments = [entry.segment for entry in session.entries]
    known = {segment.run[0] for segment in segments if segment.kind == "mask"}
    transcript = read(messages)
    found = [
        (segment, [to_plain(original)])
        for segment, original in _masks(engine, transcript, segments, len(messages))
        if segment.run[0] not in known
    ]
    if found:
        engine.store.commit(session, found)
        engine.save(messages, session_id=session_id)
    return len(found)


def _masks(
    engine: ContextCompressor, transcript: Transcript, segments: Sequence[Segment], length: int
) -> Iterator[tuple[Segment, Message]]:
    messages, count = transcript.messages, engine.tokens.message
    users = [index for index, message in enumerate(messages) if message["role"] == "user"]
    newest = users[-1] if users else 0
    tiles = lay(list(map(digest, messages)), segments, [True] * len(messages))
    summarized = {i for t in tiles if t.segment is not None for i in range(t.start, t.end)}
    tokens = [count(message) for message in messages]
    for index, line in MaskLines(engine.tokens.cache)(messages, tokens, engine.config):
        size = count(line)
        if index < newest and index not in summarized and size < tokens[index]:
            segment = mask_segment(
                digest(messages[index]),
                line,
                tokens=size,
                source_tokens=tokens[index],
                transcript_length=length,
            )
            yield segment, messages[index]


# -------------------------------------------------------------- recalling


log = logging.getLogger(__name__)


class RecallTools:
    """Gives an agent its tools, and takes back exactly those."""

    def __init__(self, agent: Any, compressor: AgentCompressor) -> None:
        self._agent = weakref.ref(agent)
        taken = {getattr(tool, "__name__", None) for tool in _tools_of(agent)}
        self._given = [tool for tool in _made(compressor) if tool.__name__ not in taken]
        if self._given:
            agent.tools = [*_tools_of(agent), *self._given]

    def take_back(self) -> None:
        """The agent's tools as they were."""
        agent = self._agent()
        if agent is not None and self._given:
            agent.tools = [tool for tool in _tools_of(agent) if tool not in self._given]


def _tools_of(agent: Any) -> list[Any]:
    tools = getattr(agent, "tools", None)
    if isinstance(tools, (list, tuple)):
        return list(tools)
    return [] if tools is None else [tools]


def _made(compressor: AgentCompressor) -> list[Callable[..., str]]:
    if not compressor.config.recall:
        return []
    weak = weakref.ref(compressor)  # the agent holds its tools, and must not hold its compressor

    def ours() -> AgentCompressor:
        found = weak()
        if found is None:
            raise StoreUnavailable("the conversation's archive is closed")
        return found

    try:
        store = compressor.ledger
    except CompressorError as error:
        log.warning("no recall tools: %s", error)
        return []
    return recall_tools(
        store,
        # Asked at each call: a command may have changed the session.
        lambda: store.open(ours().config.namespace, ours().session_id),
        lambda text: ours().engine().tokens.text(text),
    )


# -------------------------------------------------------------- agent compressor


ROLES = "two messages of one role in a row"


class AgentCompressor:
    """What `agent.context_compressor` is. Nothing in it raises into a turn of the agent."""

    def __init__(self, agent: Any, asked: RequestedContext, defaults: Mapping[str, Any]) -> None:
        self._agent = weakref.ref(agent)
        self._asked = asked
        self._session = SessionName()
        self._notices = Notices(self._agent)
        self._engines = Engines(
            asked.config(_model_of(agent), defaults), self._agent, asked.own_model, self._notices
        )
        self._mirror = Mirror(self._agent, lambda: self._engines.ledger)
        self._failures: set[str] = set()
        self._refused: set[tuple[str | None, str]] = set()
        self._lock = renewed(threading.Lock())
        self._last: CompressResult | None = None
        self._last_overhead = 0
        self._found = _state(agent)
        self._manager: PassThroughManager | None = None
        self._recall = RecallTools(agent, self)

    # ------------------------------------------------------------ what it is

    @property
    def config(self) -> CompressorConfig:
        """The options in force."""
        return self._engines.config

    @property
    def session_id(self) -> str:
        """The agent's session id, or a random one of its own."""
        return self._session.of(self._agent())

    @property
    def context_status(self) -> str:
        """Of the last request: "full", "masked" or "summarized"."""
        return "full" if self._last is None else self._last.context_status

    @property
    def last_result(self) -> CompressResult | None:
        """Of the last request that belonged to the conversation."""
        return self._last

    @property
    def notice(self) -> str | None:
        """The line that told of the last compression."""
        return self._notices.line

    @property
    def ledger(self) -> Store:
        """Where this agent's conversations are kept."""
        return self._engines.ledger

    def engine(self, model: str | None = None) -> ContextCompressor:
        """The compressor for a model's window; all of this agent's share one ledger."""
        return self._engines.of(model)

    def subscribe(self, listener: Listener) -> None:
        """Have every event of this agent's compressions passed on, with its numbers."""
        self._notices.subscribe(listener)

    # ------------------------------------------------------------ the agent's manager

    @property
    def is_in_place(self) -> bool:
        """Whether the agent still asks as it did, or has the manager that we gave it."""
        agent = self._agent()
        if agent is None:
            return False
        if self._manager is not None:
            return agent._context_manager is self._manager
        return all(map(operator.is_, _state(agent), self._found))

    def put_in_place(self) -> None:
        """Give the agent our manager, now that it is asked for.

        Not before: the host's looks up the model's window in litellm, whose import takes seconds,
        and a turn may begin on an event loop.
        """
        agent = self._agent()
        with self._lock:
            if agent is not None and self._manager is None:
                self._manager = manager_for(agent, self._asked.context)
                agent.context_manager = self._manager

    def leave(self) -> None:
        """Give the agent back what it had; the host builds its own manager where it had none."""
        self._recall.take_back()
        agent = self._agent()
        if agent is None or self._manager is None or not self.is_in_place:
            return
        _, manager, initialized = self._found
        ours = isinstance(manager, PassThroughManager)  # of the agent that this one was copied from
        agent._context_manager = None if ours else manager
        agent._context_manager_initialized = initialized and not ours

    # ------------------------------------------------------------ views

    def view(self, request: HostRequest) -> Sequence[Message]:
        """What to send instead of the request's messages."""
        return self._in_its_roles(request, self._view(request))

    async def aview(self, request: HostRequest) -> Sequence[Message]:
        """The same on the event loop, which is never held up."""
        return self._in_its_roles(request, await self._aview(request))

    def _view(self, request: HostRequest) -> Sequence[Message]:
        try:
            request = self._without_window(request)
            if not self._compresses(request):
                return self._projected(request)
            with self._notices.during(request):
                engine = self.engine(request.model)
                overhead = self._engines.overhead(request)
                result = off_loop(
                    lambda: engine.compress_sync(
                        request.messages,
                        session_id=self.session_id,
                        overhead_tokens=overhead,
                        tools=request.chat_tools,
                    )
                )
                self._mirror.show(engine.config.namespace, result)
                return self._sent(result, self._engines.measured(request))
        except Exception as error:
            return self._best(request, error)

    async def _aview(self, request: HostRequest) -> Sequence[Message]:
        try:
            request = self._without_window(request)
            if not self._compresses(request):
                return await asyncio.to_thread(self._projected, request)
            async with self._notices.during(request):
                engine = await asyncio.to_thread(self.engine, request.model)
                overhead = await asyncio.to_thread(self._engines.overhead, request)
                result = await engine.compress(
                    request.messages,
                    session_id=self.session_id,
                    overhead_tokens=overhead,
                    tools=request.chat_tools,
                )
                await asyncio.to_thread(self._mirror.show, engine.config.namespace, result)
                beside = await asyncio.to_thread(self._engines.measured, request)
                return self._sent(result, beside)
        except Exception as error:
            return await asyncio.to_thread(self._best, request, error)

    def used(self, request: HostRequest, sent: Sequence[Message], reported: int) -> None:
        """Learn from the prompt tokens that the provider reports for what was sent."""
        try:
            self.engine(request.model).tokens.calibrate(sent, reported, request.tools)
        except Exception:
            log.exception("agent %s: nothing learned from the usage", self._name())

    def refused(self, request: HostRequest) -> frozenset[str]:
        """What the request's model was found not to take."""
        return frozenset(what for model, what in self._refused if model == request.model)

    def other_view(
        self, request: HostRequest, sent: Sequence[Message], error: Exception
    ) -> Sequence[Message] | None:
        """What to send after a refusal that says what to change; None after any other."""
        return self.view(request) if self._learned(request, sent, error) else None

    async def aother_view(
        self, request: HostRequest, sent: Sequence[Message], error: Exception
    ) -> Sequence[Message] | None:
        """The same on the event loop."""
        learned = await asyncio.to_thread(self._learned, request, sent, error)
        return await self.aview(request) if learned else None

    def _without_window(self, request: HostRequest) -> HostRequest:
        return replace(request, messages=without_window(self._agent(), request.messages))

    def _compresses(self, request: HostRequest) -> bool:
        """Whether the request may move the session on: the conversation itself, unless told not."""
        if not self._asked.automatic:
            return False
        carries = carries_conversation(self._agent(), request.messages)
        if not carries:
            log.debug(
                "agent %s: a request of %d messages to %s has fewer than two of the "
                "conversation's and starts otherwise: made to fit, not recorded",
                self._name(),
                len(request.messages),
                request.model,
            )
        return carries

    def _projected(self, request: HostRequest) -> Sequence[Message]:
        """The request through the ledger as it is; only what would be refused is made to fit."""
        return self._fitted(request, target_tokens=self._engines.room(request))

    def _fitted(self, request: HostRequest, **options: Any) -> Sequence[Message]:
        """The best view, recorded nowhere; the status tells of it where it is the conversation."""
        result = self.engine(request.model).best(
            request.messages, session_id=self.session_id, **options
        )
        if carries_conversation(self._agent(), request.messages):
            self._last, self._last_overhead = result, self._engines.measured(request)
        return result.messages

    def _sent(self, result: CompressResult, overhead: int) -> Sequence[Message]:
        self._last, self._last_overhead = result, overhead
        bill(self._agent(), result.usage)
        if result.written or result.newly_masked:
            self._notices.compressed(self.status(), result)
        return result.messages

    def _best(self, request: HostRequest, error: Exception) -> Sequence[Message]:
        """Our own failure must not end the turn: said once with its cause, the best view sent."""
        cause = f"{type(error).__name__}: {error}"
        kind = re.sub(r"\d+", "#", cause)  # the same again, with other numbers, is not news
        with self._lock:
            is_new = kind not in self._failures
            self._failures.add(kind)
        if is_new:
            log.warning("agent %s: sent as well as it fits: %s", self._name(), cause)
        self._notices.failed(self.session_id, cause)
        try:
            overhead = self._engines.overhead(request)
            return self._fitted(request, told=error, overhead_tokens=overhead)
        except Exception:
            log.exception("agent %s: sent as it is", self._name())
            return request.messages

    def _in_its_roles(self, request: HostRequest, view: Sequence[Message]) -> Sequence[Message]:
        return alternating(view) if ROLES in self.refused(request) else view

    def _learned(self, request: HostRequest, sent: Sequence[Message], error: Exception) -> bool:
        """Take from a refusal what the model wants; False when it says nothing of that."""
        what = ROLES if refuses_roles(error) else refused_key(error)
        if what is not None and what not in self.refused(request):
            log.info("agent %s: %s does not take %s", self._name(), request.model, what)
            self._refused.add((request.model, what))
            return True
        refused = overflow_of(error)
        if refused is None:
            return False
        window = self._engines.shrink(request, sent, refused)
        log.warning(
            "agent %s: %s refused the request as too long; its window is now taken as %d tokens",
            self._name(),
            request.model,
            window,
        )
        return True

    def _name(self) -> str:
        return str(getattr(self._agent(), "display_name", "(gone)"))

    # ------------------------------------------------------------ commands

    def _now(self) -> HostRequest:
        """The conversation between two turns, below the system prompt that was sent last."""
        return conversation_now(self._agent(), () if self._last is None else self._last.messages)

    def status(self) -> Status:
        """Where the conversation stands: its tokens, its window, its session."""
        return status_of(
            self._last,
            self.engine(),
            session_id=self.session_id,
            overhead=self._last_overhead,
            window=self._engines.window(None),
            store=place_of(self.ledger),
        )

    def compress(self, focus: str | None = None) -> CompressResult:
        """Compress the agent's conversation now, with `focus` as what to keep most of all.

        Raises:
            CompressorError: as `ContextCompressor.compress` does; this is no turn of the agent.
        """
        request = self._now()
        with self._notices.during(request):
            result = off_loop(
                lambda: self._engines.focused(focus).compress_sync(
                    request.messages, session_id=self.session_id, force=True
                )
            )
        self._mirror.show(self.config.namespace, result)
        self._sent(result, self._last_overhead)
        return result

    async def acompress(self, focus: str | None = None) -> CompressResult:
        """The same on the event loop."""
        request = self._now()
        async with self._notices.during(request):
            engine = await asyncio.to_thread(self._engines.focused, focus)  # it opens the store
            result = await engine.compress(request.messages, session_id=self.session_id, force=True)
        await asyncio.to_thread(self._mirror.show, self.config.namespace, result)
        self._sent(result, self._last_overhead)
        return result

    def mask(self) -> int:
        """Turn the large tool outputs before the newest turn into one line each; returns how many.

        Raises:
            LedgerError: the store cannot be read or written.
        """
        request = self._now()
        return prune(self.engine(), request.messages, self.session_id)

    def new_session(self) -> str:
        """Begin a new conversation under a new session id, which is returned."""
        agent = self._agent()
        if agent is not None:
            agent.clear_history()
        self._last, self._last_overhead = None, 0
        return self._session.renew()

    def resume(self, session_id: str, token_budget: int | None = None) -> str:
        """Go on with a session that the store has; any of its epochs' ids names it.

        The agent's history becomes that session's as of its last compression: in full where it
        fits `token_budget` (None: what the model takes), else its view. An agent that is in that
        session already keeps its own, which is newer.

        Raises:
            SessionNotFound: the store has none of that name in this namespace.
            BudgetTooSmall: what cannot be dropped exceeds `token_budget`.
        """
        root = self.ledger.lineage(self.config.namespace, session_id)[-1].session_id
        agent = self._agent()
        if agent is not None and not (root == self.session_id and agent.chat_history):
            replace_conversation(agent, self.engine().resume(root, token_budget).messages)
            self._last, self._last_overhead = None, 0
        return self._session.take(root)

    def save(self) -> int:
        """Record the conversation as it was last sent, for `resume` in another process.

        A compression does it by itself; call this where an agent ends whose host keeps no session.
        Returns how many sessions were recorded: none that was never compressed.
        """
        return self.engine().save_all()

    def forget(self, target: str | None = None) -> Forgotten:
        """Remove a session (None: this one) or a message (by its digest) from the ledger, and what
        the host's session store shows of it. The agent's own history is left as it is.

        Raises:
            SessionNotFound: the store has none of that name in this namespace.
            StoreUnavailable: it cannot be reached, or it is this process's memory.
        """
        return self._mirror.forget(self.config.namespace, target or self.session_id)


def _state(agent: Any) -> tuple[Any, Any, Any]:
    """How an agent asks: its `context=`, its manager, and whether that one counts already."""
    return agent._context_param, agent._context_manager, agent._context_manager_initialized


def _model_of(agent: Any) -> str | None:
    model = getattr(agent, "llm", None)
    return model if isinstance(model, str) else None
