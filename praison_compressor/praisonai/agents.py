"""The agents that asked for compression, and what the host may not do in their turns."""

from __future__ import annotations

import functools
import inspect
import logging
import threading
import weakref
from collections.abc import Callable, Mapping
from typing import Any

from ..messages.forks import renewed
from . import options
from .agent_compressor import AgentCompressor
from .conversations import current

log = logging.getLogger(__name__)


# ------------------------------------------------------------ who asked


class Agents:
    """Know the agents that asked and their compressors; keep no agent alive."""

    def __init__(self) -> None:
        self.defaults: dict[str, Any] = {}
        """Options of `CompressorConfig` for agents that name no others."""
        self.in_code = False
        """Whether `install()` was called. A plugin that is switched off does not undo that."""
        self.plugin: Callable[[], bool] | None = None
        """Returns whether the plugin is on; None without one. A plugin may be switched off."""
        self.before_turn: Callable[[], None] = lambda: None
        """Called first: the host may have imported more of itself."""
        self._lock = renewed(threading.RLock())
        self._open = True
        self._made: weakref.WeakKeyDictionary[Any, AgentCompressor] = weakref.WeakKeyDictionary()
        self._failed: weakref.WeakSet[Any] = weakref.WeakSet()

    @property
    def by_default(self) -> bool:
        """Return whether agents without a strategy are ours: a plugin is on."""
        return self.plugin is not None and self.plugin()

    @property
    def are_served(self) -> bool:
        """Return whether any agent is compressed: installed, and not switched off."""
        return self._open and (self.in_code or self.by_default)

    def of(self, agent: Any) -> AgentCompressor | None:
        """Return the agent's compressor; None if it does not ask."""
        self.before_turn()
        with self._lock:
            try:
                return self._of(agent)
            except Exception:  # a host in an unknown state
                if agent not in self._failed:
                    name = getattr(agent, "display_name", None)
                    log.exception("agent %s goes on uncompressed", name)
                self._failed.add(agent)
                return None

    def _of(self, agent: Any) -> AgentCompressor | None:
        asked = options.asked_by(agent, self.by_default) if self.are_served else None
        made = self._made.get(agent)
        if made is not None and made.asked != asked:
            made.leave()
            del self._made[agent]
            made = None
        if made is None and asked is not None:
            config = asked.config(_model_of(agent), self.defaults)
            made = self._made[agent] = AgentCompressor(agent, asked, config)
        return made

    def close(self) -> None:
        """Give every agent back what it had."""
        with self._lock:
            self._open = False
            for made in list(self._made.values()):
                made.leave()
            self._made.clear()


def _model_of(agent: Any) -> str | None:
    """Return the agent's own model, by the host's name for it."""
    model = getattr(agent, "llm", None)
    return model if isinstance(model, str) else None


# ------------------------------------------------------------ replaced in the host


class Argument:
    """Find one argument of a host's method, whatever its place."""

    def __init__(self, method: Callable[..., Any], name: str) -> None:
        names = list(inspect.signature(method).parameters)[1:]
        self._name = name
        # Behind a `*args` of somebody who wrapped it, it is the first as ever.
        self._place = names.index(name) if name in names else 0

    def of(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Return its value in a call, or None; `args` follow `self`."""
        is_there = len(args) > self._place
        return args[self._place] if is_there else kwargs.get(self._name)

    def put(
        self, value: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
        """Return the call's arguments with another value for it."""
        if len(args) <= self._place:
            return args, {**kwargs, self._name: value}
        return (*args[: self._place], value, *args[self._place + 1 :]), kwargs


def context_compressor(original: object, agents: Agents) -> property:
    """Return `agent.context_compressor`: None on an agent that did not ask."""
    return property(agents.of)


def context_config(original: object, agents: Agents) -> property:
    """Return the attribute that a channel's clone gets as its `context=`.

    The host reads an attribute that its agents lack. A value that the host sets wins.
    """
    name = "_context_config"

    def get(self: Any) -> Any:
        given = self._context_param if agents.of(self) is not None else None
        return vars(self).get(name, given)

    return property(get, lambda self, value: vars(self).__setitem__(name, value))


def unmanaged(original: Any, agents: Agents) -> Any:
    """Replace the host's context management: agents of ours keep their messages.

    It removes repeated results and cuts pairs apart before a request reaches us.
    """
    messages = Argument(original, "messages")

    @functools.wraps(original)
    def _apply_context_management(self: Any, *args: Any, **kwargs: Any) -> Any:
        if agents.of(self) is None:
            return original(self, *args, **kwargs)
        return messages.of(args, kwargs), None

    return _apply_context_management


def in_loop_compaction(original: object, agents: Agents) -> property:
    """Return the host's switch for compaction in tool loops: off for ours.

    Agents that did not ask may share an `LLM` with ours, so the turn decides.
    """
    name = "_in_loop_compaction"

    def get(self: Any) -> Any:
        return vars(self).get(name, True) if current() is None else False

    return property(get, lambda self, value: vars(self).__setitem__(name, value))


def team_init(original: Any, agents: Agents) -> Any:
    """Replace a team's constructor: members without a `context=` take the team's.

    The host makes a manager of the team's and gives it to no agent.
    """

    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        if not agents.are_served or options.read(self._context_param) is None:
            return
        for member in self.agents:
            # The host makes `True` of nothing where an agent has tools.
            is_silent = member._context_param is None or (
                member._context_param is True and bool(member.tools)
            )
            if is_silent and member._context_manager is None:
                member._context_param = self._context_param
                member._context_manager_initialized = False

    return __init__


# As the host's parser renames them before it reads them.
_ALIASES = {
    "enabled": "auto_compact",
    "max_tool_output_tokens": "tool_output_max",
    "threshold": "compact_threshold",
    "tool_output_limits": "tool_limits",
}


def parse_workflow_data(original: Any, agents: Agents) -> Any:
    """Replace the workflow parser: keep `context: summarize` and our keys."""
    argument = Argument(original, "data")

    @functools.wraps(original)
    def _parse_workflow_data(self: Any, *args: Any, **kwargs: Any) -> Any:
        workflow = original(self, *args, **kwargs)
        data = argument.of(args, kwargs)
        given = data.get("context") if isinstance(data, Mapping) else None
        written = given if isinstance(given, Mapping) else {"strategy": given}
        if agents.are_served and options.wants(written.get("strategy")):
            # Each step's agent is given it as its own `context=`.
            workflow.context = {_ALIASES.get(key, key): value for key, value in written.items()}
        return workflow

    return _parse_workflow_data
