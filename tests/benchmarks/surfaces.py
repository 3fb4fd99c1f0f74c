"""Every surface of the host that builds or drives an agent, run past its window.

    python -m tests.benchmarks.surfaces [--only NAME]

Needs praisonai, praisonai-code and praisonai-bot beside us. One real run each against the strict
provider, with the plugin on where a surface makes its agents itself: requests, refused, over the
window; calls of the summarizer; who compressed (`ours`, `host`, `nobody`); how many searches of the
archive for words of the conversation found them, and how many for another person's words did.
Surfaces of praisonaiagents in code: `tests.benchmarks.host_users`.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import logging
import os
import pty
import re
import select
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from praisonaiagents import Agent

from praison_compressor.ledger.recall import SEARCH
from praison_compressor.messages import text_of
from praison_compressor.testing import Asked, Call, LocalProvider, Reply, Summarizer
from tests.benchmarks.common import options, show
from tests.helpers import hosting
from tests.helpers.hosting import OPENAI, look_up, of_agent, turn

ROOT = Path(__file__).parents[2]
CALLS, TURNS = 5, 16
"""Of one tool in a turn (the host ends a turn after 8); turns of a talk. Each passes the window."""
COLUMNS = ("surface", "requests", "refused", "over", "summaries", "compressed by", "recall", "note")
WORK, RECALL = "WORK", "RECALL"
HOST_MARKS = ("[Previous conversation summary]", "[Conversation summary", "Summary of conversation")

TOOLS = f'''
def look_up(topic: str, part: int) -> str:
    """Look a topic up.

    Args:
        topic: what to look up
        part: which part of it
    """
    return f"{{topic}} part {{part}}: " + "{hosting.WORDS}" * 270 + f"END-{{part}}"
'''
AGENTS = f"""
framework: praisonai
topic: books
roles:
  keeper:
    role: Keeper
    goal: Keep the books.
    backstory: You keep the books.
    tools: [look_up]
    tasks:
      one:
        description: "{WORK} {RECALL} {turn(1)}"
        expected_output: A note.
"""
FLOW = f"""
name: books
agents:
  keeper:
    name: Keeper
    role: Keeper
    goal: Keep the books.
    instructions: You keep the books.
    tools: [read_file]
steps:
  - agent: keeper
    action: "{WORK} {RECALL} {turn(1)}"
"""


def answer(asked: Asked) -> Reply:
    """Work with the tool where the newest prompt asks for it, search where it asks, then answer."""
    names = [tool["function"]["name"] for tool in asked.tools]
    last = max((i for i, m in enumerate(asked.messages) if m["role"] == "user"), default=0)
    prompt = next((text_of(m) for m in asked.messages[last:] if m["role"] == "user"), "")
    done = [m for m in asked.messages if m["role"] == "tool"]
    parts = [int(found) for m in done for found in re.findall(r"END-(\d+)", text_of(m))]
    nth = max(parts, default=-1) + 1
    searched = any(SEARCH in str(m.get("tool_calls")) for m in asked.messages[last:])
    works = any(WORK in text_of(m) for m in asked.messages if m["role"] == "user")
    if WORK in prompt and nth < CALLS and {"look_up", "read_file"} & {*names}:
        given = {"topic": f"topic-{nth}", "part": nth}
        tool = Call("look_up", given) if "look_up" in names else _reading(nth)
        return Reply(calls=(tool,))
    if RECALL in prompt and SEARCH in names and not searched:
        asked_for = "END-0" if works else prompt.removeprefix(RECALL).strip()
        return Reply(calls=(Call(SEARCH, {"query": asked_for}),))
    return Reply("Noted. " * 12)


def _reading(nth: int) -> Call:
    """A call of the host's own tool, where a surface takes no other."""
    return Call("read_file", {"filepath": f"part-{nth}.txt"})


# ---------------------------------------------------------------- commands


