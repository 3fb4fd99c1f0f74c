"""A model's window comes from litellm's table, or from a refusal."""

import contextlib
import json
import logging

import httpx
import openai
import pytest

from praison_compressor.testing import Failure, Reply
from praison_compressor.tokens.learned import UPWARD_AFTER_REQUESTS, WindowLearner
from praison_compressor.tokens.models import model_limits
from praison_compressor.tokens.refusals import SMALLEST_WINDOW, Overflow, overflow_of
from tests.helpers.hosting import LITELLM, OPENAI, agent, by_itself, context, of_agent, turn
from tests.helpers.refusing import (
    ANSWER,
    BELIEVED,
    OTHERS,
    REPORTS,
    TOO_LONG,
    Wording,
    reported,
    session,
)
from tests.helpers.transcripts import said, user


@pytest.mark.parametrize(
    ("model", "window", "output"),
    [
        ("gpt-4o", 128_000, 16_384),
        ("openrouter/openai/gpt-4o-mini", 128_000, 16_384),
        ("gpt-4o-2099-01-01", 128_000, 16_384),
        ("ft:gpt-4o-2024-08-06:org::id", 128_000, 16_384),
        ("anthropic/claude-sonnet-4-5", 200_000, 64_000),
        ("openrouter/anthropic/claude-sonnet-4-5", 200_000, 64_000),
        ("openrouter/anthropic/claude-sonnet-4.5:beta", 200_000, 64_000),
        ("bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0", 200_000, 64_000),
        ("gemini/gemini-2.5-pro", 1_048_576, 65_536),
        ("ollama/llama3", 8_192, 8_192),
    ],
)
def test_known_models_have_their_limits(model, window, output):
    """Any route to a known model has the table's figures."""
    limits = model_limits(model)
    assert (limits.window, limits.output, limits.guessed) == (window, output, False)


def test_an_explicit_window_counts_before_all(caplog):
    """The option comes first, for known and unknown models, without a warning."""
    assert model_limits("gpt-4o", 5_000).window == 5_000
    assert model_limits("gpt-4o", 5_000).output == 16_384
    assert not model_limits("nobody-knows-this-one", 5_000).guessed
    assert caplog.records == []


def test_a_guess_is_logged_once(caplog):
    """An unknown model's window is guessed, with one warning that names the remedies."""
    with caplog.at_level(logging.WARNING):
        limits = [model_limits("azure/nobody-knows-this-deployment") for _ in range(3)]
    assert {(one.window, one.guessed) for one in limits} == {(128_000, True)}
    assert len(caplog.records) == 1
    assert "set context_window for the agent's model" in caplog.text
    assert "litellm.register_model" in caplog.text


def test_limits_registered_at_run_time_count_first(monkeypatch):
    """Models registered at run time come before the table's."""
    import litellm

    monkeypatch.setitem(litellm.model_cost, "my-deployment", {"max_input_tokens": 7_000})
    monkeypatch.setitem(litellm.model_cost, "gpt-4o", {"max_input_tokens": 6_000})
    assert model_limits("azure/my-deployment").window == 7_000
    assert model_limits("openai/gpt-4o").window == 6_000
    monkeypatch.setitem(litellm.model_cost, "my-deployment", {"max_input_tokens": "many"})
    assert model_limits("my-deployment").guessed


# ---------------------------------------------------------------- by what a server refuses


SENT, WINDOW = 6_400, 6_000


SENT_5000 = "Invalid value: 'I said: maximum context length is 4096 tokens, you sent 5000'"


def names(wordings: tuple[Wording, ...]) -> list[str]:
    return [each.server for each in wordings]


