"""Find the conversation of a request; one agent may serve many people.

A conversation is a candidate if its host id equals the host id of the request, or if conversation
and request both have no host id. The first rule that fits decides:

1. The conversation's history is the same list object as the agent's `chat_history`, and the
   request begins with the conversation's messages.
2. The request has the end of the conversation's history.
3. The request has more messages of the conversation than of any other conversation.

Without a host id, rule 3 counts only long messages that no other conversation has, and rule 2 needs
one such message. If no rule fits, a new conversation begins: nobody reads another person's words.
"""

from __future__ import annotations

import secrets
import weakref
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..messages import Message, digest, is_system, leading_count, text_of
from ..messages.digests import CachedMessage
from .agent_ledger import agent_title, has_any_message, session_id_of, stored_sessions
from .conversations import Conversation, Conversations, digests_without_system
from .model_compressors import ModelCompressors
from .running_turn import Turn, TurnRequests, bot_conversation, running_turn


def new_session_id(host_id: str | None) -> str:
    """Return a random session id, under the host id if any."""
    return f"{'agent-' if host_id is None else f'{host_id}~'}{secrets.token_hex(8)}"


def is_under(session_id: str, host_id: str | None) -> bool:
    """Return whether a session is under a host id; True for None."""
    return host_id is None or session_id == host_id or session_id.startswith(f"{host_id}~")


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
        self.conversations = conversations

    # -------------------------------------------------------- in a turn

    @property
    def running(self) -> Conversation | None:
        """The running turn's conversation; None before the first request."""
        turn = running_turn()
        if turn is None or turn.conversations is not self.conversations:
            return None
        return turn.conversation

    @property
    def running_or_new(self) -> Conversation:
        """The running turn's conversation, or a new one."""
        return self.running or Conversation(new_session_id(None))

    @property
    def current(self) -> Conversation:
        """The running turn's conversation, else the conversation of `chat_history`."""
        return self.running or self._conversation_at_rest()

    def new_turn(self, requests: TurnRequests) -> Turn:
        """Return a new turn of the agent."""
        history, history_limit = self.history, bot_conversation(self._agent()).history_limit
        digests = digests_without_system(self._digest_messages(history))
        conversations, count = self.conversations, requests.request_count
        return Turn(requests, conversations, count, history, digests, history_limit)

    def match_request(self, messages: Sequence[Message], turn: Turn) -> Conversation:
        """Return the conversation of a turn's request; record the request there."""
        cached = self._digest_messages(messages)
        with self.conversations.lock:
            conversation = turn.conversation or self._start_turn(turn, cached)
            conversation.receive(cached, turn.length)
            return self.conversations.remember(conversation)

    def _start_turn(self, turn: Turn, cached: Sequence[CachedMessage]) -> Conversation:
        host_id = self.host_id
        sent = digests_without_system(cached)
        # Leave out the user's newest message, which is new to every conversation.
        is_question = bool(cached) and cached[-1].plain.get("role") == "user"
        earlier = digests_without_system(cached[:-1] if is_question else cached)
        conversation = self._find(host_id, earlier, turn.history) or self._begin(host_id, earlier)
        self.conversations.assign_history(conversation, turn.history)
        turn.offset, turn.length = conversation.begin_turn(sent)
        turn.conversation = conversation
        return conversation

    def end_turn(self, turn: Turn) -> None:
        """Record the host's history after a turn."""
        conversation, history = turn.conversation, self.history
        if conversation is None:
            return
        cached = self._digest_messages(history)
        digests = digests_without_system(cached)
        length = len(turn.digests)
        with self.conversations.lock:
            if digests[:length] != turn.digests:
                conversation.history = None  # used by another conversation, or cut
                return
            added = [message for message in cached if not is_system(message.plain)][length:]
            # Two people may ask the same first question: it identifies nobody.
            conversation.identify_by(added if turn.length else added[1:])
            conversation.end_turn(turn.offset, digests)
            self.conversations.assign_history(conversation, history)

    # -------------------------------------------------------- between turns

    @property
    def agent_title(self) -> str:
        """The agent's name for a log line."""
        return agent_title(self._agent())

    @property
    def host_id(self) -> str | None:
        """The bot's id of the conversation, else the agent's session id."""
        agent = self._agent()
        return None if agent is None else bot_conversation(agent).bot_id or session_id_of(agent)

    @property
    def history(self) -> list[Any] | None:
        """`chat_history`: the host's list of the agent's messages."""
        history = getattr(self._agent(), "chat_history", None)
        return history if isinstance(history, list) else None

    def user_sessions(self) -> tuple[str, ...]:
        """Return the current session and the sessions that led to it."""
        current = self.current
        return tuple(dict.fromkeys((*current.earlier_sessions, current.session_id)))

    def switch_to(self, session_id: str, history: Sequence[Message]) -> Conversation:
        """Begin or continue a session; `history` replaces the host's history."""
        earlier_sessions = self.user_sessions()
        agent = self._agent()
        if agent is not None:
            agent.clear_history()
            agent.chat_history = list(history)
        cached = self._digest_messages(history)
        digests = digests_without_system(cached)
        with self.conversations.lock:
            conversation = Conversation(session_id, self.host_id, earlier_sessions, digests=digests)
            conversation.add_sent(digests, 0)
            conversation.identify_by(cached)
            self.conversations.assign_history(conversation, self.history)
            return self.conversations.remember(conversation)

    # -------------------------------------------------------- what is no conversation

    def belongs_to_conversation(self, messages: Sequence[Message]) -> bool:
        """Return whether a request belongs to the agent's conversation."""
        # Titles, guardrails and memory extraction send requests of their own.
        history = list(self.history or ())
        first, sent = _first_message(history), _first_message(messages)
        if first is None or sent is None or digest(first) == digest(sent):
            return True
        # In the first turn the host may add a template or retrieved text to the message.
        if len(history) <= 2 and text_of(first) in text_of(sent):
            return True
        return len(set(map(digest, history)).intersection(map(digest, messages))) > 1

    def without_history_copy(self, messages: Sequence[Message]) -> Sequence[Message]:
        """Return the messages without the host's copy of the newest messages.

        With `memory={"history": True}` the host sends a copy before the history itself
        (`ChatMixin._build_messages`). The copy begins later on every turn, so no summary would
        match.
        """
        history = list(self.history or ())
        users = [i for i, message in enumerate(history) if message.get("role") == "user"]
        finished = history[: users[-1]] if users else []
        start = _last_run(messages, finished)
        if start is None:
            return messages
        starts = range(leading_count(messages), start)
        for first in starts:
            # A copy follows the leading messages, or begins with a user message.
            is_turn = first == starts.start or messages[first].get("role") == "user"
            if is_turn and _last_run(finished, list(messages[first:start])) is not None:
                leading = (m for m in messages[:first] if not is_host_summary(m))
                return [*leading, *messages[start:]]
        return messages

    # -------------------------------------------------------- decided by messages

    def _conversation_at_rest(self) -> Conversation:
        host_id = self.host_id
        history = self.history
        conversations = self.conversations
        digests = digests_without_system(self._digest_messages(history))
        with conversations.lock:
            if self._agent() is None and (known := conversations.newest()):
                return known[0]  # the agent is gone, and a program still uses its compressor
            conversation = self._find(host_id, digests, history)
            conversation = conversation or conversations.find_unused(host_id)
            if conversation is None:
                # Only conversations in memory are looked up here. `_begin` looks for a stored
                # session under that host id at the first request.
                is_taken = bool(conversations.with_host_id(host_id))
                session_id = new_session_id(host_id) if host_id is None or is_taken else host_id
                conversation = Conversation(session_id, host_id)
            return conversations.remember(conversation)

    def _find(
        self, host_id: str | None, earlier: tuple[str, ...], history: list[Any] | None
    ) -> Conversation | None:
        """Return the conversation that the module's rules find, or None."""
        pool = self.conversations.with_host_id(host_id)
        if history is not None:
            for conversation in pool:
                digests = conversation.digests
                is_same_list = bool(digests) and conversation.history is history
                if is_same_list and earlier[: len(digests)] == digests:
                    return conversation
        if host_id is not None:
            return _most_shared(pool, earlier)
        count_hits = self.conversations.count_hits
        identified = {c: hits for c in pool if (hits := count_hits(c, earlier))}
        return _single_best({c: (c.is_continued_by(earlier), identified[c]) for c in identified})

    def _begin(self, host_id: str | None, earlier: tuple[str, ...]) -> Conversation:
        conversations = self.conversations
        unused = conversations.find_unused(host_id)
        if unused is not None and unused.session_id != host_id:
            return unused
        if unused is not None:  # `_conversation_at_rest` made it before any request
            conversations.forget(unused)
        if host_id is None or conversations.get(host_id) is not None:
            return Conversation(new_session_id(host_id), host_id)
        store = self._compressors.open_ledger()
        pins = () if unused is None else unused.pinned
        stored = [*stored_sessions(store, self._compressors.config.namespace, host_id)]
        if not conversations.with_host_id(host_id):
            for session in stored:
                if has_any_message(store, session, earlier):
                    return Conversation(session.id, host_id, digests=earlier, pinned=pins)
        is_taken = host_id in {session.id for session in stored}
        return Conversation(new_session_id(host_id) if is_taken else host_id, host_id, pinned=pins)

    def _digest_messages(self, messages: Iterable[Any] | None) -> list[CachedMessage]:
        cache = self._compressors.for_model(None).tokens.cache
        # From a copy: the host may change its list meanwhile.
        return cache.all([m for m in list(messages or ()) if isinstance(m, Mapping)])


