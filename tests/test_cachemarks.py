"""Cache marks: at the places that stay, at most four, and no part of what a message says."""

from __future__ import annotations

import copy
import itertools
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from praison_compressor import CompressorConfig, ContextCompressor
from praison_compressor.cachemarks import LARGEST, marked, wants_marks
from praison_compressor.messages import digest, text_of

from .test_masks import Model, outputs
from .transcripts import session, transcripts

CLAUDE = "anthropic/claude-sonnet-4-5"
TOOL = {"type": "function", "function": {"name": "f"}, "cache_control": {"type": "ephemeral"}}


def marks(messages) -> list[int]:
    return [i for i, message in enumerate(messages) if '"cache_control"' in json.dumps(message)]


def unmarked(value):
    if isinstance(value, dict):
        return {k: unmarked(v) for k, v in value.items() if k != "cache_control"}
    return [unmarked(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize(
    ("model", "wants"),
    [
        ("anthropic/claude-sonnet-4-5", True),
        ("claude-3-5-haiku-latest", True),
        ("bedrock/us.anthropic.claude-sonnet-4-20250514-v1:0", True),
        ("vertex_ai/claude-opus-4@20250514", True),
        ("openrouter/anthropic/claude-sonnet-4.5", True),
        ("gpt-4o", False),
        ("gemini/gemini-2.5-pro", False),
        ("ollama/claudette", False),
        (None, False),
    ],
)
def test_marks_are_set_where_the_provider_takes_them(model, wants):
    """The Claude family wherever it is served; others cache by themselves or refuse the key."""
    assert wants_marks(model) is wants
    assert (marks(marked(session(2), model=model)) != []) is wants


@settings(deadline=None, max_examples=40)
@given(transcripts(), st.integers(0, 5))
def test_marks_change_nothing_but_themselves(messages, given_marks):
    """Digests, order, form and the caller's own list stay; four at most, the host's among them."""
    for message in messages[:given_marks]:
        message["cache_control"] = {"type": "ephemeral"}
    before = copy.deepcopy(messages)
    result = marked(messages, model=CLAUDE)
    assert messages == before
    assert unmarked(result) == unmarked(messages)
    assert list(map(digest, result)) == list(map(digest, messages))
    assert len(marks(result)) <= max(LARGEST, given_marks)
    assert set(marks(messages)) <= set(marks(result))


def test_the_places_are_system_summary_mask_and_end():
    """What stays longest, and what the next request is found by."""
    ours = ContextCompressor(
        CompressorConfig(model="gpt-4o", context_window=6_000, protect_last_n_tokens=1_000)
    )
    view = ours.compress_sync(session(20)).messages
    summary = next(i for i, m in enumerate(view) if text_of(m).startswith("<conversation-summary>"))
    assert marks(marked(view, model=CLAUDE)) == [0, summary, len(view) - 1]
    masking = ContextCompressor(
        CompressorConfig(model="gpt-4o", context_window=8_000, protect_last_n_tokens=1_000),
        summarizer=Model(),
    )
    view = masking.compress_sync(outputs(20)).messages
    mask = max(i for i, m in enumerate(view) if text_of(m).startswith("[masked]"))
    assert marks(marked(view, model=CLAUDE)) == [0, mask, len(view) - 1]


def test_the_hosts_marks_count():
    """Those on tools too; with four of them nothing is added, with three the end gets ours."""
    messages = session(3)
    three = [TOOL] * 3
    assert marks(marked(messages, model=CLAUDE, tools=three)) == [len(messages) - 1]
    assert marks(marked(messages, model=CLAUDE, tools=[TOOL] * 4)) == []
    assert marked(messages, model=CLAUDE, tools=[TOOL] * 5) == messages


def test_the_mark_that_moves_on_leaves_the_bytes_as_they_were():
    """Turn after turn: the request before, its marks aside, begins the next one."""
    messages = session(6)
    ends = [n + 1 for n, message in enumerate(messages) if message["role"] in ("user", "tool")]
    sent = [json.dumps(unmarked(marked(messages[:end], model=CLAUDE)))[:-1] for end in ends]
    assert all(later.startswith(earlier) for earlier, later in itertools.pairwise(sent))


def test_what_cannot_carry_a_mark_gets_none():
    """An assistant's blocks, empty texts: a provider refuses marks there."""
    messages = [
        {"role": "system", "content": ""},
        {"role": "user", "content": "look"},
        {"role": "assistant", "content": "Let me think."},
    ]
    assert marks(marked(messages, model=CLAUDE)) == [1]
    assert marks(marked([messages[2]], model=CLAUDE)) == []
    assert marked([], model=CLAUDE) == []


def test_a_compressor_finds_its_ledger_under_marks():
    """Marked requests that come back are the same transcript."""
    ours = ContextCompressor(
        CompressorConfig(model="gpt-4o", context_window=6_000, protect_last_n_tokens=1_000)
    )
    messages = session(20)
    view = ours.compress_sync(messages).messages
    again = ours.compress_sync(marked(messages, model=CLAUDE))
    assert unmarked(again.messages) == view
    assert ours.compress_sync(marked(view, model=CLAUDE)).summary_method == "reused"
