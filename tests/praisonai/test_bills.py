"""The bill of a conversation has what the provider reports for each of its requests."""

from __future__ import annotations

import pytest

from praison_compressor.testing import LocalProvider, Worker
from tests.helpers.hosting import (
    EVERY_PATH,
    MODES,
    OUTGROWING,
    agent,
    cells,
    context,
    look_up,
    numbered,
    of_agent,
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
    bill = made.context_compressor.bill()
    found = (bill.usage.input, bill.usage.cached, bill.usage.output)
    assert found == reported(host)
    assert bill.usage.cached > 0
    assert bill.requests == len(of_agent(host))
    aux = host.for_model("aux")
    assert bill.summaries.prompt_tokens == sum(record.prompt_tokens for record in aux) > 0
