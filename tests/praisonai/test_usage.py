"""What the provider reports and caches: counts follow its usage, marks stand where it caches."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from praison_compressor import TokenCounter, uninstall
from praison_compressor.testing import Asked, Failure, LocalProvider, Reply, Summarizer, Worker
from tests.helpers.hosting import (
    ANTHROPIC,
    EVERY_PATH,
    LITELLM,
    MODES,
    OPENAI,
    OUTGROWING,
    PATHS,
    achat,
    agent,
    at_home,
    chat,
    context,
    iter_stream,
    stream,
    turn,
)
from tests.helpers.provider import strict_provider

BOTH = pytest.mark.parametrize("mode", [chat, achat], ids=lambda mode: mode.__name__)


def turns(count: int) -> list[str]:
    return [turn(number) for number in range(count)]


class Twice(TokenCounter):
    """A provider whose tokenizer makes two tokens of each of ours."""

    def message(self, message: Any) -> int:
        return 2 * super().message(message)

    def messages(self, messages: Any) -> int:
        return sum(map(self.message, messages)) + 3

    def tools(self, tools: Any) -> int:
        return 2 * super().tools(tools)


@pytest.fixture
def twice(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Iterator[LocalProvider]:
    """The host's provider, which counts twice as many tokens as we do."""
    worker = Worker(answer="In order.")
    with (
        strict_provider(worker, counter=lambda model: Twice("gpt-4o")) as running,
        at_home(monkeypatch, tmp_path, running),
    ):
        yield running


def off_by(made: Any, provider: LocalProvider) -> float:
    """How far the agent's counter is from what the provider counted of the last request."""
    last = provider.requests[-1]
    counter = made.context_compressor.engine().tokens
    counted = counter.messages(last.messages) + counter.tools(last.tools)
    return abs(counted / last.prompt_tokens - 1)


def test_the_count_of_an_unknown_tokenizer_follows_the_providers(twice: LocalProvider) -> None:
    """The trigger is measured in the provider's tokens after three turns, not in our estimate."""
    made = agent(twice, LITELLM, context(twice))
    chat(made, turns(3))
    assert not made.context_compressor.engine().tokens.exact
    assert off_by(made, twice) < 0.1


def chat_streamed(made: Any, prompts: Any) -> list[Any]:
    """`chat(stream=True)`: the host reads the stream itself."""
    return [made.chat(prompt, stream=True) for prompt in prompts]


def achat_streamed(made: Any, prompts: Any) -> list[Any]:
    """The same on an event loop."""

    async def run() -> list[Any]:
        return [await made.achat(prompt, stream=True) for prompt in prompts]

    return asyncio.run(run())


def settings(body: Any) -> dict[str, Any]:
    """All of a request but what it says, and the request for its usage."""
    left_out = ("messages", "input", "system", "stream_options")
    return {k: v for k, v in body.items() if k not in left_out}


STREAMED = (chat_streamed, achat_streamed, stream, iter_stream)


@pytest.mark.parametrize("path", EVERY_PATH)
@pytest.mark.parametrize("mode", STREAMED, ids=lambda mode: mode.__name__)
def test_a_streamed_answers_usage_is_learned_where_it_is_reported(
    twice: LocalProvider, path: str, mode: Any
) -> None:
    """A chat completions stream reports it on request, which is all that we add."""
    made = agent(twice, path, context(twice, context_window=128_000))
    twice.set_window(128_000)
    assert mode(made, turns(3)) == ["In order."] * 3
    assert off_by(made, twice) < 0.02
    ours = [settings(record.body) for record in twice.requests]
    twice.forget()
    uninstall()
    mode(agent(twice, path), turns(3))
    assert ours == [settings(record.body) for record in twice.requests]


@pytest.mark.parametrize(
    ("path", "key", "mode"),
    [
        *((ANTHROPIC, "cache_control", mode) for mode in ("chat", "achat", "stream")),
        *((path, "stream_options", "iter_stream") for path in (LITELLM, OPENAI)),
        (LITELLM, "stream_options", "astream"),
    ],
)
def test_a_key_that_a_provider_refuses_by_its_name_is_left_out(
    host: LocalProvider, path: str, key: str, mode: str
) -> None:
    """Once it is learned, and no turn is lost: a host alone would not have sent it."""

    def answer(asked: Asked) -> Reply | Failure:
        if key in json.dumps(asked.body):
            return Failure(400, f"{key}: Extra inputs are not permitted", "invalid_request_error")
        return Reply("In order.")

    host.answer_with(answer)
    run = {**MODES, "astream": achat_streamed}[mode]
    assert run(agent(host, path, context(host)), turns(3)) == ["In order."] * 3
    assert [record.status for record in host.requests] == [400, 200, 200, 200]


@BOTH
def test_what_summaries_cost_is_in_the_agents_cost_summary(host: LocalProvider, mode: Any) -> None:
    """Tokens and dollars of the auxiliary model count against the agent's budget as its own do."""
    summary = "Done. The ledgers L-001 to L-008 were looked after, one by one, in their order."
    host.answer_with(Worker(answer="In order."))
    host.route("gpt-4o", lambda asked: Reply(summary))
    host.set_window(128_000, "gpt-4o")
    made = agent(host, OPENAI, context(host, auxiliary_model="gpt-4o"))
    mode(made, OUTGROWING)
    assert host.for_model("gpt-4o")
    sums = made.cost_summary
    prices = {"gpt-4o": (2.5e-6, 1e-5), "gpt-4o-mini": (1.5e-7, 6e-7)}
    paid = [(r.prompt_tokens, r.completion_tokens, *prices[r.model]) for r in host.requests]
    assert sums["tokens_in"] == sum(prompt for prompt, *_ in paid)
    assert sums["tokens_out"] == sum(completion for _, completion, *_ in paid)
    dollars = sum(prompt * one + completion * two for prompt, completion, one, two in paid)
    assert sums["cost"] == pytest.approx(dollars, rel=0.001)  # the host rounds its own


@pytest.mark.parametrize("llm", ["claude-local", "openai/claude-local", "team-anthropic-eval"])
def test_an_endpoint_of_openais_protocol_gets_no_marks_whatever_its_model_is_called(
    host: LocalProvider, llm: str
) -> None:
    """It would refuse the key, and the agent would have no answer from its first turn on."""
    made = agent(host, OPENAI, context(host), llm=llm)
    assert None not in chat(made, OUTGROWING)
    assert made.context_compressor.context_status == "summarized"
    assert not host.refused


def test_claude_requests_carry_marks_where_its_provider_caches(host: LocalProvider) -> None:
    """At most four, and every request is taken."""
    host.answer_with(Worker(answer="The ledger is in order. " * 20))
    chat(agent(host, ANTHROPIC, context(host)), OUTGROWING)
    bodies = [json.dumps(r.body) for r in host.requests if r.model != "aux"]
    assert not host.refused
    marks = [body.count('"cache_control"') for body in bodies]
    assert 1 <= min(marks) <= max(marks) <= 4
    assert marks[-1] > marks[0]


# ---------------------------------------------------------------- in the background


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
