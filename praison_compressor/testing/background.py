"""A web application on a loop of its own, in a thread: blocking callers cannot starve it."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable

from aiohttp import web

__all__ = ["ServerThread"]


class ServerThread(threading.Thread):
    """Serves until told to close; `port` is the real one once it has started."""

    def __init__(
        self, application: Callable[[asyncio.Event], web.Application], host: str, port: int
    ) -> None:
        """`application` gets the event that is set when the server closes."""
        super().__init__(name="praison-compressor-local-provider", daemon=True)
        self._application = application
        self._host = host
        self.port = port
        self._ready = threading.Event()
        self._failed: BaseException | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closing: asyncio.Event | None = None

    def start_and_wait(self) -> None:
        """Start, and raise here what went wrong there."""
        self.start()
        self._ready.wait()
        if self._failed is not None:
            raise self._failed

    def stop_and_wait(self) -> None:
        """Let stalled handlers go, stop the loop and join the thread."""
        loop, closing = self._loop, self._closing
        if loop is not None and closing is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended already
                loop.call_soon_threadsafe(closing.set)
        self.join()

    def run(self) -> None:
        """Serve until told to close."""
        try:
            asyncio.run(self._serve())
        except BaseException as error:
            self._failed = error
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._closing = asyncio.Event()
        runner = web.AppRunner(
            self._application(self._closing),
            # A client that hangs up must be seen: tests ask whether a cancelled turn let go.
            handler_cancellation=True,
            shutdown_timeout=0.2,
            access_log=None,
        )
        await runner.setup()
        try:
            await web.TCPSite(runner, self._host, self.port).start()
            self.port = int(runner.addresses[0][1])
            self._ready.set()
            await self._closing.wait()
        finally:
            await runner.cleanup()
