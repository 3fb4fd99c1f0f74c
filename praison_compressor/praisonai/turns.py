"""Replace the host's `chat`, and restore sessions after a restart.

A session is restored from the host's store, and from the ledger where the host has cut it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Generator, Sequence
from typing import Any

from ..concurrency import run
from ..errors import CompressorError, SessionNotFound
from ..messages import Message, digest, is_system, leading_count, tool_calls_of
from .agent_compressor import AgentCompressor
from .agent_ledger import session_id_of, stored_under
from .agents import HostCall, replacing
from .commands import answer, read
from .conversation_finder import is_host_summary
from .running_turn import during, each_step_during, named_by_bot

log = logging.getLogger(__name__)


@replacing
def chat(call: HostCall) -> Any:
    """Replace `chat`: run a turn, or answer a command."""
    compressor, command = _asked(call)
    if compressor is None:
        with during(None):
            return call.go_on()
    if command is not None:
        return run(answer(compressor, *command))
    with compressor.turn() as turn, during(turn):
        said = call.go_on()
    compressor.requests.settle(turn)
    return said


@replacing
async def achat(call: HostCall) -> Any:
    """Replace `achat`, as `chat` on the event loop."""
    compressor, command = _asked(call)
    if compressor is None:
        with during(None):
            return await call.go_on()
    if command is not None:
        return await answer(compressor, *command)
    await asyncio.to_thread(restore, call.owner, compressor)
    with compressor.turn() as turn, during(turn):
        said = await call.go_on()
    await asyncio.to_thread(compressor.requests.settle, turn)
    return said


@replacing
def start_stream(call: HostCall) -> Any:
    """Replace `_start_stream`: run a turn, or answer a command in one piece."""
    compressor, command = _asked(call)
    if compressor is None:
        return each_step_during(None, call.go_on())
    if command is not None:
        return _answered(compressor, *command)
    return _streamed(compressor, call.go_on())


def _asked(call: HostCall) -> tuple[AgentCompressor | None, tuple[str, str] | None]:
    """Return the agent's compressor, and the command in its prompt, if any."""
    return call.agents.of(call.owner), read(call.owner, call.argument("prompt"))


def _answered(compressor: AgentCompressor, name: str, argument: str) -> Generator[str, None, None]:
    yield run(answer(compressor, name, argument))


def _streamed(
    compressor: AgentCompressor, stream: Generator[Any, Any, Any]
) -> Generator[Any, Any, Any]:
    with compressor.turn() as turn:
        said = yield from each_step_during(turn, stream)
    compressor.requests.settle(turn)
    return said


# ------------------------------------------------------------ after a restart


@replacing
def init_session_store(call: HostCall) -> None:
    """Replace the host's `_init_session_store`: restore the whole session."""
    call.go_on()
    compressor = call.agents.of(call.owner)
    if compressor is not None:
        restore(call.owner, compressor)


def restore(agent: Any, compressor: AgentCompressor) -> None:
    """Complete an agent's history before its first request, from host or ledger.

    Nothing is added for a bot: it sets each person's history before each turn.
    """
    key = session_id_of(agent)
    if compressor.requests.passed or key is None or named_by_bot(agent)[0]:
        return
    stored = stored_under(compressor.ledger, compressor.config.namespace, key)
    name = next((found.id for found in stored), key)
    try:
        if not agent.chat_history:
            compressor.resume(name)
        elif _complete(agent):
            leading = leading_count(agent.chat_history)
            transcript = compressor.engine().verbatim(session_id=name)
            front = _front(transcript, agent.chat_history[leading:])
            if front:  # `front` replaces the host store's summary of these messages
                agent.chat_history[:leading] = front
    except SessionNotFound:
        return  # the first run
    except CompressorError as error:
        log.warning("session %s is not resumed: %s", key, error)


def _complete(agent: Any) -> bool:
    """Add stored tool calls; return whether older messages are missing.

    The host restores only roles and contents (agent/memory_mixin.py:573). Without their calls the
    messages match no segment. The host keeps the newest 100 messages.
    """
    store, name = getattr(agent, "_session_store", None), getattr(agent, "_session_id", None)
    read = getattr(store, "get_working_history", None)
    stored: Sequence[Message] = read(name) if read is not None and name else ()
    if not stored or [*map(_said, stored)] != [*map(_said, agent.chat_history)]:
        return False
    for restored, whole in zip(agent.chat_history, stored, strict=True):
        restored.update(whole)
    bound: int = getattr(store, "active_window", 0) or getattr(store, "max_messages", len(stored))
    is_full = len(stored) > bound // 2  # a cut amid tool calls leaves fewer than the bound
    return is_full or is_host_summary(stored[0])


def _front(transcript: Sequence[Message], restored: Sequence[Message]) -> list[Message]:
    """Return a transcript's messages before those that the host restored."""
    keeps_tools = any(message.get("role") == "tool" for message in restored)
    said = [
        message
        for message in transcript
        if (keeps_tools and not is_system(message))
        or (message.get("role") in ("user", "assistant") and not tool_calls_of(message))
    ]
    names = [*map(digest, said)]
    # Match two messages: one may recur, and a killed turn's end may differ.
    begins = [*map(digest, restored[:2])]
    places = (at for at in range(len(names), -1, -1) if names[at : at + len(begins)] == begins)
    return said[: next(places, 0)]


def _said(message: Message) -> tuple[Any, Any]:
    return message.get("role"), message.get("content")
