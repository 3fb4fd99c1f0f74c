"""The strict provider with the host: real agents with a tool, unpatched, on each of its paths."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from praisonaiagents import Agent

from praison_compressor.testing import LocalProvider, Worker


def read_file(path: str) -> str:
    """Read a file."""
    return f"contents of {path}"


# The model, which address the agent is given, and the path that its requests then take. Without
# an address of its own the agent uses the host's OpenAI client and the environment.
PATHS: dict[str, tuple[str, str | None, str]] = {
    "openai client": ("gpt-4o-mini", None, "/v1/chat/completions"),
    "litellm chat": ("openai/local", "base_url", "/v1/chat/completions"),
    "litellm responses": ("openai/gpt-4o-mini", "base_url", "/v1/responses"),
    "litellm anthropic": ("anthropic/claude-sonnet-4-5", "url", "/v1/messages"),
}


@pytest.fixture
def at_home(provider: LocalProvider, monkeypatch: pytest.MonkeyPatch) -> LocalProvider:
    """A provider that the environment names, too: the responses path reads only that."""
    monkeypatch.setenv("OPENAI_BASE_URL", provider.base_url)
    monkeypatch.setenv("OPENAI_API_BASE", provider.base_url)
    monkeypatch.setenv("OPENAI_API_KEY", "any")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "any")
    provider.answer_with(Worker(calls=3, answer="All done."))
    return provider


def agent(provider: LocalProvider, name: str) -> Agent:
    model, address, _ = PATHS[name]
    where: dict[str, Any] = {"base_url": getattr(provider, address)} if address else {}
    return Agent(instructions="You read files.", llm=model, tools=[read_file], **where)


@pytest.mark.parametrize("name", PATHS)
def test_an_agent_finishes_its_tool_loop(at_home: LocalProvider, name: str) -> None:
    """Two turns of three calls each: every request is accepted, on the path it should take."""
    worker = agent(at_home, name)
    answers = [worker.chat("read three files"), worker.chat("and three more")]
    assert answers == ["All done.", "All done."]
    assert {record.path for record in at_home.requests} == {PATHS[name][2]}
    assert at_home.refused == []
    results = [m for m in at_home.requests[3].messages if m["role"] == "tool"]
    assert [str(m["content"]).count("contents of path-") for m in results] == [1, 1, 1]


@pytest.mark.parametrize("name", PATHS)
def test_an_agent_finishes_its_tool_loop_async(at_home: LocalProvider, name: str) -> None:
    """The same through `achat`."""
    worker = agent(at_home, name)
    assert asyncio.run(worker.achat("read three files")) == "All done."
    assert at_home.refused == []
    assert len(at_home.requests) >= 4


@pytest.mark.parametrize("name", PATHS)
def test_an_agent_streams(at_home: LocalProvider, name: str) -> None:
    """The same through a streamed `start`."""
    pieces = list(agent(at_home, name).start("read three files", stream=True))
    assert "".join(pieces) == "All done."
    assert at_home.refused == []
