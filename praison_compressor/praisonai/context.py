"""`CompressorContext`: our options as an `Agent(context=...)` takes them."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from praisonaiagents.context.models import ContextConfig, OptimizerStrategy

from ..config import CompressorConfig, check_store, no_such
from ..errors import ConfigError
from .install import install
from .options import options_in


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

    strategy: OptimizerStrategy = OptimizerStrategy.SUMMARIZE
    llm_summarize: bool = True
    """False: no summary by the agent's own model; it is static unless `auxiliary_model` is named.
    The host's own default is False, and there it says nothing."""
    context_window: int | None = None
    trigger_ratio: float | None = None
    """As the host's `compact_threshold`; it counts where both are given."""
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
    large_result_share: float | None = CompressorConfig.large_result_share
    fact_tools: Mapping[str, str] = field(default_factory=dict)
    fact_patterns: Mapping[str, str] = field(default_factory=dict)
    host_prefixes: tuple[str, ...] = ()
    rule_sources: tuple[str, ...] = ()
    keep_tool_steps: bool = CompressorConfig.keep_tool_steps
    recall: bool | None = None
    background: bool = CompressorConfig.background
    soft_ratio: float = CompressorConfig.soft_ratio
    summarize_on_prefix: bool = CompressorConfig.summarize_on_prefix
    auxiliary_model: str | None = None
    auxiliary_api_base: str | None = None
    auxiliary_api_key: str | None = field(default=None, repr=False)
    fallback_models: tuple[str, ...] = ()
    shown_message_tokens: int = CompressorConfig.shown_message_tokens
    summary_instructions: str | None = None
    summary_prompt: str | None = None
    verify_with: str | None = None
    summary_max_retries: int = CompressorConfig.summary_max_retries
    timeout_seconds: float = CompressorConfig.timeout_seconds
    store_url: str | None = None
    store_key: str | None = field(default=None, repr=False)
    redact_secrets: bool | None = None
    redact_archive: bool = CompressorConfig.redact_archive
    archive_limit_mb: float | None = None
    namespace: str = CompressorConfig.namespace
    session_id: str | None = None
    """The name under which the store keeps one agent's conversation, for the next run of the
    program. An id of the host goes before it. None: a random one."""
    _owner: weakref.ref[Any] | None = field(default=None, init=False, repr=False, compare=False)
    """The agent whose conversation has that name: clones and the members of a team have others."""

    def __new__(cls, *args: Any, **given: Any) -> CompressorContext:
        """Raises: ConfigError: an option that there is none of, with the nearest right one."""
        known = {item.name for item in fields(cls)}
        for name in given.keys() - known:
            raise ConfigError(no_such("option", name, known))
        made: CompressorContext = super().__new__(cls)
        return made

    def session_for(self, agent: Any) -> str | None:
        """Return `session_id` for the first living agent that asks; None for all others."""
        owner = None if self._owner is None else self._owner()
        if owner is None:
            self._owner, owner = weakref.ref(agent), agent
        return self.session_id if owner is agent else None

    def __post_init__(self) -> None:
        CompressorConfig.from_mapping(options_in(self))
        check_store(self.store_url)
        install()
