"""Send each request as its view; retry refusals; read the answer."""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from ..compressor.bills import RequestUsage, field_of, read_usage
from ..concurrency import run
from ..errors import InvalidMessages, NothingShorter
from ..messages import Message, responses, to_plain
from ..tokens.refusals import overflow_of
from .agent_requests import AgentRequests, running_requests
from .agents import Agents, HostCall, Replacement, replacing
from .request_shapes import CHAT, LITELLM_CHAT, RESPONSES, HostRequest, Params, SentRequest, Shape

ATTEMPTS = 8
"""At most this number of views are sent for a request: a provider may refuse first keys, then
roles, then the length several times."""


class RoundTrip:
    """One request of the host, with its views and its answer."""

    def __init__(
        self, requests: AgentRequests, shape: Shape, params: Params, request: HostRequest
    ) -> None:
        self._requests = requests
        self._shape = shape
        self._params = params
        self._sent = SentRequest(request, ())
        self._attempts = 0
        self._asks_usage = False
        self._usage = RequestUsage()
        self._calls = _StreamedCalls()

    async def begin(self) -> dict[str, Any]:
        """Return the parameters to send."""
        view = await self._requests.make_view(self._sent.request)
        # The first compression gives the agent its recall tools.
        self._params = self._requests.offer_recall(self._params)
        return self._write_view(view)

    async def retry(self, error: Exception | _TooLong) -> dict[str, Any]:
        """Return the parameters to send after a refusal.

        Raises:
            Exception: the refusal, if no other view helps.
            NothingShorter: the length was refused, and no view is shorter.
        """
        refusal = error.refusal if isinstance(error, _TooLong) else error
        other = await self._requests.next_view(self._sent, refusal)
        overflow = overflow_of(refusal)
        is_same = overflow is not None and other == self._sent.view
        if other is not None and not is_same and self._attempts < ATTEMPTS:
            return self._write_view(other)
        self._requests.compressors.cancel_trial(self._sent.request)
        if other is not None and overflow is not None and overflow.certain:
            raise NothingShorter from refusal
        raise refusal from refusal.__cause__

    def _write_view(self, view: Sequence[Message]) -> dict[str, Any]:
        compressors = self._requests.compressors
        refused = compressors.refused_features(self._sent.request)
        written = self._shape.write(self._params, view, refused, compressors.config.mark_ttl)
        self._asks_usage = written.asks_usage
        self._sent = self._sent._replace(view=view)
        self._attempts += 1
        return written.params

    async def take_answer(self, answer: Any, stream: type[_SyncStream | _AsyncStream]) -> Any:
        """Learn from an answer; return the answer or its wrapped stream."""
        self._requests.learn_from_answer(self._sent)
        self._learn(answer)
        message = _calls_of_answer(answer)
        if message is not None:
            await self._requests.record_calls(self._sent.request, message)
        # A whole response can be iterated too, so its calls are read first.
        elif hasattr(answer, stream.NEXT):
            return stream(answer, self)
        return answer

    def read_piece(self, piece: Any) -> bool:
        """Read a piece of a stream; return whether to pass it on."""
        self._learn(piece)
        self._calls.add_piece(piece)
        # The host reads the first choice of every piece. A piece with the usage has none.
        return not (self._asks_usage and field_of(piece, "choices") == [])

    async def take_end(self, stream: Any) -> None:
        """Learn from a stream's end."""
        # litellm does not pass on the pieces after the last words.
        for chunk in getattr(stream, "chunks", None) or ():
            self._learn(chunk)
        if self._calls.message is not None:
            await self._requests.record_calls(self._sent.request, self._calls.message)

    def _learn(self, answer: Any) -> None:
        reported = read_usage(answer)
        before = self._usage
        if reported is not None:
            self._usage = before.merge(reported)
            self._requests.record_usage(self._sent, self._usage, before)


def _open_trip(requests: AgentRequests | None, shape: Shape, params: Params) -> RoundTrip | None:
    if requests is None:
        return None
    # Add the recall tools that the agent got earlier in the turn, so that their tokens count.
    params = requests.offer_recall(params)
    request = shape.read(params)
    return None if request is None else RoundTrip(requests, shape, params, request)


