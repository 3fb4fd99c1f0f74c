"""The summarizer sends valid requests to a local endpoint and reads its answers."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from praison_compressor import SummarizerUnavailable
from praison_compressor.summaries.litellm_client import (
    HONOURS_API_BASE,
    THINKING_TOKENS,
    LiteLLMSummarizer,
)
from praison_compressor.testing import Failure, LocalProvider, Reply
from tests.helpers.compressing import compressor
from tests.helpers.misbehaving import Misbehaving
from tests.helpers.transcripts import coding_turns

REQUEST = [{"role": "system", "content": "Summarize."}, {"role": "user", "content": "transcript"}]


@pytest.fixture(autouse=True)
def no_key_of_the_users(monkeypatch):
    """Take the user's keys and endpoints out of the environment."""
    for name in ("OPENAI_API_KEY", "OPENAI_API_BASE", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


def at(provider: LocalProvider, model: str = "local-model", **options: Any) -> LiteLLMSummarizer:
    return LiteLLMSummarizer(model, api_base=provider.base_url, **options)


async def failure(summarizer: LiteLLMSummarizer, **options: Any) -> SummarizerUnavailable:
    with pytest.raises(SummarizerUnavailable) as caught:
        await summarizer.summarize(
            REQUEST, **{"max_tokens": 100, "timeout_seconds": 10.0, **options}
        )
    return caught.value


FAKE = """
import os
from types import SimpleNamespace as Some
found = os.environ.get("LITELLM_LOCAL_MODEL_COST_MAP")
BadRequestError = UnprocessableEntityError = OSError
provider_list, api_key, openai_key = ["openai"], None, None
def completion(**request):
    said = Some(content="## Done\\nThe modules so far are in order.")
    return Some(choices=[Some(message=said, finish_reason="stop")], usage=None)
"""


def replace_litellm(monkeypatch: pytest.MonkeyPatch, folder: Path, text: str) -> None:
    """Let the next import of litellm run this text; the real one comes back after the test."""
    (folder / "litellm.py").write_text(text)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setitem(sys.modules, "litellm", None)
    del sys.modules["litellm"]


def test_the_first_calls_import_is_no_part_of_its_time(tmp_path, monkeypatch):
    """litellm's import does not count against the first call's time limit."""
    ours = compressor(auxiliary_model="openai/some", timeout_seconds=1.0, summary_max_retries=0)
    ours.preview(coding_turns(20))  # reads the real library's tables, for all tests
    replace_litellm(monkeypatch, tmp_path, f"import time\ntime.sleep(1.5)\n{FAKE}")
    assert ours.compress_sync(coding_turns(20)).summary_method == "model"


@pytest.mark.parametrize(("given", "found"), [(None, "True"), ("False", "False")])
async def test_importing_litellm_changes_no_environment(monkeypatch, tmp_path, given, found):
    """litellm's variable for an import without a network is set only during the import."""
    name = "LITELLM_LOCAL_MODEL_COST_MAP"
    replace_litellm(monkeypatch, tmp_path, FAKE)
    monkeypatch.delenv(name, raising=False)
    if given is not None:
        monkeypatch.setenv(name, given)
    asked = LiteLLMSummarizer("openai/some")
    await asked.summarize(REQUEST, max_tokens=9, timeout_seconds=10)
    assert (sys.modules["litellm"].found, sys.modules["litellm"].telemetry) == (found, False)
    assert os.environ.get(name) == given


# ---------------------------------------------------------------- what is sent


async def test_only_what_a_summary_needs_is_sent(provider):
    """A request has only a cap, temperature 0 and the given headers."""
    provider.answer_with([Reply("ok")])
    extra: dict[str, Any] = {"max_tokens": 9, "stream": True, "extra_headers": {"X-Team": "red"}}
    await at(provider, extra=extra).summarize(REQUEST, max_tokens=100, timeout_seconds=10)
    assert provider.requests[0].headers["X-Team"] == "red"
    assert provider.requests[0].body == {
        "model": "local-model",
        "messages": REQUEST,
        "max_tokens": 100,
        "temperature": 0,
    }


async def test_the_answer_comes_with_its_usage_and_price(provider):
    """Only the answer of a model with a known price has a cost."""
    provider.answer_with(lambda asked: Reply("ok"))
    priced = await at(provider, "gpt-4o-mini").summarize(REQUEST, max_tokens=9, timeout_seconds=10)
    own = await at(provider).summarize(REQUEST, max_tokens=9, timeout_seconds=10)
    asked, taken = provider.requests[1], own.usage
    assert (priced.usage.cost or 0) > 0
    assert (own.text, own.finish_reason, own.model) == ("ok", "stop", "local-model")
    assert (taken.prompt_tokens, taken.cost) == (asked.prompt_tokens, None)
    assert taken.completion_tokens == asked.completion_tokens > 0


@pytest.mark.parametrize(
    ("model", "arrives_as"),
    [
        ("openai/qwen2.5-coder", "qwen2.5-coder"),
        ("meta-llama/Llama-3-8B", "meta-llama/Llama-3-8B"),
        ("gemini-2.5-pro", "gemini-2.5-pro"),
        ("hosted_vllm/org/name", "org/name"),
    ],
)
async def test_a_given_endpoint_is_reached(provider, model, arrives_as):
    """With `api_base` every model's name goes to that endpoint."""
    provider.answer_with([Reply("ok")])
    await at(provider, model).summarize(REQUEST, max_tokens=9, timeout_seconds=10)
    assert [request.model for request in provider.requests] == [arrives_as]


_PARTICULAR = {"bedrock": "anthropic.claude-3-haiku-20240307-v1:0", "anthropic": "claude-haiku-4-5"}


@pytest.mark.parametrize("name", sorted(HONOURS_API_BASE))
async def test_each_listed_provider_sends_to_the_given_endpoint(name):
    """Each provider in the list really sends to `api_base`."""
    heard: list[bytes] = []

    async def answer(request: web.Request) -> web.Response:
        heard.append(await request.read())
        return web.Response(status=404)

    application = web.Application()
    application.router.add_post("/{path:.*}", answer)
    async with TestServer(application) as server:
        model = f"{name}/{_PARTICULAR.get(name, 'some-model')}"
        await failure(LiteLLMSummarizer(model, api_base=str(server.make_url("/v1")), api_key="key"))
    assert len(heard) == 1
    assert b"transcript" in heard[0]


async def test_a_provider_that_may_go_elsewhere_is_refused(provider):
    """A provider that ignores `api_base` is sent nothing."""
    error = await failure(at(provider, "replicate/org/name"))
    assert "nothing was sent" in str(error)
    assert provider.requests == []


async def test_a_thinking_model_gets_room_to_think(provider):
    """The cap of a thinking model has tokens for its reasoning."""
    provider.answer_with([Reply("ok")])
    asked = at(provider, "gpt-5-mini").summarize(REQUEST, max_tokens=100, timeout_seconds=10)
    assert (await asked).text == "ok"
    assert provider.requests[0].body == {
        "model": "gpt-5-mini",
        "messages": REQUEST,
        "max_completion_tokens": 100 + THINKING_TOKENS,
        "reasoning_effort": "low",
    }


async def test_a_deployment_is_asked_for_what_it_takes(provider):
    """A parameter that a deployment refuses is left out."""
    refusals = [
        "Unsupported parameter: 'max_tokens' is not supported with this model. "
        "Use 'max_completion_tokens' instead.",
        "Unsupported value: 'temperature' does not support 0 with this model.",
    ]
    refused = [Failure(400, words, "invalid_request_error") for words in refusals]
    provider.answer_with([*refused, Reply("ok")])
    asked = at(provider, "my-deployment").summarize(REQUEST, max_tokens=100, timeout_seconds=10)
    assert (await asked).text == "ok"
    assert provider.requests[-1].body == {
        "model": "my-deployment",
        "messages": REQUEST,
        "max_completion_tokens": 100,
    }


async def test_a_key_is_sent_and_never_shown(provider):
    """Only the endpoint sees the given key."""
    provider.answer_with([Failure(401, "Incorrect API key provided: secret-123.", "auth")])
    summarizer = at(provider, api_key="secret-123")
    error = await failure(summarizer)
    assert provider.requests[0].headers["Authorization"] == "Bearer secret-123"
    assert "secret-123" not in f"{error} {summarizer!r}"


async def test_a_short_key_leaves_the_words_whole(provider):
    """A local server's key, such as "x", cuts no word of an error."""
    provider.answer_with([Failure(401, "No exit for key x.", "auth")])
    said = str(await failure(at(provider, api_key="x")))
    assert "No exit for key ***." in said


# ---------------------------------------------------------------- what went wrong


@pytest.mark.parametrize(
    ("behaviour", "kind"),
    [
        ("unauthorized", "auth"),
        ("rate_limited", "quota"),
        ("quota", "quota"),
        ("context", "context"),
        ("reset", "network"),
        ("overloaded", "provider"),
        ("invalid_utf8", "provider"),
        ("not_json", "provider"),
        ("stall", "timeout"),
    ],
)
async def test_each_failure_has_its_kind(behaviour, kind):
    """Each kind of provider failure is one error with its kind and cause."""
    with LocalProvider(Misbehaving(behaviour)) as provider:
        seconds = 0.3 if behaviour == "stall" else 10.0
        error = await failure(at(provider), timeout_seconds=seconds)
        assert error.kind == kind
        assert error.__cause__ is not None
        assert error.retry_after == {"rate_limited": 0.02}.get(behaviour)
        # Retries are the compressor's: one call is one request.
        assert len(provider.requests) == 1