@pytest.mark.parametrize("said", TOO_LONG, ids=names(TOO_LONG))
def test_every_wording_means_length(said):
    """A refusal teaches a window only by the number that names it."""
    error = said.error(said.said(asked=SENT, window=WINDOW, chars=4 * SENT))
    found = overflow_of(error, SENT)
    assert found.window == (WINDOW if said.names_window else None)
    assert found.prompt_tokens == (SENT if "{asked" in said.words else None)
    assert found.answer_tokens == (ANSWER if "{answer" in said.words else None)


@pytest.mark.parametrize("said", OTHERS, ids=names(OTHERS))
def test_limits_per_minute_and_other_refusals_mean_no_length(said):
    """Limits per minute, and what concerns other things than messages, mean no length."""
    assert overflow_of(said.error(said.words), SENT) is None


@pytest.mark.parametrize(
    ("words", "status", "sent", "window"),
    [
        (SENT_5000, 422, 6_000, 4_096),
        (SENT_5000, 422, 16_000, None),
        ("context window exceeds limit (2013)", 400, 6_000, None),
        ("context window exceeds limit (2013)", 400, 16_000, None),
        ("maximum context length is 7000 tokens", 400, 6_000, None),
        ("maximum context length is 7000 tokens", 400, 16_000, None),
        ("maximum context length is 500 tokens", 400, 6_000, None),
        ("maximum context length is 500 tokens", 400, 16_000, None),
    ],
)
def test_a_number_that_the_request_excludes_is_no_window(words, status, sent, window):
    """A window lies between half of what was sent and nearly all of it."""
    found = overflow_of(Wording("any", status, None, words).error(words), sent)
    assert (found.window, found.certain) == (window, True)


OWN = "Explain this: maximum context length is 4096 tokens, however you requested 5000 tokens."


@pytest.mark.parametrize(
    "body",
    [
        {"detail": [{"loc": ["body", 3], "msg": "Input should be a valid string", "input": OWN}]},
        {"error": {"message": f"Bad message: {OWN}", "code": None}},
    ],
    ids=["a validator's list", "a message"],
)
def test_a_refusal_that_repeats_the_users_words_teaches_nothing(body):
    """Numbers in the user's own words teach no window."""
    url = httpx.Request("POST", "http://127.0.0.1")
    response = httpx.Response(422, json=body, request=url)
    error = openai.OpenAI(api_key="any")._make_status_error_from_response(response)
    found = overflow_of(error, 5_000, [OWN])
    assert found == Overflow(None, None, certain=False)


TOO_LONG_BY_WORDS = Overflow(None, None)


def test_the_window_lies_between_what_passed_and_what_did_not():
    """Without numbers, one smaller request that passes teaches the window."""
    window = WindowLearner(32_000)
    assert window.learn_pass(5_900) is None
    tried = window.learn_refusal(TOO_LONG_BY_WORDS, 6_300)
    assert tried < 6_300
    assert window.learn_pass(4_000) == pytest.approx(6_100, rel=0.01)


def test_a_refusal_in_vain_teaches_nothing():
    """After a trial in vain the window before the refusal is back."""
    window = WindowLearner(32_000)
    window.learn_pass(4_100)
    unsure = Overflow(None, None, certain=False)
    assert [window.learn_refusal(unsure, size) for size in (8_000, 5_000)] == [6_050, None]
    window.cancel_trial()
    assert window.window == 32_000


def test_an_uncertain_refusal_is_answered_once():
    """A second uncertain refusal gives no smaller window."""
    window = WindowLearner(32_000)
    window.learn_pass(4_100)
    unsure = Overflow(None, None, certain=False)
    assert window.learn_refusal(unsure, 8_000) == 6_050
    assert window.learn_refusal(unsure, 5_000) is None


def test_no_window_is_smaller_than_the_floor():
    """Refusals again and again stop at the floor."""
    window = WindowLearner(32_000)
    sizes = [window.learn_refusal(TOO_LONG_BY_WORDS, size) for size in (6_000, 3_000, 2_000, 1_000)]
    assert sizes[-1] == SMALLEST_WINDOW


