"""Token counts against tiktoken itself and the published rules; limits against litellm's table."""

from __future__ import annotations

import base64
import logging
import os
import random
import struct
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import tiktoken
from hypothesis import given, settings
from hypothesis import strategies as st
from tiktoken_ext import openai_public

from praison_compressor import vocabulary
from praison_compressor.models import GUESSED_WINDOW, litellm_folder, model_limits
from praison_compressor.tokens import REPLY_TOKENS, TokenCounter
from praison_compressor.vocabulary import EXACT_CHARS, PIECE_CHARS, pieces


@pytest.fixture(scope="module", params=["o200k_base", "cl100k_base"])
def published(request: pytest.FixtureRequest) -> tuple[tiktoken.Encoding, TokenCounter]:
    """An encoding as tiktoken itself builds it, and our counter of a model that uses it."""
    folder = litellm_folder()
    assert folder is not None
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIKTOKEN_CACHE_DIR", str(folder / "litellm_core_utils" / "tokenizers"))
        made = getattr(openai_public, request.param)()
    model = {"o200k_base": "gpt-4o", "cl100k_base": "gpt-4"}[request.param]
    return tiktoken.Encoding(**made), TokenCounter(model)


# ---------------------------------------------------------------- texts


@settings(deadline=None, max_examples=200)
@given(text=st.text())
def test_any_text_is_counted_as_tiktoken_counts_it(published: Any, text: str) -> None:
    """No text, whatever its script, is counted differently from the published tokenizer."""
    encoding, counter = published
    assert counter.text(text) == len(encoding.encode_ordinary(text))


def prose(words: int, seed: int = 1) -> str:
    """Lines of words, code, numbers, paths and Chinese, as transcripts have them."""
    chance = random.Random(seed)
    kinds = (
        lambda: "".join(chance.choices("abcdefghijklmnop", k=chance.randint(1, 9))),
        lambda: chance.choice(["don't", "I'll", "x = {'a': 1}", "//", "src/app.py:42", "e.g.,"]),
        lambda: str(chance.randint(0, 10**6)),
        lambda: chance.choice(["你好，世界。", "naïve", "Ωmega", "—", "😀"]),
        lambda: chance.choice(["\n", "\n\n    ", ".\n", "}\n/", "\t", "  "]),
    )
    return " ".join(chance.choices(kinds, weights=(12, 3, 2, 1, 2))[0]() for _ in range(words))


@pytest.mark.parametrize("seed", range(5))
def test_cutting_a_long_text_changes_no_count(published: Any, seed: int) -> None:
    """A text of many pieces has exactly the tokens of the whole."""
    encoding, counter = published
    text = prose(60_000, seed)
    assert len(list(pieces(text))) > 3
    assert "".join(pieces(text)) == text
    assert counter.text(text) == len(encoding.encode_ordinary(text))


@pytest.mark.parametrize(
    "run", [" ", "a", "\n", "=", "中", "😀", "Aa", " \t", "'", "e\u0301", "0123456789abcdef"]
)
def test_a_million_characters_without_a_seam_are_counted(run: str) -> None:
    """What makes tiktoken panic or crawl is cut, and off by at most a token for each cut."""
    counter = TokenCounter("gpt-4o")
    unit = (run * PIECE_CHARS)[:PIECE_CHARS]
    one, many = counter.text(unit), counter.text((run * 1_000_000)[:1_000_000])
    cuts = 1_000_000 // PIECE_CHARS + 1
    assert abs(many - one * 1_000_000 / PIECE_CHARS) <= 3 * cuts


def test_a_text_beyond_any_window_is_sampled() -> None:
    """Its count is near the exact one, without reading all of it."""
    text = prose(300_000)
    repeats = EXACT_CHARS // len(text) + 1
    exact = TokenCounter("gpt-4o").text(text) * repeats
    assert TokenCounter("gpt-4o").text(text * repeats) == pytest.approx(exact, rel=0.03)


def test_special_tokens_and_lone_surrogates_are_ordinary_text() -> None:
    """What a user pastes is counted, never refused."""
    for model in ("gpt-4o", "claude-sonnet-4-5"):
        counter = TokenCounter(model)
        assert counter.text("<|endoftext|>") > 3
        assert counter.text("half a pair: \ud83d") > 3


