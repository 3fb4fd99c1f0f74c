"""Read an agent's `context=`; change and restore the host's settings."""

from __future__ import annotations

import copy
import logging
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from typing import Any

from praisonaiagents.config.feature_configs import DEFAULT_TOOL_OUTPUT_LIMIT
from praisonaiagents.context.manager import ContextManager
from praisonaiagents.context.models import ContextConfig, OptimizerStrategy

from ..config import CompressorConfig, unknown_name
from ..errors import ConfigError

logger = logging.getLogger(__name__)

SUMMARIZE = OptimizerStrategy.SUMMARIZE
STRATEGY_VARIABLE = "PRAISONAI_CONTEXT_STRATEGY"
"""The host's variable, for agents that name no strategy."""
OUR_OPTIONS = frozenset(CompressorConfig.names()) - {"model"}
HOST_OPTIONS = frozenset(item.name for item in fields(ContextConfig))


@dataclass(frozen=True)
class RequestedContext:
    """What an agent's `context=` asks for."""

    context: Any
    options: Mapping[str, Any]
    automatic: bool = True
    """False: compress only on command (the host's `auto_compact=False`)."""
    own_model: bool = True
    """False (`llm_summarize: False`): the agent's own model writes no summaries."""

    def config(self, model: str | None, defaults: Mapping[str, Any]) -> CompressorConfig:
        """Return the agent's configuration; `defaults` fill unset options."""
        # The agent's options come first: a default that contradicts them is left out.
        unset = {name: value for name, value in defaults.items() if name not in self.options}
        options, faults = valid_options({"model": model, **self.options, **unset})
        for fault in faults.values():
            # Log, do not raise: a dictionary is first read inside a turn, which must not end.
            logger.error("options of context=: %s", fault)
        config = CompressorConfig.from_mapping(options)
        complete = config.with_environment()
        auxiliary = complete.auxiliary_model if self.own_model else config.auxiliary_model
        return replace(complete, auxiliary_model=auxiliary)


