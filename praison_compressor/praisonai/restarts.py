"""Restore an agent's session after a restart, before its first request.

The messages come from the host's store, and from the ledger where the host has cut them.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from ..errors import CompressorError, SessionNotFound
from ..messages import Message, digest, is_system, leading_count, tool_calls_of
from .agent_compressor import AgentCompressor
from .agent_ledger import session_id_of, stored_sessions
from .conversation_finder import is_host_summary
from .running_turn import bot_conversation

logger = logging.getLogger(__name__)


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
