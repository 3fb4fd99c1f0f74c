"""What the provider reports is counted, billed and learned; marks stand where it caches."""

import asyncio
import json
from typing import Any

import pytest
from praisonaiagents import MemoryConfig

from praison_compressor import TokenCounter, uninstall
from praison_compressor.testing import Asked, Failure, LocalProvider, Reply, Worker
from tests.helpers.hosting import (
    ANTHROPIC,
    EVERY_PATH,
    LITELLM,
    MODES,
    OPENAI,
    OUTGROWING,
    achat,
    agent,
    by_itself,
    chat,
    context,
    iter_stream,
    of_agent,
    stream,
    turn,
)

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
def twice():
    """Yield the host's provider, which counts each of our tokens twice."""
    worker = Worker(answer="In order.")
    with by_itself(worker, counter=lambda model: Twice("gpt-4o")) as running:
        yield running


def off_by(made: Any, provider: LocalProvider) -> float:
    """Return how far the agent's count of the last request is from the provider's."""
    last = provider.requests[-1]
    counter = made.context_compressor.for_model().tokens
    counted = counter.messages(last.messages) + counter.tools(last.tools)
    return abs(counted / last.prompt_tokens - 1)


def test_the_count_of_an_unknown_tokenizer_follows_the_providers(twice):
    """After three turns the count of an unknown tokenizer is within 10 % of the provider's."""
    made = agent(twice, LITELLM, context(twice))
    chat(made, turns(3))
    assert not made.context_compressor.for_model().tokens.exact
    assert off_by(made, twice) < 0.1


def chat_streamed(made: Any, prompts: Any) -> list[Any]:
    """Send all prompts through `chat(stream=True)`, whose stream the host reads itself."""
    return [made.chat(prompt, stream=True) for prompt in prompts]


def achat_streamed(made: Any, prompts: Any) -> list[Any]:
    """Send all prompts so on an event loop."""

    async def run() -> list[Any]:
        return [await made.achat(prompt, stream=True) for prompt in prompts]

    return asyncio.run(run())


def settings(body: Any) -> dict[str, Any]:
    """Return all of a request but its words and the request for its usage."""
    left_out = ("messages", "input", "system", "stream_options")
    return {k: v for k, v in body.items() if k not in left_out}


STREAMED = (chat_streamed, achat_streamed, stream, iter_stream)


@pytest.mark.parametrize("path", EVERY_PATH)
@pytest.mark.parametrize("mode", STREAMED, ids=lambda mode: mode.__name__)
def test_a_streams_usage_is_learned(twice, path, mode):
    """A stream's usage is learned by no change but the request for it."""
    made = agent(twice, path, context(twice, context_window=128_000))
    twice.set_window(128_000)
    assert mode(made, turns(3)) == ["In order."] * 3
    assert off_by(made, twice) < 0.02
    ours = [settings(record.body) for record in twice.requests]
    twice.forget()
    uninstall()
    mode(agent(twice, path), turns(3))
    assert ours == [settings(record.body) for record in twice.requests]


@pytest.mark.parametrize("mode", ["chat", "achat"])
def test_a_stream_of_the_agents_client_is_read_by_hand(host, mode):
    """A tool reads a stream of its agent's client by `with` and `next`."""
    made = agent(host, OPENAI, context(host))
    given = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "Go."}]}
    first: list[str] = []

    def read_first() -> str:
        """Read the first piece of a stream."""
        opened = made._openai_client.sync_client.chat.completions.create(**given, stream=True)
        with opened as stream:
            first.append(next(stream).choices[0].delta.role)
        return "read"

    async def aread_first() -> str:
        """Read the first piece of an async stream."""
        completions = made._openai_client.async_client.chat.completions
        async with await completions.create(**given, stream=True) as stream:
            first.append((await stream.__anext__()).choices[0].delta.role)
        return "read"

    made.tools = [read_first if mode == "chat" else aread_first]
    host.answer_with(Worker(lambda asked: 1 if asked.tools else 0, answer="In order."))
    assert MODES[mode](made, ["Read."]) == ["In order."]
    assert first == ["assistant"]


