"""Keeps a voice conversation between its marks: one piece of work at a time, off the audio path.

Snapshot -> summarize -> is the head unchanged? -> commit -> tell the server. The server is told
in an order in which any failure leaves more there than needed, never less: the new memory is
created in front and acknowledged, only then the old one and the folded items are deleted.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from ...errors import LedgerConflict
from ...ledger.segments import Segment
from ...tokens.counter import TokenCounter
from .choosing import Batch, Marks, choose, deletions
from .items import Item, Items, messages_of
from .memory import Memory
from .protocol import (
    Acks,
    Event,
    Follower,
    ServerRefused,
    create_event,
    delete_event,
    item_of,
    memory_item,
    new_id,
)

__all__ = [
    "Keeper",
]

logger = logging.getLogger(__name__)


_ADDED = ("conversation.item.added", "conversation.item.created")


class Keeper:
    """Folds, tells the server, and replays to a new connection. Lives on the agent's loop."""

    def __init__(
        self,
        items: Items,
        follower: Follower,
        memory: Memory,
        marks: Marks,
        tokens: TokenCounter,
        send: Callable[[Event], Awaitable[bool]],
        *,
        timeout_seconds: float,
        ack_timeout_seconds: float,
        tell: Callable[[str, Mapping[str, Any]], None],
    ) -> None:
        self._items = items
        self._follower = follower
        self._memory = memory
        self._marks = marks
        self._tokens = tokens
        self._send = send
        self._timeout = timeout_seconds
        self._ack_timeout = ack_timeout_seconds
        self._listener = tell
        self._acks = Acks()
        self._work: asyncio.Task[None] | None = None
        self._memory_id: str | None = None
        self._told = ""
        self._creating = ("", "")
        self._renamed: dict[str, str] = {}
        self._users: dict[str, str] = {}
        """Items that the user sent, by the event: not yet answered."""
        self._withdrawals: dict[str, str] = {}
        """Items that the user wants deleted, by the event."""
        self._resume_at = 0
        self._ratio = 1.0

    # ------------------------------------------------------------ events

    def before(self, event: Mapping[str, Any]) -> None:
        """Before an event is taken over: what of it concerns the memory."""
        kind = event.get("type")
        if kind == "conversation.item.deleted":
            self._deleted(str(event.get("item_id")))
        elif kind in _ADDED and isinstance(event.get("item"), Mapping):
            self._adopt(event["item"])

    def after(self, event: Mapping[str, Any]) -> bool:
        """After it: wake who waits, start what is due. Whether it was an answer to us alone."""
        kind = str(event.get("type"))
        if kind.endswith(".delta"):
            return False  # most events, audio among them: nothing is ever due after one
        if kind == "error":
            error = event.get("error")
            return isinstance(error, Mapping) and self._refused(error)
        if kind in _ADDED:
            item = event.get("item")
            self._acks.settle("added", str(item.get("id")) if isinstance(item, Mapping) else "")
            self._users = {e: i for e, i in self._users.items() if self._is_unanswered(i)}
        elif kind == "conversation.item.deleted":
            self._acks.settle("deleted", str(event.get("item_id")))
            gone = event.get("item_id")
            self._withdrawals = {e: i for e, i in self._withdrawals.items() if i != gone}
        elif kind == "conversation.item.truncated":
            self.cut_short(str(event.get("item_id")))
        elif kind == "response.done":
            self._learn()
        elif kind == "session.updated" and self._marks.on and not self._follower.transcribes:
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
        event = {"event_id": new_id("evt"), **event, "item": item}
        self._users[event["event_id"]] = item["id"]
        self._items.sent(item, event.get("previous_item_id"))
        return event

    def unsent(self, event: Event) -> None:
        """An event could not be sent; the user has been told so."""
        item_id = self._users.pop(str(event.get("event_id")), None)
        if item_id is not None:
            self._items.refused(item_id)

    def consider(self) -> None:
        """Start work where there is some and none is under way."""
        if self._work is not None or not self._marks.on or self._items.sequence < self._resume_at:
            return
        if self._is_due():
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
        self._memory_id, self._told, self._resume_at = None, "", 0
        self._creating = ("", "")
        self._renamed.clear()
        self._users.clear()
        self._withdrawals.clear()
        self._items.disconnected()

    # ------------------------------------------------------------ a new connection

    @property
    def remembers(self) -> bool:
        """Whether there is something to tell a new connection."""
        return bool(self._memory.text) or bool(self._items.live())

    async def replay(self) -> None:
        """Tell a new connection the memory and the live window, in this order, unanswered yet."""
        text = self._memory.text
        if text:
            self._memory_id, self._told = self._new_memory_id(), text
            item = memory_item(self._memory_id, text)
            self._creating = (self._memory_id, text)
            await self._send(create_event(item, event_id=self._memory_id, previous="root"))
        for item_now in self._items.live():
            item = item_of(item_now, beta=self._follower.beta)
            await self._send(create_event(item, event_id=f"replay_{item_now.id}"))

    def _refused(self, error: Mapping[str, Any]) -> bool:
        event_id = str(error.get("event_id"))
        if event_id in self._users:
            self._items.refused(self._users.pop(event_id))
            return False
        if event_id in self._withdrawals:
            self._stays(self._withdrawals.pop(event_id))
            return False
        if self._memory_id is not None and event_id == self._memory_id:
            self._memory_id, self._told = None, ""
        elif not event_id.startswith("replay_"):
            return self._acks.refuse(error)
        logger.warning("the server refused a part of the replay: %s", error.get("message"))
        return True

    # ------------------------------------------------------------ the work

    def _is_due(self) -> bool:
        return bool(self._out_of_step() or self._memory.outdated or self._choose())

    def _out_of_step(self) -> bool:
        """Whether the server has yet to be told what the memory is."""
        return self._told != self._memory.text or bool(self._items.folded())

    def _choose(self) -> Batch | None:
        return choose(self._items, self._marks, self._size)

    def _size(self, item: Item) -> int:
        return round(item.tokens(self._tokens.text) * self._ratio)

    async def _run(self) -> None:
        try:
            await self._keep_up()
        except Exception as error:
            # Nothing was deleted that the memory does not hold; a little growth, then once more.
            self._resume_at = self._items.sequence + self._pause()
            reason = f"{type(error).__name__}: {error}"
            hung_up = isinstance(error, ServerRefused) and error.code == "not connected"
            logger.log(
                logging.DEBUG if hung_up else logging.WARNING, "nothing folded for now: %s", reason
            )
            self._listener("failed", {"reason": reason})
        finally:
            self._work = None
        self.consider()

    def _pause(self) -> int:
        low, high = self._marks.max_history_items, self._marks.trigger_items
        return max(1, (high - low) // 2) if low is not None and high is not None else 4

    async def _keep_up(self) -> None:
        while True:
            if self._memory.outdated:
                await self._revise()
            elif self._out_of_step():
                await self._tell()
            elif (batch := self._choose()) is not None:
                await self._fold(batch)
            else:
                return

    async def _fold(self, batch: Batch) -> None:
        """One fold; where its head has changed meanwhile it is dropped and chosen anew."""
        self._listener("started", {"items": len(batch.items)})
        messages = messages_of(batch.items)
        drafting = self._memory.draft(
            messages,
            source_tokens=self._billed(batch.items),
            window_tokens=self._billed(self._items.live()),
            visible=self._visible(batch),
        )
        draft = await asyncio.wait_for(drafting, self._timeout)
        if batch.changed(self._items):
            return
        with contextlib.suppress(LedgerConflict):
            try:
                await self._memory.commit(draft)
            except asyncio.CancelledError:
                self._mark(batch)  # a commit that has begun was finished
                raise
            self._mark(batch)
            self._listener("committed", self._numbers(batch, draft.segment))

    def _mark(self, batch: Batch) -> None:
        for item in batch.items:
            item.folded = True
        for item in batch.changed(self._items):
            # Changed while the commit was written.
            gone = self._items.get(item.id) is not item or item.withdrawn
            self._memory.replace(item.id, None if gone else messages_of([item])[0])

    def _numbers(self, batch: Batch, segment: Segment) -> dict[str, Any]:
        return {
            "items": len(batch.items),
            "tokens_before": segment.source_tokens,
            "tokens_after": segment.tokens,
            "method": segment.method,
            "cost": segment.usage.cost,
        }

    def _visible(self, batch: Batch) -> list[Event]:
        return messages_of([item for item in self._items.live() if item not in batch.items])

    async def _revise(self) -> None:
        drafting = self._memory.revise(messages_of(self._items.live()))
        draft = await asyncio.wait_for(drafting, self._timeout)
        if draft is not None:
            with contextlib.suppress(LedgerConflict):
                await self._memory.commit(draft)

    # ------------------------------------------------------------ telling the server

    async def _tell(self) -> None:
        """Make the server's conversation what it should be.

        Raises:
            ServerRefused: and what was not acknowledged is tried again later.
        """
        text = self._memory.text
        if text != self._told:
            await self._tell_memory(text)
        for together in deletions(self._items.folded()):
            await self._delete(together)

    async def _tell_memory(self, text: str) -> None:
        old, new = self._memory_id, self._new_memory_id()
        if text:
            await self._create(memory_item(new, text))
            new = self._renamed.pop(new, new)
        self._memory_id, self._told = (new if text else None), text
        if old is not None:
            await self._delete([old])

    def _new_memory_id(self) -> str:
        item_id = new_id("mem")
        self._items.set_apart(item_id)
        return item_id

    async def _create(self, item: Event) -> None:
        event_id = new_id("evt")
        self._creating = (item["id"], item["content"][0]["text"])
        answer = self._acks.expect("added", item["id"], event_id)
        await self._sent(create_event(item, event_id=event_id, previous="root"))
        await self._answered(answer)

    def _adopt(self, item: Mapping[str, Any]) -> None:
        """Some servers give an item of ours an id of their own: know the memory by its words."""
        ours, words = self._creating
        given, parts = str(item.get("id")), item.get("content")
        if not ours or given == ours or not isinstance(parts, list) or not parts:
            return
        if isinstance(parts[0], Mapping) and parts[0].get("text") == words:
            self._items.set_apart(given)
            self._creating = ("", "")
            self._memory_id = given if self._memory_id == ours else self._memory_id
            self._renamed[ours] = given
            self._acks.settle("added", ours)

    async def _delete(self, item_ids: list[str]) -> None:
        """Delete at once what belongs together, so that no response sees half of it."""
        answers = []
        for item_id in item_ids:
            event_id = new_id("evt")
            answers.append(self._acks.expect("deleted", item_id, event_id))
            await self._sent(delete_event(item_id, event_id=event_id))
        refusals = []
        for item_id, answer in zip(item_ids, answers, strict=True):
            try:
                await self._answered(answer)
            except ServerRefused as error:
                # Another one was faster: what we wanted deleted does not exist.
                refusals += [] if error.unknown_item else [error]
                self._gone(item_id, error)
        if refusals:
            raise refusals[0]

    async def _sent(self, event: Event) -> None:
        if not await self._send(event):
            raise ServerRefused("not connected", f"{event['type']} was not sent")

    async def _answered(self, answer: asyncio.Future[None]) -> None:
        try:
            await asyncio.wait_for(answer, self._ack_timeout)
        except asyncio.TimeoutError:
            raise ServerRefused("timeout", f"no answer in {self._ack_timeout:g} s") from None

    def _gone(self, item_id: str, error: ServerRefused) -> None:
        item = self._items.get(item_id)
        if error.unknown_item and item is not None and item.folded:
            self._items.deleted(item_id)

    # ------------------------------------------------------------ others' changes

    def withdraw(self, item_id: str) -> Event | None:
        """The user wants an item forgotten: from now on, whatever the server answers.

        What the server is to be sent for it; None where only the memory has it.
        """
        item = self._items.get(item_id)
        if (item is None or item.folded) and self._memory.forget(item_id):
            self.consider()
            return None
        event = delete_event(item_id, event_id=new_id("evt"))
        if item is not None:
            item.withdrawn = True
            self._withdrawals[event["event_id"]] = item_id
        return event

    def _stays(self, item_id: str) -> None:
        """The server refused the user's deletion: the item is still in its conversation."""
        item = self._items.get(item_id)
        if item is not None:
            item.withdrawn = False

    def _is_unanswered(self, item_id: str) -> bool:
        item = self._items.get(item_id)
        return item is not None and not item.on_server

    def _deleted(self, item_id: str) -> None:
        """An item was deleted; what we did not ask for is to be forgotten too."""
        if self._acks.expects("deleted", item_id):
            return
        if item_id == self._memory_id:
            self._memory_id, self._told = None, ""
            self._memory.dismiss()
            return
        item = self._items.get(item_id)
        if item is None or item.folded:
            self._memory.forget(item_id)

    def cut_short(self, item_id: str) -> None:
        """An item was cut short although the memory holds it whole."""
        item = self._items.get(item_id)
        if item is not None and item.folded:
            self._memory.replace(item_id, messages_of([item])[0])

    # ------------------------------------------------------------ what things cost

    def _billed(self, items: Iterable[Item]) -> int:
        return sum(item.tokens(self._tokens.text) for item in items)

    def _learn(self) -> None:
        """Correct our estimates by what the server reported for the newest response."""
        usage = self._follower.usage
        reported = sum(_number(usage.get(name)) for name in ("input_tokens", "output_tokens"))
        if not self._marks.in_tokens or not reported:
            return
        fixed = self._tokens.text(self._follower.instructions) + self._memory.tokens
        fixed += self._tokens.tools(self._follower.tools)
        counted = self._billed(self._items.live())
        if counted and reported > fixed:
            self._ratio = min(4.0, max(0.25, (reported - fixed) / counted))


def _number(value: Any) -> int:
    return value if isinstance(value, int) else 0
