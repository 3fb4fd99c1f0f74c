"""The litellm paths: the six private senders of the host's `LLM`, through which all of them go."""

from __future__ import annotations

import functools
from typing import Any

from . import identity, wire
from .patches import Patches, host_module, method
from .shapes import LITELLM_CHAT, RESPONSES, Shape

__all__ = ["patch"]


def patch(patches: Patches) -> None:
    """Wrap the senders; each gets its parameters whole and gives the provider's own answer."""
    llm = host_module("llm.llm").LLM
    for name, wrapped in (
        ("_completion_with_retry", _sync(method(llm, "_completion_with_retry"), LITELLM_CHAT)),
        ("_acompletion_with_retry", _async(method(llm, "_acompletion_with_retry"), LITELLM_CHAT)),
        ("_call_responses_api", _sync(method(llm, "_call_responses_api"), RESPONSES)),
        ("_call_responses_api_async", _async(method(llm, "_call_responses_api_async"), RESPONSES)),
        ("_stream_responses_api", _sync_stream(method(llm, "_stream_responses_api"))),
        ("_stream_responses_api_async", _async_stream(method(llm, "_stream_responses_api_async"))),
    ):
        patches.replace(llm, name, wrapped)


def _sync(original: Any, shape: Shape) -> Any:
    @functools.wraps(original)
    def sender(self: Any, **params: Any) -> Any:
        compressor = identity.current()
        if compressor is None:
            return original(self, **params)
        return wire.send(compressor, shape, params, lambda sent: original(self, **sent))

    return sender


def _async(original: Any, shape: Shape) -> Any:
    @functools.wraps(original)
    async def sender(self: Any, **params: Any) -> Any:
        compressor = identity.current()
        if compressor is None:
            return await original(self, **params)
        return await wire.asend(compressor, shape, params, lambda sent: original(self, **sent))

    return sender


# These two take the parameters as one dictionary and set `stream` in it.


def _sync_stream(original: Any) -> Any:
    @functools.wraps(original)
    def sender(self: Any, params: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        compressor = identity.current()
        if compressor is None:
            return original(self, params, *args, **kwargs)
        return wire.send(
            compressor, RESPONSES, params, lambda sent: original(self, sent, *args, **kwargs)
        )

    return sender


def _async_stream(original: Any) -> Any:
    @functools.wraps(original)
    async def sender(self: Any, params: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        compressor = identity.current()
        if compressor is None:
            return await original(self, params, *args, **kwargs)
        return await wire.asend(
            compressor, RESPONSES, params, lambda sent: original(self, sent, *args, **kwargs)
        )

    return sender