class Run:
    """A folder with the plugin's options, files of the host, and a provider."""

    def __init__(self, host: LocalProvider, window: int) -> None:
        self.host = host
        host.set_window(window)
        host.set_window(128_000, "aux")
        self.note = ""
        aux = {"auxiliary_model": "aux", "auxiliary_api_base": host.base_url}
        ours = {
            "context_window": window,
            **aux,
            "auxiliary_api_key": "sk-aux",
        }
        Path(".praisonai").mkdir()
        Path(".praisonai/config.yaml").write_text(
            json.dumps({"plugins": {"praison-compressor": ours}}), "utf-8"
        )
        for name, text in {"tools.py": TOOLS, "agents.yaml": AGENTS, "flow.yaml": FLOW}.items():
            Path(name).write_text(text, "utf-8")
        for nth in range(CALLS):
            line = f"{hosting.WORDS * 3}\n"
            Path(f"part-{nth}.txt").write_text(line * 90 + f"END-{nth}\n", "utf-8")
        self.environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "PRAISONAI_PLUGINS": "praison-compressor",
            "PRAISONAI_ALLOW_LOCAL_TOOLS": "true",
            "OPENAI_MODEL_NAME": "gpt-4o-mini",
            "MODEL_NAME": "gpt-4o-mini",
            "TERM": "dumb",
        }

    def command(self, *words: str, patience: float = 200) -> None:
        """Run a command of `praisonai` to its end."""
        done = subprocess.run(
            [sys.executable, "-m", "praisonai", *words],
            stdin=subprocess.DEVNULL,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=patience,
            check=False,
        )
        if done.returncode:
            self.note = (done.stderr.strip() or done.stdout.strip())[-80:].replace("\n", " ")

    def at_a_terminal(self, *words: str, prompts: Sequence[str]) -> None:
        """Type prompts into a Python program at a terminal, each after the last answer."""
        leader, follower = pty.openpty()
        command = [sys.executable, *words]
        given = {"stdin": follower, "stdout": follower, "stderr": follower}
        environment = {**self.environment, "TERM": "xterm", "COLUMNS": "100", "LINES": "40"}
        with subprocess.Popen(command, env=environment, **given, close_fds=True) as process:  # type: ignore[call-overload]
            shown = _drained(leader, 12).decode(errors="replace")
            for prompt in prompts:
                before = len(self.host.requests)
                os.write(leader, prompt.encode() + b"\r")
                self._answered(leader, before, 0 if prompt.startswith("/") else 30)
                if process.poll() is not None:
                    break
            if not self.host.requests:
                self.note = " ".join(shown.split())[-110:]
            process.kill()
        os.close(follower)
        os.close(leader)

    def _answered(self, leader: int, before: int, patience: float) -> None:
        """Wait until a request after those was answered and none is on its way."""
        end = time.monotonic() + patience
        while time.monotonic() < end and len(self.host.requests) == before:
            _drained(leader, 0.2)
        quiet, end = 0.0, time.monotonic() + 60
        while quiet < 1.0 and time.monotonic() < end:
            open_now = any(r.ended_at is None for r in self.host.requests)
            count = len(self.host.requests)
            _drained(leader, 0.25)
            still = not open_now and len(self.host.requests) == count
            quiet = quiet + 0.25 if still else 0.0

    # ------------------------------------------------------------ agents in code

    def agent(self, **more: Any) -> Agent:
        """An agent that asks for us."""
        given = {"tools": [look_up], **more}
        return hosting.agent(self.host, OPENAI, hosting.context(self.host), **given)


def _drained(leader: int, seconds: float) -> bytes:
    """Read what a terminal shows for so long."""
    end, shown = time.monotonic() + seconds, b""
    while (left := end - time.monotonic()) > 0:
        if select.select([leader], [], [], min(left, 0.2))[0]:
            with contextlib.suppress(OSError):
                shown += os.read(leader, 65_536)
    return shown


