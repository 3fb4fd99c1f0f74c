"""Count refused requests of every surface of the host, each run past its window.

    python -m tests.benchmarks.surfaces [--only NAME]

Needs praisonai, praisonai-code and praisonai-bot beside us. One real run each against the strict
provider, with the plugin on where a surface makes its agents itself: requests, refused, over the
window, calls and results without each other; calls of the summarizer; who compressed (`ours`,
`host`, `nobody`); how many searches of the archive for words of the conversation found them, and
how many for another person's words did. Agents in code: `tests.benchmarks.host_users`.
"""

import asyncio
import contextlib
import json
import os
import pty
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from praisonaiagents import Agent

from praison_compressor.messages import text_of
from praison_compressor.recall.answers import SEARCH
from praison_compressor.testing import Asked, Call, LocalProvider, Reply
from tests.benchmarks.common import faults, options, show, silence_host
from tests.helpers import hosting
from tests.helpers.hosting import OPENAI, look_up, of_agent, turn
from tests.helpers.processes import ROOT

CALLS, TURNS = 5, 16
"""Of one tool in a turn (the host ends a turn after 8); turns of a talk. Each passes the window."""
COLUMNS = ["surface", "requests", "refused", "over", "unpaired", "summaries", "compressed by"]
COLUMNS += ["recall", "note"]
WORK, RECALL = "WORK", "RECALL"
TALK = [*map(turn, range(TURNS)), f"{RECALL} ledger L-001"]
BENS = [*(turn(number + 500) for number in range(TURNS)), f"{RECALL} ledger L-501"]
STRANGE = f"{RECALL} ledger L-001, which is Ann's"
LONG = f"{WORK} {RECALL} {turn(1)}"
OUR_MARKS = ("<conversation-summary>", "[masked] ", 'read_conversation_archive("')
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
        description: "{LONG}"
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
    action: "{LONG}"