def send(trip: RoundTrip, call_host: Callable[..., Any]) -> Any:
    """Send a request as its view; send another view after a refusal."""
    params = run(trip.begin())
    while True:
        try:
            answer = call_host(params)
            break
        except (Exception, _TooLong) as error:
            params = run(trip.retry(error))
    return run(trip.take_answer(answer, _SyncStream))


async def asend(trip: RoundTrip, call_host: Callable[..., Any]) -> Any:
    """Send as `send` does, without blocking the event loop."""
    params = await trip.begin()
    while True:
        try:
            answer = await call_host(params)
            break
        except (Exception, _TooLong) as error:
            params = await trip.retry(error)
    return await trip.take_answer(answer, _AsyncStream)


# Python looks up methods such as `__next__` in the class, not by `__getattr__`.
class _Stream:
    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _SyncStream(_Stream):
    NEXT = "__next__"

    def __init__(self, stream: Any, trip: RoundTrip) -> None:
        super().__init__(stream)
        self._pieces = _read_pieces(stream, trip)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return next(self._pieces)

    def __enter__(self) -> _SyncStream:
        self._stream.__enter__()
        return self

    def __exit__(self, *raised: Any) -> Any:
        return self._stream.__exit__(*raised)


class _AsyncStream(_Stream):
    NEXT = "__anext__"

    def __init__(self, stream: Any, trip: RoundTrip) -> None:
        super().__init__(stream)
        self._pieces = _aread_pieces(stream, trip)

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        return await self._pieces.__anext__()

    async def __aenter__(self) -> _AsyncStream:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *raised: Any) -> Any:
        return await self._stream.__aexit__(*raised)


def _read_pieces(stream: Any, trip: RoundTrip) -> Iterator[Any]:
    yield from filter(trip.read_piece, stream)
    run(trip.take_end(stream))


async def _aread_pieces(stream: Any, trip: RoundTrip) -> AsyncIterator[Any]:
    async for piece in stream:
        if trip.read_piece(piece):
            yield piece
    await trip.take_end(stream)


# ------------------------------------------------------------ the calls of an answer


def _calls_of_answer(answer: Any) -> Message | None:
    if isinstance(answer, tuple):  # the host's (text, calls, response)
        answer = answer[-1] if answer else None
    output = field_of(answer, "output")
    if isinstance(output, list):
        return _message_of_items(output)
    choices = field_of(answer, "choices")
    if not isinstance(choices, list) or not choices:
        return None
    message = field_of(choices[0], "message")
    return _assistant_message(field_of(message, "content"), field_of(message, "tool_calls") or ())


class _StreamedCalls:
    def __init__(self) -> None:
        self._text: list[str] = []
        self._calls: dict[int, Message] = {}
        self._items: Message | None = None

    def add_piece(self, piece: Any) -> None:
        if field_of(piece, "type") == "response.completed":
            self._items = _calls_of_answer(field_of(piece, "response"))
        choices = field_of(piece, "choices")
        delta = field_of(choices[0], "delta") if isinstance(choices, list) and choices else None
        if isinstance(text := field_of(delta, "content"), str):
            self._text.append(text)
        for part in field_of(delta, "tool_calls") or ():
            self._add(part)

    @property
    def message(self) -> Message | None:
        return self._items or _assistant_message("".join(self._text), list(self._calls.values()))

    def _add(self, part: Any) -> None:
        index, function = field_of(part, "index"), field_of(part, "function")
        empty = {"id": "", "type": "function", "function": {"name": "", "arguments": ""}}
        call = self._calls.setdefault(index if isinstance(index, int) else 0, empty)
        call["id"] = field_of(part, "id") or call["id"]
        call["function"]["name"] += field_of(function, "name") or ""
        call["function"]["arguments"] += field_of(function, "arguments") or ""


def _message_of_items(output: Sequence[Any]) -> Message | None:
    try:
        messages = [m for m in responses.to_messages(None, output) if m.get("tool_calls")]
    except InvalidMessages:
        return None  # an item that this package does not know
    return messages[-1] if messages else None


