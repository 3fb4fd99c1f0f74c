"""A failure of ours ends no turn of the agent: it gets the best valid view."""

import asyncio
import gc
import logging
import sys
import weakref
from typing import Any

import litellm
import pytest
from praisonaiagents.context.models import OptimizerStrategy

from praison_compressor import CompressorConfig, ContextCompressor
from praison_compressor.praisonai import CompressorContext
from praison_compressor.praisonai.journal import Journal
from praison_compressor.testing import Call, Reply, SummaryModel
from tests.helpers.hosting import (
    EVERY_PATH,
    LITELLM,
    MODES,
    OPENAI,
    OUTGROWING,
    PATHS,
    agent,
    chat,
    context,
    turn,
)
from tests.helpers.misbehaving import Misbehaving

KEYS = {OPENAI: "sk-of-the-agent"}


def in_each_way(test):
    """Run a test with each failure of a summarizer, in each mode."""
    test = pytest.mark.parametrize("behaviour", ["refusal", "unauthorized"])(test)
    return pytest.mark.parametrize("mode", ["chat", "achat"])(test)


@in_each_way
def test_a_failing_summarizer_ends_no_turn(host, mode, behaviour):
    """With a failing summarizer every turn is answered from a static summary."""
    host.route("aux", Misbehaving(behaviour))
    made = agent(host, PATHS[0], context(host, summary_max_retries=0))
    answers = MODES[mode](made, OUTGROWING)
    assert None not in answers
    assert host.refused == []
    assert made.context_compressor.context_status == "summarized"
    methods = {segment.method for segment in made.context_compressor.last_result.segments}
    assert methods == {"static"}


@in_each_way
def test_litellm_prints_nothing_about_a_failure(host, monkeypatch, capfd, mode, behaviour):
    """litellm prints no advice of its own when a summarizer fails."""
    monkeypatch.setattr(litellm, "suppress_debug_info", False)
    host.route("aux", Misbehaving(behaviour))
    MODES[mode](agent(host, OPENAI, context(host, summary_max_retries=0)), OUTGROWING)
    assert host.for_model("aux") != []
    assert "LiteLLM" not in capfd.readouterr().out


@pytest.mark.parametrize("path", EVERY_PATH)
def test_half_a_character_ends_no_turn(host, path):
    """An output cut within a character is sent without the half."""

    def cut_off(topic: str) -> str:
        """Look a topic up."""
        return f"{topic} \ud83d"

    host.answer_with([Call("cut_off", {"topic": "x"}), Reply("Found.")])
    assert agent(host, path, context(host), tools=[cut_off]).chat("Look x up. \udc00") == "Found."
    assert host.refused == []


def test_a_message_larger_than_the_window_is_shortened(host, caplog):
    """A message above the window is shortened, with one log line for the agent."""
    made = agent(host, OPENAI, context(host, auxiliary_model=None), name=None)
    with caplog.at_level(logging.INFO, logger="praison_compressor"):
        assert made.chat(turn(0, words=2_000)) is not None
        assert made.chat(turn(1)) is not None
    assert host.refused == []
    said = [r.getMessage() for r in caplog.records if r.getMessage().startswith("agent ")]
    assert all(line.startswith(f"agent {made.display_name}: ") for line in said)
    assert [line for line in said if "BudgetTooSmall" in line] == said[1:] != []


def test_an_agent_in_an_unknown_state_is_left_to_the_host(host, caplog):
    """A state that we cannot read is left to the host, with one log line."""
    made = agent(host, OPENAI, context(host))
    made._context_manager_initialized = False
    del made._context_manager
    with caplog.at_level(logging.ERROR, logger="praison_compressor.praisonai"):
        assert made.context_compressor is None
        assert made.context_compressor is None
    assert len([r for r in caplog.records if "goes on uncompressed" in r.message]) == 1


def test_no_agent_is_kept_alive(host):
    """Registry, compressor and tools let go of an agent that nobody holds any more."""
    made = agent(host, OPENAI, context(host, recall=True))
    compressor = made.context_compressor
    holders = [found for found in gc.get_referrers(made) if found is not sys._getframe()]
    ours = [found for found in holders if "praison_compressor" in repr(type(found))]
    assert ours == []
    assert compressor.session_id
    seen = weakref.ref(made)
    del made, holders, ours
    gc.collect()
    assert seen() is None


