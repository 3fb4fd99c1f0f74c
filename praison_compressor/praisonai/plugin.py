"""The entry point `praisonai.plugins`: switched on by the host's configuration, not by code."""

from __future__ import annotations

import logging
from typing import Any

from praisonaiagents.plugins.plugin import Plugin, PluginInfo

from ..config import CompressorConfig
from ..errors import ConfigError
from .install import install, installed
from .options import OURS

log = logging.getLogger(__name__)

NAME = "praison-compressor"


class CompressorPlugin(Plugin):  # type: ignore[misc]  # the host ships no types
    """Installs us while the host's plugin manager says that we are enabled.

    The host initializes every plugin it finds, also where another one was asked for, and tells
    none when it is disabled: so whether we are on is asked at each turn.
    """

    @property
    def info(self) -> PluginInfo:
        """What the host lists; no `plugin_type`, which hosts before 1.7.10 refuse."""
        from .. import __version__

        return PluginInfo(
            name=NAME,
            version=__version__,
            description="Compresses the context of agents with the summarize strategy.",
            hooks=[],
            dependencies=["praisonaiagents>=1.7.4"],
        )

    def on_init(self, context: dict[str, Any]) -> None:
        """Be ready; agents are only touched while the plugin is enabled."""
        _install(None)

    def on_config(self, config: dict[str, Any]) -> dict[str, Any]:
        """Take `plugins: {praison-compressor: {...}}` as defaults for agents that say nothing."""
        options = {key: value for key, value in config.items() if key in OURS}
        for key in sorted(set(config) - OURS - HOST_OPTIONS):
            log.warning("plugins.%s has no option %r; it is left out", NAME, key)
        try:
            CompressorConfig.from_mapping(options)
        except ConfigError as error:
            log.error("plugins.%s: %s; its options are left out", NAME, error)
        else:
            _install(options)
        return config


HOST_OPTIONS = frozenset({"allow_conversation", "enabled"})
"""What the host itself reads in a plugin's options."""


def _install(defaults: dict[str, Any] | None) -> None:
    """Install, to be asked at each turn whether we are on; not where it was installed in code."""
    before = installed()
    gate = is_enabled if before is None else before.agents.gate
    install(defaults).agents.gate = gate


def is_enabled() -> bool:
    """Whether the host's plugin manager has us enabled now."""
    from praisonaiagents.plugins.manager import get_plugin_manager

    return bool(get_plugin_manager().is_enabled(NAME))


plugin = CompressorPlugin
"""What the entry point names."""
