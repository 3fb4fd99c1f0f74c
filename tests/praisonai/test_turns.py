"""Each request is known by whose turn it is: threads, tasks, streams, tools, shared objects."""

from __future__ import annotations

import asyncio
import itertools
import logging
import threading
from typing import Any

import litellm
import pytest
from praisonaiagents import Agent
from praisonaiagents.compaction import ContextCompactor
from praisonaiagents.llm.llm import LLM

from praison_compressor.praisonai import agents
from praison_compressor.testing import Asked, LocalProvider, Reply, Worker
from tests.benchmarks import session
from tests.helpers.hosting import (
    LITELLM,
    OPENAI,
    PATHS,
    WINDOW,
    agent,
    context,
    look_up,
    numbered,
    of_agent,
    turn,
)

LONG = 40  # messages of a conversation that nobody compressed


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
            arguments=lambda tool, nth: {"topic": f"topic {nth} of {len(inner.chat_history)}"},
            answer="Noted. " * 12,
        )
    )
    for n in range(10):
        assert outer.chat(turn(n)) is not None
    assert outer.context_compressor.context_status == "summarized"
    assert len(inner.chat_history) >= LONG / 2
    longest = asked_by(host, "Inner")[-1].messages
    assert len(longest) >= len(inner.chat_history)
    assert not any("praison" in str(m.get("content", "")).lower() for m in longest[1:])


