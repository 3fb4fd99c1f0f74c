"""The host, praisonaiagents: `Agent(context=CompressorContext(...))`, `install()`, `uninstall()`."""

from __future__ import annotations

from .install import Installation, install, installed, uninstall
from .options import CompressorContext
from .patches import HostMoved

__all__ = [
    "CompressorContext",
    "HostMoved",
    "Installation",
    "install",
    "installed",
    "uninstall",
]
