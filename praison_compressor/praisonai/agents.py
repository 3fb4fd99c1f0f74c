"""The agents that asked for compression, found again by the object, in clones and in teams."""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from typing import Any

from praisonaiagents.context.models import ContextConfig

from ..messages.forks import renewed
from .agent_compressor import AgentCompressor
from .options import RequestedContext, read

__all__ = [
    "Agents",
]


log = logging.getLogger(__name__)


class Agents:
    """Which agents asked, and the compressor that each has to itself; no agent is kept alive."""

    def __init__(self) -> None:
        self.defaults: dict[str, Any] = {}
        """Options of `CompressorConfig` where an agent says nothing."""
        self.gate: Callable[[], bool] | None = None
        """Asked at each turn where a plugin switched us on: it may be switched off again."""
        self._lock = renewed(threading.RLock())
        self._open = True
        self._known: weakref.WeakKeyDictionary[Any, AgentCompressor] = weakref.WeakKeyDictionary()
        self._failed: weakref.WeakSet[Any] = weakref.WeakSet()
        self._of_team: weakref.WeakKeyDictionary[Any, RequestedContext] = (
            weakref.WeakKeyDictionary()
        )

    @property
    def are_served(self) -> bool:
        """Whether agents get compressors at all: installed, and not switched off."""
        return self._open and (self.gate is None or self.gate())

    def of(self, agent: Any) -> AgentCompressor | None:
        """The agent's compressor; None when it did not ask for one."""
        with self._lock:
            if not self.are_served:
                self._leave(agent)
                return None
            known = self._known.get(agent)
            if known is not None and known.is_in_place:
                return known
            return None if agent in self._failed else self._tried(agent)

    def join(self, members: Iterable[Any], param: Any) -> None:
        """Take a team's `context=` for those of its members that say nothing of their own."""
        asked = read(param)
        if asked is not None:
            with self._lock:
                self._of_team.update(dict.fromkeys(members, asked))

    def copied(self, agent: Any, copy: Any) -> None:
        """Let a copy of an agent ask for what the agent asks, if the host lost that."""
        if self.of(agent) is None or copy._context_manager_initialized:
            return
        copy._context_param = agent._context_param
        with self._lock:
            if agent in self._of_team:
                self._of_team[copy] = self._of_team[agent]

    def _tried(self, agent: Any) -> AgentCompressor | None:
        try:
            return self._made(agent)
        except Exception:  # a store that cannot be opened, a host in an unknown state
            self._failed.add(agent)
            log.exception("agent %s goes on uncompressed", getattr(agent, "display_name", None))
            return None

    def _made(self, agent: Any) -> AgentCompressor | None:
        before = self._known.pop(agent, None)
        asked = _asked(agent)
        if asked is None and before is None and _went_unheard(agent):
            asked = read(agent._context_param)
        if asked is None and _says_nothing(agent):
            asked = self._of_team.get(agent)
        if before is not None:
            before.leave()
        if asked is None:
            return None
        made = AgentCompressor(agent, asked, self.defaults)
        self._known[agent] = made
        return made

    def _leave(self, agent: Any) -> None:
        known = self._known.pop(agent, None)
        if known is not None:
            known.leave()

    def close(self) -> None:
        """Let every agent go back to the host's own manager."""
        with self._lock:
            self._open = False
            for compressor in list(self._known.values()):
                compressor.leave()
            self._known.clear()


def _asked(agent: Any) -> RequestedContext | None:
    """What the agent asks now: by its manager where it has one, else by its `context=`."""
    param = getattr(agent, "_context_param", None)
    if not getattr(agent, "_context_manager_initialized", False):
        return read(param)
    manager = agent._context_manager
    if read(manager) is None:  # none, another strategy, or a manager of the user's own making
        return None
    return read(param) or read(manager)


def _went_unheard(agent: Any) -> bool:
    """Whether the host, in a turn before `install()`, made no manager of a dictionary of options:
    it drops all of one with a key of ours."""
    param = agent._context_param
    host = {item.name for item in fields(ContextConfig)}
    return agent._context_manager is None and isinstance(param, Mapping) and not host >= set(param)


def _says_nothing(agent: Any) -> bool:
    """Whether the agent was given no `context=`: the host takes its tools for a `True`."""
    param = getattr(agent, "_context_param", None)
    return agent._context_manager is None and (
        param is None or (param is True and bool(getattr(agent, "tools", None)))
    )
