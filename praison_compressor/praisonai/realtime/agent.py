"""`RealtimeAgent`: run the host's voice agent with a memory."""

from __future__ import annotations

import base64
import json
import logging
import os
import uuid
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

from praisonaiagents.agent.realtime_agent import RealtimeAgent as HostRealtimeAgent

from ...compressor.context_compressor import ContextCompressor
from ...config import CompressorConfig
from ...errors import ConfigError
from ...events import Listener
from ...ledger.segments import Segment
from ...ledger.stores import Store
from .folding import Folding, Marks
from .items import AUDIO_DELTA, TEXT_DELTA, TRUNCATED, Items, ServerEvent
from .voice_memory import VoiceMemory, memory_options

logger = logging.getLogger(__name__)


OPENAI_URL = "wss://api.openai.com/v1/realtime"
MOST_MESSAGE_BYTES = 2**24


class RealtimeAgent(HostRealtimeAgent):  # type: ignore[misc]  # the host ships no types
    """The host's `RealtimeAgent` on a server of your choice, with a memory.

    At `trigger_items` items one memory item replaces the oldest items; the newest
    `max_history_items` items stay. The memory takes a twentieth of the window. `aconnect` sends the
    memory and the remaining items to a new connection. The first six parameters are the host's.

    Args:
        url: the server's WebSocket address. None: OpenAI's. Only OpenAI gets OPENAI_API_KEY.
        api_key, headers: sent to the server; the key is sent as a bearer token.
        max_history_items, trigger_items: see above. Both None: no memory.
        config: the compressor's options.
        summarizer: as `ContextCompressor` takes it. None: static summaries.
        store, session_id: the ledger and its session.
        transcription_model: transcribes the user's speech. Speech without a transcript is
            forgotten. None: the setting of the session.
        ack_timeout_seconds: longest wait for the server's answer to a change.
        on_compressor_event: receives the compressor's events.

    Raises:
        ConfigError: invalid marks, URL or options.
    """

    _ws: Any

    def __init__(
        self,
        name: str = "RealtimeAgent",
        llm: str | None = None,
        model: str | None = None,
        realtime: Any = None,
        instructions: str | None = None,
        verbose: bool = True,
        *,
        url: str | None = None,
        api_key: str | None = None,
        headers: Mapping[str, str] | None = None,
        max_history_items: int | None = None,
        trigger_items: int | None = None,
        config: CompressorConfig | None = None,
        summarizer: Any = None,
        store: Store | None = None,
        session_id: str | None = None,
        transcription_model: str | None = "whisper-1",
        ack_timeout_seconds: float = 10.0,
        on_compressor_event: Listener | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name, llm, model, realtime, instructions, verbose, **kwargs)
        if not hasattr(self._realtime_config, "to_session"):
            raise ConfigError("praisonaiagents speaks the beta protocol; install 1.7.17 or newer")
        self.url = _server_url(url or OPENAI_URL, self.llm)
        self._headers = {**_authorization(url, api_key), **(headers or {})}
        self.session_id = session_id or f"voice-{uuid.uuid4().hex}"
        self.marks = Marks(max_history_items or 0, trigger_items or 0)
        self.transcription_model = transcription_model
        options = memory_options((config or CompressorConfig()).with_environment(), self.llm)
        compressor = ContextCompressor(
            options, summarizer=summarizer, store=store, on_event=on_compressor_event
        )
        self.store = compressor.store
        self._memory = VoiceMemory(compressor, self.session_id)
        items = Items(self._realtime_config.output_audio_format)
        self._folding = Folding(
            items, self._memory, self.marks, self._transmit, ack_timeout_seconds
        )
        self._on_event_callbacks: list[Callable[[ServerEvent], Any]] = []

    # ------------------------------------------------------------ state

    @property
    def memory(self) -> str:
        """The memory item's text; "" before the first fold."""
        return self._memory.text

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The memory's summaries, oldest first."""
        return self._memory.segments

    @property
    def items(self) -> tuple[str, ...]:
        """The ids of the live items, oldest first."""
        return tuple(item.id for item in self._folding.items.live())

    def transcript(self, item_id: str) -> str | None:
        """Return a live item's words, or None for an unknown item."""
        item = self._folding.items.get(item_id)
        return None if item is None else item.text or item.output or item.arguments

    async def settled(self) -> None:
        """Wait until no fold is running."""
        await self._folding.wait_idle()

    def on_event(self, callback: Callable[[ServerEvent], Any]) -> None:
        """Register a callback for every event of the server."""
        self._on_event_callbacks.append(callback)

    # ------------------------------------------------------------ connection

    async def aconnect(self, **kwargs: Any) -> bool:
        """Connect, send the memory and the live items; return whether it worked."""
        if self._connected:
            self._log("Already connected", "yellow")
            return True
        try:
            await self._open()
        except Exception as error:
            await self.adisconnect()
            self._log(f"Connection failed: {error}", "red")
            self._report(error)
            return False
        self._log(f"Connected to {self.url}", "green")
        return True

    async def adisconnect(self) -> bool:
        """Disconnect and cancel a running fold; return whether it worked."""
        closed: bool = await super().adisconnect()
        await self._clear_connection()
        return closed

    async def _open(self) -> None:
        try:
            from websockets.asyncio.client import connect
        except ImportError as error:
            raise ConfigError(
                "websockets is needed for RealtimeAgent: pip install 'praison-compressor[realtime]'"
            ) from error
        if self.marks.on:
            await self._memory.open()
        if self.url.startswith(OPENAI_URL) and "Authorization" not in self._headers:
            raise ConfigError("no key for OpenAI: set OPENAI_API_KEY or pass api_key=")
        self._ws = await connect(
            self.url,
            additional_headers=self._headers,
            max_size=MOST_MESSAGE_BYTES,
            compression=None,  # audio hardly shrinks, and every frame would cost time
        )
        self._connected = True
        await self._transmit({"type": "session.update", "session": self._session()})
        if self.marks.on:
            await self._folding.replay()

    def _session(self) -> ServerEvent:
        session: ServerEvent = self._realtime_config.to_session()
        if self.marks.on and self.transcription_model:
            audio_input = session.setdefault("audio", {}).setdefault("input", {})
            audio_input.setdefault("transcription", {"model": self.transcription_model})
        return session

    async def _clear_connection(self) -> None:
        self._connected = False
        self._ws = None
        await self._folding.stop()

    # ------------------------------------------------------------ sending

    async def _send_event(self, event: ServerEvent) -> bool:
        event = self._folding.prepare(event)  # before the server's echo
        if await self._transmit(event):
            return True
        self._folding.drop_unsent(event.get("event_id"))
        return False

    async def _transmit(self, event: ServerEvent) -> bool:
        sent: bool = await super()._send_event(event)
        return sent

    async def asend_event(self, event: ServerEvent) -> bool:
        """Send any event of the protocol; return whether it was sent."""
        return await self._send_event(event)

    async def delete_item(self, item_id: str) -> bool:
        """Delete an item from conversation and memory; return whether that worked."""
        event = self._folding.withdraw(item_id)
        return event is None or await self._transmit(event)

    async def truncate_item(self, item_id: str, audio_end_ms: int, content_index: int = 0) -> bool:
        """Cut an assistant's item after `audio_end_ms` milliseconds; return whether sent."""
        cut = {"item_id": item_id, "content_index": content_index, "audio_end_ms": audio_end_ms}
        self._folding.apply({"type": TRUNCATED, **cut})  # before the server's echo
        return await self._transmit({"type": "conversation.item.truncate", **cut})

    # ------------------------------------------------------------ receiving

    async def receive_loop(self) -> None:
        """Receive until the connection ends; callbacks run before the memory's work."""
        socket = self._ws
        if not self._connected or socket is None:
            return
        try:
            async for message in socket:
                await self._receive(message)
        except Exception as error:
            self._log(f"Receive loop error: {error}", "red")
            self._report(error)
        # Not reached by a cancelled task, whose connection stays usable.
        if self._ws is socket:
            await self._clear_connection()

    async def _receive(self, message: str | bytes) -> None:
        try:
            event = json.loads(message)
        except (ValueError, RecursionError) as fault:  # thousands of nested brackets
            logger.warning("skipped a frame that is no JSON: %s", type(fault).__name__)
            return
        if not isinstance(event, dict):
            logger.warning("skipped a frame that is no object: %s", type(event).__name__)
            return
        self._deliver(event)
        try:
            if self._folding.apply(event):
                return  # the server answered an event of the memory
        except Exception:
            logger.exception("skipped an invalid event: %s", event.get("type"))
        if event.get("type") == "error":
            error = event.get("error", {})
            self._log(f"API Error: {error}", "red")
            self._report(Exception(str(error)))

    def _deliver(self, event: ServerEvent) -> None:
        kind = event.get("type")
        if kind == AUDIO_DELTA and event.get("delta"):
            self._play(str(event["delta"]))
        elif kind == TEXT_DELTA:
            for listener in self._on_message_callbacks:
                self._call_back(listener, event.get("delta", ""))
        for callback in self._on_event_callbacks:
            self._call_back(callback, event)

    def _play(self, encoded: str) -> None:
        try:
            sound = base64.b64decode(encoded, validate=True)
        except ValueError as error:
            logger.warning("skipped audio that is no base64: %s", error)
            self._report(error)
            return
        for listener in self._on_audio_callbacks:
            self._call_back(listener, sound)

    def _call_back(self, callback: Callable[[Any], Any], value: Any) -> None:
        try:
            callback(value)
        except Exception as error:
            logger.exception("a callback failed")
            if callback not in self._on_error_callbacks:
                self._report(error)

    def _report(self, error: Exception) -> None:
        for callback in self._on_error_callbacks:
            self._call_back(callback, error)


def _authorization(url: str | None, api_key: str | None) -> dict[str, str]:
    # Another server must not get OpenAI's key.
    key = api_key or (os.environ.get("OPENAI_API_KEY") if url is None else None)
    return {"Authorization": f"Bearer {key}"} if key else {}


def _server_url(url: str, model: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("ws", "wss") or not parts.netloc:
        raise ConfigError(f"url={url!r}: expected a WebSocket address, ws://… or wss://…")
    if "model" in parse_qs(parts.query):
        return url
    query = f"{parts.query}&" if parts.query else ""
    return parts._replace(query=f"{query}model={quote(model)}").geturl()
