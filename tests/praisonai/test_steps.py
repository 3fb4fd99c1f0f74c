"""A turn's tool steps stay in the conversation when the host has dropped them."""

import contextlib
import itertools
from typing import Any

import pytest
from praisonaiagents import Agent

from praison_compressor.messages import text_of
from praison_compressor.testing import Failure, LocalProvider, Rules, Worker
from tests.helpers.hosting import (
    EVERY_PATH,
    LITELLM,
    LONG,
    MODES,
    OPENAI,
    WINDOW,
    agent,
    by_itself,
    cells,
    chat,
    context,
    look_up,
    numbered,
    of_agent,
    texts_in,
    turn,
    without_system,
)
from tests.helpers.surveying import CALLS, TURNS, Surveyor, detail, measure

WIDE = 100_000
ANSWER = "Noted. " * 3


def working(
    host: LocalProvider, path: str, mode: str = "chat", rounds: int = 3, **options: Any
) -> Agent:
    """Return an agent whose model makes `rounds` of two calls in a turn."""
    one_round = path == OPENAI and mode in ("stream", "iter_stream")
    calls = 1 if one_round else rounds
    host.answer_with(Worker(calls, parallel=2, arguments=numbered, answer=ANSWER))
    host.set_window(WIDE)
    given = context(host, **{"context_window": WIDE, **options})
    return agent(host, path, given, tools=[look_up], execution=LONG)


@pytest.mark.parametrize(("path", "mode"), cells(EVERY_PATH))
def test_a_turn_begins_with_the_last_request_of_the_turn_before(host, path, mode):
    """In every mode a turn begins with the last request before it, each billed once."""
    made = working(host, path, mode)
    MODES[mode](made, [f"Question {n}: what of ledger {n}?" for n in range(4)])
    sent = of_agent(host)
    assert [record.error for record in sent if record.status != 200] == []
    for before, after in itertools.pairwise(sent):
        assert without_system(after.messages).startswith(without_system(before.messages))
    ids = [m["tool_call_id"] for m in sent[-1].messages if m["role"] == "tool"]
    assert len(ids) == len(set(ids)) >= 4 * 2
    bill = made.context_compressor.status().bill
    assert bill.requests == len(sent)
    assert bill.usage.prompt_tokens == sum(record.prompt_tokens for record in sent)
    assert bill.usage.cache_read_tokens == sum(record.cached_tokens for record in sent) > 0
    assert bill.usage.completion_tokens == sum(record.completion_tokens for record in sent)


def first_of(host: LocalProvider, question: str) -> Any:
    """Return the first request of the turn with that question."""
    return next(r for r in of_agent(host) if texts_in(r, "user")[-1].endswith(question))


def test_the_switch_does_as_the_host_does(host):
    """`keep_tool_steps=False` sends what the host gives."""
    made = working(host, OPENAI, keep_tool_steps=False)
    made.chat("Question 0?")
    made.chat("Question 1?")
    assert texts_in(first_of(host, "Question 1?"), "tool") == []


@pytest.mark.parametrize("path", EVERY_PATH)
def test_a_turn_that_failed_leaves_no_step(host, path):
    """The next turn has no step of a turn that failed."""
    made = working(host, path)
    made.chat("Question 0?")
    works = Worker(1, parallel=2, arguments=numbered, answer=ANSWER)
    no = Failure(400, "no")
    host.answer_with(lambda asked: no if asked.messages[-1]["role"] == "tool" else works(asked))
    made.chat("Question that fails?")
    assert of_agent(host)[-1].status == 400
    host.answer_with(works)
    made.chat("Question 2?")
    last = of_agent(host)[-1]
    assert texts_in(last, "user") == ["Question 0?", "Question 2?"]
    assert len(texts_in(last, "tool")) == 6 + 2


@pytest.mark.parametrize("path", EVERY_PATH)
def test_a_turn_stopped_in_a_call_keeps_its_results(host, path):
    """A stopped turn's results are sent, with a stub for each open call."""
    made = working(host, path)
    made.chat("Question 0?")

    def stopping(topic: str, part: int) -> str:
        """Look a topic up, unless the user stops it."""
        if part >= 4:
            raise KeyboardInterrupt
        return look_up(topic, part)

    stopping.__name__ = "look_up"
    made.tools = [stopping]
    with contextlib.suppress(KeyboardInterrupt):
        made.chat("Question that is stopped?")
    made.tools = [look_up]
    made.chat("Question 2?")
    first = first_of(host, "Question 2?")
    assert first.status == 200
    assert "Question that is stopped?" in " ".join(texts_in(first, "user"))
    open_calls = [text for text in texts_in(first, "tool") if "no result was recorded" in text]
    assert len(open_calls) == 2
    assert len(texts_in(first, "tool")) == 6 + 4 + 2