"""


def answer(asked: Asked) -> Reply:
    """Work with the tool where the newest prompt asks for it, search where it asks, then answer."""
    names = [tool["function"]["name"] for tool in asked.tools]
    of_user = [i for i, m in enumerate(asked.messages) if m["role"] == "user"]
    turn = asked.messages[of_user[-1] :]
    prompt = text_of(turn[0])
    nth = max(map(int, re.findall(r"END-(\d+)", _words(asked.messages, "tool"))), default=-1) + 1
    if WORK in prompt and nth < CALLS and {"look_up", "read_file"} & {*names}:
        if "look_up" in names:
            return Reply(calls=(Call("look_up", {"topic": f"topic-{nth}", "part": nth}),))
        return Reply(calls=(Call("read_file", {"filepath": f"part-{nth}.txt"}),))
    searched = any(SEARCH in str(m.get("tool_calls")) for m in turn)
    if RECALL in prompt and SEARCH in names and not searched:
        works = WORK in _words(asked.messages, "user")
        query = "END-0" if works else prompt.removeprefix(RECALL).strip()
        return Reply(calls=(Call(SEARCH, {"query": query}),))
    return Reply("Noted. " * 12)


def _words(messages: Sequence[Any], role: str) -> str:
    return " ".join(text_of(message) for message in messages if message["role"] == role)


# ---------------------------------------------------------------- commands


class Run:
    """One run of a part of the host against a provider."""

    def __init__(self, host: LocalProvider, window: int) -> None:
        self.host = host
        self.window = window
        self.note = ""
        host.set_window(window)
        host.set_window(128_000, "aux")

    def agent(self, *, asks: bool = True, **more: Any) -> Agent:
        """Return an agent with a tool; `asks`: compressed."""
        wanted = hosting.context(self.host) if asks else None
        return hosting.agent(self.host, OPENAI, wanted, **{"tools": [look_up], **more})

    def _prepared(self) -> dict[str, str]:
        """Write the plugin's options and files of the host; return a program's environment."""
        ours: dict[str, Any] = {"auxiliary_model": "aux", "auxiliary_api_base": self.host.base_url}
        ours |= {"auxiliary_api_key": "sk-aux", "context_window": self.window}
        plugins = {"plugins": {"praison-compressor": ours}}
        line = f"{hosting.WORDS * 3}\n"
        files = {"tools.py": TOOLS, "agents.yaml": AGENTS, "flow.yaml": FLOW}
        files |= {f"part-{nth}.txt": line * 90 + f"END-{nth}\n" for nth in range(CALLS)}
        files[".praisonai/config.yaml"] = json.dumps(plugins)
        Path(".praisonai").mkdir()
        for name, text in files.items():
            Path(name).write_text(text, "utf-8")
        return {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "PRAISONAI_PLUGINS": "praison-compressor",
            "PRAISONAI_ALLOW_LOCAL_TOOLS": "true",
            "OPENAI_MODEL_NAME": "gpt-4o-mini",
            "MODEL_NAME": "gpt-4o-mini",
            "TERM": "dumb",
        }

    def command(self, *words: str) -> None:
        """Run a command of `praisonai` to its end."""
        done = subprocess.run(
            [sys.executable, "-m", "praisonai", *words],
            stdin=subprocess.DEVNULL,
            env=self._prepared(),
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )
        if done.returncode:
            self.note = (done.stderr.strip() or done.stdout.strip())[-80:].replace("\n", " ")

    def at_a_terminal(self, *words: str, prompts: Sequence[str]) -> None:
        """Type prompts into a Python program at a terminal, each after the last answer."""
        leader, follower = pty.openpty()
        shown = bytearray()
        threading.Thread(target=_read, args=(leader, shown), daemon=True).start()
        streams: Any = {"stdin": follower, "stdout": follower, "stderr": follower}
        environment = {**self._prepared(), "TERM": "xterm", "COLUMNS": "100", "LINES": "40"}
        with subprocess.Popen([sys.executable, *words], env=environment, **streams) as process:
            time.sleep(12)
            for prompt in prompts:
                before = len(self.host.requests)
                os.write(leader, prompt.encode() + b"\r")
                settled(self.host, before, 0 if prompt.startswith("/") else 30)
                if process.poll() is not None:
                    break
            if not self.host.requests:
                self.note = " ".join(shown.decode(errors="replace").split())[-110:]
            process.kill()
        os.close(follower)
        os.close(leader)


def _read(leader: int, shown: bytearray) -> None:
    """Read what a terminal shows until it is closed."""
    with contextlib.suppress(OSError):
        while data := os.read(leader, 65_536):
            shown += data


def settled(host: LocalProvider, before: int, patience: float = 30) -> None:
    """Wait until a request after those came and none is open for a second."""
    end = time.monotonic() + patience
    while len(host.requests) == before and time.monotonic() < end:
        time.sleep(0.1)
    quiet, end = 0, time.monotonic() + 60
    while quiet < 10 and time.monotonic() < end:
        count = len(host.requests)
        time.sleep(0.1)
        is_open = any(record.ended_at is None for record in host.requests)
        quiet = 0 if is_open or len(host.requests) != count else quiet + 1


def command(*words: str) -> Callable[[Run], None]:
    """Return a command that works past its window in one turn."""
    return lambda run: run.command(*words)


def terminal(*words: str) -> Callable[[Run], None]:
    """Return a program that a person talks to past its window at a terminal."""
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
    """Return two people's talk with one agent through the session manager of a kind of bot."""

    def talk(run: Run) -> None:
        from praisonai_bot.bots._session import build_session_manager
        from praisonaiagents.bots import BotConfig

        manager = build_session_manager(BotConfig(), platform=platform)
        made = run.agent()

        async def both() -> None:
            for hers, his in zip(TALK, BENS, strict=True):
                await manager.chat(made, "ann", hers)
                await manager.chat(made, "ben", his)
            await manager.chat(made, "ben", STRANGE)

        asyncio.run(both())

    return talk


def gateway(run: Run) -> None:
    """Talk to an agent through the gateway's websocket."""
    import websockets
    from praisonai_bot.gateway.server import WebSocketGateway

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    made = WebSocketGateway(host="127.0.0.1", port=port)
    made.register_agent(run.agent(), "ada")

    async def talk() -> None:
        serving = asyncio.create_task(made.start())
        await asyncio.sleep(2)
        url = f"ws://127.0.0.1:{port}/ws?token={made.config.auth_token}"
        async with websockets.connect(url) as line:
            await line.send(json.dumps({"type": "join", "agent_id": "ada"}))
            for said in TALK:
                before = len(run.host.requests)
                await line.send(json.dumps({"type": "message", "content": said}))
                await asyncio.to_thread(settled, run.host, before)
        await made.stop()
        serving.cancel()

    asyncio.run(talk())


