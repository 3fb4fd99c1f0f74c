"""The coverage-guided fuzzer: `python -m tests.hostile.coverage_guided [-runs=N] [corpus]`.

Needs atheris, which is not among the project's dependencies. Its bytes are the choices that make a
transcript; a broken promise ends the run with the bytes that make it again.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Sequence
from typing import Any, TypeVar

import atheris  # type: ignore[import-not-found,unused-ignore]

with atheris.instrument_imports(include=["praison_compressor"]):
    from praison_compressor import SummaryRejected, answers, messages, plan, prompts, static

from .generating import case
from .invariants import facts_broken, pure_broken

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
    """One transcript through the pure half; the bytes as a text in every place a text can have."""
    text = data.decode("utf-8", "replace")
    broken = [*pure_broken(case(Bytes(data))), *facts_broken(spoken_everywhere(text), 400)]
    if broken:
        raise AssertionError("; ".join(broken))
    framed = prompts.frame(answered(text), count=1, method="model")
    if framed.lower().count("</conversation-summary>") != 1:
        raise AssertionError("the frame was closed from inside")


def spoken_everywhere(text: str) -> list[dict[str, Any]]:
    """The text as the user's, a call's, a command's, a path's, a result's and the assistant's."""
    made = [
        {"id": f"c{n}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for n, (name, arguments) in enumerate(
            [
                ("bash", json.dumps({"command": text})),
                ("write_file", json.dumps({"path": text})),
                ("apply_patch", json.dumps({"patch": text})),
                ("todo_write", json.dumps({"todos": [{"content": text}]})),
                ("raw", text),
            ]
        )
    ]
    return [
        {"role": "user", "content": text},
        {"role": "assistant", "content": text, "tool_calls": made},
        *({"role": "tool", "tool_call_id": call["id"], "content": text} for call in made),
        {"role": "user", "content": f"No, {text}"},
    ]


def answered(text: str) -> str:
    """The text as a model's answer: what is taken of it, or the text itself if it is refused."""
    try:
        return answers.accept(prompts.SummaryReply(text), [{"role": "user", "content": text}])
    except SummaryRejected:
        return text


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    assert messages
    assert plan
    assert static
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()
