"""Agents whose conversation the host keeps on the disk, and what is on it afterwards."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest
from praisonaiagents import Agent, MemoryConfig
from praisonaiagents.session import get_default_session_store
from praisonaiagents.session import store as host_stores

from praison_compressor.ledger.sql.database import default_path
from praison_compressor.testing import LocalProvider
from tests.helpers.hosting import OPENAI, agent, context, turn

SESSION = "books-of-1900"
TURNS = 16


def kept(
    provider: LocalProvider,
    path: str = OPENAI,
    asked: Any = None,
    session: str = SESSION,
    history: bool = False,
    **more: Any,
) -> Agent:
    """An agent whose conversation the host keeps on the disk."""
    memory = MemoryConfig(session_id=session, history=history)
    return agent(provider, path, asked or context(provider), memory=memory, **more)


def talk(made: Agent, count: int = TURNS) -> Any:
    """Turns enough for a compression; returns the compressor."""
    for n in range(count):
        assert made.chat(turn(n)) is not None
    assert made.context_compressor.context_status == "summarized"
    return made.context_compressor


def summaries_asked(provider: LocalProvider) -> int:
    """How many requests the summarizer had."""
    return sum(record.model == "aux" for record in provider.requests)


def rights(path: Path) -> int:
    """The permission bits."""
    return stat.S_IMODE(path.stat().st_mode)


def bytes_kept() -> bytes:
    """Every byte of every file of ours and of the host's session store."""
    places = (default_path().parent, Path(get_default_session_store().session_dir))
    files = [path for place in places for path in place.rglob("*") if path.is_file()]
    return b"".join(path.read_bytes() for path in files)


def use_as_default(monkeypatch: pytest.MonkeyPatch, store: Any) -> Any:
    """Inject the host's default session store, as its users do."""
    monkeypatch.setattr(host_stores, "_default_store", store)
    return store
