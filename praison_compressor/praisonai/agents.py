"""The agents that asked for compression, and what the host may not do in their turns."""

from __future__ import annotations

import functools
import inspect
import logging
import threading
import weakref
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ..concurrency import renewed
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


class HostCall(NamedTuple):
    """A call of a method of the host that we replaced."""

    original: Callable[..., Any]
    agents: Agents
    owner: Any
    """The call's `self`."""
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]

    def go_on(self) -> Any:
        """Return what the host's own method returns."""
        return self.original(self.owner, *self.args, **self.kwargs)

    def argument(self, name: str) -> Any:
        """Return an argument's value, or None."""
        place = _place(self.original, name)
        return self.args[place] if place < len(self.args) else self.kwargs.get(name)

    def with_argument(self, name: str, value: Any) -> HostCall:
        """Return the call with another value for an argument."""
        place, args = _place(self.original, name), self.args
        if place < len(args):
            return self._replace(args=(*args[:place], value, *args[place + 1 :]))
        return self._replace(kwargs={**self.kwargs, name: value})


@functools.lru_cache
def _place(method: Callable[..., Any], name: str) -> int:
    """Return a parameter's place behind `self`; the first one of somebody's `*args`."""
    names = list(inspect.signature(method).parameters)[1:]
    return names.index(name) if name in names else 0


Replacement = Callable[[Any, Agents], Any]


def replacing(answer: Callable[[HostCall], Any]) -> Replacement:
    """Return a maker of replacements that pass each call of a method to `answer`."""

    def make(original: Any, agents: Agents) -> Any:
        @functools.wraps(original)
        def replaced(self: Any, *args: Any, **kwargs: Any) -> Any:
            return answer(HostCall(original, agents, self, args, kwargs))

        @functools.wraps(original)
        async def areplaced(self: Any, *args: Any, **kwargs: Any) -> Any:
            return await answer(HostCall(original, agents, self, args, kwargs))

        return areplaced if inspect.iscoroutinefunction(answer) else replaced

    return make


def attribute(name: str, get: Callable[[Any], Any]) -> property:
    """Return a property in the place of an attribute that the host may set."""
    return property(get, lambda self, value: vars(self).__setitem__(name, value))


def context_compressor(original: object, agents: Agents) -> property:
    """Return `agent.context_compressor`: None on an agent that did not ask."""
    return property(agents.of)


def context_config(original: object, agents: Agents) -> property:
    """Return the attribute that a channel's clone gets as its `context=`.

    The host reads an attribute that its agents lack. A value that the host sets wins.
    """

    def get(self: Any) -> Any:
        given = self._context_param if agents.of(self) is not None else None
        return vars(self).get("_context_config", given)

    return attribute("_context_config", get)


@replacing
def unmanaged(call: HostCall) -> Any:
    """Replace the host's context management: agents of ours keep their messages.

    It removes repeated results and cuts pairs apart before a request reaches us.
    """
    if call.agents.of(call.owner) is None:
        return call.go_on()
    return call.argument("messages"), None


def in_loop_compaction(original: object, agents: Agents) -> property:
    """Return the host's switch for compaction in tool loops: off for ours.

    Agents that did not ask may share an `LLM` with ours, so the turn decides.
    """
    name = "_in_loop_compaction"
    return attribute(name, lambda self: current() is None and vars(self).get(name, True))


@replacing
def team_init(call: HostCall) -> None:
    """Replace a team's constructor: members without a `context=` take the team's.

    The host makes a manager of the team's and gives it to no agent.
    """
    call.go_on()
    team = call.owner
    if not call.agents.are_served or options.read(team._context_param) is None:
        return
    for member in team.agents:
        # The host makes `True` of nothing where an agent has tools.
        is_silent = member._context_param is None or (
            member._context_param is True and bool(member.tools)
        )
        if is_silent and member._context_manager is None:
            member._context_param = team._context_param
            member._context_manager_initialized = False


# As the host's parser renames them before it reads them.
_ALIASES = {
    "enabled": "auto_compact",
    "max_tool_output_tokens": "tool_output_max",
    "threshold": "compact_threshold",
    "tool_output_limits": "tool_limits",
}


@replacing
def parse_workflow_data(call: HostCall) -> Any:
    """Replace the workflow parser: keep `context: summarize` and our keys."""
    workflow, data = call.go_on(), call.argument("data")
    given = data.get("context") if isinstance(data, Mapping) else None
    written = given if isinstance(given, Mapping) else {"strategy": given}
    if call.agents.are_served and options.wants(written.get("strategy")):
        # Each step's agent is given it as its own `context=`.
        workflow.context = {_ALIASES.get(key, key): value for key, value in written.items()}
    return workflow
