"""Tell of a compression while it happens: the host's hooks, memory, stream and display, a log line.

With `output="verbose"` a spinner while a summary is written and the line that tells of it; in the
host's modes that trace actions the line alone. An agent that is silent stays silent. A summary in
the background is told in lines: a spinner would turn where somebody types the next question.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import os
import threading
import time
import weakref
from collections.abc import Awaitable, Callable, Sequence
from types import TracebackType
from typing import Any

from ..compressor.result import CompressResult
from ..events import Event, Listener
from ..messages import Message
from ..messages.display import one_line
from ..messages.forks import renewed
from ..summaries.threads import apart
from .requests import HostRequest
from .status import Status, line, short

__all__ = [
    "Display",
    "Notices",
]


# -------------------------------------------------------------- display


log = logging.getLogger(__name__)


NAME = "context_compressor"


class Display:
    """One agent's. Nothing in it may fail into a turn."""

    def __init__(self, agent: weakref.ref[Any]) -> None:
        self._agent = agent
        self._spinner: Any = None
        self._lock = renewed(threading.Lock())

    def __call__(self, event: Event) -> None:
        """Show how far a compression is."""
        try:
            words = _words(event)
            if event.name == "started":
                self._start(words)
            elif event.name == "skipped":
                self.tell(words)
            elif words:
                self._say(words)
        except Exception:
            log.debug("the display failed at %s", event.name, exc_info=True)

    def aside(self, event: Event) -> None:
        """Show how far a compression in the background is, between what the host prints."""
        given_up = "given up" if event.name == "abandoned" else ""
        words = _words(event) or given_up
        if words:
            _quietly(lambda: self._print(f"in the background: {words}"))

    def stop(self) -> None:
        """Take the spinner away."""
        with self._lock:
            spinner, self._spinner = self._spinner, None
        if spinner is not None:
            _quietly(spinner.stop)

    def tell(self, line: str) -> None:
        """Show the line that tells of a compression."""
        _quietly(lambda: self._print(line))
        _quietly(lambda: _trace(line))

    def _start(self, words: str) -> None:
        console = self._console()
        # In a pipe there is nothing to turn round; the line comes all the same.
        if console is None or not console.is_terminal:
            return
        from rich.errors import LiveError
        from rich.live import Live
        from rich.spinner import Spinner
        from rich.text import Text

        spinner = Live(Spinner("dots", Text(words)), console=console, transient=True)
        try:
            spinner.start()
            # Within the host's own progress it is drawn with that, which may not be soon.
            spinner.refresh()
        except LiveError:  # an older rich, where the host shows its own progress just now
            return
        with self._lock:
            before, self._spinner = self._spinner, spinner
        if before is not None:
            before.stop()

    def _say(self, words: str) -> None:
        from rich.spinner import Spinner
        from rich.text import Text

        with self._lock:
            spinner = self._spinner
        if spinner is not None:
            spinner.update(Spinner("dots", Text(words)), refresh=True)

    def _print(self, line: str) -> None:
        console = self._console()
        if console is None:
            return
        from rich.text import Text

        console.print(Text(f"▸ {line}", style="dim"))

    def _console(self) -> Any:
        """The one that the host's own progress is on; None unless it is verbose."""
        agent = self._agent()
        if agent is None or not getattr(agent, "verbose", False):
            return None
        model = getattr(agent, "_llm_instance", None)
        return getattr(model, "console", None) or getattr(agent, "console", None)


def _words(event: Event) -> str:
    if event.name == "started":
        return f"compressing {short(event.data['tokens'])} tokens"
    if event.name == "part_summarized":
        return f"compressing, part {event.data['part']} of {event.data['parts']} read"
    if event.name == "fell_back":
        return f"compressing; {one_line(str(event.data['model']))} gave no summary"
    if event.name == "skipped":
        return _skipped(event)
    return ""


def _skipped(event: Event) -> str:
    if event.data["reason"] == "cooldown":
        return f"{one_line(str(event.data['model']))} rests after a failure and is not asked"
    size = f"not compressed at {short(event.data['tokens'])} tokens"
    if event.data["reason"] == "no gain":
        return f"{size}: it would free too little"
    return f"{size}: what cannot be dropped takes more than {short(event.data['trigger'])}"


def _trace(line: str) -> None:
    """The line as an action, where the host traces actions itself.

    A callback of the application's own is left alone: it counts the tools of its agent.
    """
    from praisonaiagents import main

    callback = main.sync_display_callbacks.get("tool_call")
    if getattr(callback, "__module__", "").startswith("praisonaiagents.output"):
        callback(message=line, tool_name=NAME, tool_input={}, tool_output=line)


def _quietly(work: Any) -> None:
    try:
        work()
    except Exception:
        log.debug("the display failed", exc_info=True)


# -------------------------------------------------------------- notices


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

    def during(self, request: HostRequest) -> _Request:
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
