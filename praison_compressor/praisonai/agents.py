"""The agents that asked for compression, and the compressor that each of them has to itself."""

from __future__ import annotations

import asyncio
import logging
import secrets
import threading
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..compressor import CompressResult, ContextCompressor, Options
from ..config import CompressorConfig
from ..ledger import MemoryStore, Store
from ..messages import Message, digest, is_system, text_of
from ..models import model_limits
from ..prompts import Summarizer
from . import endpoint, overflow
from .manager import PassThroughManager
from .options import Asked, read
from .shapes import Request

__all__ = ["AgentCompressor", "Agents"]

log = logging.getLogger(__name__)

SHRINK = 0.5  # of the window, where a refusal does not name it


class Agents:
    """Which agents asked, found again by the object; none of them is kept alive."""

    def __init__(self) -> None:
        self.defaults: dict[str, Any] = {}
        self._lock = threading.RLock()
        self._open = True
        self._known: weakref.WeakKeyDictionary[Any, AgentCompressor] = weakref.WeakKeyDictionary()

    def of(self, agent: Any) -> AgentCompressor | None:
        """The agent's compressor; None when it did not ask for one."""
        with self._lock:
            if not self._open:
                return None
            known = self._known.get(agent)
            if known is not None and known.is_in_place:
                return known
            return self._made(agent)

    def _made(self, agent: Any) -> AgentCompressor | None:
        asked = _asked(agent)
        if asked is None:
            self._known.pop(agent, None)
            return None
        made = AgentCompressor(agent, asked, self.defaults)
        self._known[agent] = made
        return made

    def close(self) -> None:
        """Let every agent go back to the host's own manager."""
        with self._lock:
            self._open = False
            for compressor in list(self._known.values()):
                compressor.leave()
            self._known.clear()


def _asked(agent: Any) -> Asked | None:
    """What the agent asks now: by its manager where it has one, else by its `context=`."""
    param = getattr(agent, "_context_param", None)
    if not getattr(agent, "_context_manager_initialized", False):
        return read(param)
    manager = agent._context_manager
    if read(manager) is None:  # none, another strategy, or a manager of the user's own making
        return None
    return read(param) or read(manager)


