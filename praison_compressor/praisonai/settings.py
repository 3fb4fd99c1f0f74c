"""Change the settings and tools of one agent while the agent is ours, and restore them.

The recall tools are given with the first compression. The request that first carries a summary has
another prefix anyway, so the tools cost its cache nothing. The host lists a turn's tools before
that: a running turn's requests get ours on their way out (`offered`), later turns from the agent's
own list.
"""

from __future__ import annotations

import copy
import logging
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from praisonaiagents.config.feature_configs import DEFAULT_TOOL_OUTPUT_LIMIT

from ..ledger.tools import SCHEMAS, recall_tools, schemas_for
from .options import NO_LIMIT, as_it_is

log = logging.getLogger(__name__)

Tool = Callable[..., str]


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


# ------------------------------------------------------------ recall tools


def wants_recall(agent: Any, asked: bool | None) -> bool:
    """Return whether an agent gets the tools: by default if it has others."""
    may = all(_may_call(agent, schema["function"]["name"]) for schema in SCHEMAS)
    return may and (bool(tools_of(agent)) if asked is None else asked)


class RecallTools:
    """The two tools of one agent."""

    def __init__(self, make: Callable[[], Sequence[Tool]]) -> None:
        self._make = make
        self._given: list[Tool] = []
        self._is_settled = False

    def give(self, agent: Any) -> None:
        """Put the tools on the agent's list, beside none of the same name.

        A bot restores its own list after each turn: then the tools are put back.
        """
        if agent is None:
            return
        if not self._is_settled:
            self._first_given(agent)
        has = tools_of(agent)
        missing = [tool for tool in self._given if tool not in has]
        if missing:
            agent.tools = [*has, *missing]

    def _first_given(self, agent: Any) -> None:
        names = {name_of(tool) for tool in tools_of(agent)}
        made = self._make()
        self._is_settled = True
        self._given = [tool for tool in made if tool.__name__ not in names]
        for tool in made:
            if tool not in self._given:
                log.warning(
                    "agent %s: its own tool %s is kept, in the place of the recall tool",
                    *(getattr(agent, "display_name", "(gone)"), tool.__name__),
                )

    def take_back(self, agent: Any) -> None:
        """Take the tools off the agent's list."""
        if self._given:
            agent.tools = [tool for tool in tools_of(agent) if tool not in self._given]
        self._given, self._is_settled = [], False

    def offered(self, agent: Any, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a request's parameters with the recall tools that it lacks.

        A request with other tools than the agent's own is left alone, and so is one of an agent
        whose list lacks ours: the host would not find our functions.
        """
        sent, has = params.get("tools"), tools_of(agent)
        given = [tool for tool in self._given if tool in has]
        if not given or not isinstance(sent, (list, tuple)) or not sent:
            return params
        names = {name_of(tool) for tool in sent}
        ours = {tool.__name__ for tool in given}
        own = {name_of(tool) for tool in has} - ours - {None}
        if not own <= names:
            return params
        described = schemas_for("responses" if "input" in params else "chat")
        more = [each for each in described if name_of(each) in ours - names]
        return {**params, "tools": [*sent, *more]} if more else params


def tools_of(agent: Any) -> list[Any]:
    """Return the tools on an agent's list."""
    tools = getattr(agent, "tools", None)
    if isinstance(tools, (list, tuple)):
        return list(tools)
    return [] if tools is None else [tools]


def drop_copied(agent: Any) -> None:
    """Remove another agent's recall tools, which a copied list has."""
    has = tools_of(agent)
    own = [tool for tool in has if getattr(tool, "__module__", None) != recall_tools.__module__]
    if len(own) < len(has):
        agent.tools = own


def name_of(tool: Any) -> str | None:
    """Return the name of a tool in any form that the host takes, or None."""
    if isinstance(tool, str):
        return tool
    if isinstance(tool, Mapping):
        function = tool.get("function")
        name = (function if isinstance(function, Mapping) else tool).get("name")
    else:
        name = getattr(tool, "name", None) or getattr(tool, "__name__", None)
    return name if isinstance(name, str) else None


def _may_call(agent: Any, name: str) -> bool:
    """Return whether the agent's permissions let it call a tool of that name."""
    allowed = getattr(agent, "_tool_name_allowed", None)
    return bool(allowed(name)) if callable(allowed) else True