def _most_shared(pool: Sequence[Conversation], earlier: tuple[str, ...]) -> Conversation | None:
    """Return the continued conversation, else the conversation with the most shared messages."""
    continued = next((candidate for candidate in pool if candidate.is_continued_by(earlier)), None)
    if continued is not None:
        return continued
    shared = {c: len(set(c.digests[1:]).intersection(earlier)) for c in pool}
    return max(pool, key=shared.__getitem__) if any(shared.values()) else None


def _single_best(scores: dict[Conversation, tuple[bool, int]]) -> Conversation | None:
    highest = max(scores.values(), default=None)
    best = [conversation for conversation, score in scores.items() if score == highest]
    return best[0] if len(best) == 1 else None


def _first_message(messages: Sequence[Message]) -> Message | None:
    return next((message for message in messages if not is_system(message)), None)


def is_host_summary(message: Message) -> bool:
    """Return whether the message is the host's summary of cut turns."""
    return is_system(message) and text_of(message).startswith("[Session Summary]\n")


def _last_run(messages: Sequence[Message], run: Sequence[Message]) -> int | None:
    """Return the last index at which `run` begins in `messages`, or None."""
    size = len(run)
    if size == 0:
        return None
    starts = range(len(messages) - size, -1, -1)
    return next(
        (i for i in starts if messages[i] == run[0] and list(messages[i : i + size]) == run), None
    )
