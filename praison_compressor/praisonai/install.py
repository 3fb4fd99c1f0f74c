"""Puts everything in place, once per process, and takes all of it away again."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from ..forks import renewed
from . import (
    clones,
    face,
    identity,
    litellm_wire,
    manager,
    openai_wire,
    optimizer,
    reads,
    second_system,
    slash,
    teams,
    workflow_files,
)
from .agents import Agents
from .patches import Patches

__all__ = ["Installation", "install", "install_gated", "installed", "uninstall"]


class Installation:
    """What one `install()` did: the agents that asked, and every name that was replaced."""

    def __init__(self) -> None:
        self.agents = Agents()
        self.patches = Patches()

    def open(self) -> None:
        """Patch every seam, or none: what a host release moved is named in the error.

        Raises:
            HostMoved: a seam is gone.
        """
        reads.check()
        try:
            identity.patch(self.agents, self.patches)
            manager.patch(self.agents, self.patches)
            second_system.patch(self.agents, self.patches)
            openai_wire.patch(self.patches)
            litellm_wire.patch(self.patches)
            optimizer.patch(self.patches)
            clones.patch(self.agents, self.patches)
            teams.patch(self.agents, self.patches)
            workflow_files.patch(self.agents, self.patches)
            face.patch(self.agents, self.patches)
            slash.patch(self.agents, self.patches)
        except BaseException:
            self.patches.undo()
            raise

    def close(self) -> None:
        """Give the host its own names and the agents their own managers back."""
        self.agents.close()
        self.patches.undo()


class _Process:
    """The one installation of this process: the host's classes are the process's too."""

    def __init__(self) -> None:
        self._lock = renewed(threading.RLock())
        self._installation: Installation | None = None

    @property
    def installation(self) -> Installation | None:
        return self._installation

    def install(
        self, defaults: Mapping[str, Any] | None, gate: Callable[[], bool] | None
    ) -> Installation:
        with self._lock:
            fresh = self._installation is None
            if self._installation is None:
                opened = Installation()
                opened.open()
                self._installation = opened
            agents = self._installation.agents
            if defaults is not None:
                agents.defaults = dict(defaults)
            # Who installs in code means it: a plugin's gate neither stays nor comes after that.
            if gate is None or fresh:
                agents.gate = gate
            return self._installation

    def uninstall(self) -> None:
        with self._lock:
            if self._installation is not None:
                self._installation.close()
                self._installation = None


_process = _Process()


def install(defaults: Mapping[str, Any] | None = None) -> Installation:
    """Make `Agent(context="summarize")`, in every spelling, compress as this package does.

    `defaults` are options of `CompressorConfig` for agents that do not say otherwise. Calling it
    again changes nothing but the defaults, where they are given. Agents that did not ask for the
    SUMMARIZE strategy behave as before.

    Raises:
        HostMoved: this release of praisonaiagents lacks a place that we build on.
    """
    return _process.install(defaults, None)


def install_gated(
    gate: Callable[[], bool], defaults: Mapping[str, Any] | None = None
) -> Installation:
    """The same for a plugin that may be switched off: `gate` is asked at each turn."""
    return _process.install(defaults, gate)


def uninstall() -> None:
    """Put the host back exactly as it was; agents that compressed go back to its own ways."""
    _process.uninstall()


def installed() -> Installation | None:
    """The installation of this process, if there is one."""
    return _process.installation
