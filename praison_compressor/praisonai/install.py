"""Switch the compressor on: `install()` for a process, `CompressorContext` for one agent."""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, fields, make_dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from praisonaiagents.context.models import ContextConfig, OptimizerStrategy

from ..concurrency import renew_after_fork
from ..config import CompressorConfig, check_store, unknown_name
from ..errors import ConfigError
from . import patches
from .agents import Agents
from .context_param import HOST_OPTIONS, OUR_OPTIONS, options_in

logger = logging.getLogger(__name__)


class Installation:
    """The agents that ask for compression, and the host's replaced names."""

    def __init__(self) -> None:
        """Replace the host's names.

        Raises:
            HostMoved: an essential name of the host is gone; nothing was replaced.
        """
        self.lacking: dict[str, str] = {}
        """Part that this host cannot support -> the reason."""
        self.agents = Agents(self._replace_imported)
        self.patches: list[tuple[Any, str, Any, Any]] = []
        """Owner, name, the owner's original, our replacement."""
        self._not_imported = patches.in_installed_packages()
        self._replace(patches.REPLACED, patches.READ)
        self._replace_imported()

    def _replace(
        self, rows: Sequence[patches.Patch], reads: Sequence[patches.ReadNames] = ()
    ) -> None:
        targets, lacking = patches.probe(rows, reads)
        for part, reason in lacking.items():
            host = version("praisonaiagents")
            logger.warning("praisonaiagents %s has %s; left out: %s", host, reason, part)
        self.lacking.update(lacking)
        for row, owner, original in targets:
            replacement = row.make(original, self.agents)
            setattr(owner, row.name, replacement)
            self.patches.append((owner, row.name, original, replacement))

    def _replace_imported(self) -> None:
        if not any(map(patches.is_imported, self._not_imported)):
            return
        with _lock:
            rows = [row for row in self._not_imported if patches.is_imported(row)]
            self._not_imported = [row for row in self._not_imported if row not in rows]
            self._replace(rows)

    def close(self) -> None:
        """Restore the host's names and the agents' settings."""
        self._not_imported = []
        self.agents.close()
        while self.patches:
            owner, name, original, replacement = self.patches.pop()
            if vars(owner).get(name) is not replacement:  # ours is called by the newer one
                logger.warning("%s.%s stays: replaced again after us", owner.__name__, name)
            elif original is patches.ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, original)


_lock = renew_after_fork(threading.RLock())
_installation: Installation | None = None


def install(defaults: Mapping[str, Any] | None = None) -> Installation:
    """Make `Agent(context="summarize")`, in every spelling, compress as this package does.

    Agents with another strategy behave as before. A second call changes only the defaults.

    Args:
        defaults: options of `CompressorConfig` for agents that do not set them. None: no change.

    Raises:
        HostMoved: this release of praisonaiagents lacks a name that we replace or read.
    """
    return configure_installation(defaults, in_code=True)


def configure_installation(
    defaults: Mapping[str, Any] | None,
    *,
    in_code: bool = False,
    is_plugin_enabled: Callable[[], bool] | None = None,
) -> Installation:
    """Return the process's installation, made at the first call."""
    global _installation
    with _lock:
        current = _installation = _installation or Installation()
        current.agents.configure(defaults, in_code, is_plugin_enabled)
        return current


def uninstall() -> None:
    """Restore every replaced name of the host, and the agents' settings."""
    global _installation
    with _lock:
        if _installation is not None:
            _installation.close()
            _installation = None


def installed() -> Installation | None:
    """Return the installation of this process, or None."""
    return _installation


# ------------------------------------------------------------ one agent


if TYPE_CHECKING:
    # The host ships no types, and its fields are not frozen as our fields are.
    @dataclass
    class _Options(CompressorConfig, ContextConfig):  # type: ignore[misc]
        """The fields as type checkers see them."""

else:
    _names = OUR_OPTIONS - HOST_OPTIONS
    _fields = [(o.name, o.type, copy(o)) for o in fields(CompressorConfig) if o.name in _names]
    _Options = make_dataclass("_Options", _fields, bases=(ContextConfig,))


@dataclass
class CompressorContext(_Options):  # type: ignore[misc]  # ours are frozen
    """Hold the host's context configuration and our options: `Agent(context=CompressorContext())`.

    Our options are those of `CompressorConfig` without `model`, which is the agent's. The host's
    fields keep their meaning, with these exceptions: `compact_threshold` overrides `trigger_ratio`;
    `output_reserve` and `keep_recent_turns` count if they differ from the host's default.
    Constructing a `CompressorContext` installs the compressor.

    Raises:
        ConfigError: an option has an unknown name or an invalid value.
    """

    strategy: OptimizerStrategy = OptimizerStrategy.SUMMARIZE
    llm_summarize: bool = True
    """False: the agent's own model writes no summaries."""
    session_id: str | None = None
    """The stored session of one agent. An id from the host overrides it. None: a random id."""
    _holder: weakref.ref[Any] | None = field(default=None, init=False, repr=False, compare=False)
    """The agent that has `session_id`; its clones and its team have other sessions."""

    def __new__(cls, *args: Any, **options: Any) -> CompressorContext:
        """Return a new configuration; refuse unknown options with the nearest name."""
        names = {item.name for item in fields(cls)}
        for name in options.keys() - names:
            raise ConfigError(unknown_name("option", name, names))
        return object.__new__(cls)

    def claim_session(self, agent: Any) -> str | None:
        """Return `session_id` for the first agent that asks, else None."""
        holder = None if self._holder is None else self._holder()
        if holder is None:
            self._holder = weakref.ref(agent)
        return self.session_id if holder is None or holder is agent else None

    def __post_init__(self) -> None:
        CompressorConfig.from_mapping(options_in(self))
        check_store(self.store_url)
        install()
