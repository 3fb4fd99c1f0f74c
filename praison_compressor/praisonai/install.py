"""Replace names of the host once per process (`install`); restore them (`uninstall`)."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from typing import Any

from ..errors import HostMoved
from ..messages.forks import renewed
from . import seams
from .agents import Agents

__all__ = ["HostMoved", "Installation", "install", "installed", "uninstall"]

log = logging.getLogger(__name__)


class Installation:
    """What one `install()` did: the agents that asked, and every name that was replaced.

    `close` puts back the very object that the owner's own dictionary held, or takes away a name
    that it did not have. Where somebody wrapped ours since, theirs stays with ours inside, which
    then does nothing.
    """

    def __init__(self) -> None:
        """Replace the host's names.

        Raises:
            HostMoved: a place that we build on is gone; nothing was replaced.
        """
        places, self.lacking = seams.probe()
        """Parts that this host does not let us have, with the reason."""
        _warn(self.lacking)
        self.agents = Agents()
        self.patches: list[tuple[Any, str, Any, Any]] = []
        """Owner, name, what was there and what we put there."""
        self._replace(places)
        self._waiting = set(seams.installed_surfaces())
        self.agents.before_turn = self._reach
        self._reach()

    def _replace(self, places: Iterable[seams.Place]) -> None:
        for row, owner, before in places:
            after = row.by(before, self.agents)
            setattr(owner, row.name, after)
            self.patches.append((owner, row.name, before, after))

    def _reach(self) -> None:
        """Replace the names in modules that the host imported since."""
        rows = [row for row in self._waiting if seams.arrived(row)]
        if not rows:
            return
        with _lock:
            rows = [row for row in rows if row in self._waiting]
            self._waiting.difference_update(rows)
            places, lacking = seams.probe_surfaces(rows)
            self._replace(places)
        _warn(lacking)
        self.lacking.update(lacking)

    @property
    def defaults(self) -> dict[str, Any]:
        """Options of `CompressorConfig` where an agent says nothing."""
        return self.agents.defaults

    def close(self) -> None:
        """Give the host its own names back, and the agents what they had."""
        self._waiting.clear()
        self.agents.close()
        while self.patches:
            owner, name, before, after = self.patches.pop()
            if vars(owner).get(name) is not after:
                log.warning("%s.%s was replaced again after us", owner.__name__, name)
            elif before is seams.ABSENT:
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

    `defaults` are options of `CompressorConfig` for agents that do not say otherwise. Calling it
    again changes nothing but the defaults, where they are given. Agents that did not ask for the
    SUMMARIZE strategy behave as before.

    Raises:
        HostMoved: this release of praisonaiagents lacks a place that we build on.
    """
    done = installation(defaults)
    done.agents.in_code = True
    return done


def installation(defaults: Mapping[str, Any] | None) -> Installation:
    """Return the installation of this process, made if there is none, with these defaults."""
    global _installation
    with _lock:
        done = _installation = _installation or Installation()
        if defaults is not None:
            done.agents.defaults = dict(defaults)
        return done


def uninstall() -> None:
    """Put the host back exactly as it was; agents that compressed go back to its own ways."""
    global _installation
    with _lock:
        if _installation is not None:
            _installation.close()
            _installation = None


def installed() -> Installation | None:
    """Return the installation of this process, if there is one."""
    return _installation
