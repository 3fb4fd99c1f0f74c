"""Count refused requests of each part of the host, run past a window of 6,000 tokens.

    python -m tests.benchmarks.host_users [--only NAME]        # the MCP row needs `mcp<2`

One real run each, against the strict provider, with the columns of `tests.benchmarks.surfaces`.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from praisonaiagents import Agent, AgentTeam, Task, handoff
from praisonaiagents.workflows import Workflow

from praison_compressor.testing import Asked, Reply, Worker
from tests.benchmarks.surfaces import Run, print_table
from tests.helpers import hosting
from tests.helpers.hosting import LONG, turn

CALLS = 24
"""Of a tool, in one turn: twice what the window takes."""
WORKS = Worker(CALLS, arguments=hosting.numbered, tool="look_up", answer="Noted. " * 12)
TURNS = 16


def agent_of(run: Run, name: str = "Ada", **more: Any) -> Agent:
    """Return an agent for turns of many calls."""
    return run.agent(name=name, execution=LONG, **more)


def talk(run: Run, made: Agent) -> None:
    """Let the agent talk past its window, then work past it in one turn."""
    run.host.answer_with(Worker(0, answer="Noted. " * 12))
    for n in range(TURNS):
        made.chat(turn(n))
    run.host.answer_with(WORKS)
    made.chat(turn(99))


# -------------------------------------------------------------- the parts of the host


def talks_with(**options: Any) -> Callable[[Run], None]:
    """Return the talk of an agent with one more of the host's parts."""
    return lambda run: talk(run, agent_of(run, **options))


def team(run: Run) -> None:
    members = [agent_of(run, name, asks=False) for name in ("Ann", "Ben")]
    tasks = [Task(description=turn(1), expected_output="A note.", agent=each) for each in members]
    run.host.answer_with(WORKS)
    ours = hosting.context(run.host)
    AgentTeam(agents=members, tasks=tasks, output="silent", context=ours).start()


def workflow(run: Run) -> None:
    steps = [agent_of(run, name, asks=False) for name in ("Ann", "Ben")]
    run.host.answer_with(WORKS)
    Workflow(steps=steps, context=hosting.context(run.host)).run(turn(1))


def handed_over(run: Run) -> None:
    second = agent_of(run, "Second", instructions="You are second.")
    first = agent_of(run, "First", tools=None, handoffs=[handoff(second)])
    # The host gives the agent that is handed to no tools, and the first one's prompt to answer.
    run.host.answer_with(Worker(lambda asked: 1 if asked.tools else 0, answer="Noted. " * 12))
    for n in range(TURNS):
        first.chat(turn(n))


def agent_in_a_tool(run: Run) -> None:
    inner = agent_of(run, "Inner")

    def ask_inner(question: str) -> str:
        """Ask the other agent.

        Args:
            question: what to ask
        """
        return str(inner.chat(question))

    outer = agent_of(run, "Outer", tools=[ask_inner])
    asks = Worker(2, tool="ask_inner", arguments=lambda t, n: {"question": turn(n)})

    def answer(asked: Asked) -> Reply:
        names = [tool["function"]["name"] for tool in asked.tools]
        return WORKS(asked) if "look_up" in names else asks(asked)

    run.host.answer_with(answer)
    outer.chat("Begin.")


def sub_agent(run: Run) -> None:
    from praisonaiagents.tools.subagent_tool import create_subagent_tool

    made = create_subagent_tool(agent_factory=lambda **_: agent_of(run, "Sub"))
    function = made["function"] if isinstance(made, dict) else made
    run.host.answer_with(WORKS)
    function(task=turn(1))


def with_autonomy(run: Run) -> None:
    made = agent_of(run, autonomy=True)
    run.host.answer_with(WORKS)
    made.run_autonomous(turn(1), max_iterations=2)


def with_session(run: Run) -> None:
    for name in ("First", "Resumed"):
        talk(run, agent_of(run, name, memory={"session_id": "books"}))


def with_knowledge(run: Run) -> None:
    Path("notes.txt").write_text("The fiscal year starts in April.\n" * 20, encoding="utf-8")
    talk(run, agent_of(run, knowledge=["notes.txt"]))


SERVER = """\
from mcp.server.fastmcp import FastMCP

server = FastMCP("books")


@server.tool()
def look_up(topic: str, part: int) -> str:
    "Look a topic up."
    return f"{topic} part {part}: " + "the parser reads each line " * 24 + f"END-{part}"


server.run()
"""


def with_mcp(run: Run) -> None:
    from praisonaiagents import MCP

    Path("server.py").write_text(SERVER, encoding="utf-8")
    talk(run, agent_of(run, tools=MCP(f"{sys.executable} server.py")))


WHO: dict[str, Callable[[Run], None]] = {
    "Agent": talks_with(),
    "AgentTeam(context=...)": team,
    "Workflow(context=...)": workflow,
    "handoff": handed_over,
    "an agent in another's tool": agent_in_a_tool,
    "create_subagent_tool": sub_agent,
    "memory=True": talks_with(memory=True),
    "guardrails=": talks_with(guardrails=lambda output: (True, output)),
    "reflection=True": talks_with(reflection=True),
    "planning=True": talks_with(planning=True),
    "autonomy=True": with_autonomy,
    "a session, resumed": with_session,
    "knowledge=": with_knowledge,
    "MCP tools": with_mcp,
}


if __name__ == "__main__":
    print_table(__doc__, "through the host", WHO)
