"""Programs with an agent of the host that are killed and run again, each a process of its own."""

from __future__ import annotations

import multiprocessing
import os
import signal
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from praisonaiagents import Agent, MemoryConfig

from praison_compressor.testing import LocalProvider
from tests.helpers import hosting

SESSION = "desk"
HOST, HISTORY, OPTION = KEPT = ("host's session", "host's history", "session_id=")
"""Who keeps the conversation: the host, the host with `history`, or the ledger alone."""


@dataclass(frozen=True)
class Program:
    """What each run of the program is made of."""

    provider: LocalProvider
    path: str
    mode: str
    kept: str
    store: str
    window: int

    def agent(self) -> Agent:
        """Return the agent that every run of the program makes."""
        more: dict[str, Any] = {"store_url": self.store, "context_window": self.window}
        if self.kept == OPTION:
            more["session_id"] = SESSION
        asked = hosting.context(self.provider, **more)
        host = MemoryConfig(session_id=SESSION, history=self.kept == HISTORY)
        memory = None if self.kept == OPTION else host
        tools = [hosting.look_up]
        return hosting.agent(self.provider, self.path, asked, memory=memory, tools=tools)

    def serve(self, asks: Connection) -> None:
        """Answer each prompt that comes, in the process of the program."""
        made = self.agent()
        while True:
            (said,) = hosting.MODES[self.mode](made, [asks.recv()])
            asks.send(said)


class Running:
    """One run of a program, until it is killed."""

    def __init__(self, program: Program) -> None:
        self.asks, theirs = multiprocessing.Pipe()
        context = multiprocessing.get_context("fork")
        self.process = context.Process(target=program.serve, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()

    def ask(self, prompt: str, patience: float = 60) -> str | None:
        """Return the answer to a prompt; None if none comes in `patience` seconds."""
        self.asks.send(prompt)
        return self.asks.recv() if self.asks.poll(patience) else None

    def kill(self) -> None:
        """End the process as a crash of the machine does."""
        assert self.process.pid is not None
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.join()
