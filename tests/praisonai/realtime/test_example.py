"""The voice example runs as its docstring says."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from tests.helpers.realtime_caller import line, model, sent, value_of
from tests.helpers.realtime_server import RealtimeServer

EXAMPLE = Path(__file__).parent.parent.parent.parent / "examples" / "voice_agent.py"


async def run(server: RealtimeServer, lines: list[str]) -> tuple[str, str]:
    """Return the example's output and errors."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, str(EXAMPLE), "--url", server.url),
        cwd=EXAMPLE.parent.parent,
        env={"PYTHONPATH": str(EXAMPLE.parent.parent), "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
    )
    out, err = await asyncio.wait_for(process.communicate("\n".join(lines).encode()), 60)
    return out.decode(), err.decode()


async def test_the_voice_example_remembers_across_a_dead_line():
    """Every turn is answered across a disconnect, and the memory is shown."""
    async with RealtimeServer(model) as server:
        dropped = []

        async def cut_once(connection, event):
            if (
                event["type"] == "response.create"
                and len(sent(server, "response.create")) == 8
                and not dropped
            ):
                dropped.append(connection)
                await server.drop()

        server.hook = cut_once
        out, err = await run(server, [*map(line, range(9)), "What is fact-0"])
        assert set(err.splitlines()) <= {"error: no close frame received or sent"}
        assert f"agent: fact-0 is {value_of('fact-0')}" in out
        assert out.count("agent: ") == 10
        assert "<conversation-summary> Reference material" in out
        assert len(server.connections) == 2
        assert server.refusals == []
