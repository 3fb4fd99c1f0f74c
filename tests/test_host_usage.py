"""What the provider reports and caches: counts follow its usage, marks stand where it caches."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from praison_compressor import TokenCounter
from praison_compressor.praisonai import uninstall
from praison_compressor.testing import Asked, Failure, LocalProvider, Recorded, Reply, Worker

from .hosting import (
    ANTHROPIC,
    EVERY_PATH,
    LITELLM,
    achat,
    agent,
    at_home,
    chat,
    context,
    iter_stream,
    stream,
    turn,
)


class Twice(TokenCounter):
    """A provider whose tokenizer makes two tokens of each of ours."""

    def message(self, message: Any) -> int:
        return 2 * super().message(message)

    def messages(self, messages: Any) -> int:
        return sum(map(self.message, messages)) + 3

    def tools(self, tools: Any) -> int:
        return 2 * super().tools(tools)


def test_the_count_of_an_unknown_tokenizer_follows_the_providers_in_three_turns(
    monkeypatch, tmp_path
):
    """The trigger is measured in the provider's tokens, not in our estimate of them."""
    with (
        LocalProvider(
            Worker(answer="In order."), counter=lambda model: Twice("gpt-4o")
        ) as provider,
        at_home(monkeypatch, tmp_path, provider),
    ):
        made = agent(provider, LITELLM, context(provider))
        chat(made, [turn(number) for number in range(3)])
        tokens = made.context_compressor.engine().tokens
        last = provider.requests[-1]
    assert not tokens.exact
    assert abs(tokens.messages(last.messages) / last.prompt_tokens - 1) < 0.1


def off_by(made: Any, provider: LocalProvider) -> float:
    """How far the agent's counter is from what the provider counted of the last request."""
    last = provider.requests[-1]
    counter = made.context_compressor.engine().tokens
    counted = counter.messages(last.messages) + counter.tools(last.tools)
    return abs(counted / last.prompt_tokens - 1)


def chat_streamed(made: Any, prompts: Any) -> list[Any]:
    """`chat(stream=True)`: the host reads the stream itself."""
    return [made.chat(prompt, stream=True) for prompt in prompts]


def achat_streamed(made: Any, prompts: Any) -> list[Any]:
    """The same on an event loop."""

    async def run() -> list[Any]:
        return [await made.achat(prompt, stream=True) for prompt in prompts]

    return asyncio.run(run())


STREAMED = (chat_streamed, achat_streamed, stream, iter_stream)


@pytest.mark.parametrize("path", EVERY_PATH)
@pytest.mark.parametrize("mode", STREAMED, ids=lambda mode: mode.__name__)
def test_a_streamed_answers_usage_is_learned_where_it_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any, path: str, mode: Any
) -> None:
    """A chat completions stream tells it only if the host asked; we add nothing to the request."""
    with (
        LocalProvider(
            Worker(answer="In order."), counter=lambda model: Twice("gpt-4o")
        ) as provider,
        at_home(monkeypatch, tmp_path, provider),
    ):
        made = agent(provider, path, context(provider, context_window=128_000))
        provider.set_window(128_000)
        assert mode(made, [turn(number) for number in range(3)]) == ["In order."] * 3
        told = all(tells_usage(record) for record in provider.requests)
        assert (off_by(made, provider) < 0.02) is told
        ours = [settings(record.body) for record in provider.requests]
        provider.forget()
        uninstall()
        mode(agent(provider, path), [turn(number) for number in range(3)])
        assert ours == [settings(record.body) for record in provider.requests]


@pytest.mark.parametrize("mode", [chat, achat], ids=lambda mode: mode.__name__)
def test_the_usage_of_a_request_that_is_sent_again_is_learned(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any, mode: Any
) -> None:
    """The first request of an agent is refused, without a number; its tighter view tells them."""

    def answer(asked: Asked) -> Reply | Failure:
        if asked.model != "aux" and len(asked.text) > 8_000:
            return Failure(400, "Input is too long for requested model.", "invalid_request_error")
        return Reply("In order.")

    with (
        LocalProvider(answer, counter=lambda model: Twice("gpt-4o")) as provider,
        at_home(monkeypatch, tmp_path, provider),
    ):
        provider.set_window(100_000)
        made = agent(provider, LITELLM, context(provider, context_window=12_000))
        for number in range(40):
            made.chat_history.append({"role": "user", "content": turn(number)})
            made.chat_history.append({"role": "assistant", "content": "Noted."})
        assert mode(made, [turn(40)]) == ["In order."]
        sent = [r for r in provider.requests if r.model != "aux"]
        # Older hosts send a refused request three times.
        assert len({json.dumps(r.messages) for r in sent if r.status == 400}) == 1
        assert [r.status for r in sent][-1] == 200
        assert off_by(made, provider) < 0.02


def tells_usage(record: Recorded) -> bool:
    """Whether the provider reports usage with that answer."""
    asked = (record.body.get("stream_options") or {}).get("include_usage", False)
    return asked or not record.stream or record.protocol != "chat"


def settings(body: Any) -> dict[str, Any]:
    """All of a request but what it says."""
    return {k: v for k, v in body.items() if k not in ("messages", "input", "system")}


def test_claude_requests_carry_marks_where_its_provider_caches(monkeypatch, tmp_path):
    """At most four, and every request is taken."""
    with (
        LocalProvider(Worker(answer="The ledger is in order. " * 20)) as provider,
        at_home(monkeypatch, tmp_path, provider),
    ):
        made = agent(provider, ANTHROPIC, context(provider))
        chat(made, [turn(number) for number in range(24)])
        bodies = [json.dumps(r.body) for r in provider.requests if r.model != "aux"]
        assert not provider.refused
    marks = [body.count('"cache_control"') for body in bodies]
    assert min(marks) >= 1
    assert max(marks) <= 4
    assert marks[-1] > marks[0]
