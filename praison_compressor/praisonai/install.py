"""Switch the compressor on: `install()` for a process, `CompressorContext` for one agent."""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import Field, dataclass, field, fields, make_dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from praisonaiagents.context.models import ContextConfig, OptimizerStrategy

from ..concurrency import renewed
from ..config import CompressorConfig, check_store, no_such
from ..errors import ConfigError
from . import host_names
from .agents import Agents
from .options import HOSTS, OURS, options_in

log = logging.getLogger(__name__)


class Installation:
    """One `install()`: the agents that asked, and every replaced name.

    `close` restores the object that the owner's own dictionary held, or deletes a name that it
    lacked. If somebody wrapped ours since, the wrapper stays and ours inside does nothing.
    """

    def __init__(self) -> None:
        """Replace the host's names.

        Raises:
            HostMoved: a place that we build on is gone; nothing was replaced.
        """
        targets, self.lacking = host_names.probe()
        """Parts that this host cannot support, with the reason."""
        _warn(self.lacking)
        self.agents = Agents()
        self.patches: list[tuple[Any, str, Any, Any]] = []
        """Owner, name, what was there and what we put there."""
        self._replace(targets)
        self._waiting = set(host_names.installed_surfaces())
        self.agents.before_turn = self._reach
        self._reach()

    def _replace(self, targets: Iterable[host_names.Target]) -> None:
        for row, owner, before in targets:
            after = row.by(before, self.agents)
            setattr(owner, row.name, after)
            self.patches.append((owner, row.name, before, after))

    def _reach(self) -> None:
        """Replace the names in modules that the host imported since."""
        rows = [row for row in self._waiting if host_names.arrived(row)]
        if not rows:
            return
        with _lock:
            rows = [row for row in rows if row in self._waiting]
            self._waiting.difference_update(rows)
            targets, lacking = host_names.probe(rows, ())
            self._replace(targets)
        _warn(lacking)
        self.lacking.update(lacking)

    @property
    def defaults(self) -> dict[str, Any]:
        """Options of `CompressorConfig` where an agent says nothing."""
        return self.agents.defaults

    def close(self) -> None:
        """Restore the host's names and the agents' settings."""
        self._waiting.clear()
        self.agents.close()
        while self.patches:
            owner, name, before, after = self.patches.pop()
            if vars(owner).get(name) is not after:
                log.warning("%s.%s was replaced again after us", owner.__name__, name)
            elif before is host_names.ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, before)


def _warn(lacking: Mapping[str, str]) -> None:
    for part, reason in lacking.items():
        host = version("praisonaiagents")
        log.warning("praisonaiagents %s has %s; left out: %s", host, reason, part)


# The host's classes are the process's, so there is one installation of it.
_lock = renewed(threading.RLock())
_installation: Installation | None = None


def install(defaults: Mapping[str, Any] | None = None) -> Installation:
    """Make `Agent(context="summarize")`, in every spelling, compress as this package does.

    `defaults` are options of `CompressorConfig` for agents that do not say otherwise. A second call
    changes only the defaults, if they are given. Agents that did not ask for the
    SUMMARIZE strategy behave as before.

    Raises:
        HostMoved: this release of praisonaiagents lacks a place that we build on.
    """
    done = installation(defaults)
    done.agents.in_code = True
    return done


def installation(defaults: Mapping[str, Any] | None) -> Installation:
    """Return the installation of this process with these defaults; make it once."""
    global _installation
    with _lock:
        done = _installation = _installation or Installation()
        if defaults is not None:
            done.agents.defaults = dict(defaults)
        return done


def uninstall() -> None:
    """Restore every replaced name of the host, and the agents' settings."""
    global _installation
    with _lock:
        if _installation is not None:
            _installation.close()
            _installation = None


def installed() -> Installation | None:
    """Return the installation of this process, if there is one."""
    return _installation


# ------------------------------------------------------------ one agent


def _fields() -> list[tuple[str, Any, Field[Any]]]:
    """Return our options that the host's configuration lacks, as `make_dataclass` takes them."""
    ours = [option for option in fields(CompressorConfig) if option.name in OURS - HOSTS]
    return [(option.name, option.type, copy(option)) for option in ours]


if TYPE_CHECKING:

    @dataclass
    class _Options(CompressorConfig, ContextConfig):  # type: ignore[misc]  # ours are frozen
        """The fields as type checkers and editors see them."""

else:
    _Options = make_dataclass("_Options", _fields(), bases=(ContextConfig,))


@dataclass
class CompressorContext(_Options):  # type: ignore[misc]  # ours are frozen
    """Hold the host's context configuration and our options: `Agent(context=CompressorContext())`.

    The host's fields keep their meaning. `compact_threshold` overrides our `trigger_ratio`.
    `output_reserve` and `keep_recent_turns` count only if they differ from the host's default. The
    other options are those of `CompressorConfig`, without `model`: the agent has one. Constructing
    a `CompressorContext` installs the compressor.

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
        """Return a new configuration; refuse unknown options with the nearest name."""
        known = {item.name for item in fields(cls)}
        for name in given.keys() - known:
            raise ConfigError(no_such("option", name, known))
        return object.__new__(cls)

    def session_for(self, agent: Any) -> str | None:
        """Return `session_id` for the first agent that asks, None for others."""
        owner = None if self._owner is None else self._owner()
        if owner is None:
            self._owner, owner = weakref.ref(agent), agent
        return self.session_id if owner is agent else None

    def __post_init__(self) -> None:
        CompressorConfig.from_mapping(options_in(self))
        check_store(self.store_url)
        install()
