"""Report a conversation's status, and each of its compressions.

Compressions are reported to the host's hooks, its memory, the log and, with `output="verbose"`, the
screen. A silent agent stays silent.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import os
import time
import weakref
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Any

from ..compressor.bills import short_count
from ..concurrency import run_in_thread
from ..events import Event, Listener
from ..messages import Message
from ..messages.display import one_line
from .conversations import Conversation, Status
from .request_shapes import HostRequest

log = logging.getLogger(__name__)


_EXIT_REFUSES = 2
"""Exit code by which a command hook refuses; any other code but 0 is a failure."""


class _Hooks:
    """Run the hooks of one request's compression in threads, in order."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self.messages = messages
        self._tasks: list[asyncio.Task[None]] = []

    def begin(self, work: Callable[[], None]) -> None:
        """Begin a hook beside the compression, after those before it."""
        before = self._tasks[-1:]

        async def run() -> None:
            if before:
                await asyncio.wait(before)
            await asyncio.to_thread(work)  # hooks must not find our loop

        self._tasks.append(asyncio.ensure_future(run()))

    def cancel(self) -> None:
        """Cancel all hooks."""
        for task in self._tasks:
            task.cancel()

    async def ended(self) -> None:
        """Wait until all hooks have ended."""
        await asyncio.gather(*self._tasks, return_exceptions=True)


_running: ContextVar[_Hooks | None] = ContextVar("praison_compressor_hooks", default=None)
"""The hooks of the request that is compressed here; None in the background."""


class Notices:
    """Report the compressions of one agent; log a listener's failure."""

    def __init__(
        self, agent: weakref.ref[Any], named: Callable[[str], Conversation | None]
    ) -> None:
        """`named`: the conversation of a session, for what ends in the background."""
        self._agent = agent
        self._listeners: list[Listener] = []
        self._named = named

    def subscribe(self, listener: Listener) -> None:
        """Pass every event on to `listener` too."""
        self._listeners.append(listener)

    @asynccontextmanager
    async def during(self, request: HostRequest) -> AsyncIterator[None]:
        """Run a block that compresses a request; wait for its hooks."""
        hooks = _Hooks(request.messages)
        token = _running.set(hooks)
        try:
            yield
        except BaseException:
            hooks.cancel()
            raise
        finally:
            _running.reset(token)
            await hooks.ended()

    def __call__(self, event: Event) -> None:
        """Take an event of the compressor."""
        for listener in list(self._listeners):
            _guarded(functools.partial(listener, event))
        found, words = self._named(event.session_id), _words(event)
        hooks = _running.get()
        if words and hooks is None:
            self._print(f"in the background: {words}")
        elif words:
            self._print(words, only_on_terminal=event.name == "started")
        if event.name not in ("started", "committed"):
            return
        if hooks is not None:
            hooks.begin(functools.partial(self._report, event, hooks.messages))
            return
        messages = () if found is None else found.transcript
        run_in_thread(lambda: self._report(event, messages))  # this thread may wait for the hooks
        if event.name == "committed":
            before, after = event.data["tokens_before"], event.data["tokens_after"]
            sizes = f"{short_count(after)} instead of {short_count(before)}"
            line = self._say(f"Compressed: the next request has {sizes}, in the background")
            if found is not None:
                found.notice = line

    def compressed(self, status: Status) -> str:
        """Report a compression in one line; return the line."""
        line = f"Compressed the conversation: {short_count(status.tokens_before)} → {status.parts}"
        return self._say(line + status.of_earlier)

    def _say(self, words: str) -> str:
        log.info("%s", words)
        self._print(words)
        return words

    def _report(self, event: Event, messages: Sequence[Message]) -> None:
        """Report to the memory before a compression, to hooks after it."""
        memory: Any = getattr(self._agent(), "_memory_instance", None)
        if event.name == "committed":
            _guarded(lambda: self._ran("AFTER_COMPACTION", event))
        elif hasattr(memory, "on_pre_compress"):
            _guarded(lambda: memory.on_pre_compress(list(messages)))

    def before_compression(self, event: Event) -> str | bool | None:
        """Return False if a hook refuses, else the hooks' text.

        A hook that fails refuses nothing here; for the host it refuses.
        """
        ran = self._ran("BEFORE_COMPACTION", event)
        said = [one.output for one in ran if one.success or one.exit_code == _EXIT_REFUSES]
        if any(output and output.is_denied() for output in said):
            return False
        return "\n".join(o.additional_context for o in said if o and o.additional_context) or None

    def _ran(self, name: str, event: Event) -> Sequence[Any]:
        """Return the results of the agent's hooks of that name."""
        runner = getattr(self._agent(), "_hook_runner", None)
        if runner is None:
            return ()
        from praisonaiagents.hooks.types import HookEvent, HookInput

        given = HookInput(
            session_id=event.session_id,
            cwd=os.getcwd(),
            event_name=name.lower(),
            timestamp=str(time.time()),
            agent_name=getattr(self._agent(), "name", None),
            extra=dict(event.data),
        )
        ran: Sequence[Any] = runner.execute_sync(HookEvent[name], given)
        return ran

    def _print(self, words: str, *, only_on_terminal: bool = False) -> None:
        """Print on the host's console, if the agent is verbose."""
        agent = self._agent()
        if agent is None or not getattr(agent, "verbose", False):
            return
        model = getattr(agent, "_llm_instance", None)
        console = getattr(model, "console", None) or getattr(agent, "console", None)
        if console is not None and (console.is_terminal or not only_on_terminal):
            from rich.text import Text

            _guarded(lambda: console.print(Text(f"▸ {words}", style="dim")))


def _guarded(work: Callable[[], Any]) -> None:
    try:
        work()
    except Exception:
        log.warning("a listener to compressions failed", exc_info=True)


def _words(event: Event) -> str:
    """Return an event's words for the screen, or ""."""
    data = event.data
    if event.name == "started":
        return f"compressing {short_count(data['tokens'])} tokens"
    if event.name != "skipped":
        return ""
    if data["reason"] == "cooldown":
        return f"{one_line(str(data['model']))} rests after a failure and is not asked"
    size = f"not compressed at {short_count(data['tokens'])} tokens"
    if data["reason"] == "veto":
        return f"{size}: a hook refused it"
    if data["reason"] == "no gain":
        return f"{size}: it would free too little"
    if data["reason"] == "price":
        return f"{size}: it costs more than it saves yet"
    return f"{size}: what cannot be dropped takes more than {short_count(data['trigger'])}"
