"""Run programs with an agent of the host, kill them, and run them again."""

import itertools
import multiprocessing
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from praisonaiagents import Agent, MemoryConfig

from praison_compressor.testing import LocalProvider
from tests.helpers import hosting
from tests.helpers.processes import begun

SESSION = "desk"
HOST, HISTORY, OPTION = KEPT = ("host's session", "host's history", "session_id=")
"""Who keeps the conversation: the host, the host with `history`, or the ledger alone."""


@dataclass(frozen=True)
class Program:
    """A program that makes an agent and answers prompts, the same in each run."""

    base_url: str
    url: str
    path: str
    mode: str
    kept: str
    window: int = hosting.WINDOW

    def agent(self) -> Agent:
        """Return the agent that every run of the program makes."""
        place = {"store_url": "sqlite:///restarts.db", "context_window": self.window}
        own = {"session_id": SESSION} if self.kept == OPTION else {}
        asked = hosting.context(self, **place, **own)
        memory = MemoryConfig(session_id=SESSION, history=self.kept == HISTORY)
        tools = [hosting.look_up]
        return hosting.agent(self, self.path, asked, tools=tools, memory=None if own else memory)

    def serve(self, asks: Connection) -> None:
        """Answer each prompt that comes."""
        made = self.agent()
        while True:
            (said,) = hosting.MODES[self.mode](made, [asks.recv()])
            asks.send(said)


def program(provider: LocalProvider, *given: Any, **more: Any) -> Program:
    """Return a program that asks this provider."""
    return Program(provider.base_url, provider.url, *given, **more)


class Running:
    """One run of a program, until it is killed."""

    def __init__(self, ran: Program, method: str = "forkserver") -> None:
        self.asks, theirs = multiprocessing.Pipe()
        self.process = begun(ran.serve, theirs, method=method)
        theirs.close()

    def ask(self, prompt: str, patience: float = 60) -> str | None:
        """Return the answer to a prompt; None if none comes in `patience` seconds."""
        self.asks.send(prompt)
        return self.asks.recv() if self.asks.poll(patience) else None

    def kill(self) -> None:
        """End the process as a crash of the machine does."""
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.join()


def numbered() -> Callable[[str, int], dict[str, Any]]:
    """Return arguments of tool calls, each different from all before it."""
    numbers = itertools.count(1)
    return lambda tool, nth: hosting.numbered(tool, next(numbers))