# ---------------------------------------------------------------- which vocabulary

O200K = ["gpt-4o", "gpt-4o-mini-2024-07-18", "chatgpt-4o-latest", "gpt-4.1-nano", "gpt-4.5-preview"]
O200K += ["gpt-5", "gpt-5.1-codex", "o1", "o1-mini", "o3-mini", "o4-mini-2025-04-16", "gpt-oss-20b"]
O200K += ["openai/gpt-4o", "azure/gpt-4.1", "openrouter/openai/o3", "ft:gpt-4o-2024-08-06:org::id"]
O200K += ["gpt-4o-2099-01-01", "GPT-4o", "openai/responses/gpt-5-mini"]
CL100K = ["gpt-4", "gpt-4-0613", "gpt-4-32k", "gpt-4-turbo-2024-04-09", "gpt-4-1106-preview"]
CL100K += ["gpt-3.5-turbo", "gpt-3.5-turbo-16k", "azure/gpt-35-turbo", "openai/gpt-4"]
CL100K += ["ft:gpt-3.5-turbo-0125:org::id", "openrouter/openai/gpt-4-turbo"]
OTHER = ["gemini/gemini-2.5-pro", "ollama/llama3", "olmo-1", "o", "azure/my-deployment", "", None]


@pytest.mark.parametrize("model", O200K)
def test_newer_openai_models_are_exact(model: str) -> None:
    """Whatever routes to it and however it is dated, the model's own vocabulary counts."""
    counter = TokenCounter(model)
    assert (counter.source, counter.exact) == ("o200k_base", True)


@pytest.mark.parametrize("model", CL100K)
def test_older_openai_models_are_exact(model: str) -> None:
    """gpt-4 is not gpt-4o: it has the older vocabulary."""
    counter = TokenCounter(model)
    assert (counter.source, counter.exact) == ("cl100k_base", True)


@pytest.mark.parametrize("model", OTHER)
def test_other_models_are_estimated_and_say_so(model: str | None) -> None:
    """Nothing is called exact that is not."""
    counter = TokenCounter(model)
    assert (counter.source, counter.exact) == ("estimate by o200k_base", False)


@pytest.mark.parametrize("model", ["claude-sonnet-4-5", "openrouter/anthropic/claude-opus-4.5"])
def test_claude_is_estimated_by_its_published_vocabulary(model: str) -> None:
    """litellm's Claude vocabulary counts, and is not called exact for newer models."""
    counter = TokenCounter(model)
    assert "Claude" in counter.source
    assert not counter.exact
    assert counter.text("Hello, world") == 3


@pytest.mark.parametrize("model", ["gpt-4o", "claude-sonnet-4-5"])
def test_without_any_vocabulary_there_is_still_a_count(
    model: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A litellm without its files: an estimate that says so, rather a few too many than too few."""
    for cached in (vocabulary._bpe_encode, vocabulary._json_encode):
        monkeypatch.setattr(vocabulary, cached.__name__, cached.__wrapped__)
    monkeypatch.setattr(vocabulary, "litellm_folder", lambda: Path("nowhere"))
    monkeypatch.setattr("tiktoken.registry.ENCODINGS", {})
    counter = TokenCounter(model)
    assert not counter.exact
    assert "estimate" in counter.source
    assert "carries no" in caplog.text
    assert 2 <= counter.text("Hello, world") <= 6


@pytest.mark.parametrize("model", ["gpt-4o", "claude-sonnet-4-5"])
def test_threads_that_ask_together_share_one_vocabulary(model: str) -> None:
    """Twenty agents that begin at once do not each read and keep 40 MB of their own."""
    for cached in (vocabulary._bpe_encode, vocabulary._json_encode):
        cached.cache_clear()  # type: ignore[attr-defined]
    together = threading.Barrier(8)

    def ask(_: int) -> object:
        together.wait(20)
        return vocabulary.vocabulary_for(model).encode

    with ThreadPoolExecutor(8) as threads:
        assert len(set(threads.map(ask, range(8)))) == 1


def test_importing_and_counting_disturbs_nobody(tmp_path: Path) -> None:
    """No litellm, no network, no file and no variable: whatever the user's own settings are."""
    script = """
import os, socket, sys
def refuse(*a, **k): raise AssertionError("the network was tried")
socket.socket.connect = refuse
socket.getaddrinfo = refuse
import praison_compressor.tokens as tokens
heavy = {"litellm", "tiktoken", "tokenizers", "sqlalchemy", "praisonaiagents"}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
before = dict(os.environ)
counts = [tokens.TokenCounter(m).text("hello world") for m in ("gpt-4o", "gpt-4", "llama-3", "x")]
assert counts == [2, 2, 2, 2], counts
assert tokens.model_limits("gpt-4o").window == 128_000
assert dict(os.environ) == before
assert not {"litellm", "praisonaiagents"} & set(sys.modules)
"""
    environment = {**os.environ, "TIKTOKEN_CACHE_DIR": str(tmp_path), "TMPDIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", script], check=True, env=environment)
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------- messages

