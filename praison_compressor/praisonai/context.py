"""`CompressorContext`: our options as an `Agent(context=...)` takes them."""

from __future__ import annotations

import weakref
from dataclasses import Field, dataclass, field, fields, make_dataclass
from typing import TYPE_CHECKING, Any

from praisonaiagents.context.models import ContextConfig, OptimizerStrategy

from ..config import CompressorConfig, check_store, no_such
from ..errors import ConfigError
from .install import install
from .options import HOSTS, OURS, options_in


def _fields() -> list[tuple[str, Any, Field[Any]]]:
    """Return our options that the host's configuration lacks, as `make_dataclass` takes them."""
    return [
        (
            option.name,
            option.type,
            field(
                default=option.default,
                default_factory=option.default_factory,
                repr=option.repr,
                metadata=option.metadata,
            ),
        )
        for option in fields(CompressorConfig)
        if option.name in OURS - HOSTS
    ]


if TYPE_CHECKING:

    @dataclass
    class _Options(CompressorConfig, ContextConfig):  # type: ignore[misc]  # ours are frozen
        """The fields as type checkers and editors see them."""

else:
    _Options = make_dataclass("_Options", _fields(), bases=(ContextConfig,))


@dataclass
class CompressorContext(_Options):  # type: ignore[misc]  # ours are frozen
    """Hold the host's context configuration and our options: `Agent(context=CompressorContext())`.

    Every field of the host keeps its meaning; `compact_threshold` is our `trigger_ratio` and wins
    over it, and `output_reserve` and `keep_recent_turns` count only where they differ from the
    host's default. The other options are those of `CompressorConfig`, which describes them, but for
    `model`: the agent has one. Constructing a `CompressorContext` installs the compressor.

    Raises:
        ConfigError: there is no option of that name, or its value cannot work.
    """

    strategy: OptimizerStrategy = OptimizerStrategy.SUMMARIZE
    llm_summarize: bool = True
    """False: no summary by the agent's own model; it is static unless `auxiliary_model` is named.
    The host's own default is False, and there it says nothing."""
    session_id: str | None = None
    """The name under which the store keeps one agent's conversation, for the next run of the
    program. An id of the host goes before it. None: a random one."""
    _owner: weakref.ref[Any] | None = field(default=None, init=False, repr=False, compare=False)
    """The agent whose conversation has that name: clones and the members of a team have others."""

    def __new__(cls, *args: Any, **given: Any) -> CompressorContext:
        """Return a new configuration; an unknown option is a ConfigError with the nearest name."""
        known = {item.name for item in fields(cls)}
        for name in given.keys() - known:
            raise ConfigError(no_such("option", name, known))
        return object.__new__(cls)

    def session_for(self, agent: Any) -> str | None:
        """Return `session_id` for the first living agent that asks, and None for all others."""
        owner = None if self._owner is None else self._owner()
        if owner is None:
            self._owner, owner = weakref.ref(agent), agent
        return self.session_id if owner is agent else None

    def __post_init__(self) -> None:
        CompressorConfig.from_mapping(options_in(self))
        check_store(self.store_url)
        install()
