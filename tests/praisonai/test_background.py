"""Summaries in the background of a real agent: told as those of a turn are, and no turn waits."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from praisonaiagents.hooks import HookEvent, HookRegistry, HookResult

from praison_compressor.events import Event
from praison_compressor.testing import Asked, Failure, LocalProvider, Summarizer
from tests.helpers.hosting import MODES, PATHS, agent, context, turn

MODES_OF_TURNS = ["chat", "achat", "iter_stream"]
TURNS = 24
ANSWER = ("Noted. " * 12).strip()


class Memory:
    """A memory that only wants to see what will be compressed."""

    def __init__(self, told: list[tuple[str, Any]]) -> None:
        self._told = told

    def on_pre_compress(self, messages: list[Any]) -> str:
        """Take a look."""
        self._told.append(("memory", messages))
        return ""


def listening(provider: LocalProvider, path: str) -> tuple[Any, list[tuple[str, Any]]]:
    """An agent that compresses in the background, and all that it tells, in its order."""
    told: list[tuple[str, Any]] = []

    def hook(data: Any) -> HookResult:
        told.append((data.event_name, data.to_dict()))
        return HookResult.allow()

    def listen(event: Event) -> None:
        if event.name in ("started", "committed", "failed"):
            told.append((event.name, event.data))

    registry = HookRegistry()
    for event in (HookEvent.BEFORE_COMPACTION, HookEvent.AFTER_COMPACTION):
        registry.register_function(event=event, func=hook, name=event.value)
    made = agent(provider, path, context(provider, background=True), hooks=registry)
    made._memory_instance = Memory(told)
    made.context_compressor.subscribe(listen)
    return made, told


def settled(made: Any) -> bool:
    """Whether nothing is written in the background any more."""
    return bool(made.context_compressor.engine().background.wait(60))


@pytest.mark.parametrize("mode", MODES_OF_TURNS)
@pytest.mark.parametrize("path", PATHS)
def test_each_compression_in_the_background_is_told_once(
    host: LocalProvider, path: str, mode: str
) -> None:
    """Started, memory, before; committed, after: once each, in this order, with the numbers."""
    made, told = listening(host, path)
    for number in range(TURNS):
        assert MODES[mode](made, [turn(number)])[0].strip() == ANSWER
        assert settled(made)

    compressions = len(host.for_model("aux"))
    assert compressions >= 2
    order = ["started", "memory", "before_compaction", "committed", "after_compaction"]
    assert [name for name, _ in told] == order * compressions
    _, seen, before, committed, after = (data for _, data in told[:5])
    assert any(message["content"] == turn(0) for message in seen)
    assert before["agent_name"] == after["agent_name"] == "Ada"
    assert after["tokens_before"] == committed["tokens_before"] > committed["tokens_after"] > 0
    assert after["tokens_after"] == committed["tokens_after"]
    assert made.context_compressor.notice.endswith("in the background")
    assert made.context_compressor.context_status == "summarized"
    assert host.refused == []


def test_what_the_background_cost_outlives_a_window_that_was_wrong(host: LocalProvider) -> None:
    """It is finished while a request is on its way that is then refused as too long: the result of
    the smaller window bears its price."""
    asked, finished = asyncio.Event(), asyncio.Event()
    writes = Summarizer(r"L-\d+")

    async def write(given: Asked) -> Any:
        await asyncio.wait_for(asked.wait(), 60)
        return writes(given)

    async def answer(given: Asked) -> Any:
        engine = made.context_compressor.engine()
        if finished.is_set() or not host.for_model("aux"):
            return ANSWER
        asked.set()
        assert await asyncio.to_thread(engine.background.wait, 60)
        finished.set()
        refusal = "This model's maximum context length is 5500 tokens."
        return Failure(400, refusal, "invalid_request_error", code="context_length_exceeded")

    host.route("aux", write)
    host.answer_with(answer)
    made = agent(host, PATHS[0], context(host, background=True))
    paid = []
    for number in range(TURNS):
        assert made.chat(turn(number)).strip() == ANSWER
        paid.append(made.context_compressor.last_result.usage.prompt_tokens)
        if finished.is_set():
            break
    assert made.context_compressor.engine().config.context_window <= 5_500
    assert sum(paid[:-1]) == 0
    assert paid[-1] == host.for_model("aux")[0].prompt_tokens > 0
    assert settled(made)


@pytest.mark.parametrize("mode", MODES_OF_TURNS)
def test_a_summary_that_is_cancelled_is_never_told_as_done(host: LocalProvider, mode: str) -> None:
    """The agent's compressor is closed while one is written: begun, and that was all."""
    host.route("aux", Summarizer(r"L-\d+", delay_seconds=30.0))
    made, told = listening(host, PATHS[0])
    for number in range(TURNS):
        MODES[mode](made, [turn(number)])
        if host.for_model("aux"):
            break
    made.context_compressor.engine().close()
    assert settled(made)
    assert [name for name, _ in told] == ["started", "memory", "before_compaction"]
    assert host.refused == []