# OpenAI's own example, with the counts that its API reported.
EXAMPLE: list[dict[str, Any]] = [
    {
        "role": "system",
        "content": "You are a helpful, pattern-following assistant that translates corporate "
        "jargon into plain English.",
    },
    {
        "role": "system",
        "name": "example_user",
        "content": "New synergies will help drive top-line growth.",
    },
    {
        "role": "system",
        "name": "example_assistant",
        "content": "Things working well together will increase revenue.",
    },
    {
        "role": "system",
        "name": "example_user",
        "content": "Let's circle back when we have more bandwidth to touch base on opportunities "
        "for increased leverage.",
    },
    {
        "role": "system",
        "name": "example_assistant",
        "content": "Let's talk later when we're less busy about how to do better.",
    },
    {
        "role": "user",
        "content": "This late pivot means we don't have time to boil the ocean for the client "
        "deliverable.",
    },
]


@pytest.mark.parametrize(("model", "reported"), [("gpt-4o", 124), ("gpt-4", 129)])
def test_openais_own_example_has_the_count_that_its_api_reported(model: str, reported: int) -> None:
    """Frames, names and the reply's opening are counted by the published rule."""
    counter = TokenCounter(model)
    assert counter.messages(EXAMPLE) == reported
    assert sum(map(counter.message, EXAMPLE)) == reported - REPLY_TOKENS


def test_a_message_is_more_than_its_text() -> None:
    """Calls, thinking, refusals, images and what nobody knows all count; private keys do not."""
    counter = TokenCounter("gpt-4o")
    bare = {"role": "assistant", "content": "Done."}
    plain = counter.message(bare)
    function = {"name": "read_file", "arguments": '{"path": "src/app.py"}'}
    additions: list[dict[str, Any]] = [
        {"tool_calls": [{"id": "c1", "type": "function", "function": function}]},
        {"function_call": function},
        {"name": "helper"},
        {"refusal": "I would rather not."},
        {"reasoning_content": "Let me think about the path."},
        {"thinking_blocks": [{"type": "thinking", "thinking": "About it.", "signature": "s" * 99}]},
        {"content": [{"type": "text", "text": "Done."}, {"type": "new", "thing": [1, 2]}]},
        {"content": [{"type": "text", "text": "Done."}, {"type": "image_url", "image_url": "u"}]},
    ]
    assert [a for a in additions if counter.message({**bare, **a}) <= plain] == []
    silent: list[dict[str, Any]] = [
        {"_private": "x" * 999},
        {"tool_calls": None},
        {"tool_call_id": "call_" + "9" * 40},
        {"content": [{"type": "text", "text": "Done.", "cache_control": {"type": "ephemeral"}}]},
    ]
    assert [a for a in silent if counter.message({**bare, **a}) != plain] == []


def test_all_shapes_of_one_call_count_the_same() -> None:
    """A dictionary of arguments, a string of them and a client's object are one call."""
    counter = TokenCounter("gpt-4o")

    class Function:
        name = "read"

        def __init__(self) -> None:
            self.name, self.arguments = "read", '{"path": "a"}'

    class Call:
        def __init__(self) -> None:
            self.id, self.type, self.function = "1", "function", Function()

    def message(call: Any) -> dict[str, Any]:
        return {"role": "assistant", "content": None, "tool_calls": [call]}

    text = {"id": "1", "function": {"name": "read", "arguments": '{"path": "a"}'}}
    mapping = {"id": "1", "function": {"name": "read", "arguments": {"path": "a"}}}
    counts = {counter.message(message(call)) for call in (text, mapping, Call())}
    assert len(counts) == 1


