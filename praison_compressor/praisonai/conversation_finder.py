"""Find the conversation of a request; one agent may serve many people.

If the host gives an id, only conversations with that id are candidates. Then the host's own list
decides, if no other conversation uses that list and it begins as the conversation did. Then the
messages decide: long ones that only one conversation has, and the newest end of its history. If
no conversation fits, another one begins: recall then reads nothing, and nobody reads another
person's words.
"""

from __future__ import annotations

import secrets
import weakref
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ..errors import StoreUnavailable
from ..messages import Message, digest, is_system, leading_count, text_of
from ..messages.digests import CachedMessage
from .agent_ledger import has_one_of, session_id_of, stored_under
from .conversations import Choices, Conversation, Conversations, digests_of
from .model_compressors import ModelCompressors
from .running_turn import Turn, named_by_bot, running


def another_id(key: str | None) -> str:
    """Return a random session id, below the host's id if any."""
    begins = "agent-" if key is None else f"{key}~"
    return begins + secrets.token_hex(8)


def is_under(session_id: str, key: str | None) -> bool:
    """Return whether a session is under a host's id, or under None."""
    return key is None or session_id == key or session_id.startswith(f"{key}~")


class _Entered(NamedTuple):
    """The conversation of a turn, known from its first request on."""

    conversation: Conversation
    offset: int
    """Messages of the conversation that the host dropped before the first one it sends."""
    begun: int
    """Length of the conversation's history when the turn began."""


class ConversationFinder:
    """Find the conversations of one agent's requests; thread-safe."""

    def __init__(
        self,
        agent: weakref.ref[Any],
        compressors: ModelCompressors,
        conversations: Conversations,
    ) -> None:
        self._agent = agent
        self._compressors = compressors
        self._conversations = conversations
        self._entered: weakref.WeakKeyDictionary[Turn, _Entered] = weakref.WeakKeyDictionary()

    # -------------------------------------------------------- asked in a turn

    def of(self, turn: Turn | None) -> Conversation | None:
        """Return a turn's conversation; None before its first request."""
        entered = None if turn is None else self._entered.get(turn)
        return None if entered is None else entered.conversation

    @property
    def running(self) -> Conversation | None:
        """Return the running turn's conversation; None before its first request."""
        return self.of(running())

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
                "no turn of this agent runs here, so it is not known whose conversation to read; "
                "nothing was read"
            )
        return found

    @property
    def now(self) -> Conversation:
        """Return the running turn's conversation, else the history's."""
        return self.running or self._at_rest()

    def turn_of(self, owner: Any) -> Turn:
        """Return a turn that begins with the agent's history."""
        history, (_, bound) = self.history, named_by_bot(self._agent())
        return Turn(owner, history, digests_of(self._seen(history)), bound)

    def carrying(self, messages: Sequence[Message], turn: Turn) -> Conversation:
        """Return the conversation of a turn's request; remember the request in it."""
        seen, known = self._seen(messages), self._conversations
        key, sent = self.key, digests_of(seen)
        with known.lock:
            entered = self._entered.get(turn)
            if entered is None:
                # The user's newest message is new to every conversation.
                is_asked = bool(seen) and seen[-1].plain.get("role") == "user"
                before = digests_of(seen[:-1] if is_asked else seen)
                found = self._find(key, before, turn.history) or self._begin(key, before, sent)
                entered = self._entered[turn] = self._enter(turn, found, sent)
            found = entered.conversation
            found.carry(sent, entered.begun)
            found.transcript = tuple(each.plain for each in seen)
            return known.keep(found)

    def end(self, turn: Turn) -> None:
        """Remember the host's history after a turn, if still that turn's."""
        entered, history = self._entered.get(turn), self.history
        if entered is None:
            return
        seen, known, found = self._seen(history), self._conversations, entered.conversation
        now, length = digests_of(seen), len(turn.digests)
        with known.lock:
            if now[:length] != turn.digests:
                found.history = None  # another conversation's by now, or cut
                return
            added = [each for each in seen if not is_system(each.plain)][length:]
            # Two people may begin with one page: their first question identifies nobody.
            known.identify_by(found, added if entered.begun else added[1:])
            found.digests = (*found.digests[: max(0, entered.offset)], *now)
            known.assign_history(found, history)

    # -------------------------------------------------------- asked between turns

    @property
    def key(self) -> str | None:
        """Return the host's id: the bot's key, else the agent's session id."""
        agent = self._agent()
        return named_by_bot(agent)[0] or session_id_of(agent)

    @property
    def history(self) -> list[Any] | None:
        """Return the host's list of the agent's messages."""
        found = getattr(self._agent(), "chat_history", None)
        return found if isinstance(found, list) else None

    def start(self, earlier: tuple[str, ...]) -> Conversation:
        """Begin an empty conversation, after `earlier` sessions of its user."""
        return self._conversations.keep(Conversation(another_id(self.key), self.key, earlier))

    def leaving(self) -> tuple[str, ...]:
        """Return the sessions of this conversation's user, for the next conversation."""
        found = self.now
        return tuple(dict.fromkeys((*found.earlier, found.session_id)))

    def adopt(self, session_id: str, earlier: tuple[str, ...]) -> Conversation:
        """Go on with a stored session that the agent's history has."""
        history, known = self.history, self._conversations
        seen = self._seen(history)
        with known.lock:
            found = Conversation(session_id, self.key, earlier, digests=digests_of(seen))
            found.carry(found.digests, 0)
            known.identify_by(found, seen)
            known.assign_history(found, history)
            return known.keep(found)

    # -------------------------------------------------------- decided by messages

    def _at_rest(self) -> Conversation:
        key, history, known = self.key, self.history, self._conversations
        seen = self._seen(history)
        with known.lock:
            found = self._find(key, digests_of(seen), history) or known.unused(key)
            if found is None:
                # The first request decides whether a stored session of that name goes on.
                free = another_id(key) if key is None or known.under(key) else key
                found = Conversation(free, key)
            return known.keep(found)

    def _find(
        self, key: str | None, before: tuple[str, ...], history: list[Any] | None
    ) -> Conversation | None:
        """Return the conversation that goes on with these messages, or None."""
        pool = self._conversations.under(key)
        for each in pool if history is not None else ():
            known = each.digests
            if known and each.history is history and before[: len(known)] == known:
                return each
        if key is not None:
            return _of_one_host_id(pool, before)
        hits = {each: self._conversations.hits(each, before) for each in pool}
        some = [each for each in pool if hits[each]]
        continued = [each for each in some if each.is_continued_by(before)]
        return _only_best(continued, hits) or _only_best(some, hits)

    def _begin(self, key: str | None, before: Sequence[str], sent: Sequence[str]) -> Conversation:
        """Begin another conversation, or go on with a stored one."""
        known = self._conversations
        known.share(sent)
        blank = known.unused(key)
        if blank is not None and blank.session_id != key:
            return blank
        if blank is not None:  # it got the host's id before a request could decide
            known.forget(blank)
        if key is None or known.get(key) is not None:
            return Conversation(another_id(key), key)
        store, pins = self._compressors.open(), () if blank is None else blank.pinned
        stored = [*stored_under(store, self._compressors.config.namespace, key)]
        for session in () if known.under(key) else stored:
            if has_one_of(store, session, before):
                return Conversation(session.id, key, digests=tuple(before), pinned=pins)
        is_taken = key in {session.id for session in stored}
        return Conversation(another_id(key) if is_taken else key, key, pinned=pins)

    def _enter(self, turn: Turn, found: Conversation, sent: Sequence[str]) -> _Entered:
        """Assign a turn to a conversation; take back what its request lacks."""
        offset, begun = found.aligned(sent)
        if begun < len(found.digests):
            found.rewind(begun, sent)
            found.choices, found.shown = Choices(), None
        self._conversations.assign_history(found, turn.history)
        return _Entered(found, offset, begun)

    def _seen(self, messages: Iterable[Any] | None) -> list[CachedMessage]:
        """Return each message with its digests, from a copy of the list."""
        cache = self._compressors.of(None).tokens.cache
        return cache.all([m for m in list(messages or ()) if isinstance(m, Mapping)])


