"""Whose turn it is: known at every place a request passes, in every thread, task and stream."""

from __future__ import annotations

import functools
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from .patches import Patches, host_module, method

if TYPE_CHECKING:
    from .agent_compressor import AgentCompressor
    from .agents import Agents

__all__ = [
    "current",
    "patch",
    "turn_of",
]


_current: ContextVar[AgentCompressor | None] = ContextVar("praison_compressor_turn", default=None)


def current() -> AgentCompressor | None:
    """The compressor of the agent whose turn is running here, if it asked for one."""
    return _current.get()


@contextmanager
def turn_of(compressor: AgentCompressor | None) -> Iterator[None]:
    """Run a block as a turn of that agent.

    None is set too: an agent called from a tool of ours must not be taken for its caller.
    """
    token = _current.set(compressor)
    try:
        yield
    finally:
        _current.reset(token)


def patch(agents: Agents, patches: Patches) -> None:
    """Mark the turns of `chat`, `achat` and every stream."""
    mixin = host_module("agent.chat_mixin").ChatMixin
    patches.replace(mixin, "chat", _chat(agents, method(mixin, "chat")))
    patches.replace(mixin, "achat", _achat(agents, method(mixin, "achat")))
    patches.replace(mixin, "_start_stream", _stream(agents, method(mixin, "_start_stream")))


def _chat(agents: Agents, original: Any) -> Any:
    @functools.wraps(original)
    def chat(self: Any, *args: Any, **kwargs: Any) -> Any:
        with turn_of(agents.of(self)):
            return original(self, *args, **kwargs)

    return chat


def _achat(agents: Agents, original: Any) -> Any:
    @functools.wraps(original)
    async def achat(self: Any, *args: Any, **kwargs: Any) -> Any:
        with turn_of(agents.of(self)):
            return await original(self, *args, **kwargs)

    return achat


def _stream(agents: Agents, original: Any) -> Any:
    @functools.wraps(original)
    def _start_stream(self: Any, *args: Any, **kwargs: Any) -> Any:
        return _each_step_in_turn(agents.of(self), original(self, *args, **kwargs))

    return _start_stream


def _each_step_in_turn(
    compressor: AgentCompressor | None, stream: Generator[Any, Any, Any]
) -> Generator[Any, Any, Any]:
    """The stream, with the turn set around every step of it and never between two.

    A generator runs in the context of whoever asks for its next item: set once at its start, the
    turn would leak into the consumer, and two interleaved streams would swap theirs.
    """
    failure: BaseException | None = None
    sent: Any = None
    try:
        while True:
            with turn_of(compressor):
                try:
                    item = stream.send(sent) if failure is None else stream.throw(failure)
                except StopIteration as stop:
                    return stop.value
            failure, sent = None, None
            try:
                sent = yield item
            except GeneratorExit:
                raise
            except BaseException as error:
                failure = error
    finally:
        with turn_of(compressor):
            stream.close()
