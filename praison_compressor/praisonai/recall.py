"""The recall tools in an agent's hands: given with its first compression, and taken back whole.

The request that first carries a summary has another prefix anyway, so the tools cost its cache
nothing. The host made the list of tools for a turn before that, so a running turn's requests get
them on their way out (`offered`), later turns from the agent's own list.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..ledger.tools import SCHEMAS, recall_tools

log = logging.getLogger(__name__)

Tool = Callable[..., str]


def wants_recall(agent: Any, asked: bool | None) -> bool:
    """Whether an agent is to have the tools: as it was asked, else where it calls tools at all."""
    may = all(_may_call(agent, schema["function"]["name"]) for schema in SCHEMAS)
    return may and (bool(tools_of(agent)) if asked is None else asked)


class RecallTools:
    """The two tools of one agent."""

    def __init__(self, make: Callable[[], Sequence[Tool]]) -> None:
        self._make = make
        self._given: list[Tool] = []
        self._is_settled = False

    def give(self, agent: Any) -> None:
        """Put the tools on the agent's list, once; one of its own with that name stays alone."""
        if self._is_settled or agent is None:
            return
        has = tools_of(agent)
        names = {name_of(tool) for tool in has}
        made = self._make()
        self._is_settled = True
        self._given = [tool for tool in made if tool.__name__ not in names]
        for tool in made:
            if tool not in self._given:
                log.warning(
                    "agent %s: its own tool %s is kept, in the place of the recall tool",
                    *(getattr(agent, "display_name", "(gone)"), tool.__name__),
                )
        if self._given:
            agent.tools = [*has, *self._given]

    def take_back(self, agent: Any) -> None:
        """Take the tools off the agent's list."""
        if self._given:
            agent.tools = [tool for tool in tools_of(agent) if tool not in self._given]
        self._given, self._is_settled = [], False

    def offered(self, agent: Any, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """The request's parameters with the tools, where it has tools and lacks ours.

        A request with other tools than the agent's own is left alone: the host would look for ours
        among those, and not find them.
        """
        sent = params.get("tools")
        if not self._given or not isinstance(sent, (list, tuple)) or not sent:
            return params
        names = {name_of(tool) for tool in sent}
        ours = {tool.__name__ for tool in self._given}
        own = {name_of(tool) for tool in tools_of(agent)} - ours - {None}
        if not own <= names:
            return params
        more = [each for each in SCHEMAS if each["function"]["name"] in ours - names]
        if "input" in params:  # the Responses API writes a function without a level of its own
            more = [{"type": "function", **each["function"]} for each in more]
        return {**params, "tools": [*sent, *more]} if more else params


def tools_of(agent: Any) -> list[Any]:
    """The tools on an agent's list."""
    tools = getattr(agent, "tools", None)
    if isinstance(tools, (list, tuple)):
        return list(tools)
    return [] if tools is None else [tools]


def drop_copied(agent: Any) -> None:
    """Take the tools of another agent off a copy's list: they would read that one's session."""
    has = tools_of(agent)
    own = [tool for tool in has if getattr(tool, "__module__", None) != recall_tools.__module__]
    if len(own) < len(has):
        agent.tools = own


def name_of(tool: Any) -> str | None:
    """The name of a tool in any of the forms that the host takes, where it is one tool."""
    if isinstance(tool, str):
        return tool
    if isinstance(tool, Mapping):
        function = tool.get("function")
        name = (function if isinstance(function, Mapping) else tool).get("name")
    else:
        name = getattr(tool, "name", None) or getattr(tool, "__name__", None)
    return name if isinstance(name, str) else None


def _may_call(agent: Any, name: str) -> bool:
    """Whether the agent's permissions let it call a tool of that name."""
    allowed = getattr(agent, "_tool_name_allowed", None)
    return bool(allowed(name)) if callable(allowed) else True
