"""Every request on its way out, through the OpenAI client or litellm: the view put in, usage read,
one retry where it was too long.

A stream of chat completions is asked for it (`shapes`), others tell it unasked.
"""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ..ledger.segments import Usage
from . import identity
from .patches import Patches, getter, host_module, method
from .requests import CHAT, LITELLM_CHAT, RESPONSES, Shape

if TYPE_CHECKING:
    from .agent_compressor import AgentCompressor

__all__ = [
    "asend",
    "awatched",
    "bill",
    "patch_litellm",
    "patch_openai",
    "prompt_tokens",
    "send",
    "watched",
]


# -------------------------------------------------------------- usage


Learn = Callable[[int], None]


def prompt_tokens(answer: Any) -> int | None:
    """What an answer or a piece of one reports; None where it says nothing.

    Chat completions call them prompt tokens, responses input tokens; the last event of a response
    carries the whole response, and so does what the host makes of such a stream.
    """
    if isinstance(answer, tuple):  # text, calls, response
        answer = answer[-1] if answer else None
    # litellm keeps what a provider sent unasked, as Anthropic does, beside the chunk.
    for holder in (answer, _field(answer, "response"), _field(answer, "_hidden_params")):
        usage = _field(holder, "usage")
        found = _field(usage, "prompt_tokens") or _field(usage, "input_tokens")
        if isinstance(found, int) and found > 0:
            return found
    return None


def bill(agent: Any, usage: Usage) -> None:
    """Add what summaries cost to the agent's `cost_summary`, which its budget is held against."""
    lock = getattr(agent, "_cost_lock", None)
    if lock is None or usage == Usage():
        return
    with lock:
        agent._total_cost += usage.cost or 0.0
        agent._total_tokens_in += usage.prompt_tokens
        agent._total_tokens_out += usage.completion_tokens


def _field(holder: Any, name: str) -> Any:
    return holder.get(name) if isinstance(holder, dict) else getattr(holder, name, None)


def watched(answer: Any, learn: Learn, *, asked: bool) -> Any:
    """The answer, whose usage is learned now, or when it comes by in a stream.

    `asked`: the stream's usage was our wish. A piece that carries nothing else is then not passed
    on: some of the host's readers take the first choice of every piece.
    """
    if _learned(answer, learn) or not _is_stream(answer):
        return answer
    return _Pieces(answer, learn, asked)


def awatched(answer: Any, learn: Learn, *, asked: bool) -> Any:
    """The same where the stream is asynchronous."""
    if _learned(answer, learn) or not hasattr(answer, "__aiter__"):
        return answer
    return _AsyncPieces(answer, learn, asked)


def _is_stream(answer: Any) -> bool:
    """Whether it comes in pieces; a response that is whole can be iterated too, by its fields."""
    return hasattr(answer, "__next__") or hasattr(answer, "__anext__")


def _learned(answer: Any, learn: Learn) -> bool:
    reported = prompt_tokens(answer)
    if reported is not None:
        learn(reported)
    return reported is not None


class _Watch:
    """A stream that is itself in everything else; the first report in it is learned."""

    def __init__(self, stream: Any, learn: Learn, asked: bool) -> None:
        self._stream = stream
        self._learn = learn
        self._asked = asked
        self._told = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def _passes(self, piece: Any) -> bool:
        """Learn from a piece; whether the reader is to have it."""
        if not self._told:
            self._told = _learned(piece, self._learn)
        return not (self._asked and _field(piece, "choices") == [])

    def _ended(self) -> None:
        # litellm keeps what comes after the last words to itself.
        kept = () if self._told else getattr(self._stream, "chunks", None) or ()
        self._told = self._told or any(_learned(chunk, self._learn) for chunk in kept)


class _Pieces(_Watch):
    _pieces: Iterator[Any] | None = None

    def __iter__(self) -> _Pieces:
        return self

    def __next__(self) -> Any:
        if self._pieces is None:
            self._pieces = iter(self._stream)
        for piece in self._pieces:
            if self._passes(piece):
                return piece
        self._ended()
        raise StopIteration

    def __enter__(self) -> _Pieces:
        self._stream.__enter__()
        return self

    def __exit__(self, *failure: Any) -> Any:
        return self._stream.__exit__(*failure)


