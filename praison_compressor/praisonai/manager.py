"""The host's context manager for our agents: it watches, and lets every message through."""

from __future__ import annotations

import copy
import functools
import logging
from typing import TYPE_CHECKING, Any

from praisonaiagents.context.manager import ContextManager

from .patches import Patches, getter, host_module, method

if TYPE_CHECKING:
    from .agents import Agents

__all__ = ["PassThroughManager", "manager_for", "patch"]

log = logging.getLogger(__name__)


class PassThroughManager(ContextManager):  # type: ignore[misc]  # the host ships no types
    """Counts and reports as the host's own, and never drops, cuts or rewrites a message.

    The host's would remove repeated results and cut pairs apart before the wire, where the whole
    transcript is needed; its budget per tool output stays in force.
    """

    @classmethod
    def in_place_of(cls, manager: ContextManager) -> PassThroughManager:
        """One that shares the state of a manager which the user made and may look at."""
        made = cls.__new__(cls)
        made.__dict__ = manager.__dict__
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> PassThroughManager:
        """A fresh one: the host's managers hold locks, which cannot be copied with their agent."""
        return PassThroughManager(
            model=self.model, config=copy.deepcopy(self.config, memo), agent_name=self.agent_name
        )

    def process(
        self,
        messages: list[dict[str, Any]],
        system_prompt: str = "",
        tools: list[dict[str, Any]] | None = None,
        trigger: str = "turn",
    ) -> dict[str, Any]:
        try:
            report: dict[str, Any] = super().process(messages, system_prompt, tools, trigger)
        except Exception:  # its estimates fail on `tool_calls: None` and on dictionary arguments
            log.debug("the host could not estimate this turn's context", exc_info=True)
            report = {"optimized": False, "tokens_saved": 0, "warnings": []}
        return {**report, "messages": messages}

    def emergency_truncate(
        self, messages: list[dict[str, Any]], target_tokens: int
    ) -> list[dict[str, Any]]:
        return messages

    def _deduplicate_messages(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return messages

    def _optimize_with_benefit_check(
        self, messages: list[dict[str, Any]], target_tokens: int
    ) -> tuple[list[dict[str, Any]], None]:
        return messages, None


def manager_for(agent: Any, config: Any) -> PassThroughManager:
    """The agent's manager, sharing the state of the host's own one where the user made it."""
    for given in (agent._context_manager, agent._context_param):
        if type(given) in (ContextManager, PassThroughManager):
            return PassThroughManager.in_place_of(given)
    model = getattr(agent, "llm", None)
    return PassThroughManager(
        model=model if isinstance(model, str) else "gpt-4o-mini",
        config=config,
        agent_name=getattr(agent, "name", None) or "Agent",
        session_cache=getattr(agent, "_session_dedup_cache", None),
    )


def patch(agents: Agents, patches: Patches) -> None:
    """Give our agents that manager, before the host builds one from the same `context=`."""
    agent = host_module("agent.agent").Agent
    mixin = host_module("agent.chat_mixin").ChatMixin
    patches.replace(
        agent, "context_manager", _context_manager(agents, getter(agent, "context_manager"))
    )
    patches.replace(
        mixin,
        "_apply_context_management",
        _apply(agents, method(mixin, "_apply_context_management")),
    )


def _context_manager(agents: Agents, original: property) -> property:
    def context_manager(self: Any) -> Any:
        compressor = agents.of(self)
        if compressor is not None:
            compressor.put_in_place()  # where the host's getter finds it
        return original.__get__(self, type(self))

    return property(context_manager, original.fset, original.fdel, original.__doc__)


def _apply(agents: Agents, original: Any) -> Any:
    """No hard limit and no `on_pre_compress` before the wire: nothing is compressed there."""

    @functools.wraps(original)
    def _apply_context_management(
        self: Any, messages: Any, system_prompt: str = "", tools: Any = None
    ) -> Any:
        compressor = agents.of(self)
        if compressor is None:
            return original(self, messages, system_prompt=system_prompt, tools=tools)
        return messages, self.context_manager.process(messages, system_prompt, tools or [])

    return _apply_context_management
