"""Change the host's settings of one agent while the agent is ours, and restore them."""

from __future__ import annotations

import copy
import weakref
from typing import Any

from praisonaiagents.config.feature_configs import DEFAULT_TOOL_OUTPUT_LIMIT

from .options import NO_LIMIT, as_it_is


class Settings:
    """The host's settings of one agent: its own compaction, and its limit of tool results."""

    def __init__(self, agent: weakref.ref[Any], whole_results: bool) -> None:
        self._agent = agent
        self._uncompacted: Any = None
        self._execution: Any = None
        self.compress_alone()
        made = agent()
        if whole_results and made is not None:
            made.tool_output_limit = NO_LIMIT
            made._truncate_tool_output = as_it_is

    def compress_alone(self) -> None:
        """Switch the host's `context_compaction` off, so that exactly one system compresses.

        Each turn calls this: the agent may have other settings by then.
        """
        agent = self._agent()
        if agent is None:
            return
        if agent.execution is not self._uncompacted:
            self._execution, self._uncompacted = agent.execution, copy.copy(agent.execution)
            agent.execution = self._uncompacted
        self._uncompacted.context_compaction = False

    def restore(self) -> None:
        """Give the agent the settings that it had."""
        agent = self._agent()
        if agent is None:
            return
        if agent.execution is self._uncompacted:
            agent.execution = self._execution
        if getattr(agent, "tool_output_limit", None) == NO_LIMIT:
            agent.tool_output_limit = DEFAULT_TOOL_OUTPUT_LIMIT
        vars(agent).pop("_truncate_tool_output", None)
