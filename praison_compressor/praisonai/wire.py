"""Send each request as its view, again after a refusal; read usage and calls of the answer.

A stream of chat completions is asked for its usage (`requests`); others report it unasked. Calls
are read because a turn may be stopped while a tool runs: no later request of that turn has them.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from ..compressor.bills import RequestUsage, field_of, usage_in
from ..concurrency import run
from ..errors import InvalidMessages, NothingShorter
from ..messages import Message, responses, to_plain
from ..tokens.refusals import overflow_of
from .agents import Agents, HostCall, Replacement, replacing
from .conversations import current
from .requests import CHAT, LITELLM_CHAT, RESPONSES, Shape
from .sending import Sender

ATTEMPTS = 8
"""One provider may have more than one thing to refuse: keys, the order of roles, then the length,
by which the window is halved where it says no numbers."""


class RoundTrip:
    """One request of the host: its views, and what its answer says."""

    def __init__(self, sender: Sender, shape: Shape, params: Mapping[str, Any]) -> None:
        self._sender, self._shape = sender, shape
        self._params = sender.offering(params)
        self._request = shape.read(self._params)
        self._view: Sequence[Message] = ()
        self._attempts = 0
        self._asks_usage = False
        self._usage = RequestUsage()
        self._calls = CallPieces()

    async def begin(self) -> dict[str, Any]:
        """Return the parameters to send; an unreadable request stays as it is."""
        if self._request is None:
            return dict(self._params)
        view = await self._sender.view(self._request)
        # The first compression gives the agent its recall tools.
        self._params = self._sender.offering(self._params)
        return self._written(view)

    async def again(self, error: BaseException) -> dict[str, Any]:
        """Return the parameters to send after a refusal.

        Raises:
            Exception: the refusal, if no other view helps.
            NothingShorter: it was refused for its size, in vain.
        """
        if isinstance(error, _TooLong):
            error = error.refusal
        if self._request is None or not isinstance(error, Exception):
            raise error from error.__cause__
        other = await self._sender.other_view(self._request, self._view, error)
        refused = overflow_of(error)
        is_same = refused is not None and other == self._view
        if other is not None and not is_same and self._attempts < ATTEMPTS:
            return self._written(other)
        self._sender.gave_up(self._request)
        if other is not None and refused is not None and refused.certain:
            raise NothingShorter from error
        raise error from error.__cause__

    def _written(self, view: Sequence[Message]) -> dict[str, Any]:
        assert self._request is not None
        refused = self._sender.refused(self._request)
        sent = self._shape.write(self._params, view, refused, self._sender.cache_ttl)
        self._asks_usage = sent.get("extra_body") != self._params.get("extra_body")
        self._view, self._attempts = view, self._attempts + 1
        return sent

    async def answered(self, answer: Any, pieces: type[_Pieces | _AsyncPieces]) -> Any:
        """Learn from an answer; return it, a stream with its pieces read."""
        if self._request is None:
            return answer
        self._sender.took(self._request, self._view)
        self._learn(answer)
        made = calls_in(answer)
        if made is not None:
            await self._sender.called(self._request, made)
        # A response that is whole can be iterated too, by its fields.
        elif hasattr(answer, pieces.NEXT):
            return pieces(answer, self)
        return answer

    def passes(self, piece: Any) -> bool:
        """Read a piece of a stream; return whether to pass it on.

        A piece with nothing but the usage that we asked for is kept back: some of the host's
        readers take the first choice of every piece.
        """
        self._learn(piece)
        self._calls.take(piece)
        return not (self._asks_usage and field_of(piece, "choices") == [])

    async def ended(self, stream: Any) -> None:
        """Learn from a stream's end."""
        # litellm keeps what comes after the last words to itself.
        for chunk in getattr(stream, "chunks", None) or ():
            self._learn(chunk)
        if self._request is not None and self._calls.message is not None:
            await self._sender.called(self._request, self._calls.message)

    def _learn(self, said: Any) -> None:
        reported, before = usage_in(said), self._usage
        if reported is not None and self._request is not None:
            self._usage = before.merged(reported)
            self._sender.used(self._request, self._view, self._usage, before)


def send(sender: Sender, shape: Shape, params: Mapping[str, Any], go: Callable[..., Any]) -> Any:
    """Send a request as its view; send another after a refusal."""
    trip = RoundTrip(sender, shape, params)
    sent = run(trip.begin())
    while True:
        try:
            answer = go(sent)
            break
        except (Exception, _TooLong) as error:
            sent = run(trip.again(error))
    return run(trip.answered(answer, _Pieces))


async def asend(
    sender: Sender, shape: Shape, params: Mapping[str, Any], go: Callable[..., Any]
) -> Any:
    """Send as `send` does, without blocking the event loop."""
    trip = RoundTrip(sender, shape, params)
    sent = await trip.begin()
    while True:
        try:
            answer = await go(sent)
            break
        except (Exception, _TooLong) as error:
            sent = await trip.again(error)
    return await trip.answered(answer, _AsyncPieces)


class _Stream:
    """A stream of the host whose pieces are read on their way."""

    def __init__(self, stream: Any, trip: RoundTrip) -> None:
        self._stream = stream
        self._trip = trip

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _Pieces(_Stream):
    NEXT = "__next__"

    def __iter__(self) -> Iterator[Any]:
        yield from filter(self._trip.passes, self._stream)
        run(self._trip.ended(self._stream))


