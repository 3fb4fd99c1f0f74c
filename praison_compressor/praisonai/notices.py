"""Tells of a compression while it happens: the host's hooks, its memory, its stream, a log line."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import os
import time
import weakref
from collections.abc import Awaitable, Callable, Sequence
from types import TracebackType
from typing import Any

from ..anywhere import apart
from ..events import Event, Listener
from ..messages import Message
from ..result import CompressResult
from .display import Display
from .shapes import Request
from .status import Status, line, short

__all__ = ["Notices"]

log = logging.getLogger(__name__)

_during: contextvars.ContextVar[_Request | None] = contextvars.ContextVar(
    "praison_compressor_request", default=None
)


class _Request:
    """The request that is being compressed here, and what it still has to tell on its loop."""

    def __init__(self, messages: Sequence[Message], display: Display) -> None:
        self.messages = messages
        self.display = display
        self.on_loop = False
        self._telling: list[asyncio.Task[Any]] = []
        self._token: contextvars.Token[_Request | None] | None = None

    def tell(self, work: Callable[[], None], awork: Callable[[], Awaitable[None]]) -> None:
        """Now and here off the loop; beside the compression, which awaits it, on it."""
        if self.on_loop:
            before = self._telling[-1] if self._telling else None
            self._telling.append(asyncio.ensure_future(_in_order(before, awork)))
        else:
            # A private event loop runs here, which hooks must not find.
            apart(work)

    def __enter__(self) -> None:
        self._token = _during.set(self)

    def __exit__(self, *failure: object) -> None:
        assert self._token is not None
        _during.reset(self._token)
        self.display.stop()

    async def __aenter__(self) -> None:
        self.on_loop = True
        self.__enter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.__exit__()
        if kind is not None:
            for task in self._telling:
                task.cancel()
        await asyncio.gather(*self._telling, return_exceptions=True)


class Notices:
    """One agent's listener. What listens may fail; the compression goes on."""

    def __init__(self, agent: weakref.ref[Any]) -> None:
        self.line: str | None = None
        self._agent = agent
        self._listeners: list[Listener] = []
        self._newest: Sequence[Message] = ()
        self._display = Display(agent)

    def subscribe(self, listener: Listener) -> None:
        """Pass every event on to `listener` too."""
        self._listeners.append(listener)

    def during(self, request: Request) -> _Request:
        """A block, plain or `async with`, in which that request is compressed."""
        self._newest = request.messages
        return _Request(request.messages, self._display)

    def __call__(self, event: Event) -> None:
        """Take an event of the compressor."""
        for listener in list(self._listeners):
            try:
                listener(event)
            except Exception:
                log.exception("a listener failed at %s", event.name)
        if event.name == "started":
            self._on_stream(event, "compressing the conversation")
        request = _during.get()
        if request is None:
            self._off_the_request(event)
            return
        request.display(event)
        if event.name == "started":
            request.tell(
                lambda: self._before(event, request.messages),
                lambda: self._abefore(event, request.messages),
            )
        elif event.name == "committed":
            request.tell(lambda: self._after(event), lambda: self._aafter(event))

    def _off_the_request(self, event: Event) -> None:
        """A summary written in the background: its own thread may wait for the hooks."""
        self._display.aside(event)
        if event.name == "started":
            apart(lambda: self._before(event, self._newest))
        elif event.name == "committed":
            apart(lambda: self._after(event))
            before, after = event.data["tokens_before"], event.data["tokens_after"]
            self.line = f"Compressed {short(before)} → {short(after)} in the background"
            log.info("%s", self.line)
            self._display.tell(self.line)

    def compressed(self, status: Status, result: CompressResult) -> None:
        """Say it in one line, in the log and in the agent's stream."""
        self.line = line(status)
        log.info("%s", self.line)
        self._display.tell(self.line)
        numbers = {"tokens_before": result.tokens_before, "tokens_after": result.tokens_after}
        self._on_stream(Event("committed", status.session_id, numbers), self.line)

    def failed(self, session_id: str, cause: str) -> None:
        """Say that a request went out without us."""
        self(Event("failed", session_id, {"reason": cause}))

    # ------------------------------------------------------------ the host's hooks

    def _before(self, event: Event, messages: Sequence[Message]) -> None:
        memory = self._memory()
        if hasattr(memory, "on_pre_compress"):
            _guarded(lambda: memory.on_pre_compress(list(messages)))
        self._hook("BEFORE_COMPACTION", event)

    def _after(self, event: Event) -> None:
        self._hook("AFTER_COMPACTION", event)

    async def _abefore(self, event: Event, messages: Sequence[Message]) -> None:
        memory = self._memory()
        if hasattr(memory, "aon_pre_compress"):
            await _aguarded(memory.aon_pre_compress(list(messages)))
        elif hasattr(memory, "on_pre_compress"):
            await asyncio.to_thread(_guarded, lambda: memory.on_pre_compress(list(messages)))
        await self._ahook("BEFORE_COMPACTION", event)

    async def _aafter(self, event: Event) -> None:
        await self._ahook("AFTER_COMPACTION", event)

    def _hook(self, name: str, event: Event) -> None:
        runner, kind = self._runner(name)
        if runner is not None:
            _guarded(lambda: runner.execute_sync(kind, self._input(name, event)))

    async def _ahook(self, name: str, event: Event) -> None:
        runner, kind = self._runner(name)
        if runner is not None:
            await _aguarded(runner.execute(kind, self._input(name, event)))

    def _runner(self, name: str) -> tuple[Any, Any]:
        from praisonaiagents.hooks.types import HookEvent

        return getattr(self._agent(), "_hook_runner", None), getattr(HookEvent, name)

    def _input(self, name: str, event: Event) -> Any:
        from praisonaiagents.hooks.types import HookInput

        return HookInput(
            session_id=event.session_id,
            cwd=os.getcwd(),
            event_name=name.lower(),
            timestamp=str(time.time()),
            agent_name=getattr(self._agent(), "name", None),
            extra=dict(event.data),
        )

    def _memory(self) -> Any:
        return getattr(self._agent(), "_memory_instance", None)

    # ------------------------------------------------------------ the agent's stream

    def _on_stream(self, event: Event, words: str) -> None:
        """The host has no event type of its own for this: its progress of a tool is nearest."""
        emitter = getattr(self._agent(), "stream_emitter", None)
        if emitter is None:
            return
        from praisonaiagents.streaming.events import StreamEvent, StreamEventType

        _guarded(
            lambda: emitter.emit(
                StreamEvent(
                    type=StreamEventType.TOOL_PROGRESS,
                    content=words,
                    tool_call={"name": "context_compressor"},
                    metadata={"context_compression": event.name, **event.data},
                    session_id=event.session_id,
                )
            )
        )


async def _in_order(before: asyncio.Task[Any] | None, work: Callable[[], Awaitable[None]]) -> None:
    if before is not None:
        await asyncio.wait([before])
    await work()


def _guarded(work: Callable[[], Any]) -> None:
    try:
        work()
    except Exception:
        log.warning("a hook of the host failed during a compression", exc_info=True)


async def _aguarded(work: Awaitable[Any]) -> None:
    try:
        await work
    except Exception:
        log.warning("a hook of the host failed during a compression", exc_info=True)
