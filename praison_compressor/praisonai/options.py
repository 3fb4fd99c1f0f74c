"""What an agent asked for: every spelling of `context=` (also in workflow files) read into one
value, or None.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from typing import Any

from praisonaiagents.context.models import ContextConfig, OptimizerStrategy

from ..config import CompressorConfig
from ..errors import ConfigError

__all__ = [
    "CompressorContext",
    "RequestedContext",
    "read",
    "wants",
]


log = logging.getLogger(__name__)


SUMMARIZE = OptimizerStrategy.SUMMARIZE


@dataclass
class CompressorContext(ContextConfig):  # type: ignore[misc]  # the host ships no types
    """The host's own context configuration with our options: `Agent(context=CompressorContext())`.

    Every field of the host keeps its meaning; `compact_threshold` is our `trigger_ratio`, and
    `output_reserve` and `keep_recent_turns` count only where they differ from the host's default.
    The other options are those of `CompressorConfig`, where they are described. Constructing one
    installs what it needs.

    Raises:
        ConfigError: a value that cannot work.
    """

    strategy: OptimizerStrategy = SUMMARIZE
    context_window: int | None = None
    target_ratio: float = CompressorConfig.target_ratio
    token_floor: int = CompressorConfig.token_floor
    protect_last_n_tokens: int = CompressorConfig.protect_last_n_tokens
    head_tokens: int | None = None
    summary_target_tokens: int | None = CompressorConfig.summary_target_tokens
    facts_budget_tokens: int | None = None
    fold_ratio: float = CompressorConfig.fold_ratio
    min_gain_ratio: float = CompressorConfig.min_gain_ratio
    tool_policies: Mapping[str, str] = field(default_factory=dict)
    mask_above_tokens: int = CompressorConfig.mask_above_tokens
    mask_keep_recent_tokens: int | None = None
    fact_tools: Mapping[str, str] = field(default_factory=dict)
    fact_patterns: Mapping[str, str] = field(default_factory=dict)
    host_prefixes: tuple[str, ...] = ()
    recall: bool = CompressorConfig.recall
    background: bool = CompressorConfig.background
    soft_ratio: float = CompressorConfig.soft_ratio
    summarize_on_prefix: bool = CompressorConfig.summarize_on_prefix
    auxiliary_model: str | None = None
    auxiliary_api_base: str | None = None
    auxiliary_api_key: str | None = field(default=None, repr=False)
    fallback_models: tuple[str, ...] = ()
    shown_message_tokens: int = CompressorConfig.shown_message_tokens
    summary_instructions: str | None = None
    summary_max_retries: int = CompressorConfig.summary_max_retries
    timeout_seconds: float = CompressorConfig.timeout_seconds
    store_url: str | None = None
    store_key: str | None = field(default=None, repr=False)
    redact_secrets: bool | None = None
    redact_archive: bool = CompressorConfig.redact_archive
    namespace: str = CompressorConfig.namespace

    def __post_init__(self) -> None:
        from .install import install

        CompressorConfig.from_mapping(_ours(self))
        install()


@dataclass(frozen=True)
class RequestedContext:
    """An agent's request for compression."""

    context: Any
    """The host's own configuration, for what of its context management goes on as before."""
    options: Mapping[str, Any]
    """Options of `CompressorConfig` that differ from their defaults."""
    automatic: bool = True
    """False: compress only when told to (the host's `auto_compact=False`)."""
    own_model: bool = True
    """False: without an auxiliary model the summary is static (`llm_summarize: False`, written)."""

    def config(self, model: str | None, defaults: Mapping[str, Any]) -> CompressorConfig:
        """Our configuration for that model; `defaults` hold where the agent says nothing."""
        given = {"model": model, **defaults, **self.options}
        try:
            return CompressorConfig.from_mapping(given).with_environment()
        except ConfigError as error:
            # A dictionary in `context=` is first read inside a turn, which must not end for it.
            log.error("options of context= left out: %s", error)
            return CompressorConfig(model=model).with_environment()


def read(param: Any) -> RequestedContext | None:
    """What the agent's `context=` asks of us; None: nothing, the host goes on as before."""
    if param is True:
        return _asked(_from_environment())
    if isinstance(param, str):
        return _asked(_preset(param))
    if isinstance(param, Mapping):
        return _from_mapping(param)
    if isinstance(param, ContextConfig):
        return _asked(param)
    return _asked(getattr(_plain_manager(param), "config", None))


def wants(strategy: Any) -> bool:
    """Whether that is the SUMMARIZE strategy, as the enum or as any string the host takes."""
    if isinstance(strategy, OptimizerStrategy):
        return strategy is SUMMARIZE
    return isinstance(strategy, str) and _key(strategy) == SUMMARIZE.value


def _key(text: str) -> str:
    return text.strip().lower().replace("-", "_")


def _asked(context: Any, **more: bool) -> RequestedContext | None:
    if context is None or not wants(context.strategy):
        return None
    if not isinstance(context.strategy, OptimizerStrategy):
        # The host reads `.strategy.value`, so a string there breaks its own reports.
        context = replace(context, strategy=SUMMARIZE)
    return RequestedContext(context, _ours(context), automatic=bool(context.auto_compact), **more)


def _from_environment() -> Any:
    return ContextConfig.from_env()


def _preset(name: str) -> Any:
    return ContextConfig(strategy=SUMMARIZE) if _key(name) == SUMMARIZE.value else None


def _from_mapping(param: Mapping[str, Any]) -> RequestedContext | None:
    if not wants(param.get("strategy")):
        return None
    host = {item.name for item in fields(ContextConfig)}
    ours = set(CompressorConfig.names()) - {"model"}
    for key in sorted(set(param) - host - ours):
        log.warning("context= has no option %r; it is left out", key)
    context = ContextConfig(**{key: value for key, value in param.items() if key in host})
    own_model = param.get("llm_summarize") is not False
    asked = _asked(context, own_model=own_model)
    given = {key: param[key] for key in ours - host if key in param}
    if asked is None:
        return None
    if "tool_policies" in given:
        given["tool_policies"] = _protecting(context.protected_tools, given["tool_policies"])
    return replace(asked, options={**asked.options, **given})


def _plain_manager(param: Any) -> Any:
    """The host's own manager, or ours; a subclass of the user's knows its own mind."""
    from praisonaiagents.context.manager import ContextManager

    from .host_compaction import PassThroughManager

    return param if type(param) in (ContextManager, PassThroughManager) else None


def _ours(context: Any) -> dict[str, Any]:
    """Our options in a configuration of the host's: only what differs from its default."""
    defaults = {item.name: _default(item) for item in fields(context)}
    names = set(CompressorConfig.names()) - {"model"}
    changed = {
        name: getattr(context, name)
        for name in names & set(defaults)
        if getattr(context, name) != defaults[name]
    }
    if context.compact_threshold != defaults["compact_threshold"]:
        changed["trigger_ratio"] = context.compact_threshold
    if context.protected_tools:
        given = changed.get("tool_policies", {})
        changed["tool_policies"] = _protecting(context.protected_tools, given)
    return changed


def _protecting(tools: Sequence[str], policies: Any) -> Any:
    """The policies, by which those tools are kept too; what is none is refused with the rest."""
    try:
        given = CompressorConfig(tool_policies=policies).tool_policies
    except ConfigError:
        return policies
    return {**dict.fromkeys(tools, "keep"), **given}


def _default(item: Field[Any]) -> Any:
    return item.default if item.default_factory is MISSING else item.default_factory()
