"""Report compressions to the host's hooks, memory, bill, log and screen."""

from __future__ import annotations

import asyncio
import functools
import logging
import os
import time
import weakref
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import Future, wait
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Any

from ..compressor.context_compressor import ContextCompressor
from ..concurrency import start_thread
from ..events import Event, Listener
from ..ledger.segments import Usage
from ..messages import Message
from .conversations import Conversation
from .wording import describe_committed, describe_compressed, describe_event, status_of

logger = logging.getLogger(__name__)


_EXIT_REFUSES = 2
"""Exit code by which a command hook refuses; any other code but 0 is a failure."""


class _Hooks:
    def __init__(self, messages: Sequence[Message]) -> None:
        self.messages = messages
        # Hooks run in threads, not in tasks: masks are committed in an event loop of their own,
        # which ends before the request.
        self._begun: list[Future[None]] = []
        self._is_cancelled = False

    def begin(self, work: Callable[[], None]) -> None:
        """Begin a hook, which runs after earlier hooks and beside the compression."""
        earlier = tuple(self._begun)
        self._begun.append(start_thread(lambda: self._run(work, earlier)))

    def _run(self, work: Callable[[], None], earlier: Sequence[Future[None]]) -> None:
        wait(earlier)
        if not self._is_cancelled:
            work()

    def cancel(self) -> None:
        """Begin no further hook, and wait for none."""
        self._is_cancelled = True

    async def wait(self) -> None:
        """Wait until all hooks have ended, unless they were cancelled."""
        if not self._is_cancelled:
            waiting = map(asyncio.wrap_future, self._begun)
            await asyncio.gather(*waiting, return_exceptions=True)


_request_hooks: ContextVar[_Hooks | None] = ContextVar("praison_compressor_hooks", default=None)
"""The hooks of the request that is compressed here; None in the background."""


class Notices:
    """Report the compressions of one agent; log a listener's failure."""

    def __init__(
        self, agent: weakref.ref[Any], find_conversation: Callable[[str], Conversation | None]
    ) -> None:
        """`find_conversation`: session id -> conversation, for background compressions."""
        self._agent = agent
        self._listeners: list[Listener] = []
        self._find_conversation = find_conversation

    def subscribe(self, listener: Listener) -> None:
        """Pass every event to `listener` too."""
        self._listeners.append(listener)

    @asynccontextmanager
    async def during(self, messages: Sequence[Message]) -> AsyncIterator[None]:
        """Run a block that compresses these messages; wait for its hooks."""
        hooks = _Hooks(messages)
        token = _request_hooks.set(hooks)
        try:
            yield
        except BaseException:
            hooks.cancel()
            raise
        finally:
            _request_hooks.reset(token)
            await hooks.wait()

    def __call__(self, event: Event) -> None:
        """Pass an event of the compressor to listeners, screen, hooks and memory."""
        for listener in list(self._listeners):
            _call_listener(functools.partial(listener, event))
        hooks = _request_hooks.get()
        text = describe_event(event)
        if text and hooks is None:
            self._print(f"in the background: {text}")
        elif text:
            self._print(text, only_on_terminal=event.name == "started")
        if event.name in ("started", "committed") and hooks is not None:
            hooks.begin(functools.partial(self._report, event, hooks.messages))
        elif event.name in ("started", "committed"):
            self._report_background(event)

    def _report_background(self, event: Event) -> None:
        conversation = self._find_conversation(event.session_id)
        messages = () if conversation is None else conversation.last_messages
        # Run hooks in a thread without an event loop; in the background this thread may wait.
        start_thread(lambda: self._report(event, messages)).result()
        if event.name == "committed":
            self._announce(describe_committed(event), conversation)

    def report_compression(self, conversation: Conversation, compressor: ContextCompressor) -> None:
        """Report a compression in one line, which the conversation keeps."""
        self._announce(describe_compressed(status_of(conversation, compressor)), conversation)

    def charge(self, usage: Usage) -> None:
        """Add the cost of summaries to the agent's `cost_summary`."""
        agent: Any = self._agent()
        sums = ("_cost_lock", "_total_cost", "_total_tokens_in", "_total_tokens_out")
        if usage == Usage() or not all(hasattr(agent, name) for name in sums):
            return
        with agent._cost_lock:
            agent._total_cost += usage.cost or 0.0
            agent._total_tokens_in += usage.prompt_tokens
            agent._total_tokens_out += usage.completion_tokens

    def _announce(self, line: str, conversation: Conversation | None) -> None:
        logger.info("%s", line)
        self._print(line)
        if conversation is not None:
            conversation.notice = line

    def _report(self, event: Event, messages: Sequence[Message]) -> None:
        memory: Any = getattr(self._agent(), "_memory_instance", None)
        if event.name == "committed":
            _call_listener(lambda: self._run_hooks("AFTER_COMPACTION", event))
        elif hasattr(memory, "on_pre_compress"):
            _call_listener(lambda: memory.on_pre_compress(list(messages)))

    def before_compression(self, event: Event) -> str | bool | None:
        """Return False if a hook refuses, else the hooks' text."""
        results = self._run_hooks("BEFORE_COMPACTION", event)
        # A failed hook does not refuse, although the host counts a failure as a refusal.
        decided = (r for r in results if r.success or r.exit_code == _EXIT_REFUSES)
        outputs = [result.output for result in decided if result.output]
        if any(output.is_denied() for output in outputs):
            return False
        return "\n".join(filter(None, (o.additional_context for o in outputs))) or None

    def _run_hooks(self, name: str, event: Event) -> Sequence[Any]:
        runner = getattr(self._agent(), "_hook_runner", None)
        if runner is None:
            return ()
        from praisonaiagents.hooks.types import HookEvent, HookInput

        hook_input = HookInput(
            session_id=event.session_id,
            cwd=os.getcwd(),
            event_name=name.lower(),
            timestamp=str(time.time()),
            agent_name=getattr(self._agent(), "name", None),
            extra=dict(event.data),
        )
        results: Sequence[Any] = runner.execute_sync(HookEvent[name], hook_input)
        return results

    def _print(self, words: str, *, only_on_terminal: bool = False) -> None:
        agent = self._agent()
        if agent is None or not getattr(agent, "verbose", False):
            return
        model = getattr(agent, "_llm_instance", None)
        console = getattr(model, "console", None) or getattr(agent, "console", None)
        if console is not None and (console.is_terminal or not only_on_terminal):
            from rich.text import Text

            _call_listener(lambda: console.print(Text(f"▸ {words}", style="dim")))


def _call_listener(work: Callable[[], Any]) -> None:
    try:
        work()
    except Exception:
        logger.warning("a listener to compressions failed", exc_info=True)
