"""What is told of a conversation: its status, and each compression to the host's hooks, its memory,
the agent's stream, the log and, with `output="verbose"`, the screen. A silent agent stays silent.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import logging
import os
import time
import weakref
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..compressor.context_compressor import ContextCompressor
from ..compressor.result import CompressResult
from ..events import Event, Listener
from ..messages import Message, is_system
from ..messages.display import one_line
from ..summaries.threads import apart
from ..tokens.models import model_limits
from .requests import HostRequest
from .sessions import place_of

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Status:
    """The last request of a conversation. Tokens of the model at hand; `tokens` is their sum."""

    session_id: str
    epoch: str
    """The newest; the session's id itself before the first compression."""
    context_status: str
    model: str | None
    window: int
    tokens_before: int
    """Of the whole conversation, tool schemas included."""
    system_tokens: int = 0
    summary_tokens: int = 0
    kept_tokens: int = 0
    tool_tokens: int = 0
    summaries: int = 0
    masked_secrets: int = 0
    """Keys and tokens masked in the archive."""
    store: str = "memory"
    """Where the ledger is."""
    cost_saved: float | None = None
    """US dollars that the request cost less, at the listed input price; None: no price is known."""

    @property
    def tokens(self) -> int:
        """What is sent."""
        return self.system_tokens + self.summary_tokens + self.kept_tokens + self.tool_tokens

    @property
    def used(self) -> float:
        """Share of the window."""
        return self.tokens / self.window

    def __str__(self) -> str:
        less = f", ${self.cost_saved:.4f} less a request" if self.cost_saved else ""
        return f"{_parts(self)} of {short(self.window)} ({self.context_status}){less}"


def status_of(
    result: CompressResult | None, beside: int, engine: ContextCompressor, session_id: str
) -> Status:
    """The status after a result; before the first request nothing is used. `beside` are the tokens
    that were sent beside its messages."""
    window = model_limits(engine.config.model, engine.config.context_window).window
    store = place_of(engine.store)
    if result is None:
        return Status(session_id, session_id, "full", engine.config.model, window, 0, store=store)
    count = engine.tokens.message
    system = sum(count(message) for message in result.messages if is_system(message))
    summaries = sum(segment.tokens for segment in result.segments)
    return Status(
        session_id=session_id,
        epoch=result.session_id,
        context_status=result.context_status,
        model=engine.config.model,
        window=window,
        tokens_before=result.tokens_before + beside,
        system_tokens=system,
        summary_tokens=summaries,
        kept_tokens=max(0, result.tokens_after - system - summaries),
        tool_tokens=beside,
        summaries=len(result.segments),
        masked_secrets=result.masked_secrets,
        store=store,
        cost_saved=result.cost_saved,
    )


def line(status: Status) -> str:
    """`Compressed 157k → 9.1k (system 1.8k, summary 3.2k, kept 2.7k, tools 1.4k) · 6 % of 150k`."""
    return f"Compressed {short(status.tokens_before)} → {_parts(status)} of {short(status.window)}"


def _parts(status: Status) -> str:
    parts = ", ".join(
        f"{name} {short(tokens)}"
        for name, tokens in (
            ("system", status.system_tokens),
            ("summary", status.summary_tokens),
            ("kept", status.kept_tokens),
            ("tools", status.tool_tokens),
        )
    )
    return f"{short(status.tokens)} ({parts}) · {round(100 * status.used)} %"


def short(tokens: int) -> str:
    """`980`, `9.1k`, `157k`."""
    if tokens < 1_000:
        return str(tokens)
    return f"{tokens / 1_000:.1f}k" if tokens < 10_000 else f"{tokens / 1_000:.0f}k"


# ------------------------------------------------------------ compressions


class Call(NamedTuple):
    """One of the host's that is told: by a call, or on an event loop by one to await."""

    now: Callable[[], Any]
    awaited: Callable[[], Awaitable[Any]]


