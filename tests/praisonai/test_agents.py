"""Agents that asked for SUMMARIZE go on past their window, on both client paths of the host."""

import pytest
from praisonaiagents import ExecutionConfig

from praison_compressor.testing import LocalProvider, Worker
from tests.helpers.hosting import (
    EVERY_PATH,
    MODES,
    OPENAI,
    OUTGROWING,
    agent,
    cells,
    context,
    look_up,
    numbered,
    of_agent,
    turn,
)

# The host's OpenAI streams run one round of tools in a turn.
ROUNDS = {(OPENAI, "stream"): (1, 24), (OPENAI, "iter_stream"): (1, 24)}
# The host's own compaction is on, and would begin long before ours: exactly one compresses.
LONG_TURNS = ExecutionConfig(
    max_iter=100, max_tool_calls_per_turn=500, context_compaction=True, max_context_tokens=2_000
)
ANSWER = "Noted. " * 12


def no_request_failed(provider: LocalProvider) -> None:
    assert [(r.number, r.error) for r in provider.requests if r.status != 200] == []


@pytest.mark.parametrize(("path", "mode"), cells(EVERY_PATH))
def test_every_mode(host, path, mode):
    """Every mode takes a conversation beyond its window with few, billed summaries."""
    made = agent(host, path, context(host), execution=LONG_TURNS)
    answers = MODES[mode](made, OUTGROWING)
    assert [answer.strip() for answer in answers] == [ANSWER.strip()] * len(OUTGROWING)
    no_request_failed(host)
    aux, sent = host.for_model("aux"), of_agent(host)
    assert 1 <= len(aux) <= 4
    assert len(sent) >= len(OUTGROWING)
    bill = made.context_compressor.status().bill
    assert bill.summaries.prompt_tokens == sum(record.prompt_tokens for record in aux)
    assert made.context_compressor.context_status == "summarized"
    assert len(made.chat_history) == 2 * len(OUTGROWING)


@pytest.mark.parametrize(("path", "mode"), cells(EVERY_PATH))
def test_a_tool_loop_with_parallel_calls(host, path, mode):
    """Parallel calls that outgrow the window within a turn keep their results."""
    rounds, parallel = ROUNDS.get((path, mode), (2, 12))
    host.answer_with(Worker(rounds, parallel=parallel, arguments=numbered, answer=ANSWER))
    made = agent(host, path, context(host), tools=[look_up], execution=LONG_TURNS)
    answers = MODES[mode](made, [turn(0), turn(1)])
    assert [answer.strip() for answer in answers] == [ANSWER.strip()] * 2
    no_request_failed(host)
    assert len(host.for_model("aux")) >= 1
    assert len(of_agent(host)) >= 2 * (rounds + 1)
    assert {r.messages[-1]["role"] for r in of_agent(host)} == {"tool", "user"}
