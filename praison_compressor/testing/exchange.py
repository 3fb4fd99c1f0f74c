"""One request and its answer: admit, have it answered, send it, or break it on purpose."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
import traceback
from collections.abc import Iterable, Mapping
from dataclasses import replace

from aiohttp import web

from .models import Models
from .protocol import Refusal, Rules, WireProtocol, parse_body
from .replies import Asked, Broken, Failure, Recorded, Usage

__all__ = [
    "Exchange",
    "Log",
]


class Log:
    """Every request so far, numbered from 1 in order of arrival."""

    def __init__(self) -> None:
        self.records: list[Recorded] = []
        self._arrived = 0
        self._started = time.monotonic()

    def now(self) -> float:
        """Return the seconds since the provider was made."""
        return time.monotonic() - self._started

    def open(self, request: web.Request, protocol: str) -> Recorded:
        """Write down a request the moment it arrives."""
        self._arrived += 1
        record = Recorded(
            number=self._arrived,
            path=request.path,
            headers=dict(request.headers),
            at=self.now(),
            protocol=protocol,
        )
        self.records.append(record)
        return record


class Exchange:
    """Serves one protocol on behalf of the provider's models."""

    def __init__(
        self,
        protocol: WireProtocol,
        models: Models,
        rules: Rules,
        log: Log,
        closing: asyncio.Event,
    ) -> None:
        self._protocol = protocol
        self._models = models
        self._rules = rules
        self._log = log
        self._closing = closing

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer one request."""
        record = self._log.open(request, self._protocol.name)
        try:
            asked = self._admit(record, await request.read())
            return await self._serve(request, record, asked)
        except Refusal as refusal:
            return self._refuse(record, refusal)
        except asyncio.CancelledError:
            record.cancelled = True
            raise
        except ConnectionError:
            record.cancelled = True
            _hang_up(request)
            return web.Response()
        except Exception:
            # A mistake in a role or in this package: it must be seen, not look like a bad network.
            return self._refuse(record, Refusal(traceback.format_exc(), status=500, type="bug"))
        finally:
            record.ended_at = self._log.now()

    # -- admitting ---------------------------------------------------------------------------------

    def _admit(self, record: Recorded, raw: bytes) -> Asked:
        """Read, check and count a request; raise Refusal where a real provider would."""
        body = record.body = parse_body(raw)
        record.model = str(body.get("model") or "")
        record.stream = bool(body.get("stream"))
        record.window = self._models.window_of(record.model)
        sent = body.get("messages")
        record.messages = [m for m in sent if isinstance(m, dict)] if isinstance(sent, list) else []
        self._protocol.check(body, self._rules)
        asked = replace(self._protocol.asked(body), number=record.number)
        record.messages, record.tools = asked.messages, asked.tools
        self._check_window(record, asked)
        return asked

    def _check_window(self, record: Recorded, asked: Asked) -> None:
        counter = self._models.counter(asked.model)
        messages, tools = counter.messages(asked.messages), counter.tools(asked.tools)
        record.prompt_tokens = messages + tools
        # A cap that alone passes the window is taken as none: clients know larger windows than a
        # test gives its models.
        cap = asked.max_tokens or 0
        completion = cap if cap < record.window else 0
        if record.prompt_tokens + completion > record.window:
            raise self._protocol.overflow(record.window, messages, tools, completion)
        record.cached_tokens = self._models.cached(asked)

    # -- answering ---------------------------------------------------------------------------------

    async def _serve(
        self, request: web.Request, record: Recorded, asked: Asked
    ) -> web.StreamResponse:
        answer = record.answer = await self._models.answer(asked)
        reply = answer.reply if isinstance(answer, Broken) else answer
        await self._wait(reply.delay_seconds)
        if isinstance(reply, Failure):
            return self._refuse(record, reply, reply.all_headers())
        usage = self._models.usage(asked, reply, record.prompt_tokens, record.cached_tokens)
        record.completion_tokens = usage.completion
        if isinstance(answer, Broken):
            return await self._break(request, record, asked, answer, usage)
        record.status = 200
        if asked.stream:
            return await _stream(request, self._protocol.frames(reply, asked, usage))
        return web.json_response(self._protocol.whole(reply, asked, usage))

    def _refuse(
        self, record: Recorded, why: Refusal | Failure, headers: Mapping[str, str] | None = None
    ) -> web.Response:
        record.status, record.error, record.code = why.status, why.message, why.code
        return web.json_response(self._protocol.error(why), status=why.status, headers=headers)

    async def _wait(self, seconds: float) -> None:
        """Sleep; a provider that stops meanwhile hangs up rather than answer early."""
        if seconds > 0:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._closing.wait(), seconds)
                raise ConnectionAbortedError("the provider stops")

    # -- breaking ----------------------------------------------------------------------------------

    async def _break(
        self, request: web.Request, record: Recorded, asked: Asked, broken: Broken, usage: Usage
    ) -> web.StreamResponse:
        if broken.how == "reset" and not (asked.stream and broken.after):
            _hang_up(request)
            return web.Response()
        record.status = 200
        if broken.how == "not_json":
            # What a proxy in between answers when it has a page of its own to show.
            return web.Response(text="<html>Bad gateway</html>", content_type="text/html")
        response = await _open_stream(request, streamed=asked.stream)
        for part in self._parts(broken, asked, usage):
            await response.write(part)
        if broken.how == "stall":
            await self._closing.wait()
        if broken.how in ("reset", "stall"):
            _hang_up(request)
        return response

    def _parts(self, broken: Broken, asked: Asked, usage: Usage) -> Iterable[bytes]:
        """Return what still arrives of a broken reply."""
        if asked.stream:
            parts = list(self._protocol.frames(broken.reply, asked, usage))
        else:
            whole = json.dumps(self._protocol.whole(broken.reply, asked, usage)).encode()
            parts = [whole[: len(whole) // 2], whole[len(whole) // 2 :]]
        if broken.how != "invalid_utf8":
            return parts[: broken.after]
        spoilt = [part.replace(b"e", b"\xff\xfe") for part in parts[broken.after :]]
        return [*parts[: broken.after], *spoilt]


async def _stream(request: web.Request, frames: Iterable[bytes]) -> web.StreamResponse:
    response = await _open_stream(request)
    for frame in frames:
        await response.write(frame)
    await response.write_eof()
    return response


async def _open_stream(request: web.Request, *, streamed: bool = True) -> web.StreamResponse:
    kind = "text/event-stream" if streamed else "application/json"
    response = web.StreamResponse(headers={"Content-Type": f"{kind}; charset=utf-8"})
    response.enable_chunked_encoding()
    await response.prepare(request)
    return response


def _hang_up(request: web.Request) -> None:
    if request.transport is not None:
        request.transport.abort()
