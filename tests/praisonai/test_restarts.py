"""A program that is killed and run again pays for nothing twice and forgets nothing."""

import itertools
import os
import re
import subprocess
import sys
from typing import Any

import pytest
from praisonaiagents import Agent, MemoryConfig
from praisonaiagents.session import get_default_session_store

from praison_compressor import CompressorConfig, ContextCompressor, open_store
from praison_compressor.messages import content_digest, text_of
from praison_compressor.praisonai import conversations
from praison_compressor.testing import LocalProvider, Worker
from tests.helpers import restarting
from tests.helpers.hosting import (
    ANTHROPIC,
    EVERY_PATH,
    LITELLM,
    LONG,
    OPENAI,
    achat,
    agent,
    chat,
    context,
    iter_stream,
    look_up,
    numbered,
    of_agent,
    reused,
    texts_in,
    turn,
    without_system,
)
from tests.helpers.processes import ROOT
from tests.helpers.restarting import HISTORY, HOST, OPTION, SESSION, Running, program


def ask(running: Running, provider: LocalProvider, numbers: range) -> list[int]:
    """Ask in these turns; return how many calls of the summarizer each took."""
    calls = []
    for number in numbers:
        before = len(provider.for_model("aux"))
        assert running.ask(turn(number, words=90))
        calls.append(len(provider.for_model("aux")) - before)
    return calls


def until_compressed(running: Running, provider: LocalProvider) -> int:
    """Ask until a turn compressed and the next one did not; return the next turn's number."""
    calls = [0]
    while not calls[-1] and len(calls) < 60:
        calls += ask(running, provider, range(len(calls), len(calls) + 1))
    assert calls[-1] > 0
    assert ask(running, provider, range(len(calls), len(calls) + 1)) == [0]
    return len(calls) + 1


WIDE = 12_000

CELLS = [(OPENAI, "stream", HISTORY), (LITELLM, "achat", HOST), (ANTHROPIC, "chat", OPTION)]


@pytest.mark.parametrize(("path", "mode", "kept"), CELLS)
def test_a_restart_costs_nothing(host, path, mode, kept):
    """After SIGKILL the next turn is as cheap as if nothing had happened."""
    host.answer_with(Worker(1, arguments=restarting.numbered(), answer="Noted. " * 12))
    host.set_window(WIDE)
    ran = program(host, path, mode, kept, window=WIDE)
    running = Running(ran)
    number = until_compressed(running, host)
    before = [one for one in of_agent(host) if one.messages[-1]["role"] == "user"][-1]
    running.kill()
    running = Running(ran)
    seen = len(host.requests)
    assert ask(running, host, range(number, number + 1)) == [0]
    running.kill()
    after = next(record for record in host.requests[seen:] if record.model != "aux")
    assert reused(before, after) == 1
    assert host.refused == []
    stored = open_store("sqlite:///restarts.db").sessions("default")
    assert [each.id for each in stored] == [SESSION]


# ---------------------------------------------------------------- run, kill, run again