def test_a_counted_message_is_not_counted_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tokenizer sees each message once, however often and in whatever dictionary it returns."""
    counter = TokenCounter("gpt-4o")
    transcript = [{"role": "user", "content": f"message {n}"} for n in range(50)]
    before = counter.messages(transcript)
    encoded: list[str] = []
    encode = counter._vocabulary.encode

    def counted(text: str) -> list[int]:
        encoded.append(text)
        return encode(text)

    monkeypatch.setattr(
        counter, "_vocabulary", vocabulary.Vocabulary(counter.source, True, counted)
    )
    assert counter.messages([dict(message) for message in transcript]) == before
    assert encoded == []
    transcript[7]["content"] = "edited in its place, to something longer"
    assert counter.messages(transcript) != before
    assert encoded == ["edited in its place, to something longer"]


def test_many_new_messages_are_counted_as_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Side by side in threads, however many cores there are: the same counts, in order."""
    transcript = [{"role": "user", "content": f"message {n} " * (n % 7)} for n in range(2_000)]
    one_by_one = [TokenCounter("gpt-4o").message(message) for message in transcript]
    for cores in (1, 2, 3):
        monkeypatch.setattr(os, "cpu_count", lambda cores=cores: cores)
        counter = TokenCounter("gpt-4o")
        assert counter.each(counter.cache.all(transcript)) == one_by_one


def test_the_sum_of_messages_is_the_count_of_the_list() -> None:
    """What a plan adds up is what the view will be measured by, calibrated or not."""
    counter = TokenCounter("some-model")
    assert counter.messages(EXAMPLE) == sum(map(counter.message, EXAMPLE)) + REPLY_TOKENS
    counter.calibrate(EXAMPLE, counter.messages(EXAMPLE) * 13 // 10)
    assert counter.messages(EXAMPLE) == sum(map(counter.message, EXAMPLE)) + REPLY_TOKENS


# ---------------------------------------------------------------- images


def png(width: int, height: int) -> str:
    data = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width, height)
    return "data:image/png;base64," + base64.b64encode(data + bytes(20)).decode()


def jpeg(width: int, height: int) -> str:
    exif = b"\xff\xe1" + struct.pack(">H", 5000) + bytes(4998)
    frame = b"\xff\xc0" + struct.pack(">HBHH", 17, 8, height, width)
    return (
        "data:image/jpeg;base64," + base64.b64encode(b"\xff\xd8" + exif + frame + b"0" * 9).decode()
    )


@pytest.mark.parametrize(
    ("model", "url", "detail", "tokens"),
    [
        # OpenAI's documented examples for tiles, then for patches.
        ("gpt-4o", png(1024, 1024), "high", 765),
        ("gpt-4o", jpeg(2048, 4096), "high", 1105),
        ("gpt-4o", png(4096, 8192), "low", 85),
        ("gpt-4o-mini", png(1024, 1024), "high", 2833 + 4 * 5667),
        ("gpt-4.1-mini", png(1024, 1024), None, 1659),
        ("gpt-4.1-mini", png(1800, 2400), None, 2353),
        # A link is not followed: 1024 x 1024 is assumed.
        ("gpt-4o", "https://example.com/a.png", None, 765),
        # Anthropic's: width x height / 750.
        ("claude-sonnet-4-5", png(1000, 1000), None, 1334),
    ],
)
def test_images_cost_what_is_documented(
    model: str, url: str, detail: str | None, tokens: int
) -> None:
    """The size is read from inline data; the network is not asked."""
    image = {"url": url} if detail is None else {"url": url, "detail": detail}
    counter = TokenCounter(model)
    without = counter.message({"role": "user", "content": []})
    part = {"type": "image_url", "image_url": image}
    assert counter.message({"role": "user", "content": [part]}) - without == tokens


