"""The OpenAI client's requests: all of them come from the two client properties of the host."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from . import identity, wire
from .patches import Patches, getter, host_module
from .shapes import CHAT, RESPONSES, Shape

if TYPE_CHECKING:
    from .agent_compressor import AgentCompressor

__all__ = ["patch"]

Routes = Mapping[str, Any]

_SENDS: Routes = {
    "chat": {"completions": {"create": CHAT, "parse": CHAT}},
    "responses": {"create": RESPONSES, "parse": RESPONSES},
    "beta": {"chat": {"completions": {"create": CHAT, "parse": CHAT}}},
}


def patch(patches: Patches) -> None:
    """Inside a turn of ours both properties hand out the client seen through our routes."""
    owner = host_module("llm.openai_client").OpenAIClient
    for name, wrap in (("sync_client", _sync), ("async_client", _async)):
        patches.replace(owner, name, _through(getter(owner, name), wrap))


def _through(original: property, wrap: Any) -> property:
    def client(self: Any) -> Any:
        found = original.__get__(self, type(self))
        compressor = identity.current()
        return found if compressor is None else Through(found, _SENDS, compressor, wrap)

    return property(client, original.fset, original.fdel, original.__doc__)


class Through:
    """A client, or a part of one, that is itself in everything but what it sends.

    The client is not changed: it may be shared with agents that did not ask, or be the caller's.
    """

    __slots__ = ("_compressor", "_routes", "_target", "_wrap")

    def __init__(self, target: Any, routes: Routes, compressor: AgentCompressor, wrap: Any) -> None:
        for name, value in zip(self.__slots__, (compressor, routes, target, wrap), strict=True):
            object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._target, name)
        route = self._routes.get(name)
        if route is None:
            return found
        if isinstance(route, Mapping):
            return Through(found, route, self._compressor, self._wrap)
        return self._wrap(found, route, self._compressor)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._target, name, value)


# The property says which it is; `AsyncCompletions.create` is no coroutine function to ask.


def _sync(original: Any, shape: Shape, compressor: AgentCompressor) -> Any:
    def create(*args: Any, **params: Any) -> Any:
        return wire.send(compressor, shape, params, lambda sent: original(*args, **sent))

    return create


def _async(original: Any, shape: Shape, compressor: AgentCompressor) -> Any:
    async def create(*args: Any, **params: Any) -> Any:
        return await wire.asend(compressor, shape, params, lambda sent: original(*args, **sent))

    return create
