"""Put everything in place, once per process, and take all of it away again."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from ..messages.forks import renewed
from . import identity, slash
from . import probe as reads
from .agent_patches import patch_attribute, patch_clones, patch_teams, patch_workflow_files
from .agents import Agents
from .host_compaction import patch_compaction, patch_manager, patch_optimizer
from .patches import Patches
from .wire import patch_litellm, patch_openai

__all__ = [
    "Installation",
    "install",
    "install_gated",
    "installed",
    "uninstall",
]


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
            patch_manager(self.agents, self.patches)
            patch_compaction(self.agents, self.patches)
            patch_openai(self.patches)
            patch_litellm(self.patches)
            patch_optimizer(self.patches)
            patch_clones(self.agents, self.patches)
            patch_teams(self.agents, self.patches)
            patch_workflow_files(self.agents, self.patches)
            patch_attribute(self.agents, self.patches)
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
