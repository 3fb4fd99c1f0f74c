"""The host's own compaction out of the way of agents of ours: exactly one system compresses.

Each of the host's would cut pairs apart, drop the newest user message or put a summary into the
agent's history before a request reaches us.
"""

from __future__ import annotations

import copy
import functools
import logging
from collections.abc import Callable
from typing import Any

from praisonaiagents.context.manager import ContextManager

from .agents import Agents, current

log = logging.getLogger(__name__)


class PassThroughManager(ContextManager):  # type: ignore[misc]  # the host ships no types
    """Counts and reports as the host's own, and never drops, cuts or rewrites a message.

    The host's would remove repeated results and cut pairs apart before the request is sent, where
    the whole transcript is needed; its budget per tool output stays in force.
    """

    def __deepcopy__(self, memo: dict[int, Any]) -> PassThroughManager:
        """A fresh one: the host's managers hold locks, which cannot be copied with their agent."""
        return PassThroughManager(
            model=self.model, config=copy.deepcopy(self.config, memo), agent_name=self.agent_name
        )

    def emergency_truncate(self, messages: list[Any], target_tokens: int) -> list[Any]:
        return messages

    def _deduplicate_messages(self, messages: list[Any]) -> list[Any]:
        return messages

    def _optimize_with_benefit_check(
        self, messages: list[Any], target_tokens: int
    ) -> tuple[list[Any], None]:
        return messages, None


def manager_for(agent: Any, config: Any) -> PassThroughManager:
    """The agent's manager, sharing the state of the host's own one where the user made it."""
    for given in (agent._context_manager, agent._context_param):
        if type(given) in (ContextManager, PassThroughManager):
            shared = PassThroughManager.__new__(PassThroughManager)
            shared.__dict__ = given.__dict__  # the user may look at it
            return shared
    model = getattr(agent, "llm", None)
    return PassThroughManager(
        model=model if isinstance(model, str) else "gpt-4o-mini",
        config=config,
        agent_name=getattr(agent, "name", None) or "Agent",
        session_cache=getattr(agent, "_session_dedup_cache", None),
    )


# ------------------------------------------------------------ replaced in the host


def context_manager(original: property, agents: Agents[Any]) -> property:
    """Agents of ours get their manager before the host builds one of the same `context=`."""

    def context_manager(self: Any) -> Any:
        compressor = agents.of(self)
        if compressor is not None:
            compressor.put_in_place()  # where the host's getter finds it
        return original.__get__(self, type(self))

    return property(context_manager, original.fset, original.fdel, original.__doc__)


def apply_context_management(original: Any, agents: Agents[Any]) -> Any:
    """The messages as they are, and a report; no hard limit, no `on_pre_compress`."""

    @functools.wraps(original)
    def _apply_context_management(
        self: Any, messages: Any, system_prompt: str = "", tools: Any = None
    ) -> Any:
        if agents.of(self) is None:
            return original(self, messages, system_prompt=system_prompt, tools=tools)
        try:
            return messages, self.context_manager.process(messages, system_prompt, tools or [])
        except Exception:  # its estimates fail on `tool_calls: None` and on dictionary arguments
            log.debug("the host could not estimate this turn's context", exc_info=True)
            return messages, {"optimized": False, "tokens_saved": 0, "warnings": []}

    return _apply_context_management


def _instead(answer: Callable[..., Any], original: Any, agents: Agents[Any]) -> Any:
    """In turns of ours a method of the agent or of its `LLM` does nothing but answer.

    An `LLM` may be shared by agents that did not ask: the turn decides, not the object.
    """

    @functools.wraps(original)
    def replaced(self: Any, *args: Any, **kwargs: Any) -> Any:
        if current() is None:
            return original(self, *args, **kwargs)
        return answer(*args, **kwargs)

    return replaced


async def _false(*_: Any, **__: Any) -> bool:
    return False


no_policy = functools.partial(_instead, lambda: None)
nothing_done = functools.partial(_instead, lambda *_, **__: False)
anothing_done = functools.partial(_instead, _false)
as_they_are = functools.partial(_instead, lambda messages: messages)