@pytest.mark.parametrize("url", ["", "data:image/png;base64,%%%", "data:,x", "x" * 100, 7, None])
def test_a_broken_image_has_a_count(url: Any) -> None:
    """What is no image is taken for one of the usual size."""
    part = {"type": "image_url", "image_url": {"url": url}}
    assert TokenCounter("gpt-4o").message({"role": "user", "content": [part]}) > 700


def test_a_documents_base64_is_not_taken_for_words() -> None:
    """A file's data counts as pages, not as the words of its encoding."""
    counter = TokenCounter("gpt-4o")
    data = base64.b64encode(random.Random(1).randbytes(60_000)).decode()
    part = {"type": "file", "file": {"filename": "a.pdf", "file_data": data}}
    count = counter.message({"role": "user", "content": [part]})
    assert 1_000 < count < counter.text(data) / 10


# ---------------------------------------------------------------- tools

WEATHER: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "get_current_weather",
        "description": "Get the current weather in a given location.",
        "parameters": {
            "type": "object",
            "properties": {
                "location": {"type": "string", "description": "The city, e.g. Boston"},
                "unit": {"type": "string", "description": "Unit", "enum": ["celsius", "kelvin"]},
            },
        },
    },
}


@pytest.mark.parametrize(("model", "start"), [("gpt-4o", 7), ("gpt-4", 10)])
def test_tools_are_counted_by_the_published_rule(model: str, start: int) -> None:
    """Name, description, properties and choices, each with its published constant."""
    counter = TokenCounter(model)
    text = counter.text
    expected = start + text("get_current_weather:Get the current weather in a given location")
    expected += 3
    expected += 3 + text("location:string:The city, e.g. Boston")
    expected += 3 - 3 + 3 + text("celsius") + 3 + text("kelvin") + text("unit:string:Unit")
    assert counter.tools([WEATHER]) == expected + 12
    assert counter.tools([WEATHER, WEATHER]) == 2 * expected + 12


def test_tools_come_in_every_apis_shape() -> None:
    """The responses API's flat shape and Anthropic's count as the same tool."""
    counter = TokenCounter("gpt-4o")
    function = WEATHER["function"]
    flat = {"type": "function", **function}
    anthropic = {k: function[k] for k in ("name", "description")}
    anthropic["input_schema"] = function["parameters"]
    assert {counter.tools([tool]) for tool in (WEATHER, flat, anthropic)} == {
        counter.tools([WEATHER])
    }
    assert counter.tools([{"type": "web_search"}]) > 0
    assert counter.tools(None) == counter.tools([]) == 0


def test_a_nested_schema_counts_at_every_depth() -> None:
    """Properties inside items and alternatives are sent, so they are counted."""
    counter = TokenCounter("gpt-4o")
    deep: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}}}
    for wrap in ({"type": "array", "items": deep}, {"anyOf": [deep, {"type": "null"}]}):
        outer = {"type": "object", "properties": {"list": wrap}}
        empty = {"type": "object", "properties": {"list": {"type": wrap.get("type", "")}}}
        tools = [{"name": "f", "description": "d", "parameters": p} for p in (outer, empty)]
        assert counter.tools(tools[:1]) > counter.tools(tools[1:])


# ---------------------------------------------------------------- learning from the provider


def test_an_unknown_tokenizer_converges_in_three_turns() -> None:
    """Three reports of a provider whose tokens are 30 % more make the count right."""
    counter = TokenCounter("some-model")
    truth = TokenCounter("some-model")
    turns = [{"role": "user", "content": prose(200, seed)} for seed in range(6)]
    for turn in range(1, 4):
        counter.calibrate(turns[:turn], round(truth.messages(turns[:turn]) * 1.3))
    assert counter.messages(turns) == pytest.approx(truth.messages(turns) * 1.3, rel=0.01)
    assert "corrected by 1.30" in counter.source


def test_an_exact_counter_stays_exact() -> None:
    """A report within two percent changes nothing; a lasting difference is believed."""
    counter = TokenCounter("gpt-4o")
    messages = [{"role": "user", "content": prose(500)}]
    exact = counter.messages(messages)
    counter.calibrate(messages, round(exact * 1.01))
    assert counter.messages(messages) == exact
    counter.calibrate(messages, round(exact * 1.2))
    assert counter.messages(messages) > exact