class _Request:
    """The request that is being compressed here, and what it still has to tell on its loop."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self.messages = messages
        self._on_loop = False
        self._telling: list[asyncio.Task[Any]] = []
        self._token: contextvars.Token[_Request | None] | None = None

    def tell(self, calls: Sequence[Call]) -> None:
        """Now and here off the loop; beside the compression, which awaits it, on it."""
        if not calls:
            return
        if self._on_loop:
            before = self._telling[-1] if self._telling else None
            self._telling.append(asyncio.ensure_future(_atell(calls, before)))
        else:
            # A private event loop runs here, which hooks must not find.
            apart(lambda: _tell(calls))

    def __enter__(self) -> None:
        self._token = _during.set(self)

    def __exit__(self, *failure: object) -> None:
        assert self._token is not None
        _during.reset(self._token)

    async def __aenter__(self) -> None:
        self._on_loop = True
        self.__enter__()

    async def __aexit__(self, kind: type[BaseException] | None, *failure: object) -> None:
        self.__exit__()
        if kind is not None:
            for task in self._telling:
                task.cancel()
        await asyncio.gather(*self._telling, return_exceptions=True)


_during: contextvars.ContextVar[_Request | None] = contextvars.ContextVar(
    "praison_compressor_request", default=None
)


class Notices:
    """One agent's listener. What listens may fail; the compression goes on."""

    def __init__(self, agent: weakref.ref[Any]) -> None:
        self.line: str | None = None
        self._agent = agent
        self._listeners: list[Listener] = []
        self._newest: Sequence[Message] = ()

    def subscribe(self, listener: Listener) -> None:
        """Pass every event on to `listener` too."""
        self._listeners.append(listener)

    def during(self, request: HostRequest) -> _Request:
        """A block, plain or `async with`, in which that request is compressed."""
        self._newest = request.messages
        return _Request(request.messages)

    def __call__(self, event: Event) -> None:
        """Take an event of the compressor."""
        for listener in list(self._listeners):
            _guarded(functools.partial(listener, event))
        if event.name == "started":
            self._on_stream(event, "compressing the conversation")
        request = _during.get()
        words = _words(event)
        if request is not None:
            self._print(words, only_on_terminal=event.name != "skipped")
            request.tell(self._calls(event, request.messages))
            return
        # In the background. Its own thread may wait for the hooks.
        self._print(words and f"in the background: {words}")
        calls = self._calls(event, self._newest)
        if calls:
            apart(lambda: _tell(calls))
        if event.name == "committed":
            before, after = event.data["tokens_before"], event.data["tokens_after"]
            self._say(f"Compressed {short(before)} → {short(after)} in the background")

    def compressed(self, status: Status, result: CompressResult) -> None:
        """Say it in one line, and in the agent's stream."""
        self._say(line(status))
        numbers = {"tokens_before": result.tokens_before, "tokens_after": result.tokens_after}
        self._on_stream(Event("committed", status.session_id, numbers), str(self.line))

    def _say(self, words: str) -> None:
        self.line = words
        log.info("%s", words)
        self._print(words)

    def _calls(self, event: Event, messages: Sequence[Message]) -> list[Call]:
        """Who of the host is told of an event, in this order."""
        agent = self._agent()
        calls: list[Call] = []
        if event.name == "started":
            calls += _calls_of_memory(getattr(agent, "_memory_instance", None), list(messages))
        runner, hook = getattr(agent, "_hook_runner", None), _HOOKS.get(event.name)
        if runner is not None and hook is not None:
            calls.append(
                Call(
                    lambda: runner.execute_sync(*self._input(hook, event)),
                    lambda: runner.execute(*self._input(hook, event)),
                )
            )
        return calls

    def _input(self, name: str, event: Event) -> tuple[Any, Any]:
        from praisonaiagents.hooks.types import HookEvent, HookInput

        told = HookInput(
            session_id=event.session_id,
            cwd=os.getcwd(),
            event_name=name.lower(),
            timestamp=str(time.time()),
            agent_name=getattr(self._agent(), "name", None),
            extra=dict(event.data),
        )
        return HookEvent[name], told

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

    def _print(self, words: str, *, only_on_terminal: bool = False) -> None:
        if words:
            _guarded(lambda: self._write(words, only_on_terminal))

    def _write(self, words: str, only_on_terminal: bool) -> None:
        """On the console that the host's own progress is on, if it is verbose."""
        agent = self._agent()
        if agent is None or not getattr(agent, "verbose", False):
            return
        model = getattr(agent, "_llm_instance", None)
        console = getattr(model, "console", None) or getattr(agent, "console", None)
        if console is not None and (console.is_terminal or not only_on_terminal):
            from rich.text import Text

            console.print(Text(f"▸ {words}", style="dim"))


_HOOKS = {"started": "BEFORE_COMPACTION", "committed": "AFTER_COMPACTION"}


def _calls_of_memory(memory: Any, messages: list[Message]) -> Iterator[Call]:
    def nothing(messages: list[Message]) -> None:
        """The memory of an agent that is only awaited."""

    async def in_a_thread(messages: list[Message]) -> None:
        await asyncio.to_thread(now, messages)

    now: Callable[..., Any] = getattr(memory, "on_pre_compress", nothing)
    awaited = getattr(memory, "aon_pre_compress", in_a_thread)
    yield Call(lambda: now(messages), lambda: awaited(messages))


def _tell(calls: Sequence[Call]) -> None:
    for call in calls:
        _guarded(call.now)


async def _atell(calls: Sequence[Call], before: asyncio.Task[Any] | None) -> None:
    """Tell them on the loop, after what was to be told before."""
    if before is not None:
        await asyncio.wait([before])
    for call in calls:
        try:
            await call.awaited()
        except Exception:
            log.warning(_FAILED, exc_info=True)


def _guarded(work: Callable[[], Any]) -> None:
    try:
        work()
    except Exception:
        log.warning(_FAILED, exc_info=True)


_FAILED = "who is told of compressions failed"


def _words(event: Event) -> str:
    """What the screen says while a summary is written; "" where that is nothing."""
    data = event.data
    if event.name == "started":
        return f"compressing {short(data['tokens'])} tokens"
    if event.name == "abandoned":
        return "given up"
    if event.name != "skipped":
        return ""
    if data["reason"] == "cooldown":
        return f"{one_line(str(data['model']))} rests after a failure and is not asked"
    size = f"not compressed at {short(data['tokens'])} tokens"
    if data["reason"] == "no gain":
        return f"{size}: it would free too little"
    return f"{size}: what cannot be dropped takes more than {short(data['trigger'])}"
