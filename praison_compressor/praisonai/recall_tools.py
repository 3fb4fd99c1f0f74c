"""Give an agent the recall tools; hide taken-back messages.

An agent gets the tools with its first compression, which changes the request's prefix anyway.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Container, Mapping
from dataclasses import replace
from typing import Any

from ..errors import StoreUnavailable
from ..ledger.segments import Session
from ..recall.answers import SCHEMAS, recall_tools, schemas_for
from .agent_ledger import agent_title
from .conversation_finder import ConversationFinder
from .conversations import Conversation
from .model_compressors import ModelCompressors

logger = logging.getLogger(__name__)

Tool = Callable[..., str]


def wants_recall(agent: Any, option: bool | None) -> bool:
    """Return whether an agent gets recall tools; by default, beside other tools."""
    allows = getattr(agent, "_tool_name_allowed", None)
    names = [schema["function"]["name"] for schema in SCHEMAS]
    if callable(allows) and not all(map(allows, names)):
        return False
    return bool(_tools_of(agent)) if option is None else option


class RecallTools:
    """The two recall tools of one agent; keeps no agent alive."""

    def __init__(
        self, agent: weakref.ref[Any], finder: ConversationFinder, compressors: ModelCompressors
    ) -> None:
        self._agent = agent
        self._finder = finder
        self._compressors = compressors
        self._tools = recall_tools(
            compressors.open_ledger,
            self._session,
            lambda text: compressors.for_model(None).tokens.text(text),
            turn=lambda: (self._conversation.session_id, self._conversation.progress),
        )
        self._given: list[Tool] | None = None
        """The tools whose names were free; None before the first `give`."""

    def give(self) -> None:
        """Put the tools with free names on the agent's list."""
        agent = self._agent()
        if agent is None:
            return
        listed = _tools_of(agent)
        if self._given is None:
            self._given = self._tools_with_free_names(agent, {tool_name(tool) for tool in listed})
        missing = [tool for tool in self._given if tool not in listed]
        if missing:
            agent.tools = [*listed, *missing]

    def _tools_with_free_names(self, agent: Any, names: Container[str | None]) -> list[Tool]:
        for tool in self._tools:
            if tool.__name__ in names:
                logger.warning(
                    "agent %s: its own tool %s is kept; the recall tool of that name is not given",
                    agent_title(agent),
                    tool.__name__,
                )
        return [tool for tool in self._tools if tool.__name__ not in names]

    def remove(self) -> None:
        """Remove the tools from the agent's list."""
        agent = self._agent()
        if self._given and agent is not None:
            agent.tools = [tool for tool in _tools_of(agent) if tool not in self._given]
        self._given = None

    def add_to_request(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a request's parameters with the recall tools that it lacks."""
        # The host reads the agent's tools only when a turn begins.
        sent = params.get("tools")
        listed = _tools_of(self._agent())
        # Offer only listed tools: the host finds no other tools.
        offered = [tool for tool in self._given or () if tool in listed]
        if not offered or not isinstance(sent, (list, tuple)) or not sent:
            return params
        names = {tool_name(tool) for tool in sent}
        ours = {tool.__name__ for tool in offered}
        own = {tool_name(tool) for tool in listed} - ours - {None}
        if not own <= names:  # not a request of the agent's turn
            return params
        schemas = schemas_for("responses" if "input" in params else "chat")
        missing = [schema for schema in schemas if tool_name(schema) in ours - names]
        return {**params, "tools": [*sent, *missing]} if missing else params

    # ------------------------------------------------------------ what the tools read

    @property
    def _conversation(self) -> Conversation:
        running = self._finder.running
        if running is None:
            raise StoreUnavailable(
                "no turn of this agent runs here, so it is not known whose conversation to read; "
                "nothing was read"
            )
        return running

    def _session(self) -> Session:
        namespace, reads = self._compressors.config.namespace, self._conversation.may_recall
        session = self._compressors.open_ledger().open(namespace, self._conversation.session_id)
        # An entry that the user took back is hidden: recall passes over entries without salt.
        shown = (each if reads(each) else replace(each, salt="") for each in session.entries)
        return replace(session, entries=tuple(shown))


def _tools_of(agent: Any) -> list[Any]:
    tools = getattr(agent, "tools", None)
    if isinstance(tools, (list, tuple)):
        return list(tools)
    return [] if tools is None else [tools]


def drop_copied_tools(agent: Any) -> None:
    """Remove another agent's recall tools from a copied list."""
    listed = _tools_of(agent)
    own = [tool for tool in listed if getattr(tool, "__module__", None) != recall_tools.__module__]
    if len(own) < len(listed):
        agent.tools = own


def tool_name(tool: Any) -> str | None:
    """Return the name of a tool in any form, or None."""
    if isinstance(tool, str):
        return tool
    if isinstance(tool, Mapping):
        function = tool.get("function")
        name = (function if isinstance(function, Mapping) else tool).get("name")
    else:
        name = getattr(tool, "name", None) or getattr(tool, "__name__", None)
    return name if isinstance(name, str) else None
