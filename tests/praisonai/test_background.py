"""Summaries in the background of a real agent: told as those of a turn are, and no turn waits."""

from __future__ import annotations

import asyncio
from typing import Any

from praison_compressor.testing import Asked, Failure, LocalProvider, Summarizer
from tests.helpers.hosting import PATHS, agent, context, turn

TURNS = 24
ANSWER = ("Noted. " * 12).strip()


def settled(made: Any) -> bool:
    """Whether nothing is written in the background any more."""
    return bool(made.context_compressor.engine().background.wait(60))


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
