"""One request on its way out: the view put in, and the one retry where it was too long."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from . import usage
from .shapes import Shape

if TYPE_CHECKING:
    from .agent_compressor import AgentCompressor

__all__ = ["asend", "send"]


def send(
    compressor: AgentCompressor,
    shape: Shape,
    params: Mapping[str, Any],
    go: Callable[[dict[str, Any]], Any],
) -> Any:
    """Send the request as the view that fits; once more, tighter, if it is refused as too long."""
    request = shape.read(params)
    if request is None:
        return go(dict(params))
    view = compressor.view(request)
    try:
        answer = go(shape.write(params, view))
    except Exception as error:
        tighter = compressor.tighter_view(request, view, error)
        if tighter is None:
            raise
        view, answer = tighter, go(shape.write(params, tighter))
    return usage.watched(answer, lambda told: compressor.used(request, view, told))


async def asend(
    compressor: AgentCompressor,
    shape: Shape,
    params: Mapping[str, Any],
    go: Callable[[dict[str, Any]], Awaitable[Any]],
) -> Any:
    """The same, without ever blocking the loop it runs on."""
    request = shape.read(params)
    if request is None:
        return await go(dict(params))
    view = await compressor.aview(request)
    try:
        answer = await go(shape.write(params, view))
    except Exception as error:
        tighter = await compressor.atighter_view(request, view, error)
        if tighter is None:
            raise
        view, answer = tighter, await go(shape.write(params, tighter))
    return usage.awatched(answer, lambda told: compressor.used(request, view, told))
