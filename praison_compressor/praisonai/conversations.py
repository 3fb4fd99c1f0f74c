"""Find the conversation that a request carries: one agent may serve many people.

A conversation is known by its messages; an id that the host gives wins. Where the messages of a
request leave it open, the request begins another conversation: recall then reads nothing, and
nobody reads another person's words.
"""

from __future__ import annotations

import secrets
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from ..compressor.context_compressor import ContextCompressor
from ..compressor.result import CompressResult
from ..ledger.segments import Entry
from ..messages import Message, is_system, text_of
from ..messages.digests import Seen
from ..messages.forks import renewed
from .journal import Journal, Kept
from .sessions import Stored, new_session_id

REMEMBERED = 256
"""Conversations of one agent that are remembered, the newest ones."""

CARRIED = 50_000
"""Messages of one conversation that are remembered by their digests."""

JOURNALED_TOKENS = 8_000_000
"""Tokens of all transcripts that an agent's conversations carried and that are remembered; a store
on disk has the others too."""

IDENTIFYING_CHARS = 40
"""Shorter messages ("hi", "yes, go on") are said in many conversations."""


# ------------------------------------------------------------ one conversation


@dataclass(eq=False)
class Conversation:
    """What one conversation leaves to its next request."""

    session_id: str
    """The ledger's session; another conversation never has the same."""
    key: str | None = None
    """The host's id for it; None where the host gives none."""
    transcript: tuple[Message, ...] = ()
    """Private copies of the messages of its last request, system messages included."""
    result: CompressResult | None = None
    """Of the last request."""
    model: str | None = None
    """The model that the last request asked."""
    overhead_tokens: int = 0
    """Sent beside the messages of the last request."""
    tool_tokens: int = 0
    """Of the last request that had tools: the host ends some turns with one without tools."""
    progress: tuple[int, int] = (0, 0)
    """Changes when a turn may read of the archive again."""
    pinned: tuple[str, ...] = ()
    """Texts that every compressed view keeps word for word."""
    notice: str | None = None
    """The line that reported the last compression."""
    history: list[Any] | None = field(default=None, repr=False)
    """The host's own list of its messages, while no other conversation uses that list."""
    left: tuple[str, ...] = ()
    """Digests of the host's history after the last turn, with a front that the host dropped."""
    own: set[str] = field(default_factory=set)
    """Digests of long messages that its own turns added: they identify it."""
    carried: dict[str, int] = field(default_factory=dict)
    """Digest -> length of `left` when the turn that first carried the message began."""
    journal: Journal = field(init=False, repr=False)
    """What its requests have carried, the tool steps that the host drops among it."""
    kept: Kept = field(default_factory=Kept)
    """What of earlier turns' steps stood in its last request."""
    taken_back: set[str] = field(default_factory=set)
    """Digests of messages that the user took back (undo, retry, edit): recall omits them."""

    def remember(self, result: CompressResult, overhead_tokens: int, model: str | None) -> None:
        """Take the result of its newest request."""
        self.result, self.overhead_tokens, self.model = result, overhead_tokens, model
        self.tool_tokens = overhead_tokens or self.tool_tokens

    def __post_init__(self) -> None:
        self.journal = Journal(self.session_id)

    def reads(self, entry: Entry) -> bool:
        """Return whether recall may read a ledger entry: nothing in it was taken back."""
        return self.taken_back.isdisjoint(entry.segment.run)

    def aligned(self, sent: Sequence[str]) -> tuple[int, int]:
        """Return where `sent` begins in `left`, and how much of `left` it goes on from."""
        places = {digest: at for at, digest in enumerate(sent)}
        for end in range(len(self.left), 0, -1):
            at = places.get(self.left[end - 1])
            if at is not None:
                # A question asked again takes back what followed its first asking.
                is_retry = end < len(self.left) and at == len(sent) - 1
                return end - 1 - at, end - is_retry
        return 0, 0

    def goes_on(self, sent: Sequence[str]) -> bool:
        """Return whether `sent` carries the newest end of `left`, and nothing in between."""
        if not self.left or self.left[-1] not in sent:
            return False
        at = len(sent) - 1 - sent[::-1].index(self.left[-1])
        common = min(at + 1, len(self.left))
        return sent[at + 1 - common : at + 1] == self.left[len(self.left) - common :]

    def carry(self, sent: Sequence[str], begun: int) -> None:
        """Take the messages of a request; `begun` is the length of `left` at its turn's start."""
        for each in sent:
            self.carried.setdefault(each, begun)
        while len(self.carried) > CARRIED:
            del self.carried[next(iter(self.carried))]
        self.taken_back.difference_update(sent)

    def rewind(self, length: int, sent: Sequence[str]) -> None:
        """Take back what came after the first `length` messages, but for those of `sent`."""
        gone = {digest for digest, mark in self.carried.items() if mark >= length}
        gone = (gone | set(self.left[length:])) - set(sent)
        self.taken_back |= gone
        self.own -= gone
        self.left = self.left[:length]
        for each in gone:
            self.carried.pop(each, None)