def _of_one_host_id(pool: Sequence[Conversation], before: tuple[str, ...]) -> Conversation | None:
    """Return the conversation that shares more than its first message."""
    full = next((each for each in pool if each.is_continued_by(before)), None)
    if full is not None:
        return full
    shared = {each: len(set(each.digests[1:]).intersection(before)) for each in pool}
    return max(pool, key=shared.__getitem__) if any(shared.values()) else None


def _only_best(found: Sequence[Conversation], hits: dict[Conversation, int]) -> Conversation | None:
    """Return the conversation with most hits; None if two have equally many."""
    best = sorted(found, key=hits.__getitem__, reverse=True)[:2]
    if not best or (len(best) == 2 and hits[best[0]] == hits[best[1]]):
        return None
    return best[0]


# ------------------------------------------------------------ what is no conversation


def carries_conversation(agent: Any, messages: Sequence[Message]) -> bool:
    """Return whether a request carries a part of the agent's conversation.

    Such a request starts as the agent's history does, or has two of its messages anywhere. Memory
    extraction, guardrails, titles and planners send other messages.
    """
    history = list(getattr(agent, "chat_history", None) or ())
    known, sent = _first_said(history), _first_said(messages)
    if known is None or sent is None or digest(known) == digest(sent):
        return True
    # In the first turn the host may send more than it records: a template, retrieved text.
    if len(history) <= 2 and text_of(known) in text_of(sent):
        return True
    return len(set(map(digest, history)).intersection(map(digest, messages))) > 1


def _first_said(messages: Sequence[Message]) -> Message | None:
    return next((message for message in messages if not is_system(message)), None)


def without_window(agent: Any, messages: Sequence[Message]) -> Sequence[Message]:
    """Return the messages without the host's copy of the newest ones.

    With `memory={"history": True}` the host sends the newest messages of the stored session, then
    the agent's history, which has them too (agent/chat_mixin.py:1049). That window moves on every
    turn: no two requests would begin alike, and no summary would match. The host's summary of
    messages before the window goes too, because the agent's history has them.
    """
    history = list(getattr(agent, "chat_history", None) or ())
    users = [i for i, message in enumerate(history) if message.get("role") == "user"]
    finished = history[: users[-1]] if users else []
    start = _last_run(messages, finished)
    if start is None:
        return messages
    before = range(leading_count(messages), start)
    for first in before:
        # The window may begin amid a turn; what it shares with the history begins with one.
        is_turn = first == before.start or messages[first].get("role") == "user"
        if is_turn and _last_run(finished, list(messages[first:start])) is not None:
            leading = (m for m in messages[:first] if not is_host_summary(m))
            return [*leading, *messages[start:]]
    return messages


def is_host_summary(message: Message) -> bool:
    """Return whether the message is the host's summary of cut turns."""
    return is_system(message) and text_of(message).startswith("[Session Summary]\n")


def _last_run(messages: Sequence[Message], run: Sequence[Message]) -> int | None:
    """Return the last place of a run of messages, or None."""
    size = len(run)
    places = range(len(messages) - size, -1, -1) if size else ()
    return next(
        (i for i in places if messages[i] == run[0] and list(messages[i : i + size]) == run), None
    )
