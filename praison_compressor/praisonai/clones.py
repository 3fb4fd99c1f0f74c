"""A gateway's clone of an agent asks for what the agent asked."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from .patches import Patches, host_module, method

if TYPE_CHECKING:
    from .agents import Agents

__all__ = ["patch"]


def patch(agents: Agents, patches: Patches) -> None:
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
