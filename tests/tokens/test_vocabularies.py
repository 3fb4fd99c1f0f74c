"""Texts are counted as tiktoken counts them, by the model's vocabulary."""

import os
import subprocess
import sys
from typing import Any

import pytest
import tiktoken
from hypothesis import given, settings
from hypothesis import strategies as st
from tiktoken_ext import openai_public

from praison_compressor import TokenCounter
from praison_compressor.tokens.models import (
    EXACT_CHARS,
    PIECE_CHARS,
    Vocabulary,
    litellm_folder,
    split_pieces,
    vocabulary_for,
)
from tests.helpers.transcripts import prose

MODELS = {"o200k_base": "gpt-4o", "cl100k_base": "gpt-4"}


@pytest.fixture(scope="module", params=MODELS)
def encoding(request):
    """Return an encoding as tiktoken builds it."""
    folder = litellm_folder()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIKTOKEN_CACHE_DIR", str(folder / "litellm_core_utils" / "tokenizers"))
        return tiktoken.Encoding(**getattr(openai_public, request.param)())


@pytest.fixture(scope="module")
def ours(encoding):
    """Return our vocabulary of the same encoding."""
    return vocabulary_for(MODELS[encoding.name])


# ---------------------------------------------------------------- texts

# fmt: off
ODD = [
    "'s", "'\u017f", "'LL", "\u017f", "\u212a", "\ud83d", "\udc00", "<|endoftext|>",
    "<|fim_prefix|>", " ", "  ", "\t", "\n", "\r\n", "\xa0", "\u2003", "\u3000", "\u200b", "\x85",
    "\x00", "\ufeff", "1", "23", "\u0663", "\xbd", "\u2167", "_", "/", "//", "=", "((", "aB",
    "HTTPServer", "\u0130", "\u4e2d\u6587", "\ud55c", "\u0627\u0644", "\u0947", "\u0e01\u0e48",
    "\U0001f642", "\u0301", "\u01c5", "\u02b0", "\U00033000", "\U0001fae9", "\ua7ce", "\u0378",
    "\U000e0101", "\ufffd",
    "a" * 40, "=" * 90,
]
"""Contractions, marks, spaces, scripts, halves of pairs, characters of Unicode 16, 17 and none."""
# fmt: on

ANY_TEXT = (
    st.text()
    | st.text(st.characters(exclude_categories=()))
    | st.lists(st.sampled_from(ODD), max_size=30).map("".join)
)


@settings(max_examples=120)
@given(text=ANY_TEXT)
def test_any_text_is_counted_as_tiktoken_counts_it(encoding, ours, text):
    """Any text has tiktoken's count."""
    assert ours.count(text) == len(encoding.encode_ordinary(text))


def test_cutting_a_long_text_changes_no_count(encoding, ours):
    """A text of many pieces has the tokens of the whole."""
    text = prose(60_000)
    assert len(list(split_pieces(text))) > 3
    assert "".join(split_pieces(text)) == text
    assert ours.count(text) == len(encoding.encode_ordinary(text))


@pytest.mark.parametrize("run", [" ", "a", "=", "中", "😀", "0123456789abcdef"])
def test_a_million_characters_without_a_seam_are_counted(run):
    """A cut in a run that tiktoken cannot handle costs a few tokens."""
    counter = TokenCounter("gpt-4o")
    unit = (run * PIECE_CHARS)[:PIECE_CHARS]
    one, many = counter.text(unit), counter.text((run * 1_000_000)[:1_000_000])
    cuts = 1_000_000 // PIECE_CHARS + 1
    assert abs(many - one * 1_000_000 / PIECE_CHARS) <= 3 * cuts


def test_a_text_beyond_any_window_is_sampled():
    """A sampled count is within 3 % of the exact one."""
    text = prose(300_000)
    repeats = EXACT_CHARS // len(text) + 1
    exact = TokenCounter("gpt-4o").text(text) * repeats
    assert TokenCounter("gpt-4o").text(text * repeats) == pytest.approx(exact, rel=0.03)


# ---------------------------------------------------------------- which vocabulary

O200K = """gpt-4o gpt-4o-mini-2024-07-18 chatgpt-4o-latest gpt-4.1-nano gpt-4.5-preview gpt-5
gpt-5.1-codex o1 o3-mini o4-mini-2025-04-16 gpt-oss-20b openai/gpt-4o azure/gpt-4.1 GPT-4o
openrouter/openai/o3 ft:gpt-4o-2024-08-06:org::id gpt-4o-2099-01-01 openai/responses/gpt-5-mini"""
CL100K = """gpt-4 gpt-4-0613 gpt-4-32k gpt-4-turbo-2024-04-09 gpt-3.5-turbo-16k azure/gpt-35-turbo
openai/gpt-4 ft:gpt-3.5-turbo-0125:org::id openrouter/openai/gpt-4-turbo"""
OTHER = ["gemini/gemini-2.5-pro", "ollama/llama3", "olmo-1", "o", "claude-sonnet-4-5", "", None]
SOURCES = [
    *((model, "o200k_base", True) for model in O200K.split()),
    *((model, "cl100k_base", True) for model in CL100K.split()),
    *((model, "estimate by o200k_base", False) for model in OTHER),
]


@pytest.mark.parametrize(("model", "source", "exact"), SOURCES)
def test_each_model_is_counted_by_its_vocabulary(model, source, exact):
    """A model is counted by its vocabulary, whatever its route, date and tag."""
    counter = TokenCounter(model)
    assert (counter.source, counter.exact) == (source, exact)


def test_without_any_vocabulary_there_is_still_a_count():
    """Without litellm's files a counter names its counts an estimate."""
    script = """
import sys
sys.modules["litellm"] = None
from praison_compressor import TokenCounter
counter = TokenCounter("gpt-4o")
assert counter.source == "estimate from the number of bytes", counter.source
assert not counter.exact
assert 2 <= counter.text("Hello, world") <= 6
"""
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "carries no" in done.stderr


def test_importing_and_counting_disturbs_nobody(tmp_path):
    """Counting imports no litellm and uses no network, file or environment variable."""
    script = """
import os, socket, sys
def refuse(*a, **k): raise AssertionError("the network was tried")
socket.socket.connect = refuse
socket.getaddrinfo = refuse
import praison_compressor.tokens.counter as tokens
from praison_compressor.tokens.models import model_limits
heavy = {"litellm", "tiktoken", "tokenizers", "sqlalchemy", "praisonaiagents"}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
before = dict(os.environ)
counts = [tokens.TokenCounter(m).text("hello world") for m in ("gpt-4o", "gpt-4", "llama-3", "x")]
assert counts == [2, 2, 2, 2], counts
assert model_limits("gpt-4o").window == 128_000
assert dict(os.environ) == before
assert not {"litellm", "praisonaiagents"} & set(sys.modules)
"""
    environment = {**os.environ, "TIKTOKEN_CACHE_DIR": str(tmp_path), "TMPDIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", script], check=True, env=environment)
    assert list(tmp_path.iterdir()) == []


def test_a_failed_joint_count_is_repeated_text_by_text():
    """A failure in a thread, or a tiktoken without buffers, changes no count."""

    def fails(_: Any) -> list[int]:
        raise RuntimeError("no buffers of tokens")

    texts = ["", "ab", "x" * 70_000]
    for vocabulary in (Vocabulary("a", False, len, fails), Vocabulary("b", False, len)):
        assert vocabulary.begin_count(texts)() == [0, 2, 70_000]