@pytest.mark.parametrize(
    ("path", "key", "mode"),
    [
        *((ANTHROPIC, "cache_control", mode) for mode in ("chat", "achat", "stream")),
        *((path, "stream_options", "iter_stream") for path in (LITELLM, OPENAI)),
        (LITELLM, "stream_options", "astream"),
        (ANTHROPIC, "cache_control.ttl", "chat"),
    ],
)
def test_a_key_that_a_provider_refuses_by_its_name_is_left_out(host, path, key, mode):
    """A key that a provider refuses by its name is left out, alone, after one refusal."""

    def answer(asked: Asked) -> Reply | Failure:
        if f'"{key.rpartition(".")[2]}":' in json.dumps(asked.body):
            return Failure(400, f"{key}: Extra inputs are not permitted", "invalid_request_error")
        return Reply("In order.")

    host.answer_with(answer)
    run = {**MODES, "astream": achat_streamed}[mode]
    made = agent(host, path, context(host, cache_ttl_seconds=3_600))
    assert run(made, turns(3)) == ["In order."] * 3
    assert [record.status for record in host.requests] == [400, 200, 200, 200]
    assert bool(marks_in(host.requests[-1].body)) is key.endswith("ttl")


@BOTH
def test_the_agents_cost_summary_has_the_summaries(host, mode):
    """The agent's cost summary includes tokens and dollars of the summaries."""
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


@pytest.mark.parametrize(("seconds", "ttl"), [(None, None), (3_599, None), (3_600, "1h")])
@pytest.mark.parametrize("mode", ["chat", "achat", "stream"])
def test_both_kinds_of_cache_writes_are_read(host, mode, seconds, ttl):
    """From `cache_ttl_seconds=3_600` on, cache marks ask for an hour, billed as such."""
    host.answer_with(Worker(answer="Noted. " * 12))
    made = agent(host, ANTHROPIC, context(host, cache_ttl_seconds=seconds))
    MODES[mode](made, OUTGROWING)
    sent = of_agent(host)
    lives = {mark.get("ttl") for record in sent for mark in marks_in(record.body)}
    assert lives == {ttl}
    usage = made.context_compressor.status().bill.usage
    written = sum(record.prompt_tokens - record.cached_tokens for record in sent)
    writes = usage.cache_write_tokens, usage.cache_write_1h_tokens
    assert writes == ((written, 0) if ttl is None else (0, written))
    read = usage.cache_read_tokens
    each = usage.prompt_tokens - read, read, usage.completion_tokens
    prices = 3.75e-6 if ttl is None else 6e-6, 3e-7, 1.5e-5
    dollars = sum(tokens * price for tokens, price in zip(each, prices, strict=True))
    assert made.context_compressor.status().bill.cost == pytest.approx(dollars)


def marks_in(value: Any) -> list[dict[str, str]]:
    """Return the cache marks anywhere in a request's body."""
    if isinstance(value, list):
        return [mark for item in value for mark in marks_in(item)]
    if not isinstance(value, dict):
        return []
    own = [value["cache_control"]] if "cache_control" in value else []
    return [*own, *marks_in([item for key, item in value.items() if key != "cache_control"])]


@pytest.mark.parametrize("mode", ["chat", "achat", "stream"])
def test_an_agent_of_another_process_has_the_bill(host, store_url, mode):
    """A conversation's bill goes on after a restart."""
    options = {"store_url": store_url}
    remembering = MemoryConfig(session_id="books", history=True)
    made = agent(host, OPENAI, context(host, **options), memory=remembering)
    MODES[mode](made, OUTGROWING)
    paid = made.context_compressor.status().bill
    assert paid.requests == len(OUTGROWING)
    assert paid.usage.cache_read_tokens > 0
    assert paid.summaries.prompt_tokens > 0
    # Its last turn waits with its bill while another thread writes to the store.
    made.context_compressor.save()
    again = agent(host, OPENAI, context(host, **options), memory=remembering)
    assert again.context_compressor.session_id == made.context_compressor.session_id
    assert again.context_compressor.status().bill == paid
    assert str(paid) in again.chat("/status")
    chat(again, ["And now?"])
    assert again.context_compressor.status().bill.requests == len(OUTGROWING) + 1
