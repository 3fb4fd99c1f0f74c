"""`LocalProvider`: a real HTTP server on a loopback port, in a thread of its own, as a context
manager.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from aiohttp import web

from ..tokens.counter import TokenCounter
from .chat import ChatCompletions
from .exchange import Exchange, Log
from .models import Answers, Match, Models
from .protocol import Rules, WireProtocol
from .replies import Recorded
from .roles import Worker

__all__ = [
    "LocalProvider",
]

HOST = "127.0.0.1"

LARGEST_BODY = 1 << 30
"""Bytes; aiohttp's own limit of 1 MB would refuse long transcripts for the wrong reason."""


class LocalProvider:
    """A strict provider on a free loopback port.

    ```python
    with LocalProvider(window=8000) as provider:
        client = openai.OpenAI(base_url=provider.base_url, api_key="any")
        ...
    assert not provider.refused
    ```

    It speaks OpenAI's chat completions, streamed or not, with and without `/v1`. `answer` is what
    models say that no `route` names: a list of replies, consumed in order, or a callable that gets
    the request (`Asked`) and returns a `Reply`, `Failure`, `Broken` or text; left out, it is a
    `Worker`. Requests are counted with the model's own tokenizer and refused over its window:
    `windows[model]`, else `window`.
    """

    def __init__(
        self,
        answer: Answers | None = None,
        *,
        window: int = 128_000,
        windows: Mapping[str, int] | None = None,
        rules: Rules | None = None,
        counter: Callable[[str], TokenCounter] = TokenCounter,
        protocols: Iterable[WireProtocol] = (),
    ) -> None:
        """`counter`: for a model's name, what to count its tokens with; `protocols`: what is
        spoken beside chat completions.
        """
        self.rules = rules or Rules()
        self._models = Models(
            Worker() if answer is None else answer,
            window=window,
            windows=windows or {},
            counter=counter,
        )
        self._protocols = (ChatCompletions(), *protocols)
        self._log = Log()
        self._thread: threading.Thread | None = None

    # -- what it answers ---------------------------------------------------------------------------

    def route(self, match: Match, answer: Answers) -> None:
        """Give a model (its exact name), or the requests that `match` accepts, their own answers.

        The newest route that matches wins.
        """
        self._models.route(match, answer)

    def answer_with(self, answer: Answers) -> None:
        """Set the answers of every model that no route names."""
        self._models.route(None, answer)

    def set_window(self, tokens: int, model: str | None = None) -> None:
        """Change the window of one model, or of all that have none of their own."""
        if model is None:
            self._models.window = tokens
        else:
            self._models.windows[model] = tokens

    # -- what it was asked -------------------------------------------------------------------------

    @property
    def requests(self) -> list[Recorded]:
        """Return every request so far, in order of arrival."""
        return list(self._log.records)

    @property
    def refused(self) -> list[Recorded]:
        """Return the requests that the checks refused."""
        return [record for record in self.requests if record.refused]

    @property
    def over_window(self) -> list[Recorded]:
        """Return the requests that had more tokens than their model takes."""
        return [record for record in self.requests if record.over_window]

    def for_model(self, name: str) -> list[Recorded]:
        """Return the requests to one model."""
        return [record for record in self.requests if record.model == name]

    def forget(self) -> None:
        """Empty the record; routes, scripts and numbers go on where they are."""
        self._log.records.clear()

    # -- its life ----------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        """Return the address without a path: what Anthropic's clients want."""
        if self._thread is None:
            raise RuntimeError("the provider is not running; use it as a context manager")
        return f"http://{HOST}:{self._port}"

    @property
    def base_url(self) -> str:
        """Return the address that OpenAI's clients want, ending in `/v1`."""
        return f"{self.url}/v1"

    def start(self) -> LocalProvider:
        """Start serving, and return when the port is open."""
        if self._thread is not None:
            raise RuntimeError("the provider is running already")
        self._loop = asyncio.new_event_loop()
        name = "praison-compressor-local-provider"
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._open(), self._loop).result()
        return self

    def stop(self) -> None:
        """Drop what is still open and free the port; may be called twice."""
        thread, self._thread = self._thread, None
        if thread is not None:
            asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
            self._loop.call_soon_threadsafe(self._loop.stop)
            thread.join()
            self._loop.close()

    def __enter__(self) -> LocalProvider:
        return self.start()

    def __exit__(self, *error: object) -> None:
        self.stop()

    async def _open(self) -> None:
        self._closing = asyncio.Event()
        app = web.Application(client_max_size=LARGEST_BODY)
        for protocol in self._protocols:
            exchange = Exchange(protocol, self._models, self.rules, self._log, self._closing)
            app.router.add_post(protocol.path, exchange.handle)
            app.router.add_post(f"/v1{protocol.path}", exchange.handle)
        # A client that hangs up must be seen: tests ask whether a cancelled turn let go.
        options: Any = {"handler_cancellation": True, "shutdown_timeout": 0.2, "access_log": None}
        self._runner = web.AppRunner(app, **options)
        await self._runner.setup()
        await web.TCPSite(self._runner, HOST, 0).start()
        self._port = int(self._runner.addresses[0][1])

    async def _close(self) -> None:
        self._closing.set()
        await self._runner.cleanup()
