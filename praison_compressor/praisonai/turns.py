"""Replace how a prompt reaches an agent: a command is answered, any other prompt begins a turn.

Before the first turn after a restart the conversation is restored: whole where the host keeps it,
else from the ledger.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from ..concurrency import run
from ..errors import CompressorError, SessionNotFound
from ..messages import Message, digest, is_system, leading_in, tool_calls_of
from .agent_compressor import AgentCompressor
from .agents import HostCall, replacing
from .commands import answer, read
from .conversations import Turn, during, each_step_during
from .known_conversations import named_by_host
from .ledgers import session_id_of, stored_under
from .requests import is_host_summary

log = logging.getLogger(__name__)


@replacing
def chat(call: HostCall) -> Any:
    """Replace `chat`: run a turn, or answer a command."""
    compressor, command = _asked(call)
    if compressor is not None and command is not None:
        return run(answer(compressor, *command))
    with _turn(compressor) as turn, during(turn):
        said = call.go_on()
    if compressor is not None:
        compressor.sender.settle(turn)
    return said


@replacing
async def achat(call: HostCall) -> Any:
    """Replace `achat`: the same on the event loop."""
    compressor, command = _asked(call)
    if compressor is not None and command is not None:
        return await answer(compressor, *command)
    await asyncio.to_thread(begin, call.owner, compressor)
    with _turn(compressor) as turn, during(turn):
        said = await call.go_on()
    if compressor is not None:
        await asyncio.to_thread(compressor.sender.settle, turn)
    return said


@replacing
def start_stream(call: HostCall) -> Any:
    """Replace `_start_stream`; a command's answer is one piece."""
    compressor, command = _asked(call)
    if compressor is not None and command is not None:
        return _answered(compressor, *command)
    return _streamed(compressor, call.go_on())


def _asked(call: HostCall) -> tuple[AgentCompressor | None, tuple[str, str] | None]:
    """Return the agent's compressor, and the command that its prompt is."""
    return call.agents.of(call.owner), read(call.owner, call.argument("prompt"))


def _answered(compressor: AgentCompressor, name: str, argument: str) -> Generator[str, None, None]:
    yield run(answer(compressor, name, argument))


def _streamed(
    compressor: AgentCompressor | None, stream: Generator[Any, Any, Any]
) -> Generator[Any, Any, Any]:
    with _turn(compressor) as turn:
        said = yield from each_step_during(turn, stream)
    if compressor is not None:
        compressor.sender.settle(turn)
    return said


def _turn(compressor: AgentCompressor | None) -> AbstractContextManager[Turn]:
    return nullcontext(Turn(None)) if compressor is None else compressor.turn()


# ------------------------------------------------------------ after a restart


@replacing
def init_session_store(call: HostCall) -> None:
    """Restore a session whole, from the host's store and the ledger."""
    call.go_on()
    begin(call.owner, call.agents.of(call.owner))


def begin(agent: Any, compressor: AgentCompressor | None) -> None:
    """Complete an agent's history before its first request, from host or ledger.

    Bots give each person's turn the history of that person: nothing is added to it.
    """
    key = session_id_of(agent)
    if compressor is None or compressor.sender.passed or key is None or named_by_host(agent)[0]:
        return
    stored = stored_under(compressor.ledger, compressor.config.namespace, key)
    name = next((found.id for found in stored), key)
    try:
        if not agent.chat_history:
            compressor.resume(name)
        elif _complete(agent):
            _put_front(agent, compressor.engine().verbatim(session_id=name))
    except SessionNotFound:
        return  # the first run
    except CompressorError as error:
        log.warning("session %s is not resumed: %s", key, error)


def _complete(agent: Any) -> bool:
    """Add stored tool calls to restored messages; return whether a front lacks.

    The host restores roles and contents (agent/memory_mixin.py:573): results without calls, which
    match no segment and not the window that the host puts before them. It keeps the newest 100.
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


def _put_front(agent: Any, transcript: Sequence[Message]) -> None:
    """Put the messages that the host lacks before the restored ones.

    The front takes the place of the summary that the host's store wrote of it.
    """
    leading = leading_in(agent.chat_history)
    front = _front(transcript, agent.chat_history[leading:])
    if front:
        agent.chat_history[:leading] = front


def _front(transcript: Sequence[Message], restored: Sequence[Message]) -> list[Message]:
    """Return a transcript's messages before its restored newest end."""
    keeps_tools = any(message.get("role") == "tool" for message in restored)
    said = [m for m in transcript if not is_system(m) and (keeps_tools or _is_kept(m))]
    names = [*map(digest, said)]
    # Two in a row: one may be said often. What follows may differ, where a turn was killed.
    begins = [*map(digest, restored[:2])]
    places = (at for at in range(len(names), -1, -1) if names[at : at + len(begins)] == begins)
    return said[: next(places, 0)]


def _is_kept(message: Message) -> bool:
    """Return whether every host keeps the message: a question or an answer."""
    return message.get("role") in ("user", "assistant") and not tool_calls_of(message)


def _said(message: Message) -> tuple[Any, Any]:
    return message.get("role"), message.get("content")
