"""Replace the host's `chat`, and restore sessions after a restart.

A session is restored from the host's store, and from the ledger where the host has cut it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Generator, Iterator, Sequence
from typing import Any

from ..concurrency import run
from ..errors import CompressorError, SessionNotFound
from ..messages import Message, digest, is_system, leading_count, tool_calls_of
from .agent_compressor import AgentCompressor
from .agent_ledger import session_id_of, stored_sessions
from .agents import HostCall, replacing
from .commands import TypedCommand, answer_command, parse_prompt
from .conversation_finder import is_host_summary
from .running_turn import bot_conversation, in_turn, stream_in_turn

logger = logging.getLogger(__name__)


@replacing
def chat(call: HostCall) -> Any:
    """Replace `chat`: run a turn, or answer a command."""
    compressor, command = _read_call(call)
    if compressor is None:
        with in_turn(None):
            return call.go_on()
    if command is not None:
        return run(answer_command(compressor, command))
    with compressor.turn() as turn, in_turn(turn):
        return call.go_on()


@replacing
async def achat(call: HostCall) -> Any:
    """Replace `achat`, as `chat` on the event loop."""
    compressor, command = _read_call(call)
    if compressor is None:
        with in_turn(None):
            return await call.go_on()
    if command is not None:
        return await answer_command(compressor, command)
    await asyncio.to_thread(restore_session, call.instance, compressor)
    async with compressor.aturn() as turn:
        with in_turn(turn):
            return await call.go_on()


@replacing
def start_stream(call: HostCall) -> Any:
    """Replace `_start_stream`: run a turn, or answer a command in one piece."""
    compressor, command = _read_call(call)
    if compressor is None:
        return stream_in_turn(None, call.go_on())
    if command is not None:
        return _stream_answer(compressor, command)
    return _stream_turn(compressor, call.go_on())


def _read_call(call: HostCall) -> tuple[AgentCompressor | None, TypedCommand | None]:
    agent = call.instance
    return call.agents.compressor_of(agent), parse_prompt(agent, call.argument("prompt"))


def _stream_answer(compressor: AgentCompressor, command: TypedCommand) -> Iterator[str]:
    yield run(answer_command(compressor, command))


def _stream_turn(
    compressor: AgentCompressor, stream: Generator[Any, Any, Any]
) -> Generator[Any, Any, Any]:
    with compressor.turn() as turn:
        return (yield from stream_in_turn(turn, stream))


# ------------------------------------------------------------ after a restart


@replacing
def init_session_store(call: HostCall) -> None:
    """Replace the host's `_init_session_store`: restore the whole session."""
    call.go_on()
    compressor = call.agents.compressor_of(call.instance)
    if compressor is not None:
        restore_session(call.instance, compressor)


def restore_session(agent: Any, compressor: AgentCompressor) -> None:
    """Complete an agent's history before its first request, from host or ledger.

    Nothing is added for a bot: it sets each person's history before each turn.
    """
    host_id = session_id_of(agent)
    if compressor.requests.request_count or host_id is None or bot_conversation(agent).bot_id:
        return
    sessions = stored_sessions(compressor.ledger, compressor.config.namespace, host_id)
    name = next((session.id for session in sessions), host_id)
    try:
        if not agent.chat_history:
            compressor.resume(name)
        elif stored := _stored_history(agent):
            agent.chat_history[:] = map(dict, stored)
            if _is_cut(agent._session_store, stored):
                transcript = compressor.engine().verbatim(session_id=name)
                leading = leading_count(stored)  # the host's summary of what it cut
                if front := _missing_front(transcript, stored[leading:]):
                    agent.chat_history[:leading] = front
    except SessionNotFound:
        return  # the first run
    except CompressorError as error:
        logger.warning("session %s is not resumed: %s", host_id, error)


def _stored_history(agent: Any) -> Sequence[Message]:
    """Return the restored messages with their calls; () if they differ.

    The host restores only roles and contents (agent/memory_mixin.py:573). Without their calls the
    messages match no segment.
    """
    store, name = getattr(agent, "_session_store", None), getattr(agent, "_session_id", None)
    read = getattr(store, "get_working_history", None)
    stored: Sequence[Message] = read(name) if read is not None and name else ()
    restored = [*map(_role_and_content, agent.chat_history)]
    return stored if [*map(_role_and_content, stored)] == restored else ()


def _is_cut(store: Any, stored: Sequence[Message]) -> bool:
    """Return whether the host may have cut messages.

    By default the host keeps the newest 100.
    """
    bound: int = getattr(store, "active_window", 0) or getattr(store, "max_messages", len(stored))
    is_full = len(stored) > bound // 2  # a cut amid tool calls leaves fewer than the bound
    return is_full or is_host_summary(stored[0])


def _missing_front(transcript: Sequence[Message], restored: Sequence[Message]) -> list[Message]:
    """Return a transcript's messages before those that the host restored."""
    keeps_tools = any(message.get("role") == "tool" for message in restored)
    kept = [
        message
        for message in transcript
        if (keeps_tools and not is_system(message))
        or (message.get("role") in ("user", "assistant") and not tool_calls_of(message))
    ]
    digests = [*map(digest, kept)]
    # Match two messages: one may recur, and a killed turn's end may differ.
    first = [*map(digest, restored[:2])]
    starts = (at for at in range(len(digests), -1, -1) if digests[at : at + len(first)] == first)
    return kept[: next(starts, 0)]


def _role_and_content(message: Message) -> tuple[Any, Any]:
    return message.get("role"), message.get("content")
