"""`context:` in a workflow's YAML file, where it asks for us in words that the host drops."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .options import wants
from .patches import Patches, host_module, method

if TYPE_CHECKING:
    from .agents import Agents

__all__ = ["patch"]

# As the host's parser renames them before it reads them.
_ALIASES = {
    "enabled": "auto_compact",
    "max_tool_output_tokens": "tool_output_max",
    "threshold": "compact_threshold",
    "tool_output_limits": "tool_limits",
}


def patch(agents: Agents, patches: Patches) -> None:
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