def test_a_manual_agent_is_compressed_only_on_command(host):
    """With `auto_compact=False` only a request above the window is compressed."""
    made = agent(host, OPENAI, context(host, auto_compact=False))
    assert None not in chat(made, OUTGROWING)
    assert host.for_model("aux") == []
    assert host.refused == []
    assert max(r.prompt_tokens for r in host.requests) > 0.8 * (6_000 - 1_500)
    made.context_compressor.compress()
    assert len(host.for_model("aux")) == 1
    made.chat(turn(8))
    assert host.requests[-1].prompt_tokens < 0.8 * (6_000 - 1_500)


# ---------------------------------------------------------------- whose model summarizes


@pytest.mark.parametrize("path", EVERY_PATH)
def test_the_agents_own_model_at_its_own_endpoint(host, path):
    """Without an auxiliary model the agent's model summarizes, at its endpoint, with its key."""
    made = agent(host, path, context(host, auxiliary_model=None, auxiliary_api_base=None))
    assert None not in chat(made, OUTGROWING)
    assert made.context_compressor.last_result.segments[0].method == "model"
    assert len(host.requests) > len(OUTGROWING)
    assert len({record.model for record in host.requests}) == 1
    keys = {r.headers.get("Authorization") or r.headers.get("x-api-key") for r in host.requests}
    assert {key.removeprefix("Bearer ") for key in keys} == {KEYS.get(path, "sk-litellm")}


def test_the_hosts_variable_names_the_auxiliary_model(host, monkeypatch):
    """The variable names the auxiliary model of agent and library where no option does."""
    monkeypatch.setenv("PRAISONAI_AUXILIARY_MODEL", "gpt-4.1-nano")
    made = agent(host, LITELLM, context(host, auxiliary_model=None))
    chat(made, OUTGROWING)
    assert {record.model for record in host.requests} == {"gpt-local", "gpt-4.1-nano"}
    assert ContextCompressor().config.auxiliary_model == "gpt-4.1-nano"
    given = ContextCompressor(CompressorConfig(auxiliary_model="aux"))
    assert given.config.auxiliary_model == "aux"


@pytest.mark.parametrize("spelling", [CompressorContext, dict])
def test_no_model_where_the_user_wrote_so(host, spelling, monkeypatch):
    """`llm_summarize=False` gives a static summary."""
    monkeypatch.setenv("PRAISONAI_AUXILIARY_MODEL", "aux")
    asked = spelling(
        strategy=OptimizerStrategy.SUMMARIZE, context_window=6_000, llm_summarize=False
    )
    made = agent(host, OPENAI, asked)
    chat(made, OUTGROWING)
    assert all("You keep the books." in r.messages[0]["content"] for r in host.requests)
    assert made.context_compressor.last_result.segments[0].method == "static"


# ---------------------------------------------------------------- the event loop


def test_the_loop_is_never_held_up(host):
    """While a slow summarizer writes, everything else on the loop goes on."""
    host.route("aux", SummaryModel(r"L-\d+", delay_seconds=1.0))
    made = agent(host, OPENAI, context(host))
    beats = 0

    async def heart() -> None:
        nonlocal beats
        while True:
            await asyncio.sleep(0.01)
            beats += any(record.ended_at is None for record in host.for_model("aux"))

    async def run() -> None:
        beating = asyncio.create_task(heart())
        for prompt in OUTGROWING:
            assert await made.achat(prompt) is not None
        beating.cancel()

    asyncio.run(run())
    assert len(host.for_model("aux")) >= 1
    assert beats >= 10  # a loop that waits for the summarizer would not see it at work even twice


@pytest.mark.parametrize("path", PATHS)
def test_cancelling_the_turn_cancels_the_summary(host, path):
    """A cancelled turn delays neither its own end nor the next compression."""
    host.route("aux", SummaryModel(r"L-\d+", delay_seconds=600.0))
    made = agent(host, path, context(host))

    async def until_a_summary_is_asked_for() -> asyncio.Task[Any]:
        for prompt in OUTGROWING:
            asking = asyncio.create_task(made.achat(prompt))
            while not asking.done():
                await asyncio.sleep(0.005)
                if host.for_model("aux"):
                    return asking
        raise AssertionError("no summary was asked for")

    async def run() -> None:
        asking = await until_a_summary_is_asked_for()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(asking, 20.0)
        host.route("aux", SummaryModel(r"L-\d+"))
        assert await made.achat(turn(41)) is not None

    asyncio.run(run())
    assert made.context_compressor.context_status == "summarized"
    assert host.refused == []


def test_a_failure_without_a_text_is_not_taken_for_the_stores():
    """While the store works, no error counts as a store's failure that was logged before."""
    assert not Journal("s").has_logged(TimeoutError())
