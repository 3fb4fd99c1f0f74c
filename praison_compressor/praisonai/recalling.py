"""The recall tools on an agent that asked for them, for as long as it is compressed."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..errors import CompressorError, StoreUnavailable
from ..recall import recall_tools

if TYPE_CHECKING:
    from .agent_compressor import AgentCompressor

__all__ = ["RecallTools"]

log = logging.getLogger(__name__)


class RecallTools:
    """Gives an agent its tools, and takes back exactly those."""

    def __init__(self, agent: Any, compressor: AgentCompressor) -> None:
        self._agent = weakref.ref(agent)
        taken = {getattr(tool, "__name__", None) for tool in _tools_of(agent)}
        self._given = [tool for tool in _made(compressor) if tool.__name__ not in taken]
        if self._given:
            agent.tools = [*_tools_of(agent), *self._given]

    def take_back(self) -> None:
        """The agent's tools as they were."""
        agent = self._agent()
        if agent is not None and self._given:
            agent.tools = [tool for tool in _tools_of(agent) if tool not in self._given]


def _tools_of(agent: Any) -> list[Any]:
    tools = getattr(agent, "tools", None)
    if isinstance(tools, (list, tuple)):
        return list(tools)
    return [] if tools is None else [tools]


def _made(compressor: AgentCompressor) -> list[Callable[..., str]]:
    if not compressor.config.recall:
        return []
    weak = weakref.ref(compressor)  # the agent holds its tools, and must not hold its compressor

    def ours() -> AgentCompressor:
        found = weak()
        if found is None:
            raise StoreUnavailable("the conversation's archive is closed")
        return found

    try:
        store = compressor.ledger
    except CompressorError as error:
        log.warning("no recall tools: %s", error)
        return []
    return recall_tools(
        store,
        # Asked at each call: a command may have changed the session.
        lambda: store.open(ours().config.namespace, ours().session_id),
        lambda text: ours().engine().tokens.text(text),
    )
