"""The host's SUMMARIZE optimizer, for callers of its `get_optimizer`: the same compressor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from praisonaiagents.context.models import OptimizationResult, OptimizerStrategy
from praisonaiagents.context.optimizer import BaseOptimizer

from ..compressor import ContextCompressor
from ..config import CompressorConfig
from ..errors import CompressorError
from ..result import CompressResult
from . import identity
from .patches import HostMoved, Patches, host_module

__all__ = ["CompressorOptimizer", "patch"]

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


def patch(patches: Patches) -> None:
    """Register ours for SUMMARIZE."""
    module = host_module("context.optimizer")
    registry = getattr(module, "OPTIMIZER_REGISTRY", None)
    if not isinstance(registry, dict) or SUMMARIZE not in registry:
        raise HostMoved("praisonaiagents.context.optimizer.OPTIMIZER_REGISTRY", "strategy registry")
    # A new dictionary under the same name: one that a caller took before is not changed.
    patches.replace(module, "OPTIMIZER_REGISTRY", {**registry, SUMMARIZE: CompressorOptimizer})
