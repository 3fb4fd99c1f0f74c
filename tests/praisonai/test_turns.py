"""Each request is known by whose turn it is: threads, tasks, streams, tools, shared objects."""

from __future__ import annotations

import itertools
import logging
import threading
from typing import Any

import litellm
import pytest
from praisonaiagents import Agent
from praisonaiagents.llm.llm import LLM

from praison_compressor import Event
from praison_compressor.praisonai import conversations
from praison_compressor.testing import LocalProvider, Worker
from tests.helpers import hosting
from tests.helpers.hosting import (
    LITELLM,
    OUTGROWING,
    PATHS,
    WINDOW,
    agent,
    context,
    look_up,
    numbered,
    of_agent,
    turn,
)

LONG = 14  # messages of a conversation that nobody compressed


def asked_by(provider: LocalProvider, name: str) -> list[Any]:
    """The requests of the agent with these instructions."""
    return [r for r in of_agent(provider) if f"You are {name}." in r.messages[0]["content"]]


def named(provider: LocalProvider, path: str, name: str, asked: Any = None, **more: Any) -> Agent:
    """An agent whose requests are known by its name."""
    return agent(provider, path, asked, name=name, instructions=f"You are {name}.", **more)


@pytest.mark.parametrize("path", PATHS)
def test_an_agent_inside_a_tool_is_itself(host: LocalProvider, path: str) -> None:
    """The agent that a tool of ours calls did not ask: its long conversation is left whole."""
    host.set_window(100_000)
    inner = named(host, path, "Inner")

    def ask_inner(topic: str) -> str:
        """Ask the other agent.

        Args:
            topic: what about
        """
        return f"{topic}: {inner.chat(f'{topic}: {turn(0)}')}"

    outer = named(host, path, "Outer", context(host, context_window=3_000), tools=[ask_inner])
    host.answer_with(
        Worker(
            lambda asked: 2 if asked.tools else 0,
            tool="ask_inner",
            arguments=lambda tool, nth: {"topic": f"topic {nth} of {len(inner.chat_history)}"},
            answer="Noted. " * 12,
        )
    )
    for prompt in OUTGROWING:
        assert outer.chat(prompt) is not None
    assert outer.context_compressor.context_status == "summarized"
    assert len(inner.chat_history) >= LONG / 2
    longest = asked_by(host, "Inner")[-1].messages
    assert len(longest) >= len(inner.chat_history)
    assert not any("praison" in str(m.get("content", "")).lower() for m in longest[1:])


def check_only_these_are_compressed(host: LocalProvider, **asked: bool) -> None:
    longest = {name: max(len(r.messages) for r in asked_by(host, name)) for name in asked}
    assert {name: length < LONG / 2 for name, length in longest.items()} == asked
    assert all(longest[name] >= LONG - 2 for name in asked if not asked[name])


@pytest.mark.parametrize("path", PATHS)
def test_threads_do_not_meet(host: LocalProvider, path: str) -> None:
    """Four agents in four threads, two of which asked: only theirs are compressed."""
    host.set_window(100_000)
    asked = {"Ann": True, "Ben": False, "Cleo": True, "Dan": False}
    small = {"context_window": 3_000}
    made = [
        named(host, path, name, context(host, **small) if asked[name] else None) for name in asked
    ]

    def talk(one: Agent) -> None:
        for prompt in OUTGROWING:
            one.chat(prompt)

    threads = [threading.Thread(target=talk, args=(one,)) for one in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check_only_these_are_compressed(host, **asked)


@pytest.mark.parametrize("path", PATHS)
def test_interleaved_streams_do_not_meet(host: LocalProvider, path: str) -> None:
    """Two streams read in turns, and between their chunks nobody's turn is running."""
    host.set_window(100_000)
    one = named(host, path, "Ann", context(host, context_window=3_000))
    other = named(host, path, "Ben")
    seen = set()
    for prompt in OUTGROWING:
        streams = [one.iter_stream(prompt), other.iter_stream(prompt)]
        while streams:
            for stream in list(streams):
                if next(stream, None) is None:
                    streams.remove(stream)
                seen.add(conversations.current())
    assert seen == {None}
    check_only_these_are_compressed(host, Ann=True, Ben=False)


@pytest.mark.parametrize("path", PATHS)
def test_a_stream_that_ends_early_leaves_no_turn(host: LocalProvider, path: str) -> None:
    """Closed after one chunk, or with an error thrown in, which reaches the host as before."""
    made = named(host, path, "Ann", context(host))
    stream = made.iter_stream(turn(0))
    assert next(stream, None) is not None
    stream.close()
    assert conversations.current() is None
    stream = made.iter_stream(turn(1))
    next(stream)
    with pytest.raises(KeyError):
        stream.throw(KeyError("stop"))
    assert conversations.current() is None
    assert made.chat(turn(2)) is not None


@pytest.mark.parametrize("path", PATHS)
def test_a_turn_after_a_tool_loop_begins_with_all_that_the_host_sends_again(
    host: LocalProvider, path: str
) -> None:
    """The host drops a turn's tool steps, and the next turn begins with them all the same: all but
    the answer and the new question is in the provider's cache."""
    host.answer_with(Worker(3, arguments=numbered, answer="Noted."))
    made, events = agent(host, path, context(host), tools=[look_up]), list[Event]()
    made.context_compressor.subscribe(events.append)
    for n in range(10):
        assert made.chat(turn(n, words=64)) == "Noted."
    shares = hosting.prefix_shares(list(host.requests))
    committed = sum(event.name == "committed" for event in events)
    assert shares == [1] * len(shares)
    assert len(shares) >= len(of_agent(host)) - 1 - committed
    pairs = itertools.pairwise(of_agent(host))
    begun = [
        after
        for before, after in pairs
        if before.messages[-1]["role"] == "tool" and after.messages[-1]["role"] == "user"
    ]
    new = [record.prompt_tokens - record.cached_tokens for record in begun]
    assert len(new) == 9
    large = [tokens for tokens in new if tokens > 800]
    assert len(large) <= committed


@pytest.mark.parametrize(("window", "words"), [(100_000, 900), (WINDOW, 300), (WINDOW, 900)])
def test_what_is_not_the_conversation_is_made_to_fit_and_said(
    host: LocalProvider,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    window: int,
    words: int,
) -> None:
    """A request of another model inside a turn goes out as it is while that model's window takes
    it, shortened where not, and a debug line says why it is not recorded."""
    monkeypatch.setitem(litellm.model_cost, "small-local", {"max_input_tokens": window})
    host.set_window(window, "small-local")
    made = named(host, LITELLM, "Ann", context(host))
    other = LLM(model="openai/small-local", base_url=host.base_url, api_key="sk")
    asked = turn(99, words=words)

    def classify(topic: str) -> str:
        """Classify.

        Args:
            topic: what
        """
        return str(other.get_response(asked, verbose=False, stream=False))

    made.tools = [classify]
    host.answer_with(Worker(lambda asked: 1 if asked.tools else 0, answer="Noted."))
    with caplog.at_level(logging.DEBUG, logger="praison_compressor.praisonai.sending"):
        assert made.chat(turn(0)) == "Noted."
    (sent,) = host.for_model("small-local")
    assert (sent.messages[-1]["content"] == asked) == (words == 300 or window > WINDOW)
    assert host.refused == []
    assert len([r for r in caplog.records if "not recorded" in r.getMessage()]) == 1
