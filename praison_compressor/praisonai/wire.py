"""Every request on its way out, through the OpenAI client or litellm: the view put in, usage read,
sent again where a refusal says how.

A stream of chat completions is asked for its usage (`requests`), others tell it unasked.
"""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Any

from ..errors import NothingShorter
from ..summaries.threads import run
from ..tokens.models import overflow_of
from .agent_compressor import AgentCompressor
from .agents import Agents, Argument, current
from .requests import CHAT, LITELLM_CHAT, RESPONSES, Shape

ATTEMPTS = 8
"""One provider may have more than one thing to refuse: keys, the order of roles, then the length,
by which the window is halved where it says no numbers."""


def is_in_vain(error: Exception, attempt: int, view: object, other: object) -> bool:
    """Whether to raise the refusal of a view instead of sending the other one.

    Raises:
        NothingShorter: it was refused for its size, in vain.
    """
    is_overflow = overflow_of(error) is not None
    ends = attempt == ATTEMPTS or (is_overflow and other == view)
    if ends and is_overflow:
        raise NothingShorter from error
    return ends


def send(
    compressor: AgentCompressor, shape: Shape, params: Mapping[str, Any], go: Callable[..., Any]
) -> Any:
    """Send the request as the view that fits; again, as a refusal of it wants, if it says how."""
    params = compressor.offering(params)
    request = shape.read(params)
    if request is None:
        return go(dict(params))
    view = run(compressor.view(request))
    params = compressor.offering(params)
    for attempt in range(1, ATTEMPTS + 1):
        try:
            sent = shape.write(params, view, compressor.refused(request))
            answer = go(sent)
            break
        except Exception as error:
            other = run(compressor.other_view(request, view, error))
            if other is None or is_in_vain(error, attempt, view, other):
                raise
            view = other
    asked = sent.get("extra_body") != params.get("extra_body")
    return watched(answer, lambda told: compressor.used(request, view, told), _Pieces, asked)


async def asend(
    compressor: AgentCompressor, shape: Shape, params: Mapping[str, Any], go: Callable[..., Any]
) -> Any:
    """The same, without ever blocking the loop it runs on."""
    params = compressor.offering(params)
    request = shape.read(params)
    if request is None:
        return await go(dict(params))
    view = await compressor.view(request)
    params = compressor.offering(params)
    for attempt in range(1, ATTEMPTS + 1):
        try:
            sent = shape.write(params, view, compressor.refused(request))
            answer = await go(sent)
            break
        except Exception as error:
            other = await compressor.other_view(request, view, error)
            if other is None or is_in_vain(error, attempt, view, other):
                raise
            view = other
    asked = sent.get("extra_body") != params.get("extra_body")
    return watched(answer, lambda told: compressor.used(request, view, told), _AsyncPieces, asked)


# ------------------------------------------------------------ the usage in an answer


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


def _field(holder: Any, name: str) -> Any:
    return holder.get(name) if isinstance(holder, dict) else getattr(holder, name, None)


def watched(answer: Any, learn: Learn, kind: type[_Watch], asked: bool) -> Any:
    """The answer, whose usage is learned now, or when it comes by in a stream of that kind.

    `asked`: the stream's usage was our wish. A piece that carries nothing else is then not passed
    on: some of the host's readers take the first choice of every piece.
    """
    # A response that is whole can be iterated too, by its fields.
    is_stream = hasattr(answer, kind.step)
    return answer if _learned(answer, learn) or not is_stream else kind(answer, learn, asked)


def _learned(answer: Any, learn: Learn) -> bool:
    reported = prompt_tokens(answer)
    if reported is not None:
        learn(reported)
    return reported is not None


class _Watch:
    """A stream that is itself in everything else; the first report in it is learned."""

    step: str

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
    step = "__next__"

    def __iter__(self) -> Iterator[Any]:
        yield from filter(self._passes, self._stream)
        self._ended()


class _AsyncPieces(_Watch):
    step = "__anext__"

    async def __aiter__(self) -> AsyncIterator[Any]:
        async for piece in self._stream:
            if self._passes(piece):
                yield piece
        self._ended()


# ------------------------------------------------------------ replaced in the host


Transmit = Callable[[AgentCompressor, Shape, Mapping[str, Any], Callable[..., Any]], Any]
"""`send` or `asend`."""


def _call_with_retry(transmit: Transmit, original: Any, agents: Agents) -> Any:
    """Where the host's `LLM` calls litellm, in turns of ours."""

    @functools.wraps(original)
    def call_with_retry(self: Any, *args: Any, **params: Any) -> Any:
        compressor = current()
        if compressor is None:
            return original(self, *args, **params)
        shape = RESPONSES if "input" in params else LITELLM_CHAT
        return transmit(compressor, shape, params, lambda sent: original(self, *args, **sent))

    return call_with_retry


def _stream_responses(transmit: Transmit, original: Any, agents: Agents) -> Any:
    """Streams of responses, which the host's `LLM` asks litellm for by another way."""
    params = Argument(original, "params")

    @functools.wraps(original)
    def stream_responses(self: Any, *args: Any, **kwargs: Any) -> Any:
        compressor = current()
        if compressor is None:
            return original(self, *args, **kwargs)

        def go(sent: Mapping[str, Any]) -> Any:
            given, named = params.put(sent, args, kwargs)
            return original(self, *given, **named)

        return transmit(compressor, RESPONSES, params.of(args, kwargs), go)

    return stream_responses


call_with_retry = functools.partial(_call_with_retry, send)
acall_with_retry = functools.partial(_call_with_retry, asend)
stream_responses = functools.partial(_stream_responses, send)
astream_responses = functools.partial(_stream_responses, asend)


def _client(transmit: Transmit, original: property, agents: Agents) -> property:
    """The host's OpenAI client, in turns of ours seen through our routes.

    The property says which it is; `AsyncCompletions.create` is no coroutine function to ask.
    """

    def client(self: Any) -> Any:
        found = original.__get__(self, type(self))
        compressor = current()
        return found if compressor is None else Through(compressor, _SENDS, found, transmit)

    return property(client, original.fset, original.fdel, original.__doc__)


client = functools.partial(_client, send)
async_client = functools.partial(_client, asend)

_SENDS: Mapping[str, Any] = {
    "chat": {"completions": {"create": CHAT, "parse": CHAT}},
    "responses": {"create": RESPONSES, "parse": RESPONSES},
    "beta": {"chat": {"completions": {"create": CHAT, "parse": CHAT}}},
}


class Through:
    """A client, or a part of one, that is itself in everything but what it sends.

    The client is not changed: it may be shared with agents that did not ask, or be the caller's.
    """

    __slots__ = ("_compressor", "_routes", "_target", "_transmit")

    def __init__(self, *parts: Any) -> None:
        for name, part in zip(self.__slots__, parts, strict=True):
            object.__setattr__(self, name, part)

    def __getattr__(self, name: str) -> Any:
        found, route = getattr(self._target, name), self._routes.get(name)
        if route is None:
            return found
        if isinstance(route, Mapping):
            return Through(self._compressor, route, found, self._transmit)
        return lambda **params: self._transmit(
            self._compressor, route, params, lambda sent: found(**sent)
        )

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._target, name, value)
