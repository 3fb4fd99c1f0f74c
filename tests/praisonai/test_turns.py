"""Each request is assigned to its turn: threads, streams, tools, clones, teams, flows."""

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import litellm
import pytest
from praisonaiagents import Agent, AgentTeam, Task, handoff
from praisonaiagents.llm.llm import LLM
from praisonaiagents.workflows import Workflow
from praisonaiagents.workflows.workflows import loop, parallel, repeat, route
from praisonaiagents.workflows.yaml_parser import YAMLWorkflowParser

from praison_compressor.praisonai import running_turn
from praison_compressor.testing import LocalProvider, Worker
from tests.helpers.hosting import (
    LITELLM,
    OPENAI,
    OUTGROWING,
    PATHS,
    WINDOW,
    agent,
    chat,
    context,
    look_up,
    of_agent,
    turn,
)

LONG = 14  # messages of a conversation that nobody compressed


def asked_by(provider: LocalProvider, name: str) -> list[Any]:
    """Return the requests of the agent with these instructions."""
    return [r for r in of_agent(provider) if f"You are {name}." in r.messages[0]["content"]]


def named(provider: LocalProvider, path: str, name: str, asked: Any = None, **more: Any) -> Agent:
    """Return an agent whose requests are known by its name."""
    return agent(provider, path, asked, name=name, instructions=f"You are {name}.", **more)


@pytest.mark.parametrize("path", PATHS)
def test_an_agent_inside_a_tool_is_itself(host, path):
    """An agent without `context=`, called in a compressed agent's tool, is not compressed."""
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
    assert None not in chat(outer, OUTGROWING)
    assert outer.context_compressor.context_status == "summarized"
    assert len(inner.chat_history) >= LONG / 2
    longest = asked_by(host, "Inner")[-1].messages
    assert len(longest) >= len(inner.chat_history)
    assert not any("praison" in str(m.get("content", "")).lower() for m in longest[1:])


def test_an_agent_keeps_its_conversation_in_anothers_turn(host):
    """In another agent's turn an agent's compressor has the agent's own conversation."""
    idle = agent(host, OPENAI, context(host))
    chat(idle, [turn(0)])
    own, seen = idle.context_compressor.session_id, []

    def look(topic: str) -> str:
        """Look at the idle agent.

        Args:
            topic: what about
        """
        seen.append(idle.context_compressor.session_id)
        return topic

    host.answer_with(Worker(1, tool="look", arguments=lambda tool, nth: {"topic": f"{nth}"}))
    chat(agent(host, OPENAI, context(host), tools=[look]), [turn(1)])
    assert seen == [own]


def check_only_these_are_compressed(host: LocalProvider, **asked: bool) -> None:
    longest = {name: max(len(r.messages) for r in asked_by(host, name)) for name in asked}
    assert {name: length < LONG / 2 for name, length in longest.items()} == asked
    assert all(longest[name] >= LONG - 2 for name in asked if not asked[name])


@pytest.mark.parametrize("path", PATHS)
def test_threads_do_not_meet(host, path):
    """Of four agents in four threads, only the two with `context=` are compressed."""
    host.set_window(100_000)
    asked = {"Ann": True, "Ben": False, "Cleo": True, "Dan": False}
    small = {"context_window": 3_000}
    made = [
        named(host, path, name, context(host, **small) if asked[name] else None) for name in asked
    ]
    with ThreadPoolExecutor(len(made)) as threads:
        assert all(None not in said for said in threads.map(chat, made, [OUTGROWING] * len(made)))
    check_only_these_are_compressed(host, **asked)


@pytest.mark.parametrize("path", PATHS)
def test_interleaved_streams_do_not_meet(host, path):
    """Two interleaved streams run their turns only within their own steps."""
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
                seen.add(running_turn.running_turn())
    assert seen == {None}
    check_only_these_are_compressed(host, Ann=True, Ben=False)


@pytest.mark.parametrize("path", PATHS)
def test_a_stream_that_ends_early_leaves_no_turn(host, path):
    """A stream that is closed early or receives an error leaves no running turn."""
    made = named(host, path, "Ann", context(host))
    stream = made.iter_stream(turn(0))
    assert next(stream, None) is not None
    stream.close()
    assert running_turn.running_turn() is None
    stream = made.iter_stream(turn(1))
    next(stream)
    with pytest.raises(KeyError):
        stream.throw(KeyError("stop"))
    assert running_turn.running_turn() is None
    assert made.chat(turn(2)) is not None


@pytest.mark.parametrize(
    ("window", "words", "is_whole"),
    [(100_000, 900, True), (WINDOW, 300, True), (WINDOW, 900, False)],
)
def test_another_models_request_in_a_turn_is_made_to_fit(
    host, caplog, monkeypatch, window, words, is_whole
):
    """A request of another model inside a turn is shortened only above that model's window."""
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
    with caplog.at_level(logging.DEBUG, logger="praison_compressor.praisonai.agent_requests"):
        assert made.chat(turn(0)) == "Noted."
    (sent,) = host.for_model("small-local")
    assert (sent.messages[-1]["content"] == asked) == is_whole
    assert host.refused == []
    assert len([r for r in caplog.records if "not recorded" in r.getMessage()]) == 1


