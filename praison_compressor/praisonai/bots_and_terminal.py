"""Switch off compaction by the host's terminal, gateway and bots."""

from __future__ import annotations

import functools
import logging
import sys
import weakref
from typing import Any

from ..concurrency import run, start_thread
from .agent_compressor import AgentCompressor
from .agents import Agents, HostCall, attribute, replacing
from .commands import answer_command, find_command
from .running_turn import BotConversation, bot_scope, set_bot_conversation

logger = logging.getLogger(__name__)


def _compressor_for(agent: Any, agents: Agents) -> AgentCompressor | None:
    return agents.compressor_of(agent) if hasattr(agent, "_context_param") else None


# ------------------------------------------------------------ the terminal


def _of_terminal(call: HostCall) -> AgentCompressor | None:
    return _compressor_for(getattr(call.instance, "_agent", None), call.agents)


def _answer_in(
    terminal: Any, agent_compressor: AgentCompressor, name: str, argument: str = ""
) -> None:
    command = find_command(name, argument)
    if command is not None:
        message = sys.modules[type(terminal).__module__].ChatMessage
        reply = run(answer_command(agent_compressor, command))
        terminal.messages.append(message(role="system", content=reply))


@replacing
def maybe_auto_compact(call: HostCall) -> Any:
    """Replace the terminal's compaction before a turn: do nothing."""
    return call.go_on() if _of_terminal(call) is None else None


@replacing
def compact_context(call: HostCall) -> Any:
    """Replace the terminal's `/compact`: its words are the summary's focus."""
    agent_compressor = _of_terminal(call)
    if agent_compressor is None:
        return call.go_on()
    if call.argument("manual") is False:
        return False
    before = agent_compressor.last_result
    argument = str(call.argument("args") or "").strip()
    _answer_in(call.instance, agent_compressor, "compact", argument)
    return agent_compressor.last_result is not before


COMPACTED = "_praison_compressor_compacted"
"""The terminal's attribute for the result of the last command, if that was `/compact`."""


@replacing
def handle_command(call: HostCall) -> Any:
    """Answer `/status`, `/context`, and an `/undo` right after a `/compact`."""
    agent_compressor = _of_terminal(call)
    if agent_compressor is None:
        return call.go_on()
    name = str(call.argument("command")).split(maxsplit=1)[0].lower().lstrip("/")
    before = agent_compressor.last_result
    compacted = vars(call.instance).pop(COMPACTED, None)
    # The terminal's `/undo` takes back the last turn and its files.
    undoes_ours = name == "undo" and compacted is not None and compacted is before
    is_ours = name == "context" or undoes_ours
    if is_ours or name == "status":
        _answer_in(call.instance, agent_compressor, name)
    if is_ours:
        return True
    handled = call.go_on()
    if name == "compact" and agent_compressor.last_result is not before:
        vars(call.instance)[COMPACTED] = agent_compressor.last_result
    return handled


# ------------------------------------------------------------ gateway and bots


@replacing
def idle_candidates(call: HostCall) -> Any:
    """Replace the gateway's list of idle sessions: omit our agents' sessions."""
    candidates = call.go_on()
    gateway = call.instance
    served = {name: _compressor_for(agent, call.agents) for name, agent in gateway._agents.items()}
    ours = {
        name: agent_compressor
        for name, agent_compressor in served.items()
        if agent_compressor is not None
    }
    if not ours:
        return candidates
    for agent_compressor in ours.values():  # off the gateway's event loop
        start_thread(functools.partial(_compress_idle, agent_compressor))
    # A disconnected session is left out: its agent is not known.
    others = {name for name, live in gateway._sessions.items() if live.agent_id not in ours}
    return [candidate for candidate in candidates if candidate[0] in others]


def _compress_idle(agent_compressor: AgentCompressor) -> None:
    try:
        agent_compressor.idle()
    except Exception:
        logger.exception("idle conversations are not compressed")


@replacing
async def bot_chat(call: HostCall) -> Any:
    """Replace a bot's `chat`: forget the bot's conversation after the turn."""
    with bot_scope():
        return await call.go_on()


ANSWERING = "_praison_compressor_agent"
"""The session manager's attribute for a weak reference to the agent of its last turn."""


@replacing
def bot_session_start(call: HostCall) -> Any:
    """Replace the start of a bot's turn: set its conversation."""
    bot = call.instance
    agent = call.argument("agent")
    route = {k: v for k, v in call.kwargs.items() if k not in ("agent", "user_id")}
    most = getattr(bot, "_max_history", 0)
    bot_id = bot._session_key(call.argument("user_id"), **route)
    limit = most if isinstance(most, int) else 0
    set_bot_conversation(agent, BotConversation(bot_id, limit))
    vars(bot)[ANSWERING] = weakref.ref(agent)
    return call.go_on()


def compaction_enabled(original: object, agents: Agents) -> property:
    """Return the bots' compaction switch: off if our agent answered."""
    name = "_compaction_enabled"

    def get(self: Any) -> Any:
        agent = vars(self).get(ANSWERING, lambda: None)()
        return vars(self).get(name, False) and _compressor_for(agent, agents) is None

    return attribute(name, get)
