"""Serve `LocalProvider`: real HTTP on a loopback port, in a thread."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import hashlib
import inspect
import itertools
import json
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

from aiohttp import web

from ..tokens.counter import TokenCounter
from .checks import ChatCompletions, Refusal, Rules, parse_body
from .replies import Answer, Answerer, Asked, Broken, Failure, Recorded, Reply, Worker

RouteMatch: TypeAlias = str | Callable[[Asked], bool]
Answers: TypeAlias = Answerer | Sequence[Answer | str]

HOST = "127.0.0.1"

MOST_BODY_BYTES = 1 << 30
"""aiohttp refuses more than 1 MB by default."""

LEAST_CACHED_TOKENS = 1_024
"""OpenAI and Anthropic cache no shorter prefix."""


class LocalProvider:
    """A strict provider on a free loopback port, as a context manager.

    The provider serves OpenAI's chat completions, streamed or not, with and without `/v1`. Requests
    above `window` tokens are refused.

    `answer` is for all models without a `route`: a list of replies, or a callable that takes the
    request (`Asked`) and returns a `Reply`, `Failure`, `Broken` or text. The default is a `Worker`.
    """

    def __init__(
        self,
        answer: Answers | None = None,
        *,
        window: int = 128_000,
        rules: Rules | None = None,
        counter: Callable[[str], TokenCounter] = TokenCounter,
        protocols: Iterable[ChatCompletions] = (),
    ) -> None:
        """Create a provider; `counter` makes the token counter of a model."""
        self._default = _as_answerer(Worker() if answer is None else answer)
        self._routes: list[tuple[RouteMatch, Answerer]] = []
        self._window = window
        self._windows: dict[str, int] = {}
        self._counter = functools.cache(counter)
        self._seen_prefixes: set[bytes] = set()  # digests of all requests' prefixes
        self._protocols = (ChatCompletions(), *protocols)
        self._rules = rules or Rules()
        self._records: list[Recorded] = []
        self._numbers = itertools.count(1)
        self._made_at = time.monotonic()
        self._port: int | None = None

    # -- answers -----------------------------------------------------------------------------------

    def route(self, match: RouteMatch, answer: Answers) -> None:
        """Set the answers for a model or for matching requests."""
        self._routes.append((match, _as_answerer(answer)))

    def answer_with(self, answer: Answers) -> None:
        """Set the answers of all models without a route."""
        self._default = _as_answerer(answer)

    def set_window(self, tokens: int, model: str | None = None) -> None:
        """Change one model's window, or the default window."""
        if model is None:
            self._window = tokens
        else:
            self._windows[model] = tokens

    # -- requests ----------------------------------------------------------------------------------

    @property
    def requests(self) -> list[Recorded]:
        """All requests, in order of arrival."""
        return list(self._records)

    @property
    def refused(self) -> list[Recorded]:
        """The requests that the checks refused."""
        return [record for record in self._records if record.refused]

    @property
    def over_window(self) -> list[Recorded]:
        """The requests above their model's window."""
        return [record for record in self._records if record.over_window]

    def for_model(self, name: str) -> list[Recorded]:
        """Return the requests to one model."""
        return [record for record in self._records if record.model == name]

    def forget(self) -> None:
        """Forget the requests so far, but not routes and answers."""
        self._records.clear()

    # -- life cycle --------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        """The address without a path, for Anthropic's clients."""
        if self._port is None:
            raise RuntimeError("the provider is not running; use it as a context manager")
        return f"http://{HOST}:{self._port}"

    @property
    def base_url(self) -> str:
        """The address with `/v1`, for OpenAI's clients."""
        return f"{self.url}/v1"

    def __enter__(self) -> LocalProvider:
        self._loop = asyncio.new_event_loop()
        name = "praison-compressor-local-provider"
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._open(), self._loop).result()
        return self

    def __exit__(self, *error: object) -> None:
        """Stop the server and its stalled answers."""
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._port = None
        self._loop.close()

    async def _open(self) -> None:
        self._closing = asyncio.Event()
        app = web.Application(client_max_size=MOST_BODY_BYTES)
        for protocol in self._protocols:
            handler = functools.partial(self._handle, protocol)
            app.router.add_post(protocol.path, handler)
            app.router.add_post(f"/v1{protocol.path}", handler)
        # A test must see that a cancelled turn closes its connection.
        options: Any = {"handler_cancellation": True, "shutdown_timeout": 0.2, "access_log": None}
        self._runner = web.AppRunner(app, **options)
        await self._runner.setup()
        await web.TCPSite(self._runner, HOST, 0).start()
        self._port = self._runner.addresses[0][1]

    async def _close(self) -> None:
        self._closing.set()
        await self._runner.cleanup()

    # -- one request -------------------------------------------------------------------------------

    async def _handle(self, protocol: ChatCompletions, request: web.Request) -> web.StreamResponse:
        record = Recorded(next(self._numbers), path=request.path, headers=dict(request.headers))
        self._records.append(record)
        try:
            self._admit(protocol, record, await request.read())
            return await self._serve(protocol, request, record)
        except Refusal as refusal:
            return _error_response(protocol, record, refusal.failure)
        except ConnectionError:
            return _abort_connection(request)
        except Exception:
            # A fault in a test's model must not look like a bad network.
            return _error_response(protocol, record, Failure(500, traceback.format_exc(), "bug"))
        finally:
            record.ended_at = time.monotonic() - self._made_at

    def _admit(self, protocol: ChatCompletions, record: Recorded, raw: bytes) -> None:
        body = record.body = parse_body(raw)
        record.model = str(body.get("model") or "")
        record.stream = bool(body.get("stream"))
        record.window = self._windows.get(record.model, self._window)
        protocol.check_request(body, self._rules)
        record.messages, record.tools, record.max_tokens = protocol.parse_request(body)
        counter = self._counter(record.model)
        record.prompt_tokens = counter.messages(record.messages) + counter.tools(record.tools)
        # A cap of the window or more is ignored: clients may know a larger window.
        cap = record.max_tokens or 0
        completion = cap if cap < record.window else 0
        if record.prompt_tokens + completion > record.window:
            raise protocol.overflow_refusal(record.window, record.prompt_tokens, completion)
        record.cached_tokens = self._cached_prefix_tokens(record)

    def _cached_prefix_tokens(self, asked: Asked) -> int:
        prefixes = _prefix_digests(asked)
        shared = sum(prefix in self._seen_prefixes for prefix in prefixes)
        self._seen_prefixes.update(prefixes)
        if not shared:
            return 0
        counter = self._counter(asked.model)
        tokens = counter.tools(asked.tools) + counter.messages(asked.messages[:shared])
        return tokens if tokens >= LEAST_CACHED_TOKENS else 0

    async def _answer(self, asked: Recorded) -> Answer:
        answers = (
            answerer
            for match, answerer in reversed(self._routes)
            if (match(asked) if callable(match) else match == asked.model)
        )
        answer = next(answers, self._default)(asked)
        if inspect.isawaitable(answer):
            answer = await answer
        return Reply(answer) if isinstance(answer, str) else answer

    async def _serve(
        self, protocol: ChatCompletions, request: web.Request, record: Recorded
    ) -> web.StreamResponse:
        answer = record.answer = await self._answer(record)
        if isinstance(answer, Failure):
            return _error_response(protocol, record, answer)
        reply = answer.reply if isinstance(answer, Broken) else answer
        if reply.delay_seconds:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._closing.wait(), reply.delay_seconds)
                raise ConnectionAbortedError("the provider stopped before the answer")
        texts = [reply.thinking or "", reply.text or "", reply.refusal or ""]
        texts += [call.name + call.arguments_text() for call in reply.calls]
        record.completion_tokens = sum(map(self._counter(record.model).text, texts))
        if record.stream:
            body = b"".join(protocol.stream_events(reply, record))
        else:
            body = json.dumps(protocol.response_body(reply, record)).encode()
        if isinstance(answer, Broken):
            return await self._break(request, record, answer.how, body)
        record.status = 200
        return web.Response(body=body, content_type=_content_type(record), charset="utf-8")

    async def _break(
        self, request: web.Request, record: Recorded, how: str, body: bytes
    ) -> web.StreamResponse:
        if how == "reset":
            return _abort_connection(request)
        record.status = 200
        if how == "not_json":
            return web.Response(text="<html>Bad gateway</html>", content_type="text/html")
        if how == "invalid_utf8":
            return web.Response(
                body=body.replace(b"e", b"\xff"), content_type=_content_type(record)
            )
        response = web.StreamResponse(headers={"Content-Type": _content_type(record)})
        await response.prepare(request)
        await self._closing.wait()
        return _abort_connection(request)