def test_a_confirmed_window_is_not_tried_upward():
    """A window that a refusal confirmed stays, however many requests pass."""
    window = WindowLearner(32_000)
    window.learn_refusal(Overflow(6_000, 6_400, confirmed=True), 6_400)
    for _ in range(UPWARD_AFTER_REQUESTS + 1):
        window.learn_pass(4_000)
    assert window.window == 6_000


def test_each_upward_try_waits_four_times_longer():
    """Requests that pass try a larger window after 50, then after 200 more."""
    window = WindowLearner(32_000)
    window.learn_refusal(Overflow(6_000, 6_400, confirmed=False), 6_400)
    tried = [window.learn_pass(4_000) for _ in range(1 + 5 * UPWARD_AFTER_REQUESTS)]
    assert [(n, size) for n, size in enumerate(tried) if size is not None] == [
        *((0, 6_000), (UPWARD_AFTER_REQUESTS, 12_000), (5 * UPWARD_AFTER_REQUESTS, 24_000))
    ]


@pytest.fixture(scope="module")
def host():
    with by_itself() as provider:
        yield provider


@pytest.mark.parametrize("path", [OPENAI, LITELLM])
def test_throttling_teaches_no_window(host, path):
    """A server that asks to wait, with the words of a refusal, keeps its window."""
    throttled = next(each for each in OTHERS if each.server == "throttling")
    found = session(host, path, throttled, turns=17)
    assert (found.unanswered > 0, found.window) == (True, BELIEVED)


@pytest.mark.parametrize("path", [OPENAI, LITELLM])
def test_a_refusal_of_something_else_teaches_no_window(host, path):
    """An uncertain refusal that is answered in vain leaves the window."""
    host.forget()
    host.set_window(10**9)
    refusal = Failure(400, "this value exceeds what is allowed", "invalid_request_error")
    is_refused = [False]
    host.answer_with(lambda asked: refusal if is_refused[0] else Reply("Noted."))
    made = agent(host, path, context(host, context_window=BELIEVED))
    for number in range(6):
        is_refused[0] = number in (3, 4)
        with contextlib.suppress(Exception):
            made.chat(turn(number, words=100))
    refused = [json.dumps(record.messages) for record in of_agent(host) if record.status == 400]
    assert 1 <= len(set(refused)) <= 3
    compressor = made.context_compressor.for_model()
    assert compressor.config.context_window == BELIEVED
    assert len(made.chat_history) >= 8


@pytest.mark.parametrize(
    ("path", "words", "status"),
    [
        (OPENAI, "input too long", 400),
        (LITELLM, "Request Entity Too Large", 413),
        (OPENAI, "", 422),
        (LITELLM, "", 422),
    ],
)
def test_two_vague_refusals_teach_the_window(host, path, words, status):
    """At most two refusals come before the window is learned."""
    host.forget()
    host.set_window(10**9)
    refusal = Failure(status, words, "invalid_request_error")
    host.answer_with(lambda a: refusal if a.prompt_tokens > WINDOW / 2 else Reply("Noted."))
    made = agent(host, path, context(host, context_window=128_000))
    made.chat_history = [
        message
        for number in range(100)
        for message in (user(turn(number, words=100)), said("Noted."))
    ]
    assert [made.chat(turn(number)) for number in range(500, 505)] == ["Noted."] * 5
    refused = {json.dumps(record.messages) for record in of_agent(host) if record.status != 200}
    assert len(refused) <= 2
    assert made.context_compressor.for_model().config.context_window < WINDOW


@pytest.mark.parametrize("path", [OPENAI, LITELLM])
@pytest.mark.parametrize(("name", "most"), [(name, 3 * (n == 0)) for n, name in enumerate(REPORTS)])
def test_low_reports_keep_compression_on(host, path, name, most):
    """Only a truncating server lets requests above the trigger pass, at most three."""
    assert reported(host, path, name, turns=19).over <= most
