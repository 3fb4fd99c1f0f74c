"""Find the conversation that a request carries: one agent may serve many people.

An id that the host gives comes first: only conversations under that id are looked at. Then the
host's own list decides, where it is still the list of one conversation and begins as that one did.
Then the messages decide: long ones that only one conversation has, and the newest end of its
history. If the conversation is still unknown, another one begins: recall then reads nothing, and
nobody reads another person's words.
"""

from __future__ import annotations

import secrets
import threading
import weakref
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from ..concurrency import renewed
from ..errors import StoreUnavailable
from ..messages import is_system, text_of
from ..messages.digests import Seen
from .conversations import Choices, Conversation, Turn, running, said
from .engines import Engines
from .journal import Journal
from .ledgers import carries, session_id_of, stored_under
from .requests import HostRequest

REMEMBERED = 256
"""Conversations of one agent that are remembered, the newest ones."""

JOURNALED_TOKENS = 8_000_000
"""Tokens of all transcripts that an agent's conversations carried and that are remembered; a store
on disk has the others too."""

IDENTIFYING_CHARS = 40
"""Shorter messages ("hi", "yes, go on") are said in many conversations."""


# ------------------------------------------------------------ the host's id

_named: ContextVar[tuple[weakref.ref[Any], str, int] | None] = ContextVar(
    "praison_compressor_host_key", default=None
)


def name(agent: Any, key: str, bound: int = 0) -> None:
    """Set the host's key for the agent's conversation in this context."""
    _named.set((weakref.ref(agent), key, bound))


@contextmanager
def unnamed() -> Iterator[None]:
    """Run a block in which the host has named no conversation yet."""
    token = _named.set(None)
    try:
        yield
    finally:
        _named.reset(token)


def named_by_host(agent: Any) -> tuple[str | None, int]:
    """Return the calling bot's key and its lists' bound, or (None, 0)."""
    named = _named.get()
    return named[1:] if named is not None and named[0]() is agent else (None, 0)


def another_id(key: str | None) -> str:
    """Return a random session id, below the host's id if any."""
    begins = "agent-" if key is None else f"{key}~"
    return begins + secrets.token_hex(8)


def is_under(session_id: str, key: str | None) -> bool:
    """Return whether a session is under a host's id, or under None."""
    return key is None or session_id == key or session_id.startswith(f"{key}~")


# ------------------------------------------------------------ the conversations of an agent


