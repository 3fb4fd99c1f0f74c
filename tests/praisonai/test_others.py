"""Clones, copies, handoffs, teams and flows: each agent that asked is compressed there too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from praisonaiagents import Agent, AgentTeam, Task, handoff
from praisonaiagents.workflows import Workflow
from praisonaiagents.workflows.workflows import loop, parallel, repeat, route
from praisonaiagents.workflows.yaml_parser import YAMLWorkflowParser

from praison_compressor.testing import LocalProvider, Worker
from tests.helpers.hosting import (
    OPENAI,
    OUTGROWING,
    PATHS,
    agent,
    chat,
    context,
    look_up,
    of_agent,
    turn,
)


def outgrows_its_window(made: Agent, host: LocalProvider) -> None:
    """The agent goes on past its window, and its summaries are its own."""
    assert None not in chat(made, OUTGROWING)
    assert made.context_compressor.context_status == "summarized"
    assert host.refused == []


def test_a_clone_for_a_channel(host: LocalProvider) -> None:
    """It asks for the same, in a session of its own."""
    made = agent(host, OPENAI, context(host))
    clone = made.clone_for_channel()
    assert clone.context_compressor.config == made.context_compressor.config
    assert clone.context_compressor.session_id != made.context_compressor.session_id
    outgrows_its_window(clone, host)
    assert made.context_compressor.context_status == "full"
    assert agent(host, OPENAI).clone_for_channel().context_compressor is None


@pytest.mark.parametrize("path", PATHS)
def test_a_handoff(host: LocalProvider, path: str) -> None:
    """The agent that is handed to is compressed by its own options, the first one by its own."""
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
    outgrows_its_window(second, host)


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
def test_a_workflow_file(host: LocalProvider, written: str, options: Any) -> None:
    """Whatever the file says about `context`, its agents are asked with it; who asks for another
    strategy gets that."""
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
def test_a_workflow_in_code(host: LocalProvider, shape: str) -> None:
    """Whatever its steps are, `Workflow(context=...)` reaches their agents."""
    one = agent(host, OPENAI, name="Ann")
    two = agent(host, OPENAI, name="Ben", tools=[look_up])
    steps = FLOWS[shape](one, two)
    asked = context(host, compact_threshold=0.7)
    Workflow(steps=steps, context=asked, variables={"ledgers": ["L-001"]}).run("Begin.")
    assert [a.context_compressor.config.trigger_ratio for a in (one, two)] == [0.7, 0.7]
    assert len(of_agent(host)) >= 2


def of_team(host: LocalProvider, asked: Any, **members: dict[str, Any]) -> dict[str, Agent]:
    """The members of a team with that `context=`, by name, each with a task."""
    made = {name: agent(host, OPENAI, name=name, **given) for name, given in members.items()}
    tasks = [
        Task(description=turn(n), expected_output="A note.", agent=member)
        for n, member in enumerate(made.values())
    ]
    AgentTeam(agents=list(made.values()), tasks=tasks, output="silent", context=asked).start()
    return made


def test_a_teams_context_reaches_who_says_nothing(host: LocalProvider) -> None:
    """A member is compressed by the team's options, unless it has a `context=` of its own."""
    members = of_team(
        host,
        context(host, compact_threshold=0.7),
        Ann={},
        Ben={"tools": [look_up]},  # of which the host makes `context=True`
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
    outgrows_its_window(members["Ann"], host)
    outgrows_its_window(members["Ben"], host)
