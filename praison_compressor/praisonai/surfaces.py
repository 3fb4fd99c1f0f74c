"""Terminal, gateway and bots of the host's other packages: only one system compresses there, ours.

Each compacts by itself an agent's history, which our requests carry whole: for our agents it is
passed through. Commands typed in the terminal are answered by the agent's compressor.
"""

from __future__ import annotations

import functools
import logging
import sys
import weakref
from typing import Any

from ..compressor.result import CompressResult
from ..summaries.threads import begin, run
from .agent_compressor import AgentCompressor
from .agents import Agents, Argument
from .commands import answer
from .known_conversations import name, unnamed

log = logging.getLogger(__name__)


def _served(agent: Any, agents: Agents) -> AgentCompressor | None:
    """Return the agent's compressor; None for objects in an agent's place."""
    return agents.of(agent) if hasattr(agent, "_context_param") else None


# ------------------------------------------------------------ the terminal


def _of_terminal(terminal: Any, agents: Agents) -> AgentCompressor | None:
    return _served(getattr(terminal, "_agent", None), agents)


def _say(terminal: Any, words: str) -> None:
    """Show words in the terminal as its own commands do."""
    message = sys.modules[type(terminal).__module__].ChatMessage
    terminal.messages.append(message(role="system", content=words))


def maybe_auto_compact(original: Any, agents: Agents) -> Any:
    """Leave our histories whole: their requests are compressed on the wire."""

    @functools.wraps(original)
    def _maybe_auto_compact(self: Any, *args: Any, **kwargs: Any) -> Any:
        if _of_terminal(self, agents) is None:
            return original(self, *args, **kwargs)
        return None

    return _maybe_auto_compact


def compact_context(original: Any, agents: Agents) -> Any:
    """Answer the `/compact` of the terminal: its words are the focus."""
    words, manual = Argument(original, "args"), Argument(original, "manual")

    @functools.wraps(original)
    def _compact_context(self: Any, *args: Any, **kwargs: Any) -> Any:
        compressor = _of_terminal(self, agents)
        if compressor is None:
            return original(self, *args, **kwargs)
        if manual.of(args, kwargs) is False:
            return False
        before = compressor.last_result
        _say(self, run(answer(compressor, "compact", str(words.of(args, kwargs) or "").strip())))
        return compressor.last_result is not before

    return _compact_context


def handle_command(original: Any, agents: Agents) -> Any:
    """Answer `/status`, `/context`, and an `/undo` right after a `/compact`.

    Any other `/undo` is the terminal's, which takes back the last turn and its files. To `/status`
    the terminal adds its own lines.
    """
    argument = Argument(original, "command")
    compacted: weakref.WeakKeyDictionary[Any, CompressResult] = weakref.WeakKeyDictionary()

    @functools.wraps(original)
    def _handle_command(self: Any, *args: Any, **kwargs: Any) -> Any:
        compressor = _of_terminal(self, agents)
        if compressor is None:
            return original(self, *args, **kwargs)
        name = str(argument.of(args, kwargs)).split(maxsplit=1)[0].lower().lstrip("/")
        before = compressor.last_result
        was_compacted = before is not None and compacted.pop(self, None) is before
        if name in ("status", "context") or (name == "undo" and was_compacted):
            _say(self, run(answer(compressor, name, "")))
        if name == "context" or (name == "undo" and was_compacted):
            return True
        handled = original(self, *args, **kwargs)
        after = compressor.last_result
        if name == "compact" and after is not None and after is not before:
            compacted[self] = after
        return handled

    return _handle_command


# ------------------------------------------------------------ gateway and bots


def idle_candidates(original: Any, agents: Agents) -> Any:
    """Let our agents compress idle conversations instead of the gateway.

    A session that is not connected has no agent: it is left out where any agent is ours.
    """

    @functools.wraps(original)
    def _idle_compaction_candidates(self: Any, *args: Any, **kwargs: Any) -> Any:
        found = original(self, *args, **kwargs)
        served = {name: _served(agent, agents) for name, agent in self._agents.items()}
        ours = {name: compressor for name, compressor in served.items() if compressor is not None}
        if not ours:
            return found
        for compressor in ours.values():  # off the gateway's event loop
            begin(functools.partial(_rest, compressor))
        others = {n for n, live in self._sessions.items() if live.agent_id not in ours}
        return [each for each in found if each[0] in others]

    return _idle_compaction_candidates


def _rest(compressor: AgentCompressor) -> None:
    try:
        compressor.idle()
    except Exception:
        log.exception("idle conversations are not compressed")


def bot_chat(original: Any, agents: Agents) -> Any:
    """Replace a bot's `chat`: the named conversation ends with the turn."""

    @functools.wraps(original)
    async def chat(self: Any, *args: Any, **kwargs: Any) -> Any:
        with unnamed():
            return await original(self, *args, **kwargs)

    return chat


ANSWERING = "_praison_compressor_agent"
"""Where a bot's session manager keeps the agent of its newest turn, as a weak reference."""


def bot_session_start(original: Any, agents: Agents) -> Any:
    """Replace the start of a bot's turn: name the conversation.

    Only there the bot knows person, chat and thread.
    """

    @functools.wraps(original)
    def _maybe_fire_session_start(self: Any, agent: Any, user_id: str, **route: str) -> Any:
        bound = getattr(self, "_max_history", 0)
        name(agent, self._session_key(user_id, **route), bound if isinstance(bound, int) else 0)
        vars(self)[ANSWERING] = weakref.ref(agent)
        return original(self, agent, user_id, **route)

    return _maybe_fire_session_start


def compaction_enabled(original: object, agents: Agents) -> property:
    """Switch a saved history's compaction off if an agent of ours answered."""
    name = "_compaction_enabled"

    def get(self: Any) -> Any:
        answered = vars(self).get(ANSWERING)
        agent = None if answered is None else answered()
        return vars(self).get(name, False) and _served(agent, agents) is None

    return property(get, lambda self, value: vars(self).__setitem__(name, value))