class KnownConversations:
    """The newest conversations of one agent; thread-safe."""

    def __init__(self, agent: weakref.ref[Any], owner: Any, engines: Engines) -> None:
        """`owner`: the agent's compressor, which its turns name."""
        self._agent = agent
        self._owner = owner
        self._engines = engines
        self._lock = renewed(threading.RLock())
        self._known: OrderedDict[str, Conversation] = OrderedDict()
        self._owners: dict[str, str | None] = {}
        """Identifying digest -> session id; None where two conversations have the message."""

    # -------------------------------------------------------- asked in a turn

    @property
    def turn(self) -> Turn | None:
        """Return the agent's turn that is running here, or None."""
        turn = running()
        return turn if turn is not None and turn.owner is self._owner else None

    @property
    def running(self) -> Conversation | None:
        """Return the running turn's conversation; None before its first request."""
        turn = self.turn
        return None if turn is None else turn.conversation

    @property
    def for_reading(self) -> Conversation:
        """Return the running turn's conversation, or a blank one."""
        return self.running or Conversation(another_id(None))

    @property
    def asking(self) -> Conversation:
        """Return the conversation whose turn calls a recall tool here.

        Raises:
            StoreUnavailable: no request of such a turn has passed.
        """
        found = self.running
        if found is None:
            raise StoreUnavailable(
                "no turn of this agent is running here, so that it is not known whose conversation "
                "is asked for; nothing was read"
            )
        return found

    @property
    def now(self) -> Conversation:
        """Return the running turn's conversation, else the history's."""
        return self.running or self._at_rest()

    def begun(self) -> Turn:
        """Return a turn that begins with the agent's history."""
        history, (_, bound) = self.history, named_by_host(self._agent())
        return Turn(self._owner, history, said(self._seen(history)), bound=bound)

    def carrying(self, request: HostRequest) -> Conversation:
        """Return the conversation that a request carries, and remember the request there."""
        turn, seen = self.turn or self.begun(), self._seen(request.messages)
        key, sent = self.key, said(seen)
        with self._lock:
            found = turn.conversation
            if found is None:
                before = said(_without_question(seen))
                found = self._find(key, before, turn.history) or self._begin(key, before, sent)
                self._enter(turn, found, sent)
            found.carry(sent, turn.begun)
            found.transcript = tuple(each.plain for each in seen)
            return self._keep(found)

    def end(self, turn: Turn) -> None:
        """Remember the host's history after a turn, if still that turn's."""
        found, history = turn.conversation, self.history
        seen = self._seen(history)
        now = said(seen)
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

    # -------------------------------------------------------- asked between turns

    @property
    def key(self) -> str | None:
        """Return the host's id: the bot's key, else the agent's session id."""
        agent = self._agent()
        return named_by_host(agent)[0] or session_id_of(agent)

    @property
    def history(self) -> list[Any] | None:
        """Return the host's list of the agent's messages."""
        found = getattr(self._agent(), "chat_history", None)
        return found if isinstance(found, list) else None

    def named(self, session_id: str) -> Conversation | None:
        """Return the conversation of a ledger's session, if it is remembered."""
        return self._known.get(session_id)

    def newest(self) -> list[Conversation]:
        """Return the remembered conversations, the newest first."""
        with self._lock:
            return [*reversed(self._known.values())]

    def begin(self, earlier: tuple[str, ...] = ()) -> Conversation:
        """Begin an empty conversation, after `earlier` sessions of its user."""
        with self._lock:
            return self._keep(Conversation(another_id(self.key), self.key, earlier))

    def leaving(self) -> tuple[str, ...]:
        """Return the sessions of this conversation's user, for the conversation after it."""
        found = self.now
        return tuple(dict.fromkeys((*found.earlier, found.session_id)))

    def adopt(self, session_id: str, earlier: tuple[str, ...] = ()) -> Conversation:
        """Go on with a stored session that the agent's history has."""
        history = self.history
        seen = self._seen(history)
        with self._lock:
            found = Conversation(session_id, self.key, earlier, left=said(seen))
            found.carry(found.left, 0)
            self._claim(found, seen)
            self._hold(found, history)
            return self._keep(found)

    def settle(self) -> int:
        """Record each conversation's new messages; return how many are recorded."""
        engine = self._engines.of(None)
        with self._lock:
            known = list(self._known.values())
        for found in known:
            found.journal.settle(engine)
        return sum(found.journal.is_recorded for found in known)

    def bound_journals(self) -> None:
        """Drop what the oldest conversations carried, until the rest fits."""
        with self._lock:
            left = JOURNALED_TOKENS
            for found in reversed(self._known.values()):
                left -= found.journal.tokens
                if left < 0:
                    found.journal = Journal(found.session_id)

    # -------------------------------------------------------- decided by messages

    def _at_rest(self) -> Conversation:
        key, history = self.key, self.history
        seen = self._seen(history)
        with self._lock:
            found = self._find(key, said(seen), history) or self._unused(key)
            if found is None:
                # Whether a stored session of that name goes on, the first request decides.
                free = another_id(key) if key is None or self._under(key) else key
                found = Conversation(free, key)
            return self._keep(found)

    def _find(
        self, key: str | None, before: tuple[str, ...], history: list[Any] | None
    ) -> Conversation | None:
        """Return the conversation that goes on with these messages, or None."""
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
        """Return the number of messages that only this conversation has."""
        return sum(self._owners.get(digest) == each.session_id for digest in each.own & {*before})

    def _begin(self, key: str | None, before: Sequence[str], sent: Sequence[str]) -> Conversation:
        """Begin another conversation, or go on with a stored one."""
        for each in sent:  # what others have said too identifies nobody from now on
            if each in self._owners:
                self._owners[each] = None
        blank = self._unused(key)
        if blank is not None and blank.session_id != key:
            return blank
        if blank is not None:  # named, before any request could say whether it goes on
            del self._known[blank.session_id]
        if key is None:
            return Conversation(another_id(None))
        if key in self._known:
            return Conversation(another_id(key), key)
        store, pins = self._engines.open(), () if blank is None else blank.pinned
        stored = [*stored_under(store, self._engines.config.namespace, key)]
        for session in () if self._under(key) else stored:
            if carries(store, session, before):
                return Conversation(session.id, key, left=tuple(before), pinned=pins)
        is_taken = key in {session.id for session in stored}
        return Conversation(another_id(key) if is_taken else key, key, pinned=pins)

    def _unused(self, key: str | None) -> Conversation | None:
        return next((each for each in self._under(key) if not each.carried), None)

    def _seen(self, messages: Iterable[Any] | None) -> list[Seen]:
        """Return each message with its digests, from a copy of the list."""
        cache = self._engines.of(None).tokens.cache
        return cache.all([m for m in list(messages or ()) if isinstance(m, Mapping)])

    # -------------------------------------------------------- remembered

    def _enter(self, turn: Turn, found: Conversation, sent: Sequence[str]) -> None:
        """Assign a turn to a conversation; take back what its request lacks."""
        turn.conversation = found
        turn.offset, turn.begun = found.aligned(sent)
        if turn.begun < len(found.left):
            found.rewind(turn.begun, sent)
            found.choices, found.shown = Choices(), None
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


def _of_one_host_id(pool: Sequence[Conversation], before: tuple[str, ...]) -> Conversation | None:
    """Return the conversation that shares more than its first message."""
    full = next((each for each in pool if each.goes_on(before)), None)
    if full is not None:
        return full
    shared = {each: len(set(each.left[1:]).intersection(before)) for each in pool}
    return max(pool, key=shared.__getitem__) if any(shared.values()) else None


def _only_best(found: Sequence[Conversation], hits: dict[Conversation, int]) -> Conversation | None:
    """Return the conversation with most hits; None where two have equally many."""
    best = sorted(found, key=hits.__getitem__, reverse=True)[:2]
    if not best or (len(best) == 2 and hits[best[0]] == hits[best[1]]):
        return None
    return best[0]


def _without_question(seen: Sequence[Seen]) -> Sequence[Seen]:
    """Return the messages without the user's newest one.

    The one before may be the user's too: its turn was stopped.
    """
    ends = bool(seen) and seen[-1].plain.get("role") == "user"
    return seen[:-1] if ends else seen
