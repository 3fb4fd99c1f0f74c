"""Keeps a voice conversation between its marks: one piece of work at a time, off the audio path.

Choose -> summarize and archive -> forget what changed meanwhile -> tell the server. It is told
in an order in which any failure leaves more there than needed, never less: the new memory is
created in front and acknowledged, only then the old one and the folded items are deleted.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

from .items import ADDED, DELETED, TRUNCATED, Item, Items, mapping, messages_of
from .memory import Marks, Memory, choose
from .protocol import (
    Acks,
    Event,
    ServerRefused,
    create_event,
    delete_event,
    item_of,
    memory_item,
    new_id,
)

logger = logging.getLogger(__name__)

ADD, DELETE = "added_", "deleted_"
"""Begin the id of each event of the memory's own work; the item's id follows."""
REPLAY = "replay_"
"""Begins the id of each event that tells a new connection what an older one knew."""


class Keeper:
    """Folds, tells the server, and replays to a new connection. Lives on the agent's loop."""

    def __init__(
        self,
        items: Items,
        memory: Memory,
        marks: Marks,
        send: Callable[[Event], Awaitable[bool]],
        ack_timeout_seconds: float,
    ) -> None:
        self.items = items
        self._memory = memory
        self._marks = marks
        self._send = send
        self._ack_timeout = ack_timeout_seconds
        self._acks = Acks()
        self._work: asyncio.Task[None] | None = None
        self._resume_at = 0

    # ------------------------------------------------------------ events

    def take(self, event: Event) -> bool:
        """Take over an event and start what is due; whether it was an answer to us alone."""
        kind, item_id = str(event.get("type")), str(event.get("item_id"))
        if kind == "error":
            return self._refused(mapping(event.get("error")))
        if kind == DELETED:
            self._deleted(item_id)
        self.items.take(event)
        if kind.endswith(".delta"):
            return False  # most events, audio among them: nothing is ever due after one
        if kind in ADDED:
            self._acks.settle(f"{ADD}{mapping(event.get('item')).get('id')}")
        elif kind == TRUNCATED:
            self.cut_short(item_id)
        elif kind == "session.updated" and self._marks.on and not _transcribes(event):
            logger.warning(
                "the session does not transcribe what the user says, so it cannot be remembered; "
                "set transcription_model to a model that the server has"
            )
        self.consider()
        return False

    def sending(self, event: Event) -> Event:
        """The user's own event as it is to be sent: an item of theirs outlives a disconnect."""
        if event.get("type") != "conversation.item.create" or not self._marks.on:
            return event
        item = {"id": new_id("item"), **event.get("item", {})}
        self.items.sent(item, event.get("previous_item_id"))
        return {"event_id": item["id"], **event, "item": item}

    def unsent(self, event_id: Any) -> None:
        """An event could not be sent, or was refused: an item that it names is not there."""
        item = self.items.get(event_id)
        if item is not None and not item.on_server:
            self.items.deleted(item.id)

    def consider(self) -> None:
        """Start work where there is some and none is under way."""
        if self._work is not None or not self._marks.on or self.items.sequence < self._resume_at:
            return
        if self._memory.outdated or self._out_of_step() or choose(self.items, self._marks):
            self._work = asyncio.get_running_loop().create_task(self._run())

    async def settled(self) -> None:
        """Wait until no work is under way."""
        while self._work is not None:
            await asyncio.wait([self._work])

    async def stop(self) -> None:
        """Cancel what is under way; the connection is gone, and with it the server's side."""
        self._acks.cancel()
        while (work := self._work) is not None:
            work.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await work
            if self._work is work:  # cancelled before its first step, it has cleared nothing
                self._work = None
        self._resume_at = 0
        self.items.disconnected()

    # ------------------------------------------------------------ a new connection

    async def replay(self) -> None:
        """Tell a new connection the memory and the live window, in this order, unanswered yet."""
        live = self.items.live()
        if self._memory.text:
            item = memory_item(self._memory.text)
            self.items.sent(item, "root", is_memory=True)
            await self._send(create_event(item, REPLAY + item["id"], in_front=True))
        for each in live:
            await self._send(create_event(item_of(each), REPLAY + each.id))

    def _refused(self, error: Mapping[str, Any]) -> bool:
        if self._acks.refuse(error):
            return True
        event_id = str(error.get("event_id"))
        item_id = event_id.removeprefix(REPLAY)
        if item_id == event_id:
            self.unsent(item_id)
            return False
        item = self.items.get(item_id)
        if item is not None and item.is_memory:
            self.unsent(item_id)  # it is told again
        logger.warning("the server refused a part of the replay: %s", error.get("message"))
        return True

    # ------------------------------------------------------------ the work

    def _out_of_step(self) -> bool:
        """Whether the server has yet to be told what the memory is."""
        told = self.items.memory
        return (told.text if told else "") != self._memory.text or bool(self.items.obsolete())

    async def _run(self) -> None:
        try:
            await self._keep_up()
        except Exception as error:
            # Nothing was deleted that the memory does not hold; a little growth, then once more.
            self._resume_at = self.items.sequence + self._marks.step
            logger.warning("nothing folded for now: %s: %s", type(error).__name__, error)
        finally:
            self._work = None
        self.consider()

    async def _keep_up(self) -> None:
        while True:
            if self._memory.outdated:
                await self._memory.fold()
            elif self._out_of_step():
                await self._tell()
            elif batch := choose(self.items, self._marks):
                await self._fold(batch)
            else:
                return

    async def _fold(self, batch: list[Item]) -> None:
        before = [item.revision for item in batch]
        if not await self._memory.fold(messages_of(batch)):
            return
        for item, revision in zip(batch, before, strict=True):
            item.folded = not item.withdrawn
            if item.withdrawn or self.items.get(item.id) is not item:
                self._memory.replace(item.id, None)
            elif item.revision != revision:
                self._memory.replace(item.id, messages_of([item])[0])

    # ------------------------------------------------------------ telling the server

    async def _tell(self) -> None:
        """Make the server's conversation what it should be.

        Raises:
            ServerRefused: and what was not acknowledged is tried again later.
        """
        told, text = self.items.memory, self._memory.text
        if (told.text if told else "") != text:
            if text:
                await self._create(memory_item(text))
            if told is not None:
                told.withdrawn = True
        for together in deletions(self.items.obsolete()):
            await self._delete(together)

    async def _create(self, given: Event) -> None:
        item = self.items.sent(given, "root", is_memory=True)
        assert item is not None  # its id is new
        try:
            event = create_event(given, ADD + item.id, in_front=True)
            await self._answered(await self._asked(event))
        except BaseException:
            item.withdrawn = True  # where it comes after all, it is deleted
            raise

    async def _delete(self, together: Sequence[Item]) -> None:
        """Delete at once what belongs together, so that no response sees half of it."""
        answers = []
        for item in together:
            item.deleting = True
            answers.append(await self._asked(delete_event(item.id, DELETE + item.id)))
        refusals = []
        for item, answer in zip(together, answers, strict=True):
            try:
                await self._answered(answer)
            except ServerRefused as error:
                item.deleting = error.code == "timeout"  # it may do so yet
                if error.unknown_item:  # another one was faster
                    self.items.deleted(item.id)
                else:
                    refusals.append(error)
        if refusals:
            raise refusals[0]

    async def _asked(self, event: Event) -> asyncio.Future[None]:
        answer = self._acks.expect(event["event_id"])
        if not await self._send(event):
            raise ServerRefused("not connected", f"{event['type']} was not sent")
        return answer

    async def _answered(self, answer: asyncio.Future[None]) -> None:
        try:
            await asyncio.wait_for(answer, self._ack_timeout)
        except asyncio.TimeoutError:
            raise ServerRefused("timeout", f"no answer in {self._ack_timeout:g} s") from None

    # ------------------------------------------------------------ others' changes

    def withdraw(self, item_id: str) -> Event | None:
        """The user wants an item forgotten: from now on, whatever the server answers.

        What the server is to be sent for it; None where only the memory has it.
        """
        item = self.items.get(item_id)
        if (item is None or item.folded) and self._memory.replace(item_id, None):
            self.consider()
            return None
        if item is not None:
            if item is self.items.memory:
                self._memory.dismiss()
            item.withdrawn = True
        return delete_event(item_id, new_id("evt"))

    def _deleted(self, item_id: str) -> None:
        """An item was deleted; what we did not ask for is to be forgotten too."""
        self._acks.settle(DELETE + item_id)
        item = self.items.get(item_id)
        if item is None or (item.folded and not item.deleting):
            self._memory.replace(item_id, None)
        elif item is self.items.memory:
            self._memory.dismiss()

    def cut_short(self, item_id: str) -> None:
        """An item was cut short although the memory holds it whole."""
        item = self.items.get(item_id)
        if item is not None and item.folded:
            self._memory.replace(item_id, messages_of([item])[0])
            self.consider()


def _transcribes(event: Event) -> bool:
    """Whether an updated session writes down what the user says."""
    audio = mapping(mapping(event.get("session")).get("audio"))
    return bool(mapping(audio.get("input")).get("transcription"))


def deletions(folded: Iterable[Item]) -> list[list[Item]]:
    """What to delete, oldest first; what is in one list at once, an output before its call."""
    found: dict[str, list[Item]] = {}
    for item in folded:
        found.setdefault(item.call_id or item.id, []).append(item)
    return [sorted(each, key=lambda item: item.type == "function_call") for each in found.values()]
