"""The recall tools of an agent: given with its first compression, and taken back whole.

The request that first carries a summary has another prefix anyway, so the tools cost its cache
nothing. The host lists a turn's tools before that: a running turn's requests get ours on their way
out (`offered`), later turns from the agent's own list.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..ledger.tools import SCHEMAS, recall_tools, schemas_for

log = logging.getLogger(__name__)

Tool = Callable[..., str]


def wants_recall(agent: Any, asked: bool | None) -> bool:
    """Return whether an agent gets the tools: as asked, else where it calls any tools."""
    may = all(_may_call(agent, schema["function"]["name"]) for schema in SCHEMAS)
    return may and (bool(tools_of(agent)) if asked is None else asked)


class RecallTools:
    """The two tools of one agent."""

    def __init__(self, make: Callable[[], Sequence[Tool]]) -> None:
        self._make = make
        self._given: list[Tool] = []
        self._is_settled = False

    def give(self, agent: Any) -> None:
        """Put the tools on the agent's list; one of its own with that name stays alone.

        They are put back where the list was replaced: a bot restores its own after each turn.
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
        """Return the request's parameters with the tools, where it has tools and lacks ours.

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
    """Take another agent's recall tools off a copy's list: they read nothing for this agent."""
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