def run(code: str, prompts: list[str]) -> list[str]:
    """Run a program in a process of its own, ask, and kill it; return what it printed."""
    with subprocess.Popen(
        [sys.executable, "-u", "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as process:
        said = []
        for prompt in prompts:
            process.stdin.write(prompt + "\n")
            process.stdin.flush()
            said.append(process.stdout.readline())
        process.kill()
    return said


def test_the_recipe_remembers_after_a_kill(host):
    """The README's program of six lines is killed: its next run knows all."""
    shown = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    (code,) = [each for each in shown if 'session_id="desk", store_url' in each]
    assert len([line for line in code.splitlines() if line]) == 6
    facts = ["The fiscal year starts in April.", "Order ORD-4123 is for pier 3."]
    assert all("Noted." in said for said in run(code, facts))
    run(code, ["When does the fiscal year start?"])
    assert {*facts} <= {message["content"] for message in host.requests[-1].messages}


def test_a_session_id_belongs_to_one_agent(host, tmp_path):
    """A clone and a second agent with one `session_id` have sessions of their own."""
    store = f"sqlite:///{tmp_path}/desk.db"
    shared = context(host, session_id=SESSION, store_url=store)
    made = agent(host, OPENAI, shared)
    chat(made, [turn(0)])
    others = [made.clone_for_channel(), agent(host, OPENAI, shared)]
    for number, other in enumerate(others, 1):
        chat(other, [turn(number)])
        said = [message["content"] for message in of_agent(host)[-1].messages]
        assert turn(0) not in said
    assert made.context_compressor.session_id == SESSION
    assert SESSION not in [other.context_compressor.session_id for other in others]


def test_a_cleared_history_stays_cleared(host, tmp_path):
    """A history cleared in a process is not restored from the store."""
    store = f"sqlite:///{tmp_path}/desk.db"
    made = agent(host, OPENAI, context(host, session_id=SESSION, store_url=store))
    chat(made, [turn(0)])
    made.clear_history()
    chat(made, [turn(1)])
    assert turn(0) not in [message["content"] for message in of_agent(host)[-1].messages]


@pytest.mark.parametrize("retention", ["compact", "truncate"])
@pytest.mark.parametrize(
    ("path", "history"), [(OPENAI, False), (OPENAI, True), (LITELLM, True), (ANTHROPIC, False)]
)
def test_messages_that_the_hosts_store_cut_come_from_the_ledger(host, path, history, retention):
    """Messages that the host's store cut or summarized come back, each paid once."""
    store = get_default_session_store()
    store.active_window, store.retention = 12, retention
    memory = MemoryConfig(session_id=SESSION, history=history, history_limit=100)
    for run in range(3):
        made = agent(host, path, context(host), memory=memory)
        chat(made, [*map(turn, range(6 * run, 6 * run + 6))])
        spoken = [one["content"] for one in made.chat_history if one["role"] == "user"]
        assert spoken == [*map(turn, range(6 * run + 6))]
    begins = store.get_working_history(SESSION)[0]["content"]
    assert begins.startswith("[Session Summary]") == (retention == "compact")
    sent = of_agent(host)
    assert "[Session Summary]" not in " ".join(text_of(m) for one in sent for m in one.messages)
    paid = len(host.for_model("aux"))
    breaks = sum(reused(*pair) < 1 for pair in itertools.pairwise(sent))
    assert breaks == paid > 0


URL = "sqlite:///ledger.db"
ROOMY = 100_000
ANSWER = "Noted. " * 3
SECRET = "sk-" + "Zq9" * 16


def desk(host: LocalProvider, path: str = OPENAI, **options: Any) -> Agent:
    """Return a program's agent, as each of its runs makes it."""
    host.answer_with(Worker(2, parallel=2, arguments=numbered, answer=ANSWER))
    host.set_window(ROOMY)
    more = {"store_url": URL, "session_id": "desk", "context_window": ROOMY, **options}
    return agent(host, path, context(host, **more), tools=[look_up], execution=LONG)


@pytest.mark.parametrize("path", EVERY_PATH)
def test_steps_are_back_after_a_restart(host, path):
    """The next run's first request begins with the last run's last request."""
    first = desk(host, path)
    chat(first, [turn(n) for n in range(3)])
    before = of_agent(host)[-1]
    del first
    desk(host, path).chat(turn(3))
    after = next(r for r in of_agent(host) if turn(3) in text_of(r.messages[-1]))
    assert without_system(after.messages).startswith(without_system(before.messages))
    assert len(texts_in(after, "tool")) == 3 * 4


def test_a_question_with_a_secret_keeps_its_steps(host):
    """A question whose key is redacted in the store keeps its steps after a restart."""
    first = desk(host, session_id=None)
    first.chat(f"{turn(0)} The key is {SECRET}.")
    kept = list(first.chat_history)
    store = open_store(URL)
    (name,) = [row.id for row in store.sessions("default")]
    assert SECRET not in str(store.transcript(store.open("default", name)))
    again = desk(host, session_id=name)
    again.chat_history = kept
    again.chat(turn(1))
    after = next(r for r in of_agent(host) if text_of(r.messages[-1]) == turn(1))
    assert len(texts_in(after, "tool")) == 4
    assert SECRET in text_of(after.messages[1])


def test_each_request_is_in_the_store_before_it_is_sent(host):
    """Every message of a request is in the store before the request is sent."""
    seen: list[bool] = []
    work = Worker(2, parallel=2, arguments=numbered, answer=ANSWER)

    def answer(asked: Any) -> Any:
        store = open_store(URL)
        recorded = [text_of(m) for m in store.transcript(store.open("default", "desk"))]
        store.close()
        seen.append(all(text_of(m) in recorded for m in asked.messages if m["role"] != "system"))
        return work(asked)

    made = desk(host)
    host.answer_with(answer)
    chat(made, [turn(n) for n in range(2)])
    assert seen == [True] * 6
    store = open_store(URL)
    last = store.transcript(store.open("default", "desk"))[-1]
    assert last == {"role": "assistant", "content": ANSWER.strip()}


class Stopped(BaseException):
    """What ends a turn amid a tool, past the host's handlers."""


@pytest.mark.parametrize("mode", [chat, achat, iter_stream], ids=lambda mode: mode.__name__)
def test_a_turn_that_raises_is_billed_in_the_store(host, mode):
    """A turn that raises has its answered request on the bill in the store."""

    def look_up(topic: str, part: int) -> str:
        """Look a topic up, and be stopped.

        Args:
            topic: what to look up
            part: which part
        """
        raise Stopped

    made = desk(host)
    made.tools = [look_up]
    with pytest.raises(Stopped):
        mode(made, [turn(0)])
    assert [record.status for record in of_agent(host)] == [200]
    store = open_store(URL)
    assert ContextCompressor(CompressorConfig(model="gpt-4o"), store=store).bill("desk").requests
    store.close()


def test_a_store_that_is_down_holds_up_no_turn(host, tmp_path):
    """With a store that is down, turns are answered with their steps."""
    made = desk(host)
    made.chat(turn(0))
    for file in tmp_path.glob("ledger.db*"):
        file.unlink()
    (tmp_path / "ledger.db").mkdir()
    for n in (1, 2):
        assert made.chat(turn(n)).strip() == ANSWER.strip()
    assert len(texts_in(of_agent(host)[-1], "tool")) == 3 * 4


def test_a_forgotten_step_is_not_sent_again(host):
    """A forgotten result is not sent again."""
    made = desk(host)
    made.chat(turn(0))
    store = open_store(URL)
    session = store.open("default", "desk")
    (result,) = [m for m in store.transcript(session) if "END-3" in text_of(m)]
    store.forget("default", content_digest(result))
    made.chat(turn(1))
    after = next(r for r in of_agent(host) if text_of(r.messages[-1]) == turn(1))
    assert "END-3" not in " ".join(texts_in(after, "tool"))
    assert "END-2" in " ".join(texts_in(after, "tool"))


def test_the_newest_conversations_keep_steps_without_a_store(host, monkeypatch):
    """Without a store the newest conversations keep their steps."""
    monkeypatch.setattr(conversations, "JOURNALED_TOKENS", 2_600)  # each takes some 1,100
    made = desk(host, store_url=None, session_id=None)
    host.answer_with(
        Worker(
            2,
            parallel=2,
            arguments=numbered,
            answer=lambda asked: f"Answer {asked.number}, of its own. " * 3,
        )
    )
    histories: dict[str, list[Any]] = {}
    for n, name in enumerate(["ann", "ben", "eve", "ann", "eve"]):
        made.chat_history = histories.get(name, [])
        made.chat(f"{turn(n)} I am {name}, and this is what I ask of you today, friend.")
        histories[name], made.chat_history = list(made.chat_history), []
    firsts = [r for r in of_agent(host) if r.messages[-1]["role"] == "user"]
    assert [len(texts_in(r, "tool")) for r in firsts] == [0, 0, 0, 0, 4]
