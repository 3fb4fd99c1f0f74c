"""Fold old voice items into memory, in one task beside the audio.

The server must confirm the new memory before old items are deleted: a failure leaves more on the
server than needed, never less.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...errors import CompressorError, ConfigError
from .items import (
    ADDED,
    DELETED,
    TRUNCATED,
    Item,
    Items,
    ServerEvent,
    create_event,
    delete_event,
    item_of,
    mapping,
    memory_item,
    messages_of,
    new_id,
)
from .voice_memory import VoiceMemory

logger = logging.getLogger(__name__)

ADD, DELETE = "added_", "deleted_"
"""Prefixes of the ids of our events; the item's id follows."""
REPLAY = "replay_"
"""Prefix of the ids of events that restore a conversation."""


class ServerRefused(CompressorError):
    """The Realtime server refused our event, or did not answer."""

    def __init__(self, code: str, message: str) -> None:
        """`code` is the server's, or "timeout"."""
        self.code = code
        super().__init__(f"the server refused ({code}): {message}")


NO_SUCH_ITEM = ("does not exist", "not found", "invalid_item_id")
"""Words of a refusal to delete an item that the server no longer has."""


# ------------------------------------------------------------ what to fold


@dataclass(frozen=True)
class Marks:
    """When to fold, and how many items stay; both 0: no folding."""

    max_history_items: int = 0
    """Newest items that stay after a fold."""

    trigger_items: int = 0
    """Live items at which a fold begins."""

    def __post_init__(self) -> None:
        """Check the marks.

        Raises:
            ConfigError: a mark is missing, or `trigger_items` is not above `max_history_items`.
        """
        if not any(vars(self).values()):
            return
        for name, value in vars(self).items():
            if type(value) is not int or value < 1:
                raise ConfigError(f"{name}={value!r}: give both marks, as positive whole numbers")
        if self.trigger_items <= self.max_history_items:
            least = self.max_history_items + 1
            raise ConfigError(f"trigger_items={self.trigger_items}: expected {least} or more")

    @property
    def on(self) -> bool:
        """Whether items are folded at all."""
        return self.trigger_items > 0

    @property
    def step(self) -> int:
        """The fewest items worth a fold: half of a full fold."""
        return max(1, (self.trigger_items - self.max_history_items) // 2)


def choose_items(items: Items, marks: Marks) -> list[Item]:
    """Return the items to fold, or [] if they are too few.

    Leading system messages stay. A call and its output are folded together. An item without final
    words and a call without output wait until `2 * trigger_items` items have followed.
    """
    window = items.live()
    while window and window[0].role == "system":
        window.pop(0)
    if not marks.on or len(window) < marks.trigger_items:
        return []
    overdue = items.sequence - 2 * marks.trigger_items
    old = [i for i in window[: -marks.max_history_items] if i.is_final or i.sequence < overdue]

    def is_whole(item: Item) -> bool:
        pair = [other for other in window if other.call_id and other.call_id == item.call_id]
        lacks_output = item.type == "function_call" and len(pair) < 2 and item.sequence >= overdue
        return not lacks_output and all(other in old for other in pair)

    chosen = [item for item in old if is_whole(item)]
    return chosen if len(chosen) >= marks.step else []


# ------------------------------------------------------------ the work


class Folding:
    """Fold items, update the server, and restore new connections."""

    def __init__(
        self,
        items: Items,
        memory: VoiceMemory,
        marks: Marks,
        send: Callable[[ServerEvent], Awaitable[bool]],
        ack_timeout_seconds: float,
    ) -> None:
        self.items = items
        self._memory = memory
        self._marks = marks
        self._send = send
        self._ack_timeout = ack_timeout_seconds
        self._waiting: dict[str, asyncio.Future[ServerRefused | None]] = {}
        """Id of our event -> the server's answer: None, or a refusal."""
        self._task: asyncio.Task[None] | None = None
        self._resume_at = 0

    # ------------------------------------------------------------ events

    def apply(self, event: ServerEvent) -> bool:
        """Apply an event; start due work; return whether our event was answered."""
        kind, item_id = str(event.get("type")), str(event.get("item_id"))
        if kind == "error":
            return self._on_refusal(mapping(event.get("error")))
        if kind == DELETED:
            self._on_deleted(item_id)
        self.items.apply(event)
        if kind.endswith(".delta"):
            return False  # most events are audio, which starts no work
        if kind in ADDED:
            self._resolve(f"{ADD}{mapping(event.get('item')).get('id')}")
        elif kind == TRUNCATED:
            self._shorten(item_id)
        elif kind == "session.updated" and self._marks.on and not _transcribes(event):
            logger.warning(
                "the session does not transcribe the user, whose words cannot be remembered; "
                "set transcription_model to a model that the server has"
            )
        self.start_due_work()
        return False

    def prepare(self, event: ServerEvent) -> ServerEvent:
        """Record the item of the application's event; return the event with ids."""
        if event.get("type") != "conversation.item.create" or not self._marks.on:
            return event
        item = {"id": new_id("item"), **event.get("item", {})}
        self.items.add_sent(item, event.get("previous_item_id"))
        return {"event_id": item["id"], **event, "item": item}

    def drop_unsent(self, event_id: Any) -> None:
        """Remove the item of an unsent or refused event."""
        item = self.items.get(event_id)
        if item is not None and not item.is_on_server:
            self.items.remove(item.id)

    def start_due_work(self) -> None:
        """Start the task if work is due and none is running."""
        if self._task is not None or not self._marks.on or self.items.sequence < self._resume_at:
            return
        if self._memory.outdated or self._server_differs() or choose_items(self.items, self._marks):
            self._task = asyncio.get_running_loop().create_task(self._run_task())

    async def wait_idle(self) -> None:
        """Wait until no work is running."""
        while self._task is not None:
            await asyncio.wait([self._task])

    async def stop(self) -> None:
        """Cancel running work, after the connection has ended."""
        for answer in self._waiting.values():
            answer.cancel()
        self._waiting.clear()
        while (task := self._task) is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            if self._task is task:  # cancelled before its first step
                self._task = None
        self._resume_at = 0
        self.items.keep_live()

    # ------------------------------------------------------------ a new connection

    async def replay(self) -> None:
        """Send memory and live items to a new connection, without waiting."""
        live = self.items.live()
        if self._memory.text:
            item = memory_item(self._memory.text)
            self.items.add_sent(item, "root", is_memory=True)
            await self._send(create_event(item, REPLAY + item["id"], in_front=True))
        for live_item in live:
            await self._send(create_event(item_of(live_item), REPLAY + live_item.id))

    def _on_refusal(self, error: Mapping[str, Any]) -> bool:
        event_id = str(error.get("event_id"))
        code = str(error.get("code") or error.get("type") or "error")
        if self._resolve(event_id, ServerRefused(code, str(error.get("message") or ""))):
            return True
        item_id = event_id.removeprefix(REPLAY)
        if item_id == event_id:
            self.drop_unsent(item_id)
            return False
        item = self.items.get(item_id)
        if item is not None and item.is_memory:
            self.drop_unsent(item_id)  # a later update sends the memory
        logger.warning("the server refused a part of the replay: %s", error.get("message"))
        return True

    def _resolve(self, event_id: str, refusal: ServerRefused | None = None) -> bool:
        """Pass the server's answer on; return whether our work waited for it."""
        answer = self._waiting.pop(event_id, None)
        if answer is None or answer.done():
            return False
        answer.set_result(refusal)
        return True

    # ------------------------------------------------------------ the work

    def _server_differs(self) -> bool:
        sent = self.items.memory
        return (sent.text if sent else "") != self._memory.text or bool(self.items.obsolete())

    async def _run_task(self) -> None:
        try:
            await self._do_due_work()
        except Exception as error:
            # Nothing is lost: the server has the items. Retry after `step` items.
            self._resume_at = self.items.sequence + self._marks.step
            logger.warning("nothing folded for now: %s: %s", type(error).__name__, error)
        finally:
            self._task = None
        self.start_due_work()

    async def _do_due_work(self) -> None:
        while True:
            if self._memory.outdated:
                await self._memory.fold()
            elif self._server_differs():
                await self._update_server()
            elif batch := choose_items(self.items, self._marks):
                await self._fold(batch)
            else:
                return

    async def _fold(self, batch: list[Item]) -> None:
        messages = messages_of(batch)
        if not await self._memory.fold(messages):
            return
        before = {message["id"]: message for message in messages}
        for item in batch:
            item.is_folded = not item.is_withdrawn
            now = messages_of([item])[0]
            if item.is_withdrawn or self.items.get(item.id) is not item:
                self._memory.replace(item.id, None)
            elif now != before[item.id]:
                self._memory.replace(item.id, now)

    # ------------------------------------------------------------ updating the server

    async def _update_server(self) -> None:
        sent = self.items.memory
        text = self._memory.text
        if (sent.text if sent else "") != text:
            if text:
                await self._create(memory_item(text))
            if sent is not None:
                sent.is_withdrawn = True
        for pair in _group_by_call(self.items.obsolete()):
            await self._delete(pair)

    async def _create(self, message: ServerEvent) -> None:
        item = self.items.add_sent(message, "root", is_memory=True)
        assert item is not None  # the id is new
        try:
            (refusal,) = await self._exchange([create_event(message, ADD + item.id, in_front=True)])
            if refusal is not None:
                raise refusal
        except BaseException:
            item.is_withdrawn = True  # a late echo is deleted
            raise

    async def _delete(self, pair: Sequence[Item]) -> None:
        # Delete both together: no response may see a call without its output.
        refusals = await self._exchange([delete_event(item.id, DELETE + item.id) for item in pair])
        for item, refusal in zip(pair, refusals, strict=True):
            if refusal is not None and any(words in str(refusal).lower() for words in NO_SUCH_ITEM):
                self.items.remove(item.id)
            elif refusal is not None:
                raise refusal

    async def _exchange(self, events: Sequence[ServerEvent]) -> list[ServerRefused | None]:
        """Send our events; return the refusal of each, or None."""
        create_future = asyncio.get_running_loop().create_future
        answers = {event["event_id"]: create_future() for event in events}
        self._waiting.update(answers)
        for event in events:
            if not await self._send(event):
                raise ServerRefused("not connected", f"{event['type']} was not sent")
        _, unanswered = await asyncio.wait(answers.values(), timeout=self._ack_timeout)
        if unanswered:
            raise ServerRefused("timeout", f"no answer in {self._ack_timeout:g} s")
        return [answer.result() for answer in answers.values()]

    # ------------------------------------------------------------ changes by the user

    def withdraw(self, item_id: str) -> ServerEvent | None:
        """Forget an item; return the event to send, if any."""
        item = self.items.get(item_id)
        if (item is None or item.is_folded) and self._memory.replace(item_id, None):
            self.start_due_work()
            return None
        if item is not None:
            if item is self.items.memory:
                self._memory.dismiss()
            item.is_withdrawn = True
        return delete_event(item_id, new_id("evt"))

    def _on_deleted(self, item_id: str) -> None:
        is_ours = DELETE + item_id in self._waiting  # the id stays there after a timeout
        self._resolve(DELETE + item_id)
        item = self.items.get(item_id)
        if item is None or (item.is_folded and not is_ours):
            self._memory.replace(item_id, None)
        elif item is self.items.memory:
            self._memory.dismiss()

    def _shorten(self, item_id: str) -> None:
        item = self.items.get(item_id)
        if item is not None and item.is_folded:
            self._memory.replace(item_id, messages_of([item])[0])


def _transcribes(event: ServerEvent) -> bool:
    audio = mapping(mapping(event.get("session")).get("audio"))
    return bool(mapping(audio.get("input")).get("transcription"))


def _group_by_call(items: Iterable[Item]) -> list[list[Item]]:
    groups: dict[str, list[Item]] = {}
    for item in items:
        groups.setdefault(item.call_id or item.id, []).append(item)
    return [
        sorted(group, key=lambda item: item.type == "function_call") for group in groups.values()
    ]
