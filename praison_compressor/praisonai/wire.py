"""One request on its way out: the view put in, and sent again as its refusal says."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from . import usage
from .shapes import Shape

if TYPE_CHECKING:
    from .agent_compressor import AgentCompressor

__all__ = ["asend", "send"]

ATTEMPTS = 3
"""One provider may have more than one thing to refuse: a key, then the length."""


def send(
    compressor: AgentCompressor,
    shape: Shape,
    params: Mapping[str, Any],
    go: Callable[[dict[str, Any]], Any],
) -> Any:
    """Send the request as the view that fits; again, as a refusal of it wants, if it says how."""
    request = shape.read(params)
    if request is None:
        return go(dict(params))
    view = compressor.view(request)
    for attempt in range(1, ATTEMPTS + 1):
        try:
            sent = shape.write(params, view, compressor.refused(request))
            answer = go(sent)
            break
        except Exception as error:
            other = compressor.other_view(request, view, error)
            if other is None or attempt == ATTEMPTS:
                raise
            view = other
    asked = sent.get("extra_body") != params.get("extra_body")
    return usage.watched(answer, lambda told: compressor.used(request, view, told), asked=asked)


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
    for attempt in range(1, ATTEMPTS + 1):
        try:
            sent = shape.write(params, view, compressor.refused(request))
            answer = await go(sent)
            break
        except Exception as error:
            other = await compressor.aother_view(request, view, error)
            if other is None or attempt == ATTEMPTS:
                raise
            view = other
    asked = sent.get("extra_body") != params.get("extra_body")
    return usage.awatched(answer, lambda told: compressor.used(request, view, told), asked=asked)