def _as_answerer(answers: Answers) -> Answerer:
    if callable(answers):
        return answers
    left = iter(answers)
    return lambda asked: next(left, Failure(500, f"no answer left for request {asked.number}"))


def _prefix_digests(asked: Asked) -> list[bytes]:
    choice = asked.body.get("tool_choice")
    # Anthropic's cache depends on these choices.
    is_forced = isinstance(choice, dict) and choice.get("type") in ("any", "none", "tool")
    forced = choice if is_forced else None
    hasher = hashlib.sha256(json.dumps([asked.model, asked.tools, forced]).encode())
    digests = []
    for message in asked.messages:
        # A model does not see the order of keys, nor empty keys.
        filled = {key: value for key, value in sorted(message.items()) if value is not None}
        hasher.update(json.dumps(filled).encode())
        digests.append(hasher.digest())
    return digests


def _error_response(protocol: ChatCompletions, record: Recorded, failure: Failure) -> web.Response:
    record.status, record.error = failure.status, failure.message
    retry = failure.retry_after_seconds
    headers = {} if retry is None else {"retry-after": f"{retry:g}"}
    return web.json_response(protocol.error_body(failure), status=failure.status, headers=headers)


def _content_type(asked: Asked) -> str:
    return "text/event-stream" if asked.stream else "application/json"


def _abort_connection(request: web.Request) -> web.Response:
    if request.transport is not None:
        request.transport.abort()
    return web.Response()