def valid_options(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the options that are valid together, and the other options' faults."""
    valid: dict[str, Any] = {}
    faults: dict[str, str] = {}
    for name, value in options.items():
        try:
            CompressorConfig.from_mapping({**valid, name: value})
        except ConfigError as error:
            faults[name] = f"{error}; left out"
        else:
            valid[name] = value
    return valid, faults


def requested_context(agent: Any, by_default: bool = False) -> RequestedContext | None:
    """Return what an agent asks for now, or None.

    The host's manager of an agent overrides `context=`. With `by_default` an agent that names no
    strategy asks for ours.
    """
    param, manager = agent._context_param, agent._context_manager
    adds_strategy = by_default and is_summarize(os.environ.get(STRATEGY_VARIABLE) or SUMMARIZE)
    completed = _add_strategy(param) if adds_strategy else None
    requested = parse_context(param if completed is None else completed)
    if not agent._context_manager_initialized:
        return requested
    if manager is None:
        # The host makes no manager for None, or for a dictionary with our options.
        return requested if param is None or isinstance(param, Mapping) else None
    hosts_default = ContextConfig().strategy
    is_default = type(manager) is ContextManager and manager.config.strategy is hosts_default
    if completed is not None and is_default:
        return requested
    by_manager = parse_context(manager)
    return (requested or by_manager) if by_manager is not None else None


def _add_strategy(param: Any) -> Any:
    """Return `context=` with our strategy added, or None if it excludes ours."""
    if isinstance(param, Mapping) and param.get("strategy") is None:
        return {**param, "strategy": SUMMARIZE}
    if param is None or param is True:
        return replace(ContextConfig.from_env(), strategy=SUMMARIZE)
    return None


def parse_context(param: Any) -> RequestedContext | None:
    """Return what one `context=` asks for, or None."""
    if param is True:
        return _request_from(ContextConfig.from_env())
    if isinstance(param, str):
        return _request_from(ContextConfig(strategy=SUMMARIZE)) if is_summarize(param) else None
    if isinstance(param, Mapping):
        return _from_mapping(param)
    if type(param) is ContextManager:  # a user's subclass decides by itself
        return _request_from(param.config)
    return _request_from(param) if isinstance(param, ContextConfig) else None


def is_summarize(strategy: Any) -> bool:
    """Return whether a strategy is SUMMARIZE, as enum or string."""
    if isinstance(strategy, OptimizerStrategy):
        return strategy is SUMMARIZE
    return isinstance(strategy, str) and strategy.strip().lower() == SUMMARIZE.value


def _from_mapping(param: Mapping[str, Any]) -> RequestedContext | None:
    if not is_summarize(param.get("strategy")):
        return None
    names = HOST_OPTIONS | OUR_OPTIONS
    for key in sorted(set(map(str, param)) - names):
        logger.warning("context=: %s; it is left out", unknown_name("option", key, names))
    context = ContextConfig(**{key: value for key, value in param.items() if key in HOST_OPTIONS})
    ours = {key: value for key, value in param.items() if key in OUR_OPTIONS - HOST_OPTIONS}
    return _request_from(context, ours, own_model=param.get("llm_summarize") is not False)


def _request_from(
    context: Any, extra_options: Mapping[str, Any] | None = None, own_model: bool = True
) -> RequestedContext | None:
    if context is None or not is_summarize(context.strategy):
        return None
    options = options_in(context, extra_options)
    # False means "no" only where True is the default, as in `CompressorContext`.
    by_default = getattr(type(context), "llm_summarize", False)
    own_model = own_model and (not by_default or context.llm_summarize)
    return RequestedContext(context, options, bool(context.auto_compact), own_model)


def options_in(context: Any, extra_options: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return our options that differ from their defaults, and `extra_options`."""
    defaults = {
        item.name: item.default if item.default_factory is MISSING else item.default_factory()
        for item in fields(context)
    }
    options = {
        name: getattr(context, name)
        for name in OUR_OPTIONS & set(defaults)
        if getattr(context, name) != defaults[name]
    }
    if context.compact_threshold != defaults["compact_threshold"]:
        options["trigger_ratio"] = context.compact_threshold
    options.update(extra_options or {})
    if context.protected_tools:
        policies = options.get("tool_policies", {})
        options["tool_policies"] = _keep_policies(context.protected_tools, policies)
    return options


def _keep_policies(tools: Sequence[str], policies: Any) -> Any:
    try:
        valid = CompressorConfig(tool_policies=policies).tool_policies
    except ConfigError:
        return policies  # `valid_options` reports their error
    return {**dict.fromkeys(tools, "keep"), **valid}


# ------------------------------------------------------------ the agent's host settings


NO_LIMIT = sys.maxsize
"""A `tool_output_limit` in characters that no result reaches."""


def _whole_result(tool_name: str, output: Any, *more: Any, **named: Any) -> Any:
    return output


def _takes_whole_results(agent: Any, requested: RequestedContext) -> bool:
    host = requested.context
    plain = ContextConfig()
    limits = "tool_output_max default_tool_output_max tool_limits tool_budgets".split()
    return (
        requested.automatic
        and all(getattr(host, name) == getattr(plain, name) for name in limits)
        and getattr(agent, "tool_output_limit", None) in (DEFAULT_TOOL_OUTPUT_LIMIT, NO_LIMIT)
        and getattr(agent, "_artifact_store", None) is None
    )


class HostSettings:
    """One agent's compaction and tool result limit in the host."""

    def __init__(self, agent: Any, requested: RequestedContext) -> None:
        self._uncompacted: Any = None
        self._execution: Any = None
        self.switch_off_compaction(agent)
        if _takes_whole_results(agent, requested):
            agent.tool_output_limit = NO_LIMIT
            agent._truncate_tool_output = _whole_result

    def switch_off_compaction(self, agent: Any) -> None:
        """Switch the host's `context_compaction` off."""
        if agent.execution is not self._uncompacted:
            self._execution = agent.execution
            agent.execution = self._uncompacted = copy.copy(agent.execution)
        self._uncompacted.context_compaction = False

    def restore(self, agent: Any) -> None:
        """Give the agent its former settings."""
        if agent.execution is self._uncompacted:
            agent.execution = self._execution
        if getattr(agent, "tool_output_limit", None) == NO_LIMIT:
            agent.tool_output_limit = DEFAULT_TOOL_OUTPUT_LIMIT
        vars(agent).pop("_truncate_tool_output", None)
