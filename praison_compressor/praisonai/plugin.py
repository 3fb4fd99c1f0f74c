"""Serve every agent that names no other strategy, where the host's configuration says so.

The module is the entry point `praisonai.plugins`. It also reads what that configuration asks, and
reports what is wrong with it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from praisonaiagents import plugins
from praisonaiagents.config import loader
from praisonaiagents.plugins.manager import get_plugin_manager
from praisonaiagents.plugins.plugin import Plugin, PluginInfo

from ..config import nearest, no_such
from .context_param import OURS, usable
from .install import installation

log = logging.getLogger(__name__)

NAME = "praison-compressor"

HOST_OPTIONS = frozenset({"allow_conversation", "enabled"})
"""What the host itself reads in a plugin's options."""


class CompressorPlugin(Plugin):  # type: ignore[misc]  # the host ships no types
    """Installs us while the host's plugin manager says that we are enabled.

    The host initializes every plugin that it finds, also where a configuration names another one.
    No callback follows when a plugin is disabled: each turn asks whether ours is enabled.
    """

    @property
    def info(self) -> PluginInfo:
        """Return what the host lists, without `plugin_type`: hosts before 1.7.10 refuse it."""
        from .. import __version__

        return PluginInfo(
            name=NAME,
            version=__version__,
            description="Compresses the context of every agent that names no other strategy.",
            hooks=[],
            dependencies=["praisonaiagents>=1.7.4"],
        )

    def on_init(self, context: dict[str, Any]) -> None:
        """Be ready; agents are only touched while the plugin is enabled.

        The host is here wherever it loads any plugin: the one place to say that our name is
        misspelled.
        """
        installation(None, plugin=is_enabled)
        # The host's own list, which `plugins.enable([...])` in code fills too.
        names = getattr(plugins, "_enabled_plugin_names", None) or loader.get_enabled_plugins()
        for fault in _misspelled([*(names or ()), *loader.get_plugin_options()]):
            log.warning("%s", fault)

    def on_config(self, config: dict[str, Any]) -> dict[str, Any]:
        """Take `plugins: {praison-compressor: {...}}` as defaults for agents that say nothing."""
        options, faults = _read(config)
        for fault in faults:
            log.warning("%s", fault)
        installation(options, plugin=is_enabled)
        return config


def is_enabled() -> bool:
    """Return whether the host's plugin manager has us enabled now."""
    return bool(get_plugin_manager().is_enabled(NAME))


plugin = CompressorPlugin
"""What the entry point names."""


# ------------------------------------------------------------ what the configuration asks


@dataclass(frozen=True)
class HostConfiguration:
    """What `PRAISONAI_PLUGINS` and the host's configuration files ask of this plugin."""

    on: bool
    """Whether the host enables it at the first `Agent()`."""
    options: Mapping[str, Any]
    model: str | None
    """Of agents that name none, where a file does."""
    files: tuple[str, ...]
    """Those that the host reads, the nearest last."""
    faults: tuple[str, ...]
    """What does nothing as it is written, and what was probably meant."""


def asked() -> HostConfiguration:
    """Read the environment and the files as the host does.

    `doctor` shows all of it: where the host loads no plugin, no other code of ours runs.
    """
    paths = loader._discover_config_files()
    files = tuple(map(str, paths))
    # The host takes what it cannot parse for empty.
    unread = [p for p in paths if p.stat().st_size and not loader._parse_config_file(p)]
    faults = [f"{path}: no YAML or TOML that can be read" for path in unread]
    whole = loader._load_config()
    section = whole.get("plugins", {})
    if not isinstance(section, Mapping):
        faults.append(f"plugins: {section!r}: the host wants a mapping; {_WRITE}")
        return HostConfiguration(False, {}, None, files, tuple(faults))
    if "plugins" not in whole:
        faults += [no_such("section", k, ["plugins"]) for k in whole if nearest(k, ["plugins"])]
    if not isinstance(section.get(NAME, {}), Mapping):
        faults.append(f"plugins.{NAME}: {section[NAME]!r}: the host passes over it; {_WRITE}")
    model = loader.get_config(reload=True).defaults.model
    names = loader.get_enabled_plugins()
    options, wrong = _read(loader.get_plugin_options().get(NAME, {}))
    faults += [*_misspelled([*(names or ()), *section]), *wrong]
    on = loader.is_plugins_enabled() and (names is None or NAME in names)
    on = on and not get_plugin_manager().is_discovery_disabled()
    return HostConfiguration(on, options, model, files, tuple(faults))


_WRITE = f"write `plugins: {{{NAME}: {{enabled: true}}}}`"


def _misspelled(names: Iterable[object]) -> list[str]:
    """Return a fault for each name that is nearly ours."""
    strange = dict.fromkeys(str(name) for name in names if name != NAME)
    return [no_such("plugin", name, [NAME]) for name in strange if nearest(name, [NAME])]


def _read(given: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the valid options under our name, and the others' faults."""
    options, faults = usable({key: given[key] for key in given if key in OURS})
    for name in sorted(set(map(str, given)) - OURS - HOST_OPTIONS):
        faults[name] = no_such("option", name, OURS)
    files = {name: file_of(*IN_FILES, name) for name in faults}
    return options, [f"plugins.{NAME}: {faults[name]} ({files[name]})" for name in faults]


IN_FILES = ("plugins", NAME)
"""Where the host's files have our options."""


def file_of(*keys: str) -> str:
    """Return the nearest host's file with these keys, else the call."""
    for path in reversed(loader._discover_config_files()):
        found = loader._parse_config_file(path)
        for key in keys:
            if not (isinstance(found, Mapping) and key in found):
                break
            found = found[key]
        else:
            return str(path)
    return "plugins.enable()"