@pytest.mark.parametrize("path", PATHS)
def test_threads_do_not_meet(host: LocalProvider, path: str) -> None:
    """Four agents in four threads, two of which asked: only theirs are compressed."""
    host.set_window(100_000)
    names = {"Ann": True, "Ben": False, "Cleo": True, "Dan": False}
    small = {"context_window": 3_000}
    made = {
        name: named(host, path, name, context(host, **small) if asked else None)
        for name, asked in names.items()
    }

    def talk(name: str) -> None:
        for n in range(20):
            made[name].chat(turn(n))

    threads = [threading.Thread(target=talk, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    longest = {name: max(len(r.messages) for r in asked_by(host, name)) for name in names}
    assert {name for name, length in longest.items() if length < LONG / 2} == {"Ann", "Cleo"}


@pytest.mark.parametrize("path", PATHS)
def test_tasks_do_not_meet(host: LocalProvider, path: str) -> None:
    """The same on one event loop."""
    host.set_window(100_000)
    one = named(host, path, "Ann", context(host, context_window=3_000))
    other = named(host, path, "Ben")

    async def run() -> None:
        for n in range(20):
            await asyncio.gather(one.achat(turn(n)), other.achat(turn(n)))

    asyncio.run(run())
    assert max(len(r.messages) for r in asked_by(host, "Ann")) < LONG / 2
    assert max(len(r.messages) for r in asked_by(host, "Ben")) >= LONG - 2


@pytest.mark.parametrize("path", PATHS)
def test_interleaved_streams_do_not_meet(host: LocalProvider, path: str) -> None:
    """Two streams read in turns, and between their chunks nobody's turn is running."""
    host.set_window(100_000)
    one = named(host, path, "Ann", context(host, context_window=3_000))
    other = named(host, path, "Ben")
    seen = set()
    for n in range(20):
        streams = [one.iter_stream(turn(n)), other.iter_stream(turn(n))]
        while streams:
            for stream in list(streams):
                if next(stream, None) is None:
                    streams.remove(stream)
                seen.add(agents.current())
    assert seen == {None}
    assert max(len(r.messages) for r in asked_by(host, "Ann")) < LONG / 2
    assert max(len(r.messages) for r in asked_by(host, "Ben")) >= LONG - 2


@pytest.mark.parametrize("path", PATHS)
def test_an_abandoned_stream_leaves_nothing(host: LocalProvider, path: str) -> None:
    """Who stops reading after one chunk has no turn left over, and the agent goes on."""
    made = named(host, path, "Ann", context(host))
    stream = made.iter_stream(turn(0))
    assert next(stream, None) is not None
    stream.close()
    assert agents.current() is None
    assert made.chat(turn(1)) is not None


def test_a_stream_takes_what_is_thrown(host: LocalProvider) -> None:
    """An error thrown into the stream reaches the host's generator, as before."""
    made = named(host, OPENAI, "Ann", context(host))
    stream = made.iter_stream(turn(0))
    next(stream)
    with pytest.raises(KeyError):
        stream.throw(KeyError("stop"))
    assert agents.current() is None


def test_a_shared_model_object(host: LocalProvider) -> None:
    """Two agents on one `LLM` object: the turn decides, not the object."""
    host.set_window(100_000)
    shared = LLM(model="openai/gpt-local", base_url=host.base_url, api_key="sk-shared")
    one = named(
        host, LITELLM, "Ann", context(host, context_window=3_000), llm=shared, base_url=None
    )
    other = named(host, LITELLM, "Ben", llm=shared, base_url=None)
    for n in range(20):
        one.chat(turn(n))
        other.chat(turn(n))
    assert max(len(r.messages) for r in asked_by(host, "Ann")) < LONG / 2
    assert max(len(r.messages) for r in asked_by(host, "Ben")) >= LONG - 2


def test_a_request_that_does_not_extend_the_conversation(host: LocalProvider) -> None:
    """What a tool asks the agent's own model is made to fit, and moves no session on."""
    made = named(host, LITELLM, "Ann", context(host))
    answers = []

    def classify(topic: str) -> str:
        """Classify.

        Args:
            topic: what
        """
        words = "Which kind is this? " + turn(99, words=500)
        answers.append(made.llm_instance.get_response(words, verbose=False, stream=False))
        return "a kind"

    made.tools = [classify]
    host.answer_with(Worker(lambda asked: 1 if asked.tools else 0, answer="Noted."))
    before = made.context_compressor.engine().store.open(
        "default", made.context_compressor.session_id
    )
    assert made.chat(turn(0)) == "Noted."
    after = made.context_compressor.engine().store.open(
        "default", made.context_compressor.session_id
    )
    assert answers == ["Noted."]
    assert after.tip == before.tip
    assert host.for_model("aux") == []
    assert host.refused == []


def test_another_model_asked_inside_a_turn_is_not_touched(host: LocalProvider) -> None:
    """A tool's own model has a window of its own: its request goes out as it is."""
    host.set_window(100_000, "big-local")
    made = named(host, LITELLM, "Ann", context(host))
    other = LLM(model="openai/big-local", base_url=host.base_url, api_key="sk")
    words = turn(99, words=900)

    def digest_it(topic: str) -> str:
        """Digest a long text.

        Args:
            topic: what
        """
        return str(other.get_response(words, verbose=False, stream=False))

    made.tools = [digest_it]
    host.answer_with(Worker(lambda asked: 1 if asked.tools else 0, answer="Noted."))
    assert made.chat(turn(0)) == "Noted."
    (asked,) = host.for_model("big-local")
    assert asked.messages[-1]["content"] == words
    assert asked.prompt_tokens > 6_000


@pytest.mark.parametrize("path", PATHS)
def test_a_turn_after_a_tool_loop_begins_with_all_that_the_host_sends_again(
    host: LocalProvider, path: str
) -> None:
    """`chat` drops a turn's tool steps: the next turn begins with that turn's first request, byte
    for byte, and all but the answer and the new question is in the provider's cache."""
    host.answer_with(Worker(3, arguments=numbered, answer="Noted."))
    made = agent(host, path, context(host), tools=[look_up])
    for n in range(20):
        assert made.chat(turn(n)) == "Noted."
    requests = list(host.requests)
    shares = session.prefix_shares(requests)
    assert shares == [1] * len(shares)
    assert len(shares) > 60
    pairs = itertools.pairwise(of_agent(host))
    begun = [after for before, after in pairs if session.is_dropped(before, after)]
    new = [record.prompt_tokens - record.cached_tokens for record in begun]
    assert len(new) == 19
    large = [tokens for tokens in new if tokens > 400]
    assert len(large) <= len(host.for_model("aux"))


@pytest.mark.parametrize("words", [300, 900])
def test_what_is_not_the_conversation_is_made_to_fit_and_said(
    host: LocalProvider,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    words: int,
) -> None:
    """A request of another model inside a turn goes out as it is while that model's window takes
    it, shortened where not, and a debug line says why it is not recorded."""
    monkeypatch.setitem(litellm.model_cost, "small-local", {"max_input_tokens": WINDOW})
    host.set_window(WINDOW, "small-local")
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
    with caplog.at_level(logging.DEBUG, logger="praison_compressor.praisonai.agent_compressor"):
        assert made.chat(turn(0)) == "Noted."
    (sent,) = host.for_model("small-local")
    assert (sent.messages[-1]["content"] == asked) == (words == 300)
    assert host.refused == []
    assert len([r for r in caplog.records if "not recorded" in r.getMessage()]) == 1


def test_the_hosts_own_compaction_stays_off(host: LocalProvider) -> None:
    """In a long tool loop on litellm, the host sends every result whole to the wire."""

    def answer(asked: Asked) -> Reply:
        return Worker(12, parallel=2, arguments=lambda tool, nth: {"topic": f"t{nth}"})(asked)

    def look(topic: str) -> str:
        """Look.

        Args:
            topic: what
        """
        return f"{topic}: " + turn(1, words=20)

    host.set_window(12_000)
    host.answer_with(answer)
    # The host would clear results at half of the window that it knows: tell it a small one.
    made = named(host, LITELLM, "Ann", context(host, context_window=12_000), tools=[look])
    made.llm_instance._clear_threshold_pct = 0.001
    made.execution.max_tool_calls_per_turn = 100
    assert made.chat(turn(0)) == "Done."
    assert not any("cleared" in r.text.lower() for r in of_agent(host))


@pytest.mark.parametrize(("ours", "counts"), [(True, False), (False, True)])
def test_the_hosts_own_compaction_does_not_even_count(
    host: LocalProvider, monkeypatch: pytest.MonkeyPatch, ours: bool, counts: bool
) -> None:
    """On 1.7.4 and 1.7.10 it counts with encodings that tiktoken downloads; not for ours."""
    counted: list[str] = []
    original = ContextCompactor.estimate_tokens

    def estimate_tokens(self: Any, text: str) -> int:
        counted.append(text)
        return original(self, text)

    monkeypatch.setattr(ContextCompactor, "estimate_tokens", estimate_tokens)
    host.set_window(100_000)
    host.answer_with(Worker(2, arguments=numbered, answer="Noted."))
    made = named(host, LITELLM, "Ann", context(host) if ours else None, tools=[look_up])
    assert made.chat(turn(0)) == "Noted."
    assert bool(counted) is counts
