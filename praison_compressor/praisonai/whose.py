"""Find whose conversation the running turn of one agent is, and whose its history is."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..errors import StoreUnavailable
from ..messages.digests import Seen
from .conversations import Conversation, Conversations, Turn, named_by_host, running, said
from .engines import Engines
from .requests import HostRequest
from .sessions import Stored, new_session_id, session_id_of, stored_under


class Whose:
    """The conversations of one agent, found by its turns and by its history."""

    def __init__(self, agent: weakref.ref[Any], owner: Any, engines: Engines) -> None:
        """`owner`: the agent's compressor, which its turns name."""
        self._agent = agent
        self._owner = owner
        self._engines = engines
        self.all = Conversations(self._stored)

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
    def now(self) -> Conversation:
        """Return the running turn's conversation, else the one that the history carries now."""
        history = self.history
        return self.running or self.all.at_rest(self.key, self.seen(history), history)

    @property
    def for_reading(self) -> Conversation:
        """Return the running turn's conversation, or a blank one."""
        return self.running or Conversation(new_session_id())

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

    def carrying(self, request: HostRequest) -> Conversation:
        """Return the conversation that a request carries, and remember the request there."""
        return self.all.of(self.turn or self.begun(), self.key, self.seen(request.messages))

    def begun(self) -> Turn:
        """Return a turn that begins with the agent's history."""
        history = self.history
        return Turn(self._owner, history, said(self.seen(history)))

    def end(self, turn: Turn) -> None:
        """Remember the host's history after a turn."""
        history = self.history
        self.all.end(turn, self.seen(history), history)

    @property
    def key(self) -> str | None:
        """Return the host's id for the conversation: its bots' key, or the agent's session id."""
        agent = self._agent()
        return named_by_host(agent) or session_id_of(agent)

    @property
    def history(self) -> list[Any] | None:
        """Return the host's list of the agent's messages."""
        found = getattr(self._agent(), "chat_history", None)
        return found if isinstance(found, list) else None

    def seen(self, messages: Iterable[Any] | None) -> list[Seen]:
        """Return what is known of each message; copy the list first, for others may add."""
        cache = self._engines.of(None).tokens.cache
        return cache.all([m for m in list(messages or ()) if isinstance(m, Mapping)])

    def _stored(self, key: str) -> Iterator[Stored]:
        engines = self._engines
        return stored_under(engines.open(), engines.config.namespace, key)
