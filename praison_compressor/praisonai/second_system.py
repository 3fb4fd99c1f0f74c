"""The host's other ways of making a transcript smaller, out of the way for our agents.

Exactly one system compresses: each of these would cut pairs apart, drop the newest user message
or put a summary into the agent's history before a request reaches us.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from . import identity
from .patches import Patches, host_module, method

if TYPE_CHECKING:
    from .agents import Agents

__all__ = ["patch"]


def patch(agents: Agents, patches: Patches) -> None:
    """Turn off compaction before, inside and after the tool loop."""
    mixin = host_module("agent.chat_mixin").ChatMixin
    llm = host_module("llm.llm").LLM
    for name, answer in (
        # Before the loop: the budget policy, and `ExecutionConfig.context_compaction`.
        ("_get_compaction_policy", None),
        ("_apply_context_compaction", False),
    ):
        patches.replace(mixin, name, _answer(agents, method(mixin, name), answer))
    name = "_apply_context_compaction_async"
    patches.replace(mixin, name, _answer_async(agents, method(mixin, name), False))
    # Inside it, on the litellm paths.
    name = "_manage_context_in_loop"
    patches.replace(llm, name, _unchanged(method(llm, name)))
    # After a refusal. The wire has already retried with a tighter view; a restart of the turn
    # would run tools again that are done. Not all hosts that we support have these.
    for owner, name, wrap in (
        (mixin, "_can_restart_after_overflow", functools.partial(_answer, agents)),
        (llm, "_shrink_on_context_overflow", _answer_in_turn),
    ):
        if name in vars(owner):
            patches.replace(owner, name, wrap(method(owner, name), False))


def _answer(agents: Agents, original: Any, answer: Any) -> Any:
    @functools.wraps(original)
    def method_of_agent(self: Any, *args: Any, **kwargs: Any) -> Any:
        return original(self, *args, **kwargs) if agents.of(self) is None else answer

    return method_of_agent


def _answer_async(agents: Agents, original: Any, answer: Any) -> Any:
    @functools.wraps(original)
    async def method_of_agent(self: Any, *args: Any, **kwargs: Any) -> Any:
        return await original(self, *args, **kwargs) if agents.of(self) is None else answer

    return method_of_agent


def _answer_in_turn(original: Any, answer: Any) -> Any:
    """An `LLM` may be shared by agents that did not ask: the turn decides, not the object."""

    @functools.wraps(original)
    def method_of_llm(self: Any, *args: Any, **kwargs: Any) -> Any:
        return original(self, *args, **kwargs) if identity.current() is None else answer

    return method_of_llm


def _unchanged(original: Any) -> Any:
    @functools.wraps(original)
    def _manage_context_in_loop(self: Any, messages: Any) -> Any:
        return original(self, messages) if identity.current() is None else messages

    return _manage_context_in_loop