@pytest.mark.parametrize("ratio", [0.3, 0.5, 0.8, 1.3, 2.0, 3.5])
def test_short_messages_are_not_counted_for_more_than_they_are(ratio: float) -> None:
    """What is corrected message by message adds up to what the provider reports."""
    counter = TokenCounter("acme/unknown")
    talk = [{"role": "user", "content": f"and {n}? " + "so " * (n % 9)} for n in range(200)]
    reported = round(counter.messages(talk) * ratio)
    counter.calibrate(talk, reported)
    assert abs(counter.messages(talk) / reported - 1) < 0.03


@pytest.mark.parametrize("reported", [0, -5, 1, 10**9])
def test_an_unbelievable_report_is_not_learned(reported: int) -> None:
    """A proxy's zero, or another request's usage, changes no count."""
    counter = TokenCounter("some-model")
    before = counter.messages(EXAMPLE)
    counter.calibrate(EXAMPLE, reported)
    assert counter.messages(EXAMPLE) == before


# ---------------------------------------------------------------- limits


@pytest.mark.parametrize(
    ("model", "window", "output"),
    [
        ("gpt-4o", 128_000, 16_384),
        ("openai/gpt-4o", 128_000, 16_384),
        ("azure/gpt-4o", 128_000, 16_384),
        ("openrouter/openai/gpt-4o-mini", 128_000, 16_384),
        ("gpt-4o-2099-01-01", 128_000, 16_384),
        ("ft:gpt-4o-2024-08-06:org::id", 128_000, 16_384),
        ("gpt-4", 8_192, 4_096),
        ("gpt-3.5-turbo", 16_385, 4_096),
        ("claude-sonnet-4-5", 200_000, 64_000),
        ("anthropic/claude-sonnet-4-5", 200_000, 64_000),
        ("openrouter/anthropic/claude-sonnet-4-5", 200_000, 64_000),
        ("openrouter/anthropic/claude-sonnet-4.5:beta", 200_000, 64_000),
        ("bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0", 200_000, 64_000),
        ("gemini/gemini-2.5-pro", 1_048_576, 65_536),
        ("ollama/llama3", 8_192, 8_192),
    ],
)
def test_known_models_have_their_limits(model: str, window: int, output: int) -> None:
    """The table's own figures, whatever routes to the model."""
    limits = model_limits(model)
    assert (limits.window, limits.output, limits.guessed) == (window, output, False)


def test_an_explicit_window_counts_before_all(caplog: pytest.LogCaptureFixture) -> None:
    """The option is no guess and warns of nothing, for known and unknown models."""
    assert model_limits("gpt-4o", 5_000).window == 5_000
    assert model_limits("gpt-4o", 5_000).output == 16_384
    assert not model_limits("nobody-knows-this-one", 5_000).guessed
    assert caplog.records == []


def test_a_guess_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    """A model that no table has: a window is assumed, and one warning names the option."""
    with caplog.at_level(logging.WARNING):
        limits = [model_limits("azure/nobody-knows-this-deployment") for _ in range(3)]
    assert {(one.window, one.guessed) for one in limits} == {(GUESSED_WINDOW, True)}
    assert len(caplog.records) == 1
    assert "context_window" in caplog.text


def test_a_namesake_of_another_provider_is_a_better_guess() -> None:
    """The smallest window that anybody gives a model of this name, still called a guess."""
    limits = model_limits("nobody/llama-3.3-70b-versatile")
    assert limits.guessed
    assert limits.window == 131_072


def test_what_is_registered_at_run_time_counts_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user's own deployment is known to litellm only in memory."""
    import litellm

    monkeypatch.setitem(litellm.model_cost, "my-deployment", {"max_input_tokens": 7_000})
    monkeypatch.setitem(litellm.model_cost, "gpt-4o", {"max_input_tokens": 6_000})
    assert model_limits("azure/my-deployment").window == 7_000
    assert model_limits("openai/gpt-4o").window == 6_000
    monkeypatch.setitem(litellm.model_cost, "my-deployment", {"max_input_tokens": "many"})
    assert model_limits("my-deployment").guessed
