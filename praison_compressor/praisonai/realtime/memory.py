"""What a voice conversation remembers: summaries in the session's ledger, and their text."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ...config import CompressorConfig
from ...errors import LedgerConflict, SummaryRejected
from ...ledger.segments import Entry, Segment, Session, Store
from ...messages import Message, digest, read, steps, text_of, to_plain, tool_calls_of
from ...summaries.prompts import rendering
from ...summaries.protocol import Brief, Written
from ...summaries.static import carried_on
from ...summaries.writer import SummaryWriter
from ...tokens.counter import TokenCounter
from ...tokens.models import model_limits
from ...view.budget import Budget
from ...view.frame import frame, unframe
from ...view.plan import SMALLEST_SUMMARY
from .items import EMPTY_SPEECH

__all__ = [
    "Draft",
    "Memory",
]


DELETED = "[deleted]"


LEAST_TOKENS = SMALLEST_SUMMARY + 60
"""For any summary: its frame, the opening of a static one, and words enough to say a thing."""


@dataclass(frozen=True)
class Draft:
    """A summary that is written and not yet committed."""

    segment: Segment
    originals: tuple[Message, ...]
    replaces: tuple[Entry, ...]
    session: Session
    revised: Mapping[str, Message | None]
    """What it leaves out or has in other words, compared with what it replaces."""


class Memory:
    """The summaries that stand for what was folded, oldest first, additive until they are many.

    Each fold is a segment committed to the session's ledger, its originals archived. When the
    summaries together pass `fold_ratio` of the budget they are folded into one.
    """

    def __init__(
        self,
        config: CompressorConfig,
        writer: SummaryWriter,
        store: Store,
        tokens: TokenCounter,
        session_id: str,
    ) -> None:
        self.session_id = session_id
        self._config = config
        self._writer = writer
        self._store = store
        self._tokens = tokens
        window = model_limits(config.model, config.context_window).window
        self._budget = Budget.of(config, window)
        self._session: Session | None = None
        self._kept: list[Entry] = []
        self._ids: dict[str, frozenset[str]] = {}
        """The items that each entry, by its hash, stands for."""
        self._revised: dict[str, Message | None] = {}
        """Items that were deleted (None) or cut short after they had been folded."""

    # ------------------------------------------------------------ what is remembered

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The summaries in use, oldest first."""
        return tuple(entry.segment for entry in self._kept)

    @property
    def text(self) -> str:
        """What the conversation is told: all summaries in one frame; "" while there is none."""
        told = self._told()
        if not told:
            return ""
        method = "model" if any(segment.method == "model" for segment in told) else "static"
        words = "\n\n".join(unframe(segment.rendered) for segment in told)
        opening, *_, closing = frame(
            "", count=sum(len(segment.run) for segment in told), method=method
        ).split("\n")
        return f"{opening}\n{words}\n{closing}"  # the words were escaped when they were written

    @property
    def tokens(self) -> int:
        """Tokens of that text."""
        return self._tokens.text(self.text)

    @property
    def session(self) -> Session | None:
        """The newest state of the ledger: its tip and the parent pointer."""
        return self._session

    @property
    def outdated(self) -> bool:
        """Whether something that a summary holds was deleted or cut short since."""
        return bool(self._revised)

    def _told(self) -> list[Segment]:
        return [entry.segment for entry in self._kept if set(entry.segment.run) != {_STUB}]

    # ------------------------------------------------------------ the ledger

    async def open(self) -> None:
        """Read the session's ledger: another process may have remembered before us.

        Raises:
            LedgerError: the store cannot be read.
        """
        session = await asyncio.to_thread(self._store.open, self._config.namespace, self.session_id)
        if self._session is None or session.head_hash != self._session.head_hash:
            self._kept = await asyncio.to_thread(self._in_use, session)
        self._session = session

    def _in_use(self, session: Session) -> list[Entry]:
        """The entries that no newer one replaces, by folding or by revising it."""
        kept: list[Entry] = []
        newer: list[dict[str, str]] = []
        for entry in reversed(session.entries):
            words = self._words_of(session, entry)
            self._ids[entry.hash] = frozenset(words)
            if words and not any(_replaces(later, words) for later in newer):
                kept.insert(0, entry)
            newer.append(words)
        return kept

    def _words_of(self, session: Session, entry: Entry) -> dict[str, str]:
        """The digest of what each item of the entry said, by the item's id."""
        if entry.forgotten or entry.segment.kind != "summary":
            return {}
        originals = self._store.originals(session, entry) or []
        return {i: digest(message) for message in originals for i in _ids([message]) if i}

    # ------------------------------------------------------------ folding

    async def draft(
        self,
        messages: Sequence[Message],
        *,
        source_tokens: int,
        window_tokens: int,
        visible: Sequence[Message],
    ) -> Draft:
        """A summary of the messages, and of all older summaries where these have become too many.

        `source_tokens` are what the server bills for the messages, `window_tokens` for the whole
        live window, of which the memory may take its share.

        Raises:
            SummaryRejected: the summary says nothing.
            LedgerError: the store cannot be read.
        """
        await self.open()
        most = self._most(window_tokens)
        room = self._room(sum(map(self._tokens.message, messages)))
        too_many = bool(self._kept) and self.tokens + room > most
        replaced = tuple(self._kept) if too_many else ()
        if too_many:
            room = max(room, most // 2)
            source_tokens += sum(entry.segment.tokens for entry in replaced)
        return await self._write(replaced, messages, room, source_tokens, visible, carry=True)

    def _most(self, window_tokens: int) -> int:
        """Tokens of all summaries together, above which they are folded into one."""
        share = int(window_tokens * self._config.fold_ratio)
        return min(self._budget.fold, max(share, self._budget.prose_for(window_tokens)))

    def _room(self, words: int) -> int:
        """Tokens for a summary of so many tokens of words: half of them, where they are few."""
        most = self._budget.prose_for(words) + self._budget.facts
        return min(most, max(LEAST_TOKENS, words // 2))

    async def revise(self, visible: Sequence[Message]) -> Draft | None:
        """The outdated summary and those after it, written anew without what was deleted.

        Raises:
            SummaryRejected, LedgerError: as `draft`.
        """
        await self.open()
        first = next((n for n, e in enumerate(self._kept) if self._is_outdated(e)), None)
        if first is None:
            self._revised.clear()
            return None
        replaced = tuple(self._kept[first:])
        source = sum(entry.segment.tokens for entry in replaced)
        return await self._write(replaced, (), source, source, visible, carry=False)

    async def commit(self, draft: Draft) -> None:
        """Archive and append; a commit that has begun is finished whatever cancels us.

        Raises:
            LedgerError: nothing was written.
        """
        written = [(draft.segment, draft.originals)]
        work = asyncio.ensure_future(asyncio.to_thread(self._store.commit, draft.session, written))
        try:
            session = await asyncio.shield(work)
        except asyncio.CancelledError:
            self._take(draft, await work)
            raise
        except LedgerConflict:
            # What another writer remembered is ours too: the next fold goes on from it.
            await self.open()
            raise
        self._take(draft, session)

    def holds(self, item_id: str) -> bool:
        """Whether a summary stands for the item."""
        return any(item_id in self._ids.get(entry.hash, ()) for entry in self._kept)

    def forget(self, item_id: str) -> bool:
        """Whether a summary stands for the item; if so it is rewritten without it."""
        return self.replace(item_id, None)

    def replace(self, item_id: str, message: Message | None) -> bool:
        """The same with other words in its place."""
        if not self.holds(item_id):
            return False
        self._revised[item_id] = message
        return True

    def dismiss(self) -> None:
        """Someone deleted the memory itself: go on without what was remembered."""
        self._kept.clear()
        self._revised.clear()

    # ------------------------------------------------------------ writing

    def _is_outdated(self, entry: Entry) -> bool:
        return bool(self._ids.get(entry.hash, frozenset()) & self._revised.keys())

    async def _write(
        self,
        replaced: tuple[Entry, ...],
        messages: Sequence[Message],
        room: int,
        source: int,
        visible: Sequence[Message],
        *,
        carry: bool,
    ) -> Draft:
        assert self._session is not None
        session, revised = self._session, dict(self._revised)
        runs = [await self._originals(session, entry, revised) for entry in replaced]
        carried = [carry and entry.segment.method == "model" for entry in replaced]
        archived = [message for run in runs for message in run] + list(messages)
        unseen = [run for run, is_text in zip(runs, carried, strict=True) if not is_text]
        shown = [message for run in unseen for message in run] + list(messages)
        most = max(LEAST_TOKENS, source)
        # A static text's messages are read again; a model's words that it carried stand in none.
        texts = [(unframe(entry.segment.rendered), entry.segment.method) for entry in replaced]
        folded = [t if m == "model" else carried_on(t, m) for t, m in texts if carry]
        prose = self._budget.prose_for(source) * (2 if any(carried) else 1)
        brief = Brief(
            # What is carried on as text is not read again: a fold costs the same after hours.
            messages=_sendable(shown),
            shown=_sendable(shown),
            room=min(room, most),
            most=most,
            tokens=source,
            facts=self._budget.facts,
            prose=max(1, min(prose, room)),
            folded=tuple(filter(None, folded)),
            earlier=tuple(unframe(e.segment.rendered) for e in self._kept if e not in replaced),
            visible="\n".join(rendering(visible)),
        )
        written = await self._text_for(brief)
        segment = self._segment(written, archived, source)
        return Draft(segment, tuple(archived), replaced, session, {} if carry else revised)

    async def _text_for(self, brief: Brief) -> Written:
        if not brief.messages:
            # All that it stood for was deleted; the entry only says so.
            content = frame(DELETED, count=0, method="static")
            return Written({"role": "user", "content": content}, "static")
        if not any(map(_says_something, brief.messages)):
            raise SummaryRejected("empty", "no item has words")
        written = await self._writer.write(brief, model=None, session_id=self.session_id)
        if not re.search(r"\w", unframe(written.message)):
            raise SummaryRejected("empty")
        return written

    async def _originals(
        self, session: Session, entry: Entry, revised: dict[str, Message | None]
    ) -> list[Message]:
        found = await asyncio.to_thread(self._store.originals, session, entry)
        return _revised(found or [], revised)

    def _segment(self, written: Written, archived: Sequence[Message], source: int) -> Segment:
        return Segment(
            kind="summary",
            run=tuple(digest(message) for message in read(archived).messages),
            rendered=written.message,
            tokens=self._tokens.message(written.message),
            source_tokens=source,
            method=written.method,
            model=written.model,
            usage=written.usage,
            created=time.time(),
        )

    def _take(self, draft: Draft, session: Session) -> None:
        """Go on from a commit of ours."""
        entry = session.entries[-1]
        self._ids[entry.hash] = frozenset(_ids(draft.originals)) - {""}
        place = self._kept.index(draft.replaces[0]) if draft.replaces else len(self._kept)
        self._kept = [e for e in self._kept if e not in draft.replaces]
        self._kept.insert(place, entry)
        self._session = session
        for item_id, message in draft.revised.items():
            if self._revised.get(item_id, entry) is message:
                del self._revised[item_id]


# ---------------------------------------------------------------- messages with item ids
def _replaces(newer: Mapping[str, str], older: Mapping[str, str]) -> bool:
    """Whether a newer summary stands for all that an older one did.

    Their ids alone do not say so: a server may number the items of each connection from one.
    """
    same = (newer.get(item_id) in (words, _STUB) for item_id, words in older.items())
    return older.keys() <= newer.keys() and any(same)


def _ids(messages: Iterable[Message]) -> Iterable[str]:
    """The ids of the items that the messages were."""
    for message in messages:
        yield str(message.get("id") or "")
        for call in message.get("tool_calls") or ():
            yield str(call.get("item_id") or "")


def _says_something(message: Message) -> bool:
    text = text_of(message)
    return bool(tool_calls_of(message)) or (text != EMPTY_SPEECH and bool(re.search(r"\w", text)))


_STUB_MESSAGE: Message = {"role": "user", "content": DELETED}


_STUB = digest(_STUB_MESSAGE)


def _sendable(messages: Sequence[Message]) -> tuple[Message, ...]:
    """What may be shown: paired, and without the places of what was deleted."""
    return read([m for m in messages if m.get("content") != DELETED]).messages


def _revised(messages: Sequence[Message], revised: dict[str, Message | None]) -> list[Message]:
    """The originals with stubs, which keep the ids, in the place of what was deleted."""
    result: list[Message] = []
    for step in steps(messages):
        touched = {i for n in step for i in _ids([messages[n]])} & revised.keys()
        for number in step:
            result += _without(messages[number], revised) if touched else [messages[number]]
    return result


def _without(message: Message, revised: dict[str, Message | None]) -> list[Message]:
    calls = tool_calls_of(message)
    if not calls:
        item_id = str(message.get("id"))
        if item_id not in revised:
            return [message]
        return [revised[item_id] or {**_STUB_MESSAGE, "id": item_id}]
    kept = to_plain(message)
    gone = [c["item_id"] for c in kept["tool_calls"] if c.get("item_id") in revised]
    kept["tool_calls"] = [c for c in kept["tool_calls"] if c.get("item_id") not in revised]
    stubs = [{**_STUB_MESSAGE, "id": item_id} for item_id in gone]
    return [*stubs, kept] if kept["tool_calls"] else stubs
