"""The coverage-guided fuzzer: `python -m tests.hostile.coverage_guided [-runs=N] [corpus]`.

Needs atheris, which is not among the project's dependencies. Its bytes are the choices that make a
transcript; a broken promise ends the run with the bytes that make it again.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from typing import Any, TypeVar

import atheris  # type: ignore[import-not-found,unused-ignore]

with atheris.instrument_imports(include=["praison_compressor"]):
    from praison_compressor import messages, plan, prompts

from .generating import case
from .invariants import pure_broken

T = TypeVar("T")


class Bytes:
    """Choices out of the fuzzer's bytes."""

    def __init__(self, data: bytes) -> None:
        self._provider: Any = atheris.FuzzedDataProvider(data)

    def randint(self, a: int, b: int) -> int:
        """A whole number from a to b."""
        return int(self._provider.ConsumeIntInRange(a, b))

    def choice(self, seq: Sequence[T]) -> T:
        """One of a sequence."""
        return seq[self.randint(0, len(seq) - 1)]


def one_input(data: bytes) -> None:
    """One transcript through the pure half, and its text through the frame."""
    made = case(Bytes(data))
    broken = pure_broken(made)
    if broken:
        raise AssertionError("; ".join(broken))
    framed = prompts.frame(data.decode("utf-8", "replace"), count=1, method="model")
    if framed.lower().count("</conversation-summary>") != 1:
        raise AssertionError("the frame was closed from inside")


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    assert messages
    assert plan
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()