class AgentCompressor:
    """One agent's compression: its compressor, its session, and what was last sent.

    Reached as `agent.context_compressor`. Nothing in it raises into a turn.
    """

    def __init__(self, agent: Any, asked: Asked, defaults: Mapping[str, Any]) -> None:
        self._agent = weakref.ref(agent)
        self._asked = asked
        self._config = asked.config(_model_of(agent), defaults)
        self._lock = threading.RLock()
        self._engines: dict[str | None, ContextCompressor] = {}
        self._learned: dict[str | None, int] = {}
        self._store = _store(self._config)
        self._random_session = f"agent-{secrets.token_hex(8)}"
        self._failures: set[str] = set()
        self._last: CompressResult | None = None
        self._before = (agent._context_manager, agent._context_manager_initialized)
        self.manager = _manager(agent, asked)
        agent.context_manager = self.manager

    # ------------------------------------------------------------ the agent's manager

    @property
    def is_in_place(self) -> bool:
        """Whether the agent still has the manager that we gave it."""
        agent = self._agent()
        return agent is not None and agent._context_manager is self.manager

    def leave(self) -> None:
        """Give the agent back what it had; the host builds its own manager where it had none."""
        agent = self._agent()
        if agent is not None and self.is_in_place:
            agent._context_manager, agent._context_manager_initialized = self._before

    # ------------------------------------------------------------ what it compresses with

    @property
    def session_id(self) -> str:
        """The agent's session id, or a random one of its own."""
        agent = self._agent()
        for name in ("_history_session_id", "_session_id"):
            given = getattr(agent, name, None)
            if isinstance(given, str) and given:
                return given
        return self._random_session

    @property
    def config(self) -> CompressorConfig:
        """The options in force."""
        return self._config

    @property
    def context_status(self) -> str:
        """Of the last request: "full", "masked" or "summarized"."""
        return "full" if self._last is None else self._last.context_status

    @property
    def last_result(self) -> CompressResult | None:
        """Of the last request that was compressed or looked at."""
        return self._last

    def engine(self, model: str | None = None) -> ContextCompressor:
        """The compressor for a model's window; all of this agent's share one ledger."""
        name = self._config.model if model is None else model
        with self._lock:
            found = self._engines.get(name)
            if found is None:
                found = self._engines[name] = self._engine(name)
            return found

    def _engine(self, model: str | None) -> ContextCompressor:
        window = self._learned.get(model)
        if window is None and _same(model, self._config.model):
            window = self._config.context_window
        config = replace(self._config, model=model, context_window=window)
        return ContextCompressor(config, summarizer=self._summarizer(), store=self._store)

    def _summarizer(self) -> Summarizer | None:
        if self._config.auxiliary_model:
            return None  # the compressor makes its own from the configuration
        agent = self._agent()
        if agent is None or not self._asked.own_model:
            return None
        from ..summarizer import LiteLLMSummarizer

        where = endpoint.of(agent)
        if where is None:
            return None
        own = self._config.model
        return LiteLLMSummarizer(
            where.model,
            api_base=where.api_base,
            api_key=where.api_key,
            extra=where.extra,
            context_window=self._learned.get(own, self._config.context_window),
        )

    # ------------------------------------------------------------ views

    def view(self, request: Request) -> Sequence[Message]:
        """What to send instead of the request's messages."""
        try:
            if not self._compresses(request):
                return self._projected(request)
            return self._sent(
                self.engine(request.model).compress_sync(request.messages, **self._options(request))
            )
        except Exception as error:
            return self._best(request, error)

    async def aview(self, request: Request) -> Sequence[Message]:
        """The same on the event loop."""
        try:
            if not self._compresses(request):
                return await asyncio.to_thread(self._projected, request)
            engine = await asyncio.to_thread(self.engine, request.model)
            options = await asyncio.to_thread(self._options, request)
            return self._sent(await engine.compress(request.messages, **options))
        except Exception as error:
            return await asyncio.to_thread(self._best, request, error)

    def tighter_view(self, request: Request, error: Exception) -> Sequence[Message] | None:
        """The view after a refusal as too long; None when it was refused for something else."""
        return self.view(request) if self._learn(request, error) else None

    async def atighter_view(self, request: Request, error: Exception) -> Sequence[Message] | None:
        """The same on the event loop."""
        learned = await asyncio.to_thread(self._learn, request, error)
        return await self.aview(request) if learned else None

    def _compresses(self, request: Request) -> bool:
        """Whether the request may move the session on: a step of the conversation, unasked."""
        return self._asked.automatic and self._extends(request.messages)

    def _projected(self, request: Request) -> Sequence[Message]:
        """The request through the ledger as it is; only what would be refused is made to fit."""
        if not _same(request.model, self._config.model):
            return request.messages  # a tool's or a guardrail's own model and window
        engine, options = self.engine(request.model), self._options(request)
        room = self._window(request.model) - self._reserve(request.model)
        return engine.best_view(
            request.messages,
            session_id=options["session_id"],
            target_tokens=max(1, room - options["overhead_tokens"]),
        )

    def _options(self, request: Request) -> Options:
        return {"session_id": self.session_id, "overhead_tokens": self._overhead(request)}

    def _extends(self, messages: Sequence[Message]) -> bool:
        """Whether the request goes on with the agent's conversation.

        Memory extraction, reflection on a task, titles and guardrails start with words of their
        own; the conversation starts as the agent's history does.
        """
        history = getattr(self._agent(), "chat_history", None) or ()
        known = _first_said(history)
        sent = _first_said(messages)
        if known is None or sent is None or digest(known) == digest(sent):
            return True
        # In the first turn the host may send more than it records: a template, retrieved text.
        return len(history) <= 2 and text_of(known) in text_of(sent)

    def _overhead(self, request: Request) -> int:
        """Tokens that the request needs beside its messages and the usual answer."""
        engine = self.engine(request.model)
        measured = engine.tokens.tools(request.tools) if request.tools else 0
        if request.schema:
            measured += engine.tokens.text(request.schema)
        return measured + max(0, request.output_tokens - self._reserve(request.model))

    def _reserve(self, model: str | None) -> int:
        if self._config.output_reserve is not None:
            return self._config.output_reserve
        return min(8_000, self._window(model) // 4)

    def _window(self, model: str | None) -> int:
        return model_limits(model, self.engine(model).config.context_window).window

    def _sent(self, result: CompressResult) -> Sequence[Message]:
        self._last = result
        return result.messages

    def _best(self, request: Request, error: Exception) -> Sequence[Message]:
        """Our own failure must not end the turn: said once with its cause, the best view sent."""
        cause = f"{type(error).__name__}: {error}"
        if cause not in self._failures:
            self._failures.add(cause)
            log.warning("agent %s: sent uncompressed as far as it fits: %s", self._name(), cause)
        try:
            return self.engine(request.model).best_view(request.messages, **self._options(request))
        except Exception:
            log.exception("agent %s: sent as it is", self._name())
            return request.messages

    def _learn(self, request: Request, error: Exception) -> bool:
        """Take a smaller window from a refusal; False when it says nothing of one."""
        refused = overflow.read(error)
        if refused is None:
            return False
        with self._lock:
            window = self._window(request.model)
            named = refused.window
            smaller = named if named is not None and named < window else int(window * SHRINK)
            log.warning(
                "agent %s: %s refused the request as too long; its window is taken as %d tokens",
                self._name(),
                request.model,
                smaller,
            )
            name = self._config.model if request.model is None else request.model
            self._learned[name] = smaller
            self._engines.pop(name, None)
        return True

    def _name(self) -> str:
        return str(getattr(self._agent(), "name", None) or "(gone)")


def _store(config: CompressorConfig) -> Store:
    if config.store_url is None:
        return MemoryStore()
    from ..store import open_store

    return open_store(config.store_url)


def _model_of(agent: Any) -> str | None:
    model = getattr(agent, "llm", None)
    return model if isinstance(model, str) else None


def _same(one: str | None, other: str | None) -> bool:
    """Whether two names mean one model; the host adds and drops provider prefixes."""
    if one is None or other is None:
        return True
    return one.rsplit("/", 1)[-1] == other.rsplit("/", 1)[-1]


def _first_said(messages: Sequence[Message]) -> Message | None:
    return next((message for message in messages if not is_system(message)), None)


def _manager(agent: Any, asked: Asked) -> PassThroughManager:
    """The agent's manager, ours in the place of one that the user made."""
    from praisonaiagents.context.manager import ContextManager

    for given in (agent._context_manager, agent._context_param):
        if type(given) is ContextManager:
            return PassThroughManager.in_place_of(given)
    return PassThroughManager(
        model=_model_of(agent) or "gpt-4o-mini",
        config=asked.context,
        agent_name=getattr(agent, "name", None) or "Agent",
        session_cache=getattr(agent, "_session_dedup_cache", None),
    )