class _AsyncPieces(_Watch):
    _pieces: AsyncIterator[Any] | None = None

    def __aiter__(self) -> _AsyncPieces:
        return self

    async def __anext__(self) -> Any:
        if self._pieces is None:
            self._pieces = self._stream.__aiter__()
        async for piece in self._pieces:
            if self._passes(piece):
                return piece
        self._ended()
        raise StopAsyncIteration

    async def __aenter__(self) -> _AsyncPieces:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *failure: Any) -> Any:
        return await self._stream.__aexit__(*failure)


# -------------------------------------------------------------- wire


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
    return watched(answer, lambda told: compressor.used(request, view, told), asked=asked)


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
    return awatched(answer, lambda told: compressor.used(request, view, told), asked=asked)


# -------------------------------------------------------------- openai wire


Routes = Mapping[str, Any]


_SENDS: Routes = {
    "chat": {"completions": {"create": CHAT, "parse": CHAT}},
    "responses": {"create": RESPONSES, "parse": RESPONSES},
    "beta": {"chat": {"completions": {"create": CHAT, "parse": CHAT}}},
}


def patch_openai(patches: Patches) -> None:
    """Inside a turn of ours both properties hand out the client seen through our routes."""
    owner = host_module("llm.openai_client").OpenAIClient
    for name, wrap in (("sync_client", _openai_sync), ("async_client", _openai_async)):
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
def _openai_sync(original: Any, shape: Shape, compressor: AgentCompressor) -> Any:
    def create(*args: Any, **params: Any) -> Any:
        return send(compressor, shape, params, lambda sent: original(*args, **sent))

    return create


def _openai_async(original: Any, shape: Shape, compressor: AgentCompressor) -> Any:
    async def create(*args: Any, **params: Any) -> Any:
        return await asend(compressor, shape, params, lambda sent: original(*args, **sent))

    return create


# -------------------------------------------------------------- litellm wire


def patch_litellm(patches: Patches) -> None:
    """Wrap the senders; each gets its parameters whole and gives the provider's own answer."""
    llm = host_module("llm.llm").LLM
    for name, wrapped in (
        (
            "_completion_with_retry",
            _litellm_sync(method(llm, "_completion_with_retry"), LITELLM_CHAT),
        ),
        (
            "_acompletion_with_retry",
            _litellm_async(method(llm, "_acompletion_with_retry"), LITELLM_CHAT),
        ),
        ("_call_responses_api", _litellm_sync(method(llm, "_call_responses_api"), RESPONSES)),
        (
            "_call_responses_api_async",
            _litellm_async(method(llm, "_call_responses_api_async"), RESPONSES),
        ),
        ("_stream_responses_api", _sync_stream(method(llm, "_stream_responses_api"))),
        ("_stream_responses_api_async", _async_stream(method(llm, "_stream_responses_api_async"))),
    ):
        patches.replace(llm, name, wrapped)


def _litellm_sync(original: Any, shape: Shape) -> Any:
    @functools.wraps(original)
    def sender(self: Any, **params: Any) -> Any:
        compressor = identity.current()
        if compressor is None:
            return original(self, **params)
        return send(compressor, shape, params, lambda sent: original(self, **sent))

    return sender


def _litellm_async(original: Any, shape: Shape) -> Any:
    @functools.wraps(original)
    async def sender(self: Any, **params: Any) -> Any:
        compressor = identity.current()
        if compressor is None:
            return await original(self, **params)
        return await asend(compressor, shape, params, lambda sent: original(self, **sent))

    return sender


# These two take the parameters as one dictionary and set `stream` in it.
def _sync_stream(original: Any) -> Any:
    @functools.wraps(original)
    def sender(self: Any, params: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        compressor = identity.current()
        if compressor is None:
            return original(self, params, *args, **kwargs)
        return send(
            compressor, RESPONSES, params, lambda sent: original(self, sent, *args, **kwargs)
        )

    return sender


def _async_stream(original: Any) -> Any:
    @functools.wraps(original)
    async def sender(self: Any, params: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        compressor = identity.current()
        if compressor is None:
            return await original(self, params, *args, **kwargs)
        return await asend(
            compressor, RESPONSES, params, lambda sent: original(self, sent, *args, **kwargs)
        )

    return sender
