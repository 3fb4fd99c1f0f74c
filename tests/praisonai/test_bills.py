"""The bill of a conversation has what the provider reports for each of its requests."""

from __future__ import annotations

from typing import Any

import pytest

from praison_compressor.compressor.bills import RequestUsage, usage_in
from praison_compressor.testing import Failure, LocalProvider, Worker
from tests.helpers.hosting import (
    ANTHROPIC,
    EVERY_PATH,
    MODES,
    OUTGROWING,
    agent,
    cells,
    chat,
    context,
    look_up,
    numbered,
    of_agent,
    turn,
)


def reported(provider: LocalProvider) -> tuple[int, int, int]:
    """Return prompt, cached and completion tokens of the agent's own requests."""
    sent = of_agent(provider)
    return (
        sum(record.prompt_tokens for record in sent),
        sum(record.cached_tokens for record in sent),
        sum(record.completion_tokens for record in sent),
    )


@pytest.mark.parametrize(("path", "mode"), cells(EVERY_PATH))
def test_each_request_is_on_the_bill_once(host: LocalProvider, path: str, mode: str) -> None:
    """Input, cached input and output are the provider's own sums, streams too."""
    host.answer_with(Worker(1, arguments=numbered, answer="Noted. " * 12))
    made = agent(host, path, context(host), tools=[look_up])
    MODES[mode](made, OUTGROWING)
    bill = made.context_compressor.status().bill
    found = (bill.usage.input, bill.usage.cached, bill.usage.output)
    assert found == reported(host)
    assert bill.usage.cached > 0
    assert bill.requests == len(of_agent(host))
    aux = host.for_model("aux")
    assert bill.summaries.prompt_tokens == sum(record.prompt_tokens for record in aux) > 0


@pytest.mark.parametrize("ttl", [None, "1h"])
@pytest.mark.parametrize("mode", ["chat", "achat", "stream"])
def test_both_kinds_of_cache_writes_are_read(host: LocalProvider, mode: str, ttl: str) -> None:
    """`cache_ttl="1h"` sets the marks' ttl, and what they write is billed at its own price."""
    host.answer_with(Worker(answer="Noted. " * 12))
    made = agent(host, ANTHROPIC, context(host, cache_ttl=ttl))
    MODES[mode](made, OUTGROWING)
    sent = of_agent(host)
    lives = {mark.get("ttl") for record in sent for mark in marks_in(record.body)}
    assert lives == {ttl}
    usage = made.context_compressor.status().bill.usage
    written = sum(record.prompt_tokens - record.cached_tokens for record in sent)
    assert (usage.written, usage.written_1h) == ((written, 0) if ttl is None else (0, written))
    each = usage.input - usage.cached, usage.cached, usage.output
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


def test_a_route_that_refuses_the_ttl_gets_marks_without_it(host: LocalProvider) -> None:
    """One request is refused, and none after it."""

    def answer(asked: Any) -> Any:
        if any("ttl" in mark for mark in marks_in(asked.body)):
            return Failure(400, "cache_control.ttl: Extra inputs are not permitted")
        return "Noted."

    host.answer_with(answer)
    made = agent(host, ANTHROPIC, context(host, cache_ttl="1h"))
    assert chat(made, [turn(0), turn(1)]) == ["Noted."] * 2
    assert [record.status for record in host.requests] == [400, 200, 200]
    assert marks_in(host.requests[-1].body)


@pytest.mark.parametrize(
    ("usage", "found"),
    [
        (
            {
                "prompt_tokens": 9,
                "completion_tokens": 2,
                "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 3},
            },
            RequestUsage(9, 4, 3, 0, 2),
        ),
        (
            {"input_tokens": 9, "output_tokens": 2, "input_tokens_details": {"cached_tokens": 4}},
            RequestUsage(9, 4, 0, 0, 2),
        ),
        (
            {"prompt_tokens": 9, "completion_tokens": 2, "prompt_cache_hit_tokens": 4},
            RequestUsage(9, 4, 0, 0, 2),
        ),
        (
            {
                "prompt_tokens": 9,
                "completion_tokens": 2,
                "cache_read_input_tokens": 4,
                "cache_creation_input_tokens": 5,
                "prompt_tokens_details": {
                    "cache_creation_token_details": {"ephemeral_1h_input_tokens": 2}
                },
            },
            RequestUsage(9, 4, 3, 2, 2),
        ),
    ],
    ids=["chat", "responses", "deepseek", "anthropic by litellm"],
)
def test_each_providers_names_are_read(usage: dict[str, Any], found: RequestUsage) -> None:
    """Input has all of the prompt, cached and written parts too."""
    assert usage_in({"usage": usage}) == found
