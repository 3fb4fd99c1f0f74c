"""What the provider reports and caches: counts follow its usage, marks stand where it caches."""

from __future__ import annotations

import json
from typing import Any

from praison_compressor import TokenCounter
from praison_compressor.testing import LocalProvider, Worker

from .hosting import ANTHROPIC, LITELLM, agent, at_home, chat, context, turn


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
