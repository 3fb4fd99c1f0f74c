"""The host, praisonaiagents: `Agent(context=CompressorContext(...))` and `install()`."""

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
