"""`AgentTeam(context=...)` reaches the team's members, where they say nothing of their own."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from .patches import Patches, host_module, method

if TYPE_CHECKING:
    from .agents import Agents

__all__ = ["patch"]


def patch(agents: Agents, patches: Patches) -> None:
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