def _assistant_message(content: Any, calls: Iterable[Any]) -> Message | None:
    plain = [to_plain(call) for call in calls if field_of(call, "function") is not None]
    if not plain:
        return None
    kept_calls = [{key: call.get(key) for key in ("id", "type", "function")} for call in plain]
    return {"role": "assistant", "content": content or None, "tool_calls": kept_calls}


# ------------------------------------------------------------ replaced in the host


Transmit = Callable[[RoundTrip, Callable[..., Any]], Any]


def _call_with_retry(transmit: Transmit) -> Replacement:

    @replacing
    def call_with_retry(call: HostCall) -> Any:
        shape = RESPONSES if "input" in call.kwargs else LITELLM_CHAT
        trip = _open_trip(running_requests(), shape, call.kwargs)
        if trip is None:
            return call.go_on()
        complete, *rest = call.args
        own = call._replace(args=(_wrap_completion(complete), *rest))
        return transmit(trip, lambda params: own._replace(kwargs=params).go_on())

    return call_with_retry


class _TooLong(BaseException):
    """A refusal for length. The host's retries must not catch it."""

    def __init__(self, refusal: Exception) -> None:
        super().__init__(refusal)
        self.refusal = refusal


class Unprocessable(Exception):
    """A refusal with status 422, for which litellm returned None."""

    status_code = 422


def _wrap_completion(complete: Any) -> Any:

    def call_litellm(*args: Any, **params: Any) -> Any:
        with _raise_too_long():
            answer = complete(*args, **params)
        return await_litellm(answer) if inspect.isawaitable(answer) else _answer_or_refusal(answer)

    async def await_litellm(answer: Any) -> Any:
        with _raise_too_long():
            return _answer_or_refusal(await answer)

    return call_litellm


@contextmanager
def _raise_too_long() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if overflow_of(error) is not None:
            raise _TooLong(error) from error
        raise


def _answer_or_refusal(answer: Any) -> Any:
    if answer is None:
        reason = "the provider refused the request with status 422, perhaps for its length"
        raise _TooLong(Unprocessable(f"litellm returned no answer: {reason}"))
    return answer


def _stream_responses(transmit: Transmit) -> Replacement:

    @replacing
    def stream_responses(call: HostCall) -> Any:
        trip = _open_trip(running_requests(), RESPONSES, call.argument("params"))
        if trip is None:
            return call.go_on()
        return transmit(trip, lambda params: call.with_argument("params", params).go_on())

    return stream_responses


call_with_retry, acall_with_retry = map(_call_with_retry, (send, asend))
stream_responses, astream_responses = map(_stream_responses, (send, asend))


def _client(transmit: Transmit, original: property, agents: Agents) -> property:

    # One property for each `transmit`: a client's methods do not show whether it is async.
    def client(self: Any) -> Any:
        own = original.__get__(self, type(self))
        requests = running_requests()
        return own if requests is None else ViewClient(requests, _ROUTES, own, transmit)

    return property(client, original.fset, original.fdel, original.__doc__)


client = functools.partial(_client, send)
async_client = functools.partial(_client, asend)

_ROUTES: Mapping[str, Any] = {
    "chat": {"completions": {"create": CHAT, "parse": CHAT}},
    "responses": {"create": RESPONSES, "parse": RESPONSES},
    "beta": {"chat": {"completions": {"create": CHAT, "parse": CHAT}}},
}


class ViewClient:
    """A client, or a part of a client, that sends views."""

    __slots__ = ("_requests", "_routes", "_target", "_transmit")

    def __init__(
        self, requests: AgentRequests, routes: Mapping[str, Any], target: Any, transmit: Transmit
    ) -> None:
        # Assignment would change the target, which other agents may use.
        object.__setattr__(self, "_requests", requests)
        object.__setattr__(self, "_routes", routes)
        object.__setattr__(self, "_target", target)
        object.__setattr__(self, "_transmit", transmit)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._target, name)
        route = self._routes.get(name)
        if route is None:
            return value
        if isinstance(route, Mapping):
            return ViewClient(self._requests, route, value, self._transmit)

        def call(**params: Any) -> Any:
            trip = _open_trip(self._requests, route, params)
            if trip is None:
                return value(**params)
            return self._transmit(trip, lambda view_params: value(**view_params))

        return call

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._target, name, value)
