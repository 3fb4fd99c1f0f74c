"""Replace names of the host and put every one of them back exactly as it was."""

from __future__ import annotations

import importlib
import logging
from typing import Any, NamedTuple

from ..errors import CompressorError

__all__ = [
    "HostMoved",
    "Patches",
    "host_module",
]


log = logging.getLogger(__name__)


ABSENT = object()


class HostMoved(CompressorError):
    """A place of the host that we build on is gone or has another shape.

    `seam` is its dotted name. Raised by `install()`, before any agent runs.
    """

    def __init__(self, seam: str, wanted: str) -> None:
        self.seam = seam
        super().__init__(
            f"praisonaiagents {_host_version()} has no {wanted} at {seam}; "
            "use a host release that this version supports (>=1.7.4,<1.8)"
        )


class Patch(NamedTuple):
    owner: Any
    name: str
    before: Any  # ABSENT where the owner had only inherited the name
    after: Any


class Patches:
    """What was replaced, newest last."""

    def __init__(self) -> None:
        self._done: list[Patch] = []

    def __len__(self) -> int:
        return len(self._done)

    @property
    def seams(self) -> tuple[str, ...]:
        """The dotted names of what is replaced."""
        return tuple(f"{_name_of(patch.owner)}.{patch.name}" for patch in self._done)

    def replace(self, owner: Any, name: str, after: Any) -> None:
        """Set `owner.name`; what its own dictionary held before is put back by `undo`."""
        # vars(), not getattr(): a function must come back as the function, a property as itself.
        before = vars(owner).get(name, ABSENT)
        setattr(owner, name, after)
        self._done.append(Patch(owner, name, before, after))

    def undo(self) -> None:
        """Put everything back, newest first."""
        while self._done:
            patch = self._done.pop()
            if vars(patch.owner).get(patch.name, ABSENT) is not patch.after:
                # Somebody wrapped ours since; taking it away would take theirs too. Ours, left
                # inside, does nothing once the installation is closed.
                log.warning("%s.%s was patched again after us", _name_of(patch.owner), patch.name)
            elif patch.before is ABSENT:
                delattr(patch.owner, patch.name)
            else:
                setattr(patch.owner, patch.name, patch.before)


def host_module(name: str) -> Any:
    """A module of the host by its name below `praisonaiagents`."""
    full = f"praisonaiagents.{name}"
    try:
        return importlib.import_module(full)
    except ImportError as error:
        raise HostMoved(full, "module") from error


def own(owner: Any, name: str) -> Any:
    """What `owner` itself defines under `name`: the thing that a patch replaces."""
    found = vars(owner).get(name, ABSENT)
    if found is ABSENT:
        raise HostMoved(f"{_name_of(owner)}.{name}", "definition")
    return found


def method(owner: type, name: str) -> Any:
    """A plain function that `owner` itself defines."""
    found = own(owner, name)
    if not callable(found):
        raise HostMoved(f"{_name_of(owner)}.{name}", "method")
    return found


def getter(owner: type, name: str) -> property:
    """A property that `owner` itself defines."""
    found = own(owner, name)
    if not isinstance(found, property) or found.fget is None:
        raise HostMoved(f"{_name_of(owner)}.{name}", "property")
    return found


def _name_of(owner: Any) -> str:
    module = getattr(owner, "__module__", "")
    name = getattr(owner, "__qualname__", None) or getattr(owner, "__name__", repr(owner))
    return f"{module}.{name}" if module else str(name)


def _host_version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("praisonaiagents")
    except PackageNotFoundError:
        return "(unknown version)"
