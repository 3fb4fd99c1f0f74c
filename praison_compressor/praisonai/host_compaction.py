"""The host's own compaction: its optimizer answered by ours, its other mechanisms out of the way
for our agents.

Exactly one system compresses: each of these would cut pairs apart, drop the newest user message
or put a summary into the agent's history before a request reaches us.
"""

from __future__ import annotations

import copy
import functools
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from praisonaiagents.context.manager import ContextManager
from praisonaiagents.context.models import OptimizationResult, OptimizerStrategy
from praisonaiagents.context.optimizer import BaseOptimizer

from ..compressor.context_compressor import ContextCompressor
from ..compressor.result import CompressResult
from ..config import CompressorConfig
from ..errors import CompressorError
from . import identity
from .patches import HostMoved, Patches, getter, host_module, method

if TYPE_CHECKING:
    from .agents import Agents

__all__ = [
    "CompressorOptimizer",
    "PassThroughManager",
    "manager_for",
    "patch_compaction",
    "patch_manager",
    "patch_optimizer",
]


# -------------------------------------------------------------- manager


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


def patch_manager(agents: Agents, patches: Patches) -> None:
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


# -------------------------------------------------------------- optimizer


SUMMARIZE = OptimizerStrategy.SUMMARIZE


class CompressorOptimizer(BaseOptimizer):  # type: ignore[misc]  # the host ships no types
    """Compresses a list of messages; inside a turn of ours with that agent's own compressor.

    The host builds a new one per call and passes those of its keywords that this signature names.
    """

    def __init__(self, preserve_recent: int = 0, protected_tools: Sequence[str] | None = None):
        turns = preserve_recent or None
        self._alone = ContextCompressor(CompressorConfig(keep_recent_turns=turns))
        self._protected = tuple(protected_tools or ())

    def optimize(
        self, messages: list[dict[str, Any]], target_tokens: int, ledger: Any = None
    ) -> tuple[list[dict[str, Any]], OptimizationResult]:
        """The view and its real numbers; a target of 0, as the host has for gpt-4, is no target."""
        agent = identity.current()
        engine = self._alone if agent is None else agent.engine()
        target = target_tokens if target_tokens > 0 else None
        arguments: dict[str, Any] = {"target_tokens": target, "extends": False}
        try:
            result = engine.compress_sync(messages, **arguments)
        except CompressorError:
            return self._unmeasured(engine, messages, target)
        return list(result.messages), _report(result, len(messages))

    def _unmeasured(
        self, engine: ContextCompressor, messages: list[dict[str, Any]], target: int | None
    ) -> tuple[list[dict[str, Any]], OptimizationResult]:
        view = engine.best_view(messages, target_tokens=target)
        before, after = (engine.tokens.messages(list_) for list_ in (messages, view))
        return view, OptimizationResult(before, after, before - after, SUMMARIZE)


def _report(result: CompressResult, count: int) -> OptimizationResult:
    return OptimizationResult(
        original_tokens=result.tokens_before,
        optimized_tokens=result.tokens_after,
        tokens_saved=result.tokens_saved,
        strategy_used=SUMMARIZE,
        messages_removed=max(0, count - len(result.messages)),
        summary_added=result.context_status == "summarized",
    )


def patch_optimizer(patches: Patches) -> None:
    """Register ours for SUMMARIZE."""
    module = host_module("context.optimizer")
    registry = getattr(module, "OPTIMIZER_REGISTRY", None)
    if not isinstance(registry, dict) or SUMMARIZE not in registry:
        raise HostMoved("praisonaiagents.context.optimizer.OPTIMIZER_REGISTRY", "strategy registry")
    # A new dictionary under the same name: one that a caller took before is not changed.
    patches.replace(module, "OPTIMIZER_REGISTRY", {**registry, SUMMARIZE: CompressorOptimizer})


# -------------------------------------------------------------- second system


def patch_compaction(agents: Agents, patches: Patches) -> None:
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
