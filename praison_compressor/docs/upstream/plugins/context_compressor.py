"""Context compression plugin: a long conversation stays inside the model's window.

The package praison-compressor does the work: `pip install praison-compressor`. Where it is missing,
the plugin says so and changes nothing.
"""

from typing import Any

from praisonaiagents._logging import get_logger
from praisonaiagents.plugins.plugin import Plugin, PluginInfo

logger = get_logger(__name__)

NAME = "praison-compressor"


class MissingCompressorPlugin(Plugin):  # type: ignore[misc]  # the host ships no types
    """Say that the package is not installed."""

    @property
    def info(self) -> PluginInfo:
        """What the plugin manager lists."""
        return PluginInfo(
            name=NAME,
            version="0.0.0",
            description="Compresses the context of every agent (not installed).",
            hooks=[],
        )

    def on_init(self, context: dict[str, Any]) -> None:
        """Warn once per process; change nothing."""
        logger.warning("[CONTEXT] nothing is compressed: pip install %s", NAME)


plugin: Plugin
try:
    from praison_compressor.praisonai.plugin import plugin
except ModuleNotFoundError as error:
    # A package that is there and broken must say its own cause.
    if (error.name or "").partition(".")[0] != "praison_compressor":
        raise
    plugin = MissingCompressorPlugin()