def test_status_context_and_preview_count_kept_steps(host):
    """Each command counts the steps of earlier turns."""
    made = working(host, OPENAI)
    made.chat("Question 0?")
    assert "earlier turns" not in made.chat("/status")
    made.chat("Question 1?")
    counted = made.context_compressor.status().earlier
    assert counted.steps == 3
    assert 300 < counted.tokens < 2_000
    assert f"kept from earlier turns: 3 steps, {counted.tokens:,} tokens" in made.chat("/status")
    for command in ("/context", "/compact preview"):
        assert "kept from earlier turns: 6 steps" in made.chat(command)
    assert made.context_compressor.status().bill.kept_steps == 4 * 3
    made.chat("/new")
    for command in ("/status", "/context", "/compact preview"):
        assert "earlier turns" not in made.chat(command)


def test_a_notice_counts_kept_steps(host):
    """The line that reports a compression counts the kept steps that are still verbatim."""
    made = working(host, OPENAI)
    chat(made, [turn(n) for n in range(4)])
    made.chat("/compact")
    ours = made.context_compressor
    assert ours.notice.endswith(str(ours.status().earlier))
    assert ours.status().earlier.steps > 0


@pytest.mark.parametrize("path", EVERY_PATH)
def test_a_new_session_has_none_of_the_old_steps(host, path):
    """After `/new` no step of the old session is sent, also where words are the same."""
    made = working(host, path)
    made.chat("Question 0?")
    made.chat("/new")
    made.chat("Question 0?")
    assert texts_in(first_of(host, "Question 0?"), "tool") == []
    assert len(texts_in(of_agent(host)[-1], "tool")) == 6


@pytest.mark.parametrize("path", EVERY_PATH)
def test_steps_that_outgrow_the_window_are_compressed(host, path):
    """Kept steps that outgrow the window are summarized, archived and searchable."""
    made = working(host, path, context_window=WINDOW)
    host.set_window(WINDOW)
    chat(made, [turn(n) for n in range(6)])
    assert [r.error for r in of_agent(host) if r.status != 200] == []
    assert made.context_compressor.context_status == "summarized"
    ours = made.context_compressor
    (hit, *_) = ours.ledger.search(ours.config.namespace, "END-3", ours.session_id)
    assert hit.message["role"] == "tool"


def test_steps_of_tools_that_are_gone_are_sent(host):
    """Steps of tools that are gone are sent, as text where the provider demands it."""

    def fetch(topic: str, part: int) -> str:
        """Fetch a topic."""
        return look_up(topic, part)

    for path in EVERY_PATH:
        made = working(host, path)
        made.chat("Question 0?")
        made.tools = [fetch]
        made.chat("Question 1?")
        made.tools = []
        made.chat("Question 2?")
        last = of_agent(host)[-1]
        assert last.status == 200
        assert last.tools == []
        assert " ".join(map(text_of, last.messages)).count("END-5") == 2


@pytest.mark.parametrize("path", [OPENAI, LITELLM])
@pytest.mark.parametrize("rules", [Rules(alternate=True), Rules(answered_results=True)])
def test_kept_steps_alternate_for_a_strict_provider(path, rules):
    """Kept steps keep to the alternating roles of a strict provider."""
    with by_itself(rules=rules) as host:
        made = working(host, path, rounds=2)
        chat(made, [f"Question {n}?" for n in range(3)])
        assert host.refused == []
        assert len(texts_in(of_agent(host)[-1], "tool")) == 3 * 4


@pytest.mark.parametrize("window", [8_000, 64_000])
def test_each_turn_finds_a_detail_of_the_turn_before(host, window):
    """Each of ten turns finds a reading of the turn before without another call."""
    model = Surveyor(at_once=4)
    host.answer_with(model)
    host.set_window(window)
    ours = context(host, context_window=window)
    made = agent(host, OPENAI, ours, tools=[measure], execution=LONG)
    asks = "Turn {}: measure all places, and name reading {} of before."
    chat(made, [asks.format(number, number % CALLS) for number in range(TURNS + 1)])
    assert model.found == [detail(n - 1, n % CALLS) for n in range(1, TURNS + 1)]
    assert [r.error for r in of_agent(host) if r.status != 200] == []
    calls = [c.name for r in of_agent(host) for c in getattr(r.answer, "calls", ())]
    assert calls.count("measure") == (TURNS + 1) * CALLS