def assert_outgrows_its_window(made: Agent, host: LocalProvider) -> None:
    """Assert that the agent goes on past its window."""
    assert None not in chat(made, OUTGROWING)
    assert made.context_compressor.context_status == "summarized"
    assert host.refused == []


def test_a_clone_has_its_own_session(host):
    """A clone takes the options of its original but not the session."""
    made = agent(host, OPENAI, context(host))
    clone = made.clone_for_channel()
    assert clone.context_compressor.config == made.context_compressor.config
    assert clone.context_compressor.session_id != made.context_compressor.session_id
    assert_outgrows_its_window(clone, host)
    assert made.context_compressor.context_status == "full"
    assert agent(host, OPENAI).clone_for_channel().context_compressor is None


@pytest.mark.parametrize("path", PATHS)
def test_each_agent_of_a_handoff_has_its_own_options(host, path):
    """Each agent of a handoff is compressed by its own options."""
    second = agent(host, path, context(host), name="Second", instructions="You are second.")
    first = agent(host, path, name="First", handoffs=[handoff(second)])
    host.answer_with(
        Worker(
            lambda asked: 1 if asked.tools else 0,
            arguments=lambda tool, nth: {"message": f"Please see to {len(second.chat_history)}"},
            answer="Noted. " * 12,
        )
    )
    for n in range(3):
        assert first.chat(f"Round {n}.") is not None
    assert any("You are second." in r.messages[0]["content"] for r in of_agent(host))
    assert first.context_compressor is None
    assert_outgrows_its_window(second, host)


WORKFLOW = """
name: books
context: {context}
agents:
  keeper:
    role: Keeper
    goal: Keep the books
    instructions: Keep the books.
steps:
  - agent: keeper
    action: Look after the ledger.
"""


@pytest.mark.parametrize(
    ("written", "options"),
    [
        ("summarize", {"auxiliary_model": None, "trigger_ratio": 0.8}),
        ("{strategy: summarize}", {"auxiliary_model": None, "trigger_ratio": 0.8}),
        (
            "{strategy: summarize, threshold: 0.7, auxiliary_model: aux}",
            {"auxiliary_model": "aux", "trigger_ratio": 0.7},
        ),
        ("{strategy: truncate}", None),
    ],
)
def test_agents_of_a_workflow_file_have_its_options(host, written, options):
    """Agents of a workflow file get the options of its `context`, or another strategy."""
    workflow = YAMLWorkflowParser().parse_string(WORKFLOW.replace("{context}", written))
    workflow.run("Begin.")
    (step,) = workflow.steps
    made = getattr(step, "agent", None) or step
    asked = made.context_compressor
    assert (asked and {name: getattr(asked.config, name) for name in options}) == options
    assert len(of_agent(host)) >= 1


FLOWS: dict[str, Callable[[Agent, Agent], list[Any]]] = {
    "agents": lambda one, two: [one, two],
    "tasks": lambda one, two: [Task(name="first", description="Do it.", agent=one), two],
    "parallel": lambda one, two: [parallel([one, two])],
    "loop": lambda one, two: [loop(one, over="ledgers"), two],
    "repeat": lambda one, two: [repeat(one, max_iterations=1), two],
    "route": lambda one, two: [one, route({"noted": [two], "default": [two]})],
}


@pytest.mark.parametrize("shape", FLOWS)
def test_agents_of_a_workflow_in_code_have_its_options(host, shape):
    """`Workflow(context=...)` reaches the agents of every kind of step."""
    one = agent(host, OPENAI, name="Ann")
    two = agent(host, OPENAI, name="Ben", tools=[look_up])
    steps = FLOWS[shape](one, two)
    asked = context(host, compact_threshold=0.7)
    Workflow(steps=steps, context=asked, variables={"ledgers": ["L-001"]}).run("Begin.")
    assert [a.context_compressor.config.trigger_ratio for a in (one, two)] == [0.7, 0.7]
    assert len(of_agent(host)) >= 2


def of_team(host: LocalProvider, asked: Any, **members: dict[str, Any]) -> dict[str, Agent]:
    """Return the members of a team with that `context=`, by name, each with a task."""
    made = {name: agent(host, OPENAI, name=name, **given) for name, given in members.items()}
    tasks = [
        Task(description=turn(n), expected_output="A note.", agent=member)
        for n, member in enumerate(made.values())
    ]
    AgentTeam(agents=list(made.values()), tasks=tasks, output="silent", context=asked).start()
    return made


def test_a_teams_context_reaches_who_says_nothing(host):
    """A member is compressed by the team's options, unless it has a `context=` of its own."""
    members = of_team(
        host,
        context(host, compact_threshold=0.7),
        Ann={},
        Ben={"tools": [look_up]},  # the host makes `context=True` of it
        Cid={"context": context(host, compact_threshold=0.6)},
        Dot={"context": "sliding_window"},
        Eve={"context": False},
    )
    ratios = {
        name: member.context_compressor and member.context_compressor.config.trigger_ratio
        for name, member in members.items()
    }
    assert ratios == {"Ann": 0.7, "Ben": 0.7, "Cid": 0.6, "Dot": None, "Eve": None}
    clone = members["Ann"].clone_for_channel()
    assert clone.context_compressor.config.trigger_ratio == 0.7
    assert_outgrows_its_window(members["Ann"], host)
    assert_outgrows_its_window(members["Ben"], host)
