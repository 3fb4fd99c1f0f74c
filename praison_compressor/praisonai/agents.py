"""Find an agent's compressor; pass on calls of replaced names."""

from __future__ import annotations

import functools
import inspect
import logging
import threading
import weakref
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ..concurrency import renew_after_fork
from . import context_param
from .agent_compressor import AgentCompressor
from .agent_ledger import title_of
from .running_turn import current

log = logging.getLogger(__name__)


# ------------------------------------------------------------ who asked


class Agents:
    """The compressors of the agents that asked; keeps no agent alive."""

    def __init__(self, before_turn: Callable[[], None]) -> None:
        """`before_turn` is called whenever an agent's compressor is asked for."""
        self._before_turn = before_turn
        self.defaults: dict[str, Any] = {}
        """Options of `CompressorConfig` for agents that name no others."""
        self.in_code = False
        """Whether `install()` was called, which counts beside a plugin that is switched off."""
        self.plugin: Callable[[], bool] | None = None
        """Returns whether the plugin is enabled now; None without a plugin."""
        self._lock = renew_after_fork(threading.RLock())
        self._open = True
        self._made: weakref.WeakKeyDictionary[Any, AgentCompressor] = weakref.WeakKeyDictionary()
        self._failed: weakref.WeakSet[Any] = weakref.WeakSet()

    @property
    def by_default(self) -> bool:
        """Return whether agents without a strategy ask too: the plugin is on."""
        return self.plugin is not None and self.plugin()

    @property
    def are_served(self) -> bool:
        """Return whether agents that ask are compressed now."""
        return self._open and (self.in_code or self.by_default)

    def of(self, agent: Any) -> AgentCompressor | None:
        """Return the agent's compressor; None if it does not ask."""
        self._before_turn()
        with self._lock:
            try:
                return self._of(agent)
            except Exception:  # a host in an unknown state
                if agent not in self._failed:
                    log.exception("agent %s goes on uncompressed", title_of(agent))
                self._failed.add(agent)
                return None

    def _of(self, agent: Any) -> AgentCompressor | None:
        """Return the agent's compressor, made again if its `context=` has changed."""
        asked = context_param.asked_by(agent, self.by_default) if self.are_served else None
        made = self._made.get(agent)
        if made is not None and made.asked != asked:
            made.leave()
            del self._made[agent]
            made = None
        if made is None and asked is not None:
            model = getattr(agent, "llm", None)
            config = asked.config(model if isinstance(model, str) else None, self.defaults)
            made = self._made[agent] = AgentCompressor(agent, asked, config)
        return made

    def close(self) -> None:
        """Restore every agent's own settings and tools."""
        with self._lock:
            self._open = False
            for made in list(self._made.values()):
                made.leave()
            self._made.clear()


# ------------------------------------------------------------ calls of replaced methods


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
        place, args = _place(self.original, name), [*self.args]
        if place >= len(args):
            return self._replace(kwargs={**self.kwargs, name: value})
        args[place] = value
        return self._replace(args=tuple(args))


@functools.lru_cache
def _place(method: Callable[..., Any], name: str) -> int:
    """Return a parameter's place after `self`; 0 if it has no name."""
    names = list(inspect.signature(method).parameters)[1:]
    return names.index(name) if name in names else 0


Replacement = Callable[[Any, Agents], Any]
"""Makes the replacement of what the host has under a name."""


def replacing(answer: Callable[[HostCall], Any]) -> Replacement:
    """Return a `Replacement` that passes each call of a method to `answer`."""

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
    """Return a property for an attribute that the host may set."""
    return property(get, lambda self, value: vars(self).__setitem__(name, value))


# ------------------------------------------------------------ agents, teams and workflows


def context_compressor(original: object, agents: Agents) -> property:
    """Return `agent.context_compressor`: None on an agent that did not ask."""
    return property(agents.of)


def context_config(original: object, agents: Agents) -> property:
    """Return the attribute that becomes the `context=` of a channel's clone.

    The host's own agents lack that attribute. A value that the host sets wins.
    """

    def get(self: Any) -> Any:
        given = self._context_param if agents.of(self) is not None else None
        return vars(self).get("_context_config", given)

    return attribute("_context_config", get)


@replacing
def unmanaged(call: HostCall) -> Any:
    """Replace the host's context management: our agents keep their messages.

    The host's would drop repeated results and separate calls from their results.
    """
    if call.agents.of(call.owner) is None:
        return call.go_on()
    return call.argument("messages"), None


def in_loop_compaction(original: object, agents: Agents) -> property:
    """Return the host's switch for compaction in loops: off in our turns.

    It belongs to an `LLM`, which agents that did not ask may share.
    """
    name = "_in_loop_compaction"
    return attribute(name, lambda self: current() is None and vars(self).get(name, True))


@replacing
def team_init(call: HostCall) -> None:
    """Replace a team's constructor: members without a `context=` get the team's.

    The host itself gives the team's `context=` to no agent.
    """
    call.go_on()
    team = call.owner
    if not call.agents.are_served or context_param.asked_in(team._context_param) is None:
        return
    for member in team.agents:
        # The host turns a missing `context=` into True if the agent has tools.
        is_silent = member._context_param is None or (
            member._context_param is True and bool(member.tools)
        )
        if is_silent and member._context_manager is None:
            member._context_param = team._context_param
            member._context_manager_initialized = False


# The host's parser accepts these names too.
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
    if call.agents.are_served and context_param.is_summarize(written.get("strategy")):
        # The host passes it to each step's agent as `context=`.
        workflow.context = {_ALIASES.get(key, key): value for key, value in written.items()}
    return workflow
