"""Bounded time and memory: the operating system ends a process that takes more."""

from __future__ import annotations

import resource
import subprocess
import sys
from typing import Any

import pytest

from praison_compressor import CompressorConfig, ContextCompressor, InvalidMessages
from praison_compressor.messages.secrets import Redactor
from praison_compressor.messages.shapes import DEEPEST
from praison_compressor.summaries.prompts import unposed
from praison_compressor.view.frame import escape
from tests.helpers.transcripts import session
from tests.hostile.heavy import LOADS

CPU_SECONDS = 30
"""All loads together take 3 seconds on one core; a quadratic step in five megabytes takes hours."""

MEMORY_BYTES = 4 << 30


def _limited() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))


def test_heavy_loads_are_carried_within_their_bounds() -> None:
    """Heavy loads give valid views within limited time and memory."""
    command = [sys.executable, "-m", "tests.hostile.heavy"]
    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=_limited, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-2_000:]
    assert done.stdout.splitlines() == [*LOADS]


def test_hostile_text_is_escaped_and_masked_in_one_pass() -> None:
    """Repeated openings are escaped and masked in linear time."""
    units = ("<", "< ", "<trans", "&lt;", "&", "[user", "[", "\n[", "<\u200b", "-----BEGIN ")
    for unit in (*units, "://a:", "token="):
        text = unit * (120_000 // len(unit))
        assert len(unposed(escape(text))) >= len(text)
        assert len(Redactor().masked([text])[0][0]) >= len(text) // 2


@pytest.mark.parametrize("depth", [DEEPEST * 2, 100_000])
def test_what_is_nested_too_deeply_is_named_not_followed(depth: int) -> None:
    """Too deep nesting is an error with its index, and `best_view` sends it unchanged."""
    value: Any = "core"
    for _ in range(depth):
        value = [value]
    messages = session(3)
    messages[5] = {**messages[5], "extra": value}
    ours = ContextCompressor(CompressorConfig(model="gpt-4o"))
    with pytest.raises(InvalidMessages, match=r"messages\[5\]: nested deeper"):
        ours.compress_sync(messages)
    assert all(a is b for a, b in zip(ours.best_view(messages), messages, strict=True))
