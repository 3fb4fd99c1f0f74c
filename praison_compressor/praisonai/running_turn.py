"""Track the turn and the bot that run in this context."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

from .conversations import Conversation, Conversations

T = TypeVar("T")

# ------------------------------------------------------------ the turn


class TurnRequests(Protocol):
    """The requests of an agent, as its turns use them."""

    request_count: int

    def end_turn(self, turn: Turn, error: type[BaseException] | None) -> None:
        """End a turn; `error` is the error that ended the turn."""

    def record_turn(self, turn: Turn) -> None:
        """Record a finished turn in the store; never raise."""


@dataclass(eq=False)
class Turn:
    """One turn of an agent, whose requests belong to one conversation."""

    requests: TurnRequests
    conversations: Conversations
    request_count_before: int
    history: list[Any] | None
    """The host's list of messages when the turn began."""
    digests: tuple[str, ...]
    """Digests of `history` when the turn began."""
    history_limit: int = 0
    """Upper limit of messages in `history`; 0: unknown."""
    conversation: Conversation | None = None
    """Set by the first request, with `offset` and `length`."""
    offset: int = 0
    """Messages of the conversation before the first one that the host sends."""
    length: int = 0
    """Messages of the conversation before the turn."""

    def __enter__(self) -> Turn:
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        self.requests.end_turn(self, error)
        # Record no closed generator's turn: the collector may close the generator inside the
        # store's own lock.
        if error is not GeneratorExit:
            self.requests.record_turn(self)

    async def __aenter__(self) -> Turn:
        return self

    async def __aexit__(self, error: type[BaseException] | None, *_: object) -> None:
        self.requests.end_turn(self, error)
        if error is not GeneratorExit:  # a closed coroutine must not wait
            await asyncio.to_thread(self.requests.record_turn, self)


_turn_here: ContextVar[Turn | None] = ContextVar("praison_compressor_turn", default=None)


def running_turn() -> Turn | None:
    """Return the turn that runs in this context, or None."""
    return _turn_here.get()


@contextmanager
def _set(variable: ContextVar[T], value: T) -> Iterator[None]:
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def in_turn(turn: Turn | None) -> AbstractContextManager[None]:
    """Run a block in a turn; None hides a caller's turn."""
    return _set(_turn_here, turn)


def stream_in_turn(turn: Turn | None, stream: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
    """Yield from a stream; set the turn only during each step."""
    # A generator runs in its caller's context: two interleaved streams would swap their turns.
    try:
        while True:
            with in_turn(turn):
                try:
                    item = next(stream)
                except StopIteration as stop:
                    return stop.value
            yield item
    finally:
        with in_turn(turn):
            stream.close()


# ------------------------------------------------------------ a bot's id


class BotConversation(NamedTuple):
    """The conversation for which a bot calls its agent."""

    bot_id: str | None = None
    """The bot's id of the conversation; None outside a bot."""
    history_limit: int = 0
    """Upper limit of messages in the agent's list; 0: unknown."""


_bot_here: ContextVar[tuple[weakref.ref[Any], BotConversation] | None] = ContextVar(
    "praison_compressor_bot", default=None
)


def set_bot_conversation(agent: Any, conversation: BotConversation) -> None:
    """Set the conversation for which a bot calls an agent."""
    _bot_here.set((weakref.ref(agent), conversation))


def bot_scope() -> AbstractContextManager[None]:
    """Run a block; forget its bot's conversation at its end."""
    return _set(_bot_here, None)


def bot_conversation(agent: Any) -> BotConversation:
    """Return the conversation for which a bot calls the agent here."""
    here = _bot_here.get()
    return here[1] if here is not None and here[0]() is agent else BotConversation()
