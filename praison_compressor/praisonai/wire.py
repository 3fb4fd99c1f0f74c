"""Send each request with its view; read the usage; send again as a refusal demands.

A stream of chat completions is asked for its usage (`requests`); others report it unasked.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from ..compressor.bills import RequestUsage, field_of, usage_in
from ..errors import NothingShorter
from ..messages import Message
from ..summaries.threads import run
from ..tokens.refusals import overflow_of
from .agents import Agents, Argument
from .answers import CallPieces, calls_in
from .conversations import current
from .requests import CHAT, LITELLM_CHAT, RESPONSES, HostRequest, Shape
from .sending import Sender

ATTEMPTS = 8
"""One provider may have more than one thing to refuse: keys, the order of roles, then the length,
by which the window is halved where it says no numbers."""


def is_in_vain(error: Exception, attempt: int, view: object, other: object) -> bool:
    """Return whether to raise a refusal instead of sending the other view.

    Raises:
        NothingShorter: it was refused for its size, in vain.
    """
    refused = overflow_of(error)
    ends = attempt == ATTEMPTS or (refused is not None and other == view)
    if ends and refused is not None and refused.certain:
        raise NothingShorter from error
    return ends


@contextmanager
def giving_up(sender: Sender, request: HostRequest) -> Iterator[None]:
    """Forget what refusals taught if the request fails here."""
    try:
        yield
    except BaseException:
        sender.gave_up(request)
        raise


def send(sender: Sender, shape: Shape, params: Mapping[str, Any], go: Callable[..., Any]) -> Any:
    """Send a request as its view; send another view after a refusal that says how."""
    params = sender.offering(params)
    request = shape.read(params)
    if request is None:
        return go(dict(params))
    view = run(sender.view(request))
    params = sender.offering(params)
    for attempt in range(1, ATTEMPTS + 1):
        try:
            sent = shape.write(params, view, sender.refused(request), sender.cache_ttl)
            answer = go(sent)
            break
        except Exception as error:
            other = run(sender.other_view(request, view, error))
            with giving_up(sender, request):
                if other is None or is_in_vain(error, attempt, view, other):
                    raise
            view = other
    sender.took(request, view)
    return _heard(answer, _Hearing(sender, request, view, sent, params))


async def asend(
    sender: Sender, shape: Shape, params: Mapping[str, Any], go: Callable[..., Any]
) -> Any:
    """Send as `send` does, without blocking the event loop."""
    params = sender.offering(params)
    request = shape.read(params)
    if request is None:
        return await go(dict(params))
    view = await sender.view(request)
    params = sender.offering(params)
    for attempt in range(1, ATTEMPTS + 1):
        try:
            sent = shape.write(params, view, sender.refused(request), sender.cache_ttl)
            answer = await go(sent)
            break
        except Exception as error:
            other = await sender.other_view(request, view, error)
            with giving_up(sender, request):
                if other is None or is_in_vain(error, attempt, view, other):
                    raise
            view = other
    sender.took(request, view)
    return await _aheard(answer, _Hearing(sender, request, view, sent, params))


# ------------------------------------------------------------ what an answer says


class _Hearing:
    """One request that was sent, and what its answer says: the usage and the calls."""

    def __init__(
        self,
        sender: Sender,
        request: HostRequest,
        view: Sequence[Message],
        sent: Mapping[str, Any],
        params: Mapping[str, Any],
    ) -> None:
        self._sender, self._request, self._view = sender, request, view
        self._hides_usage = sent.get("extra_body") != params.get("extra_body")
        self._usage = RequestUsage()
        self._pieces = CallPieces()

    def whole(self, answer: Any) -> Message | None:
        """Learn the usage of an answer; return its message if it makes calls."""
        self._learn(answer)
        return calls_in(answer)

    def passes(self, piece: Any) -> bool:
        """Read a piece of a stream; return whether the reader is to have it.

        A piece with nothing but the usage that we asked for is kept back: some of the host's
        readers take the first choice of every piece.
        """
        self._learn(piece)
        self._pieces.take(piece)
        return not (self._hides_usage and field_of(piece, "choices") == [])

    def ended(self, stream: Any) -> Message | None:
        """Learn from a stream's end; return its message if it makes calls."""
        # litellm keeps what comes after the last words to itself.
        for chunk in getattr(stream, "chunks", None) or ():
            self._learn(chunk)
        return self._pieces.message

    def called(self, made: Message | None) -> Coroutine[Any, Any, None]:
        """Report the calls to the agent's conversation."""
        return self._sender.called(self._request, made)

    def _learn(self, said: Any) -> None:
        reported, before = usage_in(said), self._usage
        if reported is not None:
            self._usage = before.merged(reported)
            self._sender.used(self._request, self._view, self._usage, before)


def _heard(answer: Any, hearing: _Hearing) -> Any:
    """Read an answer now, a stream piece by piece; return it."""
    made = hearing.whole(answer)
    # A response that is whole can be iterated too, by its fields.
    if made is None and hasattr(answer, "__next__"):
        return _Pieces(answer, hearing)
    if made is not None:
        run(hearing.called(made))
    return answer


async def _aheard(answer: Any, hearing: _Hearing) -> Any:
    """Do the same on an event loop."""
    made = hearing.whole(answer)
    if made is None and hasattr(answer, "__anext__"):
        return _AsyncPieces(answer, hearing)
    if made is not None:
        await hearing.called(made)
    return answer


