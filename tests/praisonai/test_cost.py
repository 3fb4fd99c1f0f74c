"""What a conversation has cost is kept in the store of its ledger."""

from __future__ import annotations

import pytest
from praisonaiagents import MemoryConfig

from praison_compressor.testing import LocalProvider
from tests.helpers.hosting import MODES, OPENAI, OUTGROWING, agent, chat, context

pytest_plugins = ["tests.helpers.stores"]


@pytest.mark.parametrize("mode", ["chat", "achat", "stream"])
def test_an_agent_of_another_process_has_the_bill(
    host: LocalProvider, store_url: str, mode: str
) -> None:
    """`status()` and `/status` show what the conversation cost before a restart, and add to it."""
    options = {"store_url": store_url}
    remembering = MemoryConfig(session_id="books", history=True)
    made = agent(host, OPENAI, context(host, **options), memory=remembering)
    MODES[mode](made, OUTGROWING)
    paid = made.context_compressor.status().bill
    assert paid.requests == len(OUTGROWING)
    assert paid.usage.cached > 0
    assert paid.summaries.prompt_tokens > 0
    again = agent(host, OPENAI, context(host, **options), memory=remembering)
    assert again.context_compressor.session_id == made.context_compressor.session_id
    assert again.context_compressor.status().bill == paid
    assert str(paid) in again.chat("/status")
    chat(again, ["And now?"])
    assert again.context_compressor.status().bill.requests == len(OUTGROWING) + 1