class _AsyncPieces(_Stream):
    NEXT = "__anext__"

    async def __aiter__(self) -> AsyncIterator[Any]:
        async for piece in self._stream:
            if self._trip.passes(piece):
                yield piece
        await self._trip.ended(self._stream)


# ------------------------------------------------------------ the calls of an answer


def calls_in(answer: Any) -> Message | None:
    """Return the assistant's message of a whole answer, if it makes calls."""
    if isinstance(answer, tuple):  # the host's text, calls, response
        answer = answer[-1] if answer else None
    output = field_of(answer, "output")
    if isinstance(output, list):
        return _of_items(output)
    choices = field_of(answer, "choices")
    if not isinstance(choices, list) or not choices:
        return None
    message = field_of(choices[0], "message")
    return _message(field_of(message, "content"), field_of(message, "tool_calls") or ())


class CallPieces:
    """Collects the calls of an answer from the pieces of its stream."""

    def __init__(self) -> None:
        self._text: list[str] = []
        self._calls: dict[int, Message] = {}
        self._items: Message | None = None

    def take(self, piece: Any) -> None:
        """Read one piece of a stream of chat completions or of responses."""
        if field_of(piece, "type") == "response.completed":
            self._items = calls_in(field_of(piece, "response"))
        choices = field_of(piece, "choices")
        delta = field_of(choices[0], "delta") if isinstance(choices, list) and choices else None
        if isinstance(text := field_of(delta, "content"), str):
            self._text.append(text)
        for part in field_of(delta, "tool_calls") or ():
            self._add(part)

    @property
    def message(self) -> Message | None:
        """Return the assistant's message so far, if it makes calls."""
        return self._items or _message("".join(self._text), list(self._calls.values()))

    def _add(self, part: Any) -> None:
        index, function = field_of(part, "index"), field_of(part, "function")
        empty = {"id": "", "type": "function", "function": {"name": "", "arguments": ""}}
        call = self._calls.setdefault(index if isinstance(index, int) else 0, empty)
        call["id"] = field_of(part, "id") or call["id"]
        call["function"]["name"] += field_of(function, "name") or ""
        call["function"]["arguments"] += field_of(function, "arguments") or ""


def _of_items(output: Sequence[Any]) -> Message | None:
    try:
        found = [m for m in responses.to_messages(None, output) if m.get("tool_calls")]
    except InvalidMessages:
        return None  # an item that is newer than this package
    return found[-1] if found else None


def _message(content: Any, calls: Iterable[Any]) -> Message | None:
    made = [to_plain(call) for call in calls if field_of(call, "function") is not None]
    if not made:
        return None
    kept = [{key: call.get(key) for key in ("id", "type", "function")} for call in made]
    return {"role": "assistant", "content": content or None, "tool_calls": kept}


# ------------------------------------------------------------ replaced in the host


Transmit = Callable[[Sender, Shape, Mapping[str, Any], Callable[..., Any]], Any]
"""`send` or `asend`."""


def _call_with_retry(transmit: Transmit) -> Replacement:
    """Replace the host's call of litellm, in turns of ours."""

    @replacing
    def call_with_retry(call: HostCall) -> Any:
        sender, params = current(), call.kwargs
        if sender is None:
            return call.go_on()
        ask, *rest = call.args
        own = call._replace(args=(_raising(ask), *rest))
        shape = RESPONSES if "input" in params else LITELLM_CHAT
        return transmit(sender, shape, params, lambda sent: own._replace(kwargs=sent).go_on())

    return call_with_retry


class _TooLong(BaseException):
    """Carries a refusal past the host's retries, which wait a minute."""

    def __init__(self, refusal: Exception) -> None:
        super().__init__(refusal)
        self.refusal = refusal


class Unprocessable(Exception):
    """A refusal that litellm swallowed: it returned None for status 422."""

    status_code = 422

    def __init__(self) -> None:
        super().__init__(
            "litellm returned no answer: the provider refused the request with status 422, perhaps "
            "for its length"
        )


def _raising(ask: Any) -> Any:
    """Return litellm's function, which raises `_TooLong` where only a smaller request passes."""

    def asked(*args: Any, **params: Any) -> Any:
        with _passing():
            answer = ask(*args, **params)
        return awaited(answer) if inspect.isawaitable(answer) else _given(answer)

    async def awaited(answer: Any) -> Any:
        with _passing():
            return _given(await answer)

    return asked


@contextmanager
def _passing() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if overflow_of(error) is not None:
            raise _TooLong(error) from error
        raise


def _given(answer: Any) -> Any:
    if answer is None:
        raise _TooLong(Unprocessable())
    return answer


def _stream_responses(transmit: Transmit) -> Replacement:
    """Replace the host's call for a stream of responses."""

    @replacing
    def stream_responses(call: HostCall) -> Any:
        sender, params = current(), call.argument("params")
        if sender is None:
            return call.go_on()
        return transmit(
            sender, RESPONSES, params, lambda sent: call.with_argument("params", sent).go_on()
        )

    return stream_responses


call_with_retry, acall_with_retry = map(_call_with_retry, (send, asend))
stream_responses, astream_responses = map(_stream_responses, (send, asend))


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
    """A client, or a part of one, that sends views.

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
