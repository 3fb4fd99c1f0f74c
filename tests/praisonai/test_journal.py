"""What a conversation carried is in the store before it is sent, and back after a restart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from praisonaiagents import Agent, ExecutionConfig

from praison_compressor.ledger.sql.store import open_store
from praison_compressor.messages import content_digest, text_of
from praison_compressor.praisonai import whose
from praison_compressor.testing import LocalProvider, Worker
from tests.helpers.hosting import (
    EVERY_PATH,
    OPENAI,
    agent,
    context,
    look_up,
    numbered,
    of_agent,
    turn,
    without_system,
)

LONG = ExecutionConfig(max_iter=100, max_tool_calls_per_turn=500)
URL = "sqlite:///ledger.db"
WIDE = 100_000
ANSWER = "Noted. " * 3
SECRET = "sk-" + "Zq9" * 16


def desk(host: LocalProvider, path: str = OPENAI, **options: Any) -> Agent:
    """A program's agent, as each of its runs makes it."""
    host.answer_with(Worker(2, parallel=2, arguments=numbered, answer=ANSWER))
    host.set_window(WIDE)
    more = {"store_url": URL, "session_id": "desk", "context_window": WIDE, **options}
    return agent(host, path, context(host, **more), tools=[look_up], execution=LONG)


def steps(record: Any) -> list[str]:
    return [text_of(m) for m in record.messages if m["role"] == "tool"]


@pytest.mark.parametrize("path", EVERY_PATH)
def test_steps_are_back_after_a_restart(host: LocalProvider, path: str) -> None:
    """The next run's first request begins with the last run's last request."""
    first = desk(host, path)
    for n in range(3):
        first.chat(turn(n))
    before = of_agent(host)[-1]
    del first
    desk(host, path).chat(turn(3))
    after = next(r for r in of_agent(host) if turn(3) in text_of(r.messages[-1]))
    assert without_system(after.messages).startswith(without_system(before.messages))
    assert len(steps(after)) == 3 * 4


def test_a_question_with_a_secret_keeps_its_steps(host: LocalProvider) -> None:
    """The record has the key masked; the host's own message is known by that."""
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
    assert len(steps(after)) == 4
    assert SECRET in text_of(after.messages[1])


def test_each_request_is_in_the_store_before_it_is_sent(host: LocalProvider) -> None:
    """A kill at any request loses no result that the model was shown."""
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
    for n in range(2):
        made.chat(turn(n))
    assert seen == [True] * 6
    store = open_store(URL)
    last = store.transcript(store.open("default", "desk"))[-1]
    assert last == {"role": "assistant", "content": ANSWER.strip()}


def test_a_store_that_is_down_holds_up_no_turn(host: LocalProvider, tmp_path: Path) -> None:
    """Turns go on with their steps from memory, and it is said once."""
    made = desk(host)
    made.chat(turn(0))
    for file in tmp_path.glob("ledger.db*"):
        file.unlink()
    (tmp_path / "ledger.db").mkdir()
    for n in (1, 2):
        assert made.chat(turn(n)).strip() == ANSWER.strip()
    assert len(steps(of_agent(host)[-1])) == 3 * 4


def test_a_forgotten_step_is_not_sent_again(host: LocalProvider) -> None:
    """`forget` of a result reaches what is remembered of the conversation."""
    made = desk(host)
    made.chat(turn(0))
    store = open_store(URL)
    session = store.open("default", "desk")
    (result,) = [m for m in store.transcript(session) if "END-3" in text_of(m)]
    store.forget("default", content_digest(result))
    made.chat(turn(1))
    after = next(r for r in of_agent(host) if text_of(r.messages[-1]) == turn(1))
    assert "END-3" not in " ".join(steps(after))
    assert "END-2" in " ".join(steps(after))


def test_what_is_remembered_is_bounded(
    host: LocalProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a store the newest conversations keep their steps."""
    monkeypatch.setattr(whose, "JOURNALED_TOKENS", 2_600)  # each takes some 1,100
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
    assert [len(steps(r)) for r in firsts] == [0, 0, 0, 0, 4]
