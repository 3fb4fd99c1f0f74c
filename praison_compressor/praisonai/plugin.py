"""Register the host's plugin, and read the host's configuration of the plugin."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from praisonaiagents import plugins
from praisonaiagents.config import loader
from praisonaiagents.plugins.manager import get_plugin_manager
from praisonaiagents.plugins.plugin import Plugin, PluginInfo

from ..config import nearest_name, unknown_name
from ..errors import ConfigError
from .context_param import OUR_OPTIONS, valid_options
from .install import configure_installation
from .tested_releases import TESTED_HOSTS

logger = logging.getLogger(__name__)

PLUGIN = "praison-compressor"

PLUGIN_OPTIONS = frozenset({"allow_conversation", "enabled"})
"""Keys in a plugin's options that the host itself reads."""


class CompressorPlugin(Plugin):  # type: ignore[misc]  # the host ships no types
    """Installs the compressor; agents are compressed while the plugin is enabled."""

    @property
    def info(self) -> PluginInfo:
        """The host's description of the plugin."""
        # Without `plugin_type`, which hosts before 1.7.10 refuse.
        from .. import __version__

        return PluginInfo(
            name=PLUGIN,
            version=__version__,
            description="Compresses the context of every agent that names no other strategy.",
            hooks=[],
            dependencies=[f"praisonaiagents>={TESTED_HOSTS[0]}"],
        )

    def on_init(self, context: dict[str, Any]) -> None:
        """Install; log names in the configuration that are nearly ours."""
        configure_installation(None, is_plugin_enabled=is_enabled)
        # The host loads every plugin that it finds, so this runs even if our name is misspelled.
        # `plugins.enable([...])` in code fills this list of the host.
        names = getattr(plugins, "_enabled_plugin_names", None) or loader.get_enabled_plugins()
        written = [*(names or ()), *loader.get_plugin_options()]
        for fault in _misspellings("plugin", written, PLUGIN):
            logger.warning("%s", fault)

    def on_config(self, config: dict[str, Any]) -> dict[str, Any]:
        """Take `plugins: {praison-compressor: {...}}` as the agents' defaults."""
        options, faults = _read_options(config)
        for fault in faults:
            logger.warning("%s", fault)
        configure_installation(options, is_plugin_enabled=is_enabled)
        return config


def is_enabled() -> bool:
    """Return whether the plugin is enabled now; the host reports no change."""
    return bool(get_plugin_manager().is_enabled(PLUGIN))


plugin = CompressorPlugin
"""The name in the entry point `praisonai.plugins`."""


# ------------------------------------------------------------ the host's configuration


@dataclass(frozen=True)
class HostConfiguration:
    """This plugin's settings in `PRAISONAI_PLUGINS` and in the host's files."""

    on: bool
    """Whether the first `Agent()` enables the plugin."""
    options: Mapping[str, Any]
    model: str | None
    files: tuple[str, ...]
    """Files that the host reads, the nearest last."""
    faults: tuple[str, ...]
    """Settings without effect, each with the nearest valid setting."""


def read_host_configuration() -> HostConfiguration:
    """Read the environment and the files as the host does.

    Raises:
        ConfigError: `plugins:` is no mapping; the host then makes no agent.
    """
    contents = _read_files()
    files = tuple(map(str, contents))
    # The host takes a file that it cannot parse as empty.
    unreadable = [path for path, read in contents.items() if path.stat().st_size and not read]
    faults = [f"{path}: no YAML or TOML that can be read" for path in unreadable]
    configuration: dict[str, Any] = getattr(loader, "_load_config", dict)()
    section = configuration.get("plugins", {})
    if not isinstance(section, Mapping):
        where = configuration_file("plugins")
        raise ConfigError(f"{where}: plugins: {section!r}: expected a mapping; {_WRITE}")
    if "plugins" not in configuration:
        faults += _misspellings("section", configuration, "plugins")
    if not isinstance(section.get(PLUGIN, {}), Mapping):
        faults.append(f"plugins.{PLUGIN}: {section[PLUGIN]!r}: the host passes over it; {_WRITE}")
    model = loader.get_config(reload=True).defaults.model
    names = loader.get_enabled_plugins()
    options, wrong = _read_options(loader.get_plugin_options().get(PLUGIN, {}))
    faults += [*_misspellings("plugin", [*(names or ()), *section], PLUGIN), *wrong]
    on = loader.is_plugins_enabled() and (names is None or PLUGIN in names)
    on = on and not get_plugin_manager().is_discovery_disabled()
    return HostConfiguration(on, options, model, files, tuple(faults))


def _read_files() -> dict[Path, Any]:
    # A release of the host without these functions has no files here.
    discover: Callable[[], list[Path]] = getattr(loader, "_discover_config_files", list)
    parse: Callable[[Path], Any] = getattr(loader, "_parse_config_file", lambda path: {})
    return {path: parse(path) for path in discover()}


_WRITE = f"write `plugins: {{{PLUGIN}: {{enabled: true}}}}`"


def _misspellings(kind: str, names: Iterable[object], right: str) -> list[str]:
    others = dict.fromkeys(str(name) for name in names if name != right)
    return [unknown_name(kind, name, [right]) for name in others if nearest_name(name, [right])]


def _read_options(section: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    options, faults = valid_options({key: section[key] for key in section if key in OUR_OPTIONS})
    for name in sorted(set(map(str, section)) - OUR_OPTIONS - PLUGIN_OPTIONS):
        faults[name] = unknown_name("option", name, OUR_OPTIONS)
    files = {name: configuration_file(*OPTION_KEYS, name) for name in faults}
    return options, [f"plugins.{PLUGIN}: {faults[name]} ({files[name]})" for name in faults]


OPTION_KEYS = ("plugins", PLUGIN)


def configuration_file(*keys: str) -> str:
    """Return the nearest configuration file with these keys, else `plugins.enable()`."""
    for path, value in reversed(_read_files().items()):
        for key in keys:
            if not (isinstance(value, Mapping) and key in value):
                break
            value = value[key]
        else:
            return str(path)
    return "plugins.enable()"
