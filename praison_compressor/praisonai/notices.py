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
from dataclasses import dataclass, field
from typing import Any

from ..compressor.context_compressor import ContextCompressor
from ..compressor.preview import ContextUse, Preview
from ..compressor.result import CompressResult
from ..events import Event, Listener
from ..ledger.segments import Segment
from ..messages import Message, is_system
from ..messages.display import one_line
from ..summaries.threads import apart
from ..tokens.models import model_limits
from .conversations import Conversation
from .journal import Kept
from .requests import HostRequest
from .sessions import place_of

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Status:
    """The last request of a conversation, in tokens of the model that it asked."""

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
    store: str = "memory"
    """Where the ledger is."""
    earlier: Kept = field(default_factory=Kept)
    """Steps of earlier turns among the kept tokens, which the host had dropped."""

    @property
    def tokens(self) -> int:
        """Return the tokens that were sent."""
        return self.system_tokens + self.summary_tokens + self.kept_tokens + self.tool_tokens

    @property
    def used(self) -> float:
        """Return the share of the window."""
        return self.tokens / self.window

    def __str__(self) -> str:
        return f"{_parts(self)} ({self.context_status}){_of_earlier(self)}"


def status_of(
    result: CompressResult | None, beside: int, engine: ContextCompressor, session_id: str
) -> Status:
    """Return the status after a result; before the first request nothing is used.

    `beside`: tokens that were sent beside the messages.
    """
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
        store=store,
    )


def _parts(status: Status) -> str:
    return (
        f"{short(status.tokens)} (system {short(status.system_tokens)}, "
        f"summary {short(status.summary_tokens)}, kept {short(status.kept_tokens)}, "
        f"tools {short(status.tool_tokens)}) · {round(100 * status.used)} %"
        f" of {short(status.window)}"
    )


def _of_earlier(status: Status) -> str:
    return f"; {status.earlier}" if status.earlier.steps else ""


def filled(use: ContextUse, earlier: Kept) -> str:
    """Return the answer to `/context`: a line for each part of the window, then messages."""
    notes = {name: f"{n} message{'s' * (n != 1)}" for name, n in use.messages.items()}
    notes |= {"free": f"compressed above {short(use.trigger)}", "reserve": "for the answer"}
    share = round(100 * use.used / use.window)
    lines = [f"{short(use.used)} of {short(use.window)} ({share} %), {use.model}"]
    for name, tokens in use.parts.items():
        lines.append(f"{name:<14} {short(tokens):>6}  {notes.get(name, '')}".rstrip())
    if earlier.steps:
        lines.append(f"{earlier}, before compression")
    if use.largest:
        lines.append("largest messages sent word for word:")
    for one in use.largest:
        index = "-" if one.index is None else one.index
        lines.append(f"{f'[{index}]':<6} {short(one.tokens):>6}  {one.role} {one.tool}".rstrip())
    return "\n".join(lines)


def previewed(preview: Preview, earlier: Kept) -> str:
    """Return the answer to `/compact preview`: a line for each part of the view."""
    lines = ["Nothing to compress yet."]
    if preview.would_compress:
        before = sum(part.tokens_before for part in preview.parts)
        after = sum(part.tokens_after for part in preview.parts)
        lines = [f"/compact would send {short(before)} as {short(after)}:"]
    for part in preview.parts:
        sizes = f"{short(part.tokens_before)} → {short(part.tokens_after)}"
        lines.append(f"{part.name:<10} {part.messages:>4} messages  {sizes:<14} {part.why}")
    return "\n".join([*lines, *([str(earlier)] if earlier.steps else [])])


def compacted(result: CompressResult) -> str:
    """Return the answer to `/compact`: what became of the messages."""
    by = [text.model or "a model" for text in result.written if text.method == "model"]
    how = f"by {by[0]}" if by else "without a model"
    done = [f"{result.newly_summarized} messages summarized {how}"] if result.written else []
    done += [f"{result.newly_masked} outputs masked"] if result.newly_masked else []
    kept = len(result.messages) - len(result.segments) - result.masked
    return f"{', '.join(done)}; {kept} messages kept verbatim. /undo takes it back."


def pinned(texts: Sequence[str]) -> str:
    """Return the answer to `/pin`: the texts that every compressed view keeps word for word."""
    if not texts:
        return "Nothing is pinned. /pin TEXT keeps a text word for word."
    return "\n".join(["Pinned, and kept word for word by each compression:", *texts])


def undone(segments: Sequence[Segment], use: ContextUse) -> str:
    """Return the answer to `/undo`: what was taken back."""
    if not segments:
        return "Nothing to take back."
    messages = sum(len(segment.run) for segment in segments)
    tokens = sum(segment.source_tokens for segment in segments)
    then = "Nothing is compressed by itself until the window is full; /compact does it at once."
    if use.parts["free"] < 0:
        then = "They do not fit the window: the next message is answered from a compressed view."
    return (
        f"Taken back: {messages} messages ({short(tokens)}) are sent again in the place of "
        f"{short(sum(segment.tokens for segment in segments))}. {then}"
    )