class _Watch:
    """A stream that is itself in everything but what is read of its pieces."""

    def __init__(self, stream: Any, hearing: _Hearing) -> None:
        self._stream = stream
        self._hearing = hearing

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _Pieces(_Watch):
    def __iter__(self) -> Iterator[Any]:
        yield from filter(self._hearing.passes, self._stream)
        made = self._hearing.ended(self._stream)
        if made is not None:
            run(self._hearing.called(made))


class _AsyncPieces(_Watch):
    async def __aiter__(self) -> AsyncIterator[Any]:
        async for piece in self._stream:
            if self._hearing.passes(piece):
                yield piece
        made = self._hearing.ended(self._stream)
        if made is not None:
            await self._hearing.called(made)


# ------------------------------------------------------------ replaced in the host


Transmit = Callable[[Sender, Shape, Mapping[str, Any], Callable[..., Any]], Any]
"""`send` or `asend`."""


def _call_with_retry(transmit: Transmit, original: Any, agents: Agents) -> Any:
    """Replace the host's call of litellm, in turns of ours."""

    @functools.wraps(original)
    def call_with_retry(self: Any, *args: Any, **params: Any) -> Any:
        sender = current()
        if sender is None:
            return original(self, *args, **params)
        shape = RESPONSES if "input" in params else LITELLM_CHAT
        ask, *rest = args
        asks = _asking if transmit is send else _aasking
        go = asks(lambda sent: original(self, _raising(ask), *rest, **sent))
        return transmit(sender, shape, params, go)

    return call_with_retry


class _TooLong(BaseException):
    """Passes a refusal by the host's retries, which wait a minute for every limit."""

    def __init__(self, refusal: Exception) -> None:
        super().__init__(refusal)
        self.refusal = refusal


class Unprocessable(Exception):
    """A refusal that litellm swallowed: with `drop_params` it returns None for status 422."""

    status_code = 422

    def __init__(self) -> None:
        super().__init__(
            "litellm returned no answer: the provider refused the request with status 422, perhaps "
            "for its length"
        )


def _raising(ask: Any) -> Any:
    """Return litellm's function, which raises `_TooLong` where only a smaller request passes."""

    def asked(*args: Any, **params: Any) -> Any:
        try:
            answer = ask(*args, **params)
        except Exception as error:
            _escape(error)
            raise
        return awaited(answer) if inspect.isawaitable(answer) else _answered(answer)

    async def awaited(answer: Any) -> Any:
        try:
            return _answered(await answer)
        except Exception as error:
            _escape(error)
            raise

    return asked


def _answered(answer: Any) -> Any:
    if answer is None:
        raise _TooLong(Unprocessable())
    return answer


def _escape(error: Exception) -> None:
    if overflow_of(error) is not None:
        raise _TooLong(error) from error


def _asking(go: Callable[..., Any]) -> Callable[..., Any]:
    def asking(sent: Mapping[str, Any]) -> Any:
        try:
            return go(sent)
        except _TooLong as passed:
            raise passed.refusal from passed.refusal.__cause__

    return asking


def _aasking(go: Callable[..., Any]) -> Callable[..., Any]:
    async def asking(sent: Mapping[str, Any]) -> Any:
        try:
            return await go(sent)
        except _TooLong as passed:
            raise passed.refusal from passed.refusal.__cause__

    return asking


def _stream_responses(transmit: Transmit, original: Any, agents: Agents) -> Any:
    """Replace the host's call for a stream of responses, in turns of ours."""
    params = Argument(original, "params")

    @functools.wraps(original)
    def stream_responses(self: Any, *args: Any, **kwargs: Any) -> Any:
        sender = current()
        if sender is None:
            return original(self, *args, **kwargs)

        def go(sent: Mapping[str, Any]) -> Any:
            given, named = params.put(sent, args, kwargs)
            return original(self, *given, **named)

        return transmit(sender, RESPONSES, params.of(args, kwargs), go)

    return stream_responses


call_with_retry = functools.partial(_call_with_retry, send)
acall_with_retry = functools.partial(_call_with_retry, asend)
stream_responses = functools.partial(_stream_responses, send)
astream_responses = functools.partial(_stream_responses, asend)


def _client(transmit: Transmit, original: property, agents: Agents) -> property:
    """Return the host's OpenAI client, in turns of ours with our routes.

    The property says which it is; `AsyncCompletions.create` is no coroutine function to ask.
    """

    def client(self: Any) -> Any:
        found = original.__get__(self, type(self))
        sender = current()
        return found if sender is None else Through(_SENDS, sender, found, transmit)

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

    __slots__ = ("_routes", "_sender", "_target", "_transmit")

    def __init__(self, *parts: Any) -> None:
        for name, part in zip(self.__slots__, parts, strict=True):
            object.__setattr__(self, name, part)

    def __getattr__(self, name: str) -> Any:
        found, route = getattr(self._target, name), self._routes.get(name)
        if route is None:
            return found
        if isinstance(route, Mapping):
            return Through(route, self._sender, found, self._transmit)
        return lambda **params: self._transmit(
            self._sender, route, params, lambda sent: found(**sent)
        )

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._target, name, value)