TALK = [*map(turn, range(TURNS)), f"{RECALL} ledger L-001"]
BENS = [*(turn(number + 500) for number in range(TURNS)), f"{RECALL} ledger L-501"]
LONG = f"{WORK} {RECALL} {turn(1)}"


def command(*words: str) -> Callable[[Run], None]:
    """A command that works past its window in one turn."""
    return lambda run: run.command(*words)


def terminal(*words: str) -> Callable[[Run], None]:
    """A program that is talked to past its window at a terminal."""
    return lambda run: run.at_a_terminal(*words, prompts=[*TALK, "/status", "/exit"])


ALONE = """
import sys
sys.modules["praisonai"] = None  # as where praisonai-code is installed by itself
sys.argv = ["praisonai-code", "code", "--model", "gpt-4o-mini"]
from praisonai_code.__main__ import main
main()
"""


# ---------------------------------------------------------------- bots and gateway


def bot(platform: str) -> Callable[[Run], None]:
    """Two people talk to one agent through the session manager of a kind of bot."""

    def talk(run: Run) -> None:
        from praisonai_bot.bots._session import build_session_manager
        from praisonaiagents.bots import BotConfig

        manager = build_session_manager(BotConfig(), platform=platform)
        made = run.agent()

        async def both() -> None:
            for hers, his in zip(TALK, BENS, strict=True):
                await manager.chat(made, "ann", hers)
                await manager.chat(made, "ben", his)
            await manager.chat(made, "ben", f"{RECALL} ledger L-001, which is Ann's")

        asyncio.run(both())

    return talk


def gateway(run: Run) -> None:
    """Talk to an agent through the gateway's websocket."""
    import websockets
    from praisonai_bot.gateway.server import WebSocketGateway

    async def talk() -> None:
        made = WebSocketGateway(host="127.0.0.1", port=0 or _free_port())
        made.register_agent(run.agent(), "ada")
        serving = asyncio.create_task(made.start())
        await asyncio.sleep(2)
        async with websockets.connect(
            f"ws://127.0.0.1:{made._port}/ws?token={made.config.auth_token}"
        ) as line:
            await line.send(json.dumps({"type": "join", "agent_id": "ada"}))
            for said in TALK:
                before = len(run.host.requests)
                await line.send(json.dumps({"type": "message", "content": said}))
                await asyncio.wait_for(_replied(run.host, before), 60)
        await made.stop()
        serving.cancel()

    asyncio.run(talk())


def _free_port() -> int:
    import socket

    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


async def _replied(host: LocalProvider, before: int) -> None:
    quiet = 0
    while quiet < 5:
        await asyncio.sleep(0.1)
        is_open = any(record.ended_at is None for record in host.requests)
        quiet = 0 if is_open or len(host.requests) == before else quiet + 1


def room(run: Run) -> None:
    """Talk to a room of two agents through a bot's session manager."""
    from praisonai_bot.bots._room import GatewayRoom, RoomConfig
    from praisonai_bot.bots._session import BotSessionManager

    members = {"ann": run.agent(name="ann"), "ben": run.agent(name="ben")}
    made, manager = GatewayRoom(RoomConfig("books", ["ann", "ben"]), members), BotSessionManager()

    async def talk() -> None:
        for said in TALK:
            await manager.chat(made, "user", said)

    asyncio.run(talk())


def invoked(run: Run) -> None:
    """Talk to an agent of the HTTP API, which clones it for each request's session."""
    from praisonai.api import agent_invoke as api

    api.register_agent("ada", run.agent())
    for hers, his in zip(TALK, BENS, strict=True):
        api.resolve_session_agent("ada", "ann").chat(hers)
        api.resolve_session_agent("ada", "ben").chat(his)
    api.resolve_session_agent("ada", "ben").chat(f"{RECALL} ledger L-001, which is Ann's")


