"""`agent.context_compressor`: what an agent's user can ask and tell its compressor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .patches import Patches, host_module

if TYPE_CHECKING:
    from .agent_compressor import AgentCompressor
    from .agents import Agents

__all__ = ["patch"]


def patch(agents: Agents, patches: Patches) -> None:
    """Add the attribute; None on an agent that did not ask."""

    def context_compressor(self: Any) -> AgentCompressor | None:
        return agents.of(self)

    agent = host_module("agent.agent").Agent
    patches.replace(agent, "context_compressor", property(context_compressor))
