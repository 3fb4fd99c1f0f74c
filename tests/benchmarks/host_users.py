"""Count refused requests of each part of the host, run past a window of 6,000 tokens.

    python -m tests.benchmarks.host_users [--only NAME]        # the MCP row needs `mcp<2`

One real run each, against the strict provider: requests sent, refused, over the window, calls and
results without each other; which agents were compressed, and the summarizer's calls. The last
column has the error that reached the caller, if one did.
"""

import sys
from collections.abc import Callable
from pathlib import Path

from praisonaiagents import Agent, AgentTeam, Task, handoff
from praisonaiagents.workflows import Workflow

from praison_compressor.testing import LocalProvider, Worker
from tests.benchmarks.common import faults, hush, options, show
from tests.helpers import hosting
from tests.helpers.hosting import LONG, OPENAI, look_up, of_agent, turn

CALLS = 24
"""Of a tool, in one turn: twice what the window takes."""
WORKS = Worker(CALLS, arguments=hosting.numbered, tool="look_up", answer="Noted. " * 12)
TURNS = 16
COLUMNS = ("who", "requests", "refused", "over", "unpaired", "compressed", "summaries", "error")


class Run:
    """The agents of one run, and the provider that they ask."""

    def __init__(self, host: LocalProvider) -> None:
        self.host = host
        self.made: list[Agent] = []

    def agent(self, name: str = "Ada", *, asks: bool = True, **more: object) -> Agent:
        """Return an agent with a tool; `asks`: compressed."""
        given = {"name": name, "tools": [look_up], "execution": LONG, **more}
        wanted = hosting.context(self.host) if asks else None
        self.made.append(hosting.agent(self.host, OPENAI, wanted, **given))
        return self.made[-1]

    def talks(self, made: Agent) -> None:
        """Let the agent talk past its window, then work past it."""
        self.host.answer_with(Worker(0, answer="Noted. " * 12))
        for n in range(TURNS):
            made.chat(turn(n))
        self.works(made)

    def works(self, made: Agent) -> None:
        """Let the agent call its tool past its window, in one turn."""
        self.host.answer_with(WORKS)
        made.chat(turn(99))


# -------------------------------------------------------------- the parts of the host


def talks_with(**options: object) -> Callable[[Run], None]:
    """Return the talk of an agent with one more of the host's parts."""
    return lambda run: run.talks(run.agent(**options))


def team(run: Run) -> None:
    members = [run.agent(name, asks=False) for name in ("Ann", "Ben")]
    tasks = [Task(description=turn(1), expected_output="A note.", agent=each) for each in members]
    run.host.answer_with(WORKS)
    ours = hosting.context(run.host)
    AgentTeam(agents=members, tasks=tasks, output="silent", context=ours).start()


def workflow(run: Run) -> None:
    steps = [run.agent(name, asks=False) for name in ("Ann", "Ben")]
    run.host.answer_with(WORKS)
    Workflow(steps=steps, context=hosting.context(run.host)).run(turn(1))


def handed_over(run: Run) -> None:
    second = run.agent("Second", instructions="You are second.")
    first = run.agent("First", tools=None, handoffs=[handoff(second)])
    # The host gives the agent that is handed to no tools, and the first one's prompt to answer.
    run.host.answer_with(Worker(lambda asked: 1 if asked.tools else 0, answer="Noted. " * 12))
    for n in range(TURNS):
        first.chat(turn(n))


def agent_in_a_tool(run: Run) -> None:
    inner = run.agent("Inner")

    def ask_inner(question: str) -> str:
        """Ask the other agent.

        Args:
            question: what to ask
        """
        return str(inner.chat(question))

    outer = run.agent("Outer", tools=[ask_inner])
    asks = Worker(2, tool="ask_inner", arguments=lambda t, n: {"question": turn(n)})

    def answer(asked):
        names = [tool["function"]["name"] for tool in asked.tools]
        return WORKS(asked) if "look_up" in names else asks(asked)

    run.host.answer_with(answer)
    outer.chat("Begin.")


def sub_agent(run: Run) -> None:
    from praisonaiagents.tools.subagent_tool import create_subagent_tool

    made = create_subagent_tool(agent_factory=lambda **given: run.agent("Sub"))
    function = made["function"] if isinstance(made, dict) else made
    run.host.answer_with(WORKS)
    function(task=turn(1))


def with_autonomy(run: Run) -> None:
    made = run.agent(autonomy=True)
    run.host.answer_with(WORKS)
    made.run_autonomous(turn(1), max_iterations=2)


def with_session(run: Run) -> None:
    for name in ("First", "Resumed"):
        run.talks(run.agent(name, memory={"session_id": "books"}))


def with_knowledge(run: Run) -> None:
    Path("notes.txt").write_text("The fiscal year starts in April.\n" * 20, encoding="utf-8")
    run.talks(run.agent(knowledge=["notes.txt"]))


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
    run.talks(run.agent(tools=MCP(f"{sys.executable} server.py")))


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


def ran(name: str) -> tuple[object, ...]:
    """Return the values of `COLUMNS` for one part of the host."""
    error = ""
    with hosting.by_itself() as provider:
        run = Run(provider)
        try:
            WHO[name](run)
        except (Exception, SystemExit) as problem:
            error = f"{type(problem).__name__}: {problem}"[:60]
        sent = of_agent(provider)
        states = [(made.name, made.context_compressor) for made in run.made]
        compressed = [f"{who}: {ours.context_status if ours else 'no'}" for who, ours in states]
        summaries = len(provider.for_model("aux"))
        return (name, len(sent), *faults(sent), ", ".join(compressed), summaries, error)


def main() -> None:
    given = options(__doc__, only=tuple(WHO))
    hush()
    show("through the host", COLUMNS, map(ran, given.only))


if __name__ == "__main__":
    main()
