"""What is replaced on the host's agents, clones, teams and workflow files so that each spelling
reaches us.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .options import wants
from .patches import Patches, host_module, method

if TYPE_CHECKING:
    from .agent_compressor import AgentCompressor
    from .agents import Agents

__all__ = [
    "patch_attribute",
    "patch_clones",
    "patch_teams",
    "patch_workflow_files",
]


# -------------------------------------------------------------- face


def patch_attribute(agents: Agents, patches: Patches) -> None:
    """Add the attribute; None on an agent that did not ask."""

    def context_compressor(self: Any) -> AgentCompressor | None:
        return agents.of(self)

    agent = host_module("agent.agent").Agent
    patches.replace(agent, "context_compressor", property(context_compressor))


# -------------------------------------------------------------- clones


def patch_clones(agents: Agents, patches: Patches) -> None:
    """`clone_for_channel` passes on an attribute that no agent has, so `context=` gets lost."""
    agent = host_module("agent.agent").Agent
    name = "clone_for_channel"
    patches.replace(agent, name, _clone(agents, method(agent, name)))


def _clone(agents: Agents, original: Any) -> Any:
    @functools.wraps(original)
    def clone_for_channel(self: Any) -> Any:
        clone = original(self)
        agents.copied(self, clone)
        return clone

    return clone_for_channel


# -------------------------------------------------------------- teams


def patch_teams(agents: Agents, patches: Patches) -> None:
    """The host makes a manager of the team's `context=` that none of its agents is given."""
    team = host_module("agents.agents").AgentTeam
    name = "__init__"
    patches.replace(team, name, _init(agents, method(team, name)))


def _init(agents: Agents, original: Any) -> Any:
    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        agents.join(self.agents, self._context_param)

    return __init__


# -------------------------------------------------------------- workflow files


# As the host's parser renames them before it reads them.
_ALIASES = {
    "enabled": "auto_compact",
    "max_tool_output_tokens": "tool_output_max",
    "threshold": "compact_threshold",
    "tool_output_limits": "tool_limits",
}


def patch_workflow_files(agents: Agents, patches: Patches) -> None:
    """The host takes no bare `context: summarize`, and forgets a dictionary with a key of ours."""
    parser = host_module("workflows.yaml_parser").YAMLWorkflowParser
    name = "_parse_workflow_data"
    patches.replace(parser, name, _parse(agents, method(parser, name)))


def _parse(agents: Agents, original: Any) -> Any:
    @functools.wraps(original)
    def _parse_workflow_data(self: Any, data: Any, *args: Any, **kwargs: Any) -> Any:
        workflow = original(self, data, *args, **kwargs)
        asked = _asked(data.get("context")) if isinstance(data, Mapping) else None
        if asked is not None and agents.are_served:
            workflow.context = asked  # which each step's agent is given as its own `context=`
        return workflow

    return _parse_workflow_data


def _asked(given: Any) -> Any:
    if isinstance(given, str) and wants(given):
        return "summarize"
    if isinstance(given, Mapping) and wants(given.get("strategy")):
        return {_ALIASES.get(key, key): value for key, value in given.items()}
    return None
