"""The agents that asked for compression, what each of them was given, and whose turn is running.

Knows nothing of what an agent is given: `install` says how it is made.
"""

from __future__ import annotations

import functools
import inspect
import logging
import threading
import weakref
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Generic, Protocol, TypeVar

from ..messages.forks import renewed

log = logging.getLogger(__name__)


# ------------------------------------------------------------ whose turn is running


_current: ContextVar[Any] = ContextVar("praison_compressor_turn", default=None)


def current() -> Any:
    """What the agent whose turn is running here was given; None if it did not ask."""
    return _current.get()


@contextmanager
def turn_of(given: Any) -> Iterator[None]:
    """Run a block as a turn of the agent that was given this.

    None is set too: an agent called from a tool of ours must not be taken for its caller.
    """
    token = _current.set(given)
    try:
        yield
    finally:
        _current.reset(token)


def each_step_in_turn(given: Any, stream: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
    """The stream, with the turn set around every step of it and never between two.

    A generator runs in the context of whoever asks for its next item: set once at its start, the
    turn would leak into the consumer, and two interleaved streams would swap theirs.
    """
    try:
        while True:
            with turn_of(given):
                try:
                    item = next(stream)
                except StopIteration as stop:
                    return stop.value
            yield item
    finally:
        with turn_of(given):
            stream.close()


# ------------------------------------------------------------ who asked


class Given(Protocol):
    """What an agent that asked is given."""

    @property
    def asked(self) -> object:
        """What the agent asked for."""

    def leave(self) -> None:
        """Give the agent back what it had."""


G = TypeVar("G", bound=Given)


class Agents(Generic[G]):
    """Which agents asked, and what each was given; no agent is kept alive."""

    def __init__(self, ask: Callable[[Any], Any], make: Callable[[Any, Any], G]) -> None:
        """`ask` reads what an agent asks for now, None where it does not; `make` makes what it is
        then given, of the agent and what it asked."""
        self.gate: Callable[[], bool] | None = None
        """Asked at each turn where a plugin switched us on: it may be switched off again."""
        self._ask = ask
        self._make = make
        self._lock = renewed(threading.RLock())
        self._open = True
        self._given: weakref.WeakKeyDictionary[Any, G] = weakref.WeakKeyDictionary()
        self._failed: weakref.WeakSet[Any] = weakref.WeakSet()

    @property
    def are_served(self) -> bool:
        """Whether agents are given anything: installed, and not switched off."""
        return self._open and (self.gate is None or self.gate())

    def of(self, agent: Any) -> G | None:
        """What the agent was given; None when it does not ask."""
        with self._lock:
            try:
                return self._of(agent)
            except Exception:  # a host in an unknown state
                if agent not in self._failed:
                    name = getattr(agent, "display_name", None)
                    log.exception("agent %s goes on uncompressed", name)
                self._failed.add(agent)
                return None

    def _of(self, agent: Any) -> G | None:
        asked = self._ask(agent) if self.are_served else None
        given = self._given.get(agent)
        if given is not None and given.asked != asked:
            given.leave()
            del self._given[agent]
            given = None
        if given is None and asked is not None:
            given = self._given[agent] = self._make(agent, asked)
        return given

    def close(self) -> None:
        """Take back from every agent what it was given."""
        with self._lock:
            self._open = False
            for given in list(self._given.values()):
                given.leave()
            self._given.clear()


# ------------------------------------------------------------ replaced in the host


class Argument:
    """Where a method of the host takes one of its arguments, whatever else it takes."""

    def __init__(self, method: Callable[..., Any], name: str) -> None:
        names = list(inspect.signature(method).parameters)[1:]
        self._name = name
        # Behind a `*args` of somebody who wrapped it, it is the first as ever.
        self._place = names.index(name) if name in names else 0

    def of(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Its value in a call; None where it is not given. `args` are those after `self`."""
        is_there = len(args) > self._place
        return args[self._place] if is_there else kwargs.get(self._name)

    def put(
        self, value: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
        """The call's arguments with another value for it."""
        if len(args) <= self._place:
            return args, {**kwargs, self._name: value}
        return (*args[: self._place], value, *args[self._place + 1 :]), kwargs


def context_compressor(original: object, agents: Agents[G]) -> property:
    """`agent.context_compressor`; None on an agent that did not ask."""
    return property(agents.of)


class context_config:
    """What the host gives a clone for a channel as its `context=`: it reads an attribute that no
    agent of its own has. One that the host sets itself goes before this."""

    def __init__(self, original: object, agents: Agents[Any]) -> None:
        self._agents = agents

    def __get__(self, agent: Any, kind: type | None = None) -> Any:
        is_ours = agent is not None and self._agents.of(agent) is not None
        return agent._context_param if is_ours else None


def unmanaged(original: Any, agents: Agents[G]) -> Any:
    """Agents of ours keep their messages: the host's management would remove repeated results and
    cut pairs apart before the request reaches us."""
    messages = Argument(original, "messages")

    @functools.wraps(original)
    def _apply_context_management(self: Any, *args: Any, **kwargs: Any) -> Any:
        if agents.of(self) is None:
            return original(self, *args, **kwargs)
        return messages.of(args, kwargs), None

    return _apply_context_management


def in_loop_compaction(original: object, agents: Agents[G]) -> property:
    """The host's switch for the same in a tool loop: off in turns of ours. An `LLM` may be shared
    with agents that did not ask, so the turn decides, not the object."""
    name = "_in_loop_compaction"

    def get(self: Any) -> Any:
        return vars(self).get(name, True) if current() is None else False

    return property(get, lambda self, value: vars(self).__setitem__(name, value))