def room(run: Run) -> None:
    """Talk to a room of two agents through a bot's session manager."""
    from praisonai_bot.bots._room import GatewayRoom, RoomConfig
    from praisonai_bot.bots._session import BotSessionManager

    members = {name: run.agent(name=name) for name in ("ann", "ben")}
    made, manager = GatewayRoom(RoomConfig("books", [*members]), members), BotSessionManager()

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
    api.resolve_session_agent("ada", "ben").chat(STRANGE)


BOTS = "telegram discord slack whatsapp signal email agentmail linear webhook local".split()
WINDOWS = {
    "praisonai PROMPT": 32_000,
    "praisonai code PROMPT": 32_000,
    "praisonai run PROMPT": 32_000,
    "praisonai agents.yaml": 32_000,
    "praisonai run agents.yaml": 32_000,
    "praisonai workflow run": 12_000,
}
"""Tokens of a command's window, where it is not 6,000: most ask for answers of 16,384."""
SURFACES: dict[str, Callable[[Run], None]] = {
    "praisonai PROMPT": command(LONG),
    "praisonai code PROMPT": command("code", "--tools", "tools.py", LONG),
    "praisonai run PROMPT": command("run", "--tools", "tools.py", LONG),
    "praisonai agents.yaml": command("agents.yaml"),
    "praisonai run agents.yaml": command("run", "agents.yaml"),
    "praisonai workflow run": command("workflow", "run", "flow.yaml"),
    "praisonai chat": terminal("-m", "praisonai", "chat", "--model", "gpt-4o-mini"),
    "praisonai code": terminal("-m", "praisonai", "code", "--model", "gpt-4o-mini"),
    "praisonai-code code": terminal("-c", ALONE),
    "praisonai (terminal)": terminal("-m", "praisonai"),
    "HTTP API (/invoke)": invoked,
    **{f"bot: {platform}": bot(platform) for platform in BOTS},
    "bot: room of agents": room,
    "gateway (websocket)": gateway,
}


# ---------------------------------------------------------------- what is counted


def compressed_by(sent: Sequence[Any]) -> str:
    """Return whose summaries or masks the requests carry."""
    text = "\n".join(record.text for record in sent)
    of = {"ours": OUR_MARKS, "host": HOST_MARKS}
    systems = [who for who, marks in of.items() if any(mark in text for mark in marks)]
    return " and ".join(systems) or "nobody"


def recalled(sent: Sequence[Any]) -> str:
    """Return how many searches for own and for another's words found them."""
    messages = [message for record in sent for message in record.messages]
    calls = {
        call["id"]: call["function"]["arguments"]
        for message in messages
        for call in message.get("tool_calls") or ()
        if call["function"]["name"] == SEARCH
    }
    answers = {m["tool_call_id"]: text_of(m) for m in messages if m.get("tool_call_id") in calls}
    own, others = [], []
    for name, text in answers.items():
        if "Ann's" in calls[name]:
            others.append(bool(re.search(r"Turn \d{1,2}: look after", text)))
        else:
            own.append(bool(re.search(r"Turn \d+: look after|the parser reads each line", text)))
    of_own = f"own {sum(own)}/{len(own)}" if answers else "-"
    return f"{of_own}, others' {sum(others)}/{len(others)}" if others else of_own


def run_surface(name: str, surface: Callable[[Run], None]) -> tuple[object, ...]:
    """Return the values of `COLUMNS` for one surface."""
    with hosting.by_itself(answer, facts=hosting.LEDGERS) as provider:
        run = Run(provider, WINDOWS.get(name, hosting.WINDOW))
        try:
            surface(run)
        except (Exception, SystemExit) as problem:
            run.note = f"{type(problem).__name__}: {problem}"[:80]
        sent, summaries = of_agent(provider), len(provider.for_model("aux"))
        figures = (len(sent), *faults(sent), summaries, compressed_by(sent), recalled(sent))
        return (name, *figures, run.note)


def print_table(doc: str | None, title: str, surfaces: dict[str, Callable[[Run], None]]) -> None:
    """Run the chosen surfaces, and print a row for each."""
    args = options(doc, only=tuple(surfaces))
    silence_host()
    show(title, COLUMNS, (run_surface(name, surfaces[name]) for name in args.only))


if __name__ == "__main__":
    print_table(__doc__, "surfaces of the host", SURFACES)