def short(tokens: int) -> str:
    """`980`, `9.1k`, `157k`."""
    if tokens < 1_000:  # below 0 too
        return str(tokens)
    return f"{tokens / 1_000:.1f}k" if tokens < 10_000 else f"{tokens / 1_000:.0f}k"


# ------------------------------------------------------------ compressions


_Telling = tuple[Sequence[Message], list[asyncio.Task[None]]]

_telling: ContextVar[_Telling | None] = ContextVar("praison_compressor_telling", default=None)
"""The messages of the request that is compressed here, and its hooks; None in the background."""
_EXIT_REFUSES = 2
"""Exit code by which a command hook refuses; any other code but 0 is a failure."""


async def _after(before: Sequence[asyncio.Task[None]], work: Callable[[], None]) -> None:
    if before:
        await asyncio.wait(before)
    await asyncio.to_thread(work)


class Notices:
    """Report the compressions of one agent. A listener may fail; the compression goes on."""

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
        """Run a block in which that request is compressed; its hooks have run at the end."""
        telling: list[asyncio.Task[None]] = []
        token = _telling.set((request.messages, telling))
        try:
            yield
        except BaseException:
            for task in telling:
                task.cancel()
            raise
        finally:
            _telling.reset(token)
            await asyncio.gather(*telling, return_exceptions=True)

    def __call__(self, event: Event) -> None:
        """Take an event of the compressor."""
        for listener in list(self._listeners):
            _guarded(lambda to=listener: to(event))  # type: ignore[misc]
        found, words = self._named(event.session_id), _words(event)
        known = () if found is None else found.transcript
        messages, telling = _telling.get() or (known, None)
        if words and telling is None:
            self._print(f"in the background: {words}")
        elif words:
            self._print(words, only_on_terminal=event.name == "started")
        if event.name not in ("started", "committed"):
            return
        if telling is not None:
            # Beside the compression, in threads: hooks must not find our loop.
            work = functools.partial(self._tell, event, messages)
            telling.append(asyncio.ensure_future(_after(telling[-1:], work)))
            return
        apart(lambda: self._tell(event, messages))  # this thread may wait for the hooks
        if event.name == "committed":
            before, after = event.data["tokens_before"], event.data["tokens_after"]
            line = self._say(f"Compressed {short(before)} → {short(after)} in the background")
            if found is not None:
                found.notice = line

    def compressed(self, status: Status) -> str:
        """Report a compression in one line; return the line."""
        line = f"Compressed {short(status.tokens_before)} → {_parts(status)}"
        return self._say(line + _of_earlier(status))

    def _say(self, words: str) -> str:
        log.info("%s", words)
        self._print(words)
        return words

    def _tell(self, event: Event, messages: Sequence[Message]) -> None:
        """Tell the agent's memory what will be compressed, the host's hooks what was."""
        memory: Any = getattr(self._agent(), "_memory_instance", None)
        if event.name == "committed":
            _guarded(lambda: self._ran("AFTER_COMPACTION", event))
        elif hasattr(memory, "on_pre_compress"):
            _guarded(lambda: memory.on_pre_compress(list(messages)))

    def before_compression(self, event: Event) -> str | bool | None:
        """Return False if a hook of the host refuses, else the text that the hooks add.

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

        told = HookInput(
            session_id=event.session_id,
            cwd=os.getcwd(),
            event_name=name.lower(),
            timestamp=str(time.time()),
            agent_name=getattr(self._agent(), "name", None),
            extra=dict(event.data),
        )
        ran: Sequence[Any] = runner.execute_sync(HookEvent[name], told)
        return ran

    def _print(self, words: str, *, only_on_terminal: bool = False) -> None:
        """Print on the console of the host's progress, if the agent is verbose."""
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
        log.warning("who is told of compressions failed", exc_info=True)


def _words(event: Event) -> str:
    """Return the words of an event for the screen, or an empty string."""
    data = event.data
    if event.name == "started":
        return f"compressing {short(data['tokens'])} tokens"
    if event.name != "skipped":
        return ""
    if data["reason"] == "cooldown":
        return f"{one_line(str(data['model']))} rests after a failure and is not asked"
    size = f"not compressed at {short(data['tokens'])} tokens"
    if data["reason"] == "veto":
        return f"{size}: a hook refused it"
    if data["reason"] == "no gain":
        return f"{size}: it would free too little"
    return f"{size}: what cannot be dropped takes more than {short(data['trigger'])}"
