"""Servers that never answer, and know when their client has gone."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from types import TracebackType

__all__ = ["PATIENCE_SECONDS", "Silent", "Trickling"]

PATIENCE_SECONDS = 20.0
"""What never happens fails a test after this long; no test waits for it otherwise."""


class Silent:
    """Reads what it is asked and says nothing."""

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        self.asked = threading.Event()
        self.left = threading.Event()
        self._context = context
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []

    @property
    def url(self) -> str:
        """Where it listens."""
        scheme = "http" if self._context is None else "https"
        return f"{scheme}://127.0.0.1:{self._listening.getsockname()[1]}"

    def __enter__(self) -> Silent:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)  # wakes the thread that waits in it
        self._listening.close()
        for connection in self._open:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # closed
            while True:
                connection, _ = self._listening.accept()
                threading.Thread(target=self._serve, args=[connection], daemon=True).start()

    def _serve(self, plain: socket.socket) -> None:
        connection = plain
        if self._context is not None:
            connection = self._context.wrap_socket(plain, server_side=True)
        self._open.append(connection)
        with connection, contextlib.suppress(OSError):
            self._talk(connection)
        self.left.set()

    def _talk(self, connection: socket.socket) -> None:
        while connection.recv(65_536):
            self.asked.set()


class Trickling(Silent):
    """Begins an answer and sends a blank now and then, as busy providers do to hold the line."""

    def _talk(self, connection: socket.socket) -> None:
        connection.recv(65_536)
        self.asked.set()
        connection.sendall(
            b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
            b"transfer-encoding: chunked\r\n\r\n"
        )
        gone = threading.Event()
        while True:
            connection.sendall(b"1\r\n \r\n")
            gone.wait(0.02)
