"""Name the tested releases of the host, and the error for others.

This module does not import the host: in another release that import may fail.
"""

from __future__ import annotations

from importlib.metadata import version

from ..errors import HostMoved

TESTED_HOSTS = "1.7.4", "1.7.17"
"""The oldest and the newest praisonaiagents in our tests."""


def host_moved(seam: str, wanted: str) -> HostMoved:
    """Return the error for a name that the installed host lacks.

    Args:
        seam: the dotted name.
        wanted: the kind of object that we need there.
    """
    oldest, newest = TESTED_HOSTS
    fact = f"praisonaiagents {version('praisonaiagents')} has no {wanted} at {seam}"
    remedy = f"take a newer praison-compressor, or a praisonaiagents from {oldest} to {newest}"
    return HostMoved(seam, f"{fact}; {remedy}")