ONE_TURN: dict[str, Callable[[Run], None]] = {
    "praisonai PROMPT": command(LONG),
    "praisonai code PROMPT": command("code", "--tools", "tools.py", LONG),
    "praisonai run PROMPT": command("run", "--tools", "tools.py", LONG),
    "praisonai agents.yaml": command("agents.yaml"),
    "praisonai run agents.yaml": command("run", "agents.yaml"),
    "praisonai workflow run": command("workflow", "run", "flow.yaml"),
}
SURFACES: dict[str, Callable[[Run], None]] = {
    **ONE_TURN,
    "praisonai chat": terminal("-m", "praisonai", "chat", "--model", "gpt-4o-mini"),
    "praisonai code": terminal("-m", "praisonai", "code", "--model", "gpt-4o-mini"),
    "praisonai-code code": terminal("-c", ALONE),
    "praisonai (terminal)": terminal("-m", "praisonai"),
    "HTTP API (/invoke)": invoked,
    **{
        f"bot: {platform}": bot(platform)
        for platform in (
            "telegram discord slack whatsapp signal email agentmail linear webhook local".split()
        )
    },
    "bot: room of agents": room,
    "gateway (websocket)": gateway,
}

WINDOWS = {**dict.fromkeys(ONE_TURN, 32_000), "praisonai workflow run": 12_000}
"""Tokens, where a window is not of 6,000: most commands ask for answers of 16,384."""


# ---------------------------------------------------------------- what is counted


def compressed_by(sent: Sequence[Any]) -> str:
    """Whose summaries or masks the requests carry."""
    texts = [record.text for record in sent]
    marks = ("<conversation-summary>", "[masked] ", 'read_conversation_archive("')
    found = ["ours"] * any(mark in text for text in texts for mark in marks)
    found += ["host"] * any(mark in text for text in texts for mark in HOST_MARKS)
    return " and ".join(found) or "nobody"


def recalled(sent: Sequence[Any]) -> str:
    """What the searches were answered."""
    calls = {
        call["id"]: call["function"]["arguments"]
        for record in sent
        for message in record.messages
        for call in message.get("tool_calls") or ()
        if call["function"]["name"] == SEARCH
    }
    results = {
        message["tool_call_id"]: text_of(message)
        for record in sent
        for message in record.messages
        if message.get("tool_call_id") in calls
    }
    if not results:
        return "-"
    asked_others = {name for name in results if "Ann's" in calls[name]}
    own = [bool(ORIGINAL.search(results[name])) for name in results.keys() - asked_others]
    others = [bool(OF_ANN.search(results[name])) for name in asked_others]
    said = f"own {sum(own)}/{len(own)}"
    return f"{said}, others' {sum(others)}/{len(others)}" if others else said


ORIGINAL = re.compile(r"Turn \d+: look after|the parser reads each line")
OF_ANN = re.compile(r"Turn \d{1,2}: look after")


def ran(name: str) -> tuple[object, ...]:
    """The values of `COLUMNS` for one surface."""
    with hosting.by_itself(answer) as provider:
        provider.route("aux", Summarizer(r"L-\d+"))
        run = Run(provider, WINDOWS.get(name, hosting.WINDOW))
        try:
            SURFACES[name](run)
        except (Exception, SystemExit) as problem:
            run.note = f"{type(problem).__name__}: {problem}"[:80]
        sent = of_agent(provider)
        refused = sum(record.status != 200 for record in sent)
        over = sum(record.over_window for record in sent)
        summaries = len(provider.for_model("aux"))
        figures = (len(sent), refused, over, summaries, compressed_by(sent), recalled(sent))
        return (name, *figures, run.note)


def main() -> None:
    given = options(__doc__, only=tuple(SURFACES))
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")

    def rows() -> Iterator[tuple[object, ...]]:
        for name in [given.only] if given.only else SURFACES:
            with contextlib.redirect_stdout(io.StringIO()):  # the host prints its errors
                row = ran(name)
            yield row

    show("surfaces of the host", COLUMNS, rows())


if __name__ == "__main__":
    main()
