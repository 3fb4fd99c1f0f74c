"""A refusal as too long is learned from, and the request goes out once more as a tighter view."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from praisonaiagents import ExecutionConfig

from praison_compressor.praisonai import overflow, roles
from praison_compressor.testing import Asked, Failure, LocalProvider, Reply, Summarizer, Worker

from .hosting import (
    EVERY_PATH,
    LITELLM,
    MODES,
    PATHS,
    agent,
    at_home,
    context,
    of_agent,
    turn,
)

HALF = 3_000


@pytest.fixture
def host(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any, provider: LocalProvider
) -> Iterator[LocalProvider]:
    """A provider whose window is half of what the agent was told."""
    with at_home(monkeypatch, tmp_path, provider) as running:
        running.set_window(HALF)
        running.answer_with(Worker(answer="Noted. " * 12))
        running.route("aux", Summarizer(r"L-\d+"))
        yield running


def refused_views(host: LocalProvider) -> int:
    """How many different views were refused: older hosts send a refused request three times."""
    return len({json.dumps(record.messages) for record in host.refused})


@pytest.mark.parametrize("mode", ["chat", "achat", "iter_stream"])
@pytest.mark.parametrize("path", EVERY_PATH)
def test_a_wrong_window_costs_one_refusal(host: LocalProvider, path: str, mode: str) -> None:
    """The turn that met it is answered, and no later request is refused."""
    made = agent(host, path, context(host))
    answers = MODES[mode](made, [turn(n) for n in range(16)])
    assert [answer.strip() for answer in answers] == [("Noted. " * 12).strip()] * 16
    assert refused_views(host) == 1
    assert made.context_compressor.engine().config.context_window == HALF
    assert len(of_agent(host)) >= 17


@pytest.mark.parametrize("path", EVERY_PATH)
def test_finished_tools_do_not_run_again(host: LocalProvider, path: str) -> None:
    """Met within the tool loop: each call runs once, and the user's words are still there."""
    runs: list[str] = []

    def look_up(topic: str) -> str:
        """Look a topic up.

        Args:
            topic: what
        """
        runs.append(topic)
        return f"{topic}: " + turn(1, words=12)

    host.answer_with(Worker(16, arguments=lambda tool, nth: {"topic": f"t{nth}"}, answer="Noted."))
    made = agent(
        host,
        path,
        context(host),
        tools=[look_up],
        execution=ExecutionConfig(max_iter=50, max_tool_calls_per_turn=100),
    )
    assert made.chat("Find the nine ledgers of Lisbon.") == "Noted."
    assert runs == [f"t{n}" for n in range(16)]
    assert refused_views(host) == 1
    assert all("nine ledgers of Lisbon" in r.text for r in of_agent(host))


@pytest.mark.parametrize("path", PATHS)
def test_a_refusal_without_numbers_halves_the_window(host: LocalProvider, path: str) -> None:
    """A provider that only says that it was too long is believed."""

    def answer(asked: Asked) -> Reply | Failure:
        if len(asked.text) > 12_000:
            return Failure(400, "Input is too long for requested model.", "invalid_request_error")
        return Reply("Noted.")

    host.set_window(100_000)
    host.answer_with(answer)
    made = agent(host, path, context(host))
    assert [made.chat(turn(n)) for n in range(16)] == ["Noted."] * 16
    assert made.context_compressor.engine().config.context_window == 3_000


@pytest.mark.parametrize("path", PATHS)
def test_a_second_refusal_ends_the_turn_as_the_host_does(host: LocalProvider, path: str) -> None:
    """One retry, not a loop: what no view can satisfy is the host's to report."""
    host.answer_with(
        lambda asked: Failure(
            400, "Too long.", "invalid_request_error", code="context_length_exceeded"
        )
    )
    made = agent(host, path, context(host))
    with_error: list[Any] = []
    try:
        with_error.append(made.chat(turn(0)))
    except Exception as error:  # the host raises or answers None, by path
        with_error.append(error)
    assert len(with_error) == 1
    assert len(of_agent(host)) <= 12


def test_other_errors_are_not_retried(host: LocalProvider) -> None:
    """A bad request is the caller's business."""
    host.answer_with(lambda asked: Failure(400, "Unknown parameter: 'x'.", "invalid_request_error"))
    made = agent(host, LITELLM, context(host))
    made.chat(turn(0))
    assert made.context_compressor.engine().config.context_window == 6_000


SAYINGS = {
    "This model's maximum context length is 8192 tokens. However, your messages resulted in "
    "9120 tokens. Please reduce the length of the messages.": (8192, 9120),
    "This model's maximum context length is 4097 tokens. However, you requested 5000 tokens "
    "(4000 in the messages, 1000 in the completion).": (4097, 5000),
    "prompt is too long: 215000 tokens > 200000 maximum": (200000, 215000),
    "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).": (
        1048576,
        1200000,
    ),
    "the request exceeds the available context size. try increasing the context size or enable "
    "context shift; n_ctx: 16384": (16384, None),
    "ContextWindowExceededError: Input is too long for requested model.": (None, None),
    "Your input exceeds the context window of this model. Please adjust your input": (None, None),
}


@pytest.mark.parametrize("words", SAYINGS)
def test_what_providers_say(words: str) -> None:
    """OpenAI, Anthropic, Gemini, llama.cpp, Bedrock: the window and the count, where they stand."""
    assert overflow.read(RuntimeError(words)) == overflow.Overflow(*SAYINGS[words])


@pytest.mark.parametrize(
    "words",
    [
        "Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Requested 40000.",
        "You exceeded your current quota, please check your plan and billing details.",
        "Connection error.",
        "max_tokens is too large: 100000.",
        "Invalid 'messages[3].tool_call_id'",
    ],
)
def test_what_is_something_else(words: str) -> None:
    """A smaller view would not help."""
    assert overflow.read(RuntimeError(words)) is None


# ---------------------------------------------------------------- strict chat templates


@pytest.mark.parametrize("mode", ["chat", "achat", "iter_stream"])
@pytest.mark.parametrize("path", PATHS)
def test_a_template_that_wants_roles_in_turns(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any, path: str, mode: str
) -> None:
    """Refused once, met from then on: two user messages in a row become one."""
    strict = LocalProvider(Worker(answer="Noted. " * 12), alternate=True)
    with strict, at_home(monkeypatch, tmp_path, strict) as host:
        host.route("aux", Summarizer(r"L-\d+"))
        made = agent(host, path, context(host))
        made.chat_history.append({"role": "user", "content": "A question without an answer."})
        answers = MODES[mode](made, [turn(n) for n in range(16)])
        assert None not in answers
        assert made.context_compressor.context_status == "summarized"
        assert refused_views(host) == 1
        assert "alternate" in host.refused[0].error


def test_what_is_joined() -> None:
    """Neighbours of one role, as text or as parts; never a step with tools."""
    step = [
        {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "function": {}}]},
        {"role": "tool", "tool_call_id": "c", "content": "r"},
    ]
    image = {"type": "image_url", "image_url": {"url": "data:,"}}
    messages = [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "a"},
        {"role": "user", "content": "b"},
        *step,
        {"role": "assistant", "content": "c"},
        {"role": "user", "content": "d"},
        {"role": "user", "content": [image]},
    ]
    assert roles.alternating(messages) == [
        messages[0],
        {"role": "user", "content": "a\n\nb"},
        *step,
        messages[5],
        {"role": "user", "content": [{"type": "text", "text": "d"}, image]},
    ]