# ------------------------------------------------------------ the running turn


@dataclass(eq=False)
class Turn:
    """One turn of an agent: all its requests are of one conversation."""

    owner: Any
    """The agent's compressor; None for an agent that did not ask."""
    history: list[Any] | None = None
    """The host's list of messages when the turn began."""
    before: tuple[str, ...] = ()
    """Digests of that list then."""
    conversation: Conversation | None = None
    """Known from the first request on that carries it."""
    offset: int = 0
    """Messages of the conversation that the host dropped before the first one it sends."""
    begun: int = 0
    """Length of the conversation's history when the turn began."""
    bound: int = 0
    """Messages to which the host bounds that list; 0: unknown."""


_running: ContextVar[Turn | None] = ContextVar("praison_compressor_turn", default=None)


def running() -> Turn | None:
    """Return the turn that is running in this context, or None."""
    return _running.get()


@contextmanager
def during(turn: Turn | None) -> Iterator[None]:
    """Run a block as a part of a turn; None hides the turn of a calling agent."""
    token = _running.set(turn)
    try:
        yield
    finally:
        _running.reset(token)


def each_step_during(turn: Turn, stream: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
    """Yield from a stream, with the turn set around each step and never between two.

    A generator runs in the context of the caller that asks for its next item. Set once at the
    stream's start, the turn would leak into the caller, and two interleaved streams would swap
    their turns.
    """
    try:
        while True:
            with during(turn):
                try:
                    item = next(stream)
                except StopIteration as stop:
                    return stop.value
            yield item
    finally:
        with during(turn):
            stream.close()


# ------------------------------------------------------------ the host's id

_named: ContextVar[tuple[weakref.ref[Any], str, int] | None] = ContextVar(
    "praison_compressor_host_key", default=None
)


def named_by_host(agent: Any) -> str | None:
    """Return the key under which the host's bots keep the conversation that calls this agent."""
    named = _named.get()
    return named[1] if named is not None and named[0]() is agent else None


@contextmanager
def unnamed() -> Iterator[None]:
    """Run a block in which the host has named no conversation yet."""
    token = _named.set(None)
    try:
        yield
    finally:
        _named.reset(token)


def bound_by_host(agent: Any) -> int:
    """Return the number of messages to which the bot that calls this agent bounds its lists."""
    named = _named.get()
    return named[2] if named is not None and named[0]() is agent else 0


def name(agent: Any, key: str, bound: int = 0) -> None:
    """Record in this context the host's key for the agent's conversation, and its list's bound."""
    _named.set((weakref.ref(agent), key, bound))


# ------------------------------------------------------------ all conversations of an agent


class Conversations:
    """The newest conversations of one agent; thread-safe."""

    def __init__(self, stored: Callable[[str], Iterable[Stored]]) -> None:
        """Take the reader of stored sessions under a host's id, newest first."""
        self._stored = stored
        self._lock = renewed(threading.RLock())
        self._known: OrderedDict[str, Conversation] = OrderedDict()
        self._owners: dict[str, str | None] = {}
        """Identifying digest -> session id; None where two conversations have the message."""

    def named(self, session_id: str) -> Conversation | None:
        """Return the conversation of a ledger's session, if it is remembered."""
        return self._known.get(session_id)

    def of(self, turn: Turn, key: str | None, seen: Sequence[Seen]) -> Conversation:
        """Return the conversation that a request carries, and remember the request."""
        sent = said(seen)
        with self._lock:
            found = turn.conversation
            if found is None:
                before = said(without_question(seen))
                found = self._find(key, before, turn.history) or self._begin(key, before, sent)
                self._enter(turn, found, sent)
            found.carry(sent, turn.begun)
            found.transcript = tuple(each.plain for each in seen)
            return self._keep(found)

    def at_rest(
        self, key: str | None, seen: Sequence[Seen], history: list[Any] | None
    ) -> Conversation:
        """Return the conversation that a history is of between two turns."""
        with self._lock:
            found = self._find(key, said(seen), history) or self._unused(key)
            if found is None:
                # Whether a stored session of that name goes on, the first request decides.
                free = another_id(key) if key is None or self._under(key) else key
                found = Conversation(free, key)
            return self._keep(found)

    def end(self, turn: Turn, seen: Sequence[Seen], history: list[Any] | None) -> None:
        """Remember the host's history after a turn, where it is still that turn's."""
        found, now = turn.conversation, said(seen)
        if found is None:
            return
        with self._lock:
            if now[: len(turn.before)] != turn.before:
                found.history = None  # another conversation's by now, or cut
                return
            added = [each for each in seen if not is_system(each.plain)][len(turn.before) :]
            # Two people may begin with one page: their first question identifies nobody.
            self._claim(found, added if turn.begun else added[1:])
            found.left = (*found.left[: max(0, turn.offset)], *now)
            self._hold(found, history)

    def begin(self, key: str | None) -> Conversation:
        """Begin a conversation that has no message yet."""
        with self._lock:
            return self._keep(Conversation(another_id(key), key))

    def adopt(
        self, key: str | None, session_id: str, seen: Sequence[Seen], history: list[Any] | None
    ) -> Conversation:
        """Take a stored session's messages as a conversation to go on with."""
        with self._lock:
            found = Conversation(session_id, key, left=said(seen))
            found.carry(found.left, 0)
            self._claim(found, seen)
            self._hold(found, history)
            return self._keep(found)

    def bound_journals(self) -> None:
        """Drop what the oldest conversations carried, until the rest fits."""
        with self._lock:
            left = JOURNALED_TOKENS
            for found in reversed(self._known.values()):
                left -= found.journal.tokens
                if left < 0:
                    found.journal = Journal(found.session_id)

    def settle(self, engine: ContextCompressor) -> int:
        """Record what is new of each conversation; return how many the store has."""
        with self._lock:
            known = list(self._known.values())
        for found in known:
            found.journal.settle(engine)
        return sum(found.journal.is_recorded for found in known)

    # -------------------------------------------------------- by messages

    def _find(
        self, key: str | None, before: tuple[str, ...], history: list[Any] | None
    ) -> Conversation | None:
        """Return the conversation that goes on with these messages, a new question left out."""
        pool = self._under(key)
        for each in pool if history is not None else ():
            if each.left and each.history is history and before[: len(each.left)] == each.left:
                return each
        if key is not None:
            return _of_one_host_id(pool, before)
        hits = {each: self._hits(each, before) for each in pool}
        some = [each for each in pool if hits[each]]
        return _only_best([c for c in some if c.goes_on(before)], hits) or _only_best(some, hits)

    def _under(self, key: str | None) -> list[Conversation]:
        return [each for each in reversed(self._known.values()) if each.key == key]

    def _hits(self, each: Conversation, before: Iterable[str]) -> int:
        """Return how many of the messages only this conversation is known to have."""
        return sum(self._owners.get(digest) == each.session_id for digest in each.own & {*before})

    def _begin(self, key: str | None, before: Sequence[str], sent: Sequence[str]) -> Conversation:
        """Begin another conversation, or go on with a stored one under the host's id."""
        for each in sent:  # what others have said too identifies nobody from now on
            if each in self._owners:
                self._owners[each] = None
        blank = self._unused(key)
        if blank is not None and blank.session_id != key:
            return blank
        if blank is not None:  # named, before any request could say whether it goes on
            del self._known[blank.session_id]
        is_first = key is not None and not self._under(key)
        stored = self._stored(key) if is_first and key is not None else ()
        found = next((one.id for one in stored if one.carries(before)), None)
        pins = () if blank is None else blank.pinned
        left = () if found is None else tuple(before)
        return Conversation(found or self._free_id(key), key, left=left, pinned=pins)

    def _unused(self, key: str | None) -> Conversation | None:
        return next((each for each in self._under(key) if not each.carried), None)

    def _free_id(self, key: str | None) -> str:
        """Return the host's id while no conversation has it, else another id."""
        if key is None or key in self._known or any(one.id == key for one in self._stored(key)):
            return another_id(key)
        return key

    # -------------------------------------------------------- remembering

    def _enter(self, turn: Turn, found: Conversation, sent: Sequence[str]) -> None:
        """Make a turn that conversation's; take back what its first request no longer has."""
        turn.conversation = found
        turn.offset, turn.begun = found.aligned(sent)
        if turn.begun < len(found.left):
            found.rewind(turn.begun, sent)
        self._hold(found, turn.history)

    def _hold(self, found: Conversation, history: list[Any] | None) -> None:
        """Note the host's list as this conversation's, and as no other's."""
        for each in self._known.values():
            if each.history is history:
                each.history = None
        found.history = history

    def _claim(self, found: Conversation, seen: Iterable[Seen]) -> None:
        """Note which long messages this conversation's own turns added."""
        for each in seen:
            if len(text_of(each.plain)) < IDENTIFYING_CHARS:
                continue
            owner = self._owners.setdefault(each.digest, found.session_id)
            if owner != found.session_id:
                self._owners[each.digest] = None
            found.own.add(each.digest)

    def _keep(self, found: Conversation) -> Conversation:
        self._known[found.session_id] = found
        self._known.move_to_end(found.session_id)
        while len(self._known) > REMEMBERED:
            _, gone = self._known.popitem(last=False)
            for each in gone.own:
                if self._owners.get(each) == gone.session_id:
                    del self._owners[each]
        return found


def another_id(key: str | None) -> str:
    """Return a random session id, below the host's id where there is one."""
    return new_session_id() if key is None else f"{key}~{secrets.token_hex(8)}"


def is_under(session_id: str, key: str | None) -> bool:
    """Return whether a session is one of those under a host's id; any is where none is given."""
    return key is None or session_id == key or session_id.startswith(f"{key}~")


def _of_one_host_id(pool: Sequence[Conversation], before: tuple[str, ...]) -> Conversation | None:
    """Return the conversation under one host id that shares more than its first message."""
    full = next((each for each in pool if each.goes_on(before)), None)
    if full is not None:
        return full
    shared = {each: len(set(each.left[1:]).intersection(before)) for each in pool}
    return max(pool, key=shared.__getitem__) if any(shared.values()) else None


def _only_best(found: Sequence[Conversation], hits: dict[Conversation, int]) -> Conversation | None:
    """Return the conversation with most hits; None where two have as many."""
    best = sorted(found, key=hits.__getitem__, reverse=True)[:2]
    if not best or (len(best) == 2 and hits[best[0]] == hits[best[1]]):
        return None
    return best[0]


def said(seen: Iterable[Seen]) -> tuple[str, ...]:
    """Return the digests of messages, without those of system messages."""
    return tuple(each.digest for each in seen if not is_system(each.plain))


def without_question(seen: Sequence[Seen]) -> Sequence[Seen]:
    """Return the messages without the user's newest one, which is no history yet.

    The one before may be the user's too: its turn was stopped.
    """
    ends = bool(seen) and seen[-1].plain.get("role") == "user"
    return seen[:-1] if ends else seen
