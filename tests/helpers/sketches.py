"""Make views for tests of plans from sketches, a word for each message."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from praison_compressor import Segment
from praison_compressor.messages import Message, digest, read_transcript
from praison_compressor.view.budget import Budget, Plan
from praison_compressor.view.plan import plan
from praison_compressor.view.renderer import ResultRenderer
from praison_compressor.view.view import Run, View
from tests.helpers.transcripts import call


def written(sketch: str) -> tuple[list[Message], list[int]]:
    """Return messages and tokens: `s10 u20 a30 c5 r9` is system, user, assistant, call, result."""
    messages: list[Message] = []
    for number, word in enumerate(sketch.split()):
        kind = word[0]
        if kind == "c":
            calls = [call(f"c{number}", "run")]
            messages.append({"role": "assistant", "content": None, "tool_calls": calls})
        elif kind == "r":
            messages.append({"role": "tool", "tool_call_id": f"c{number - 1}", "content": "done"})
        else:
            role = {"s": "system", "u": "user", "a": "assistant"}[kind]
            messages.append({"role": role, "content": f"message {number}"})
    return messages, [int(word[1:]) for word in sketch.split()]


def laid(sketch: str, *segments: tuple[int, int, int], head: int = 0) -> View:
    """Return a sketch's view; a segment is (start, end, tokens), of one message a mask."""
    messages, tokens = written(sketch)
    digests = [digest(message) for message in messages]
    recorded = [
        Segment(
            "summary" if end - start > 1 else "mask",
            tuple(digests[start:end]),
            {"role": "user", "content": f"for {start} to {end}"},
            size,
            sum(tokens[start:end]),
            "model",
        )
        for start, end, size in segments
    ]
    return View(read_transcript(messages), tuple(digests), tuple(tokens), tuple(recorded), head)


def budget(
    *, limit: int, trigger: int | None = None, target: int | None = None, **numbers: Any
) -> Budget:
    """Return a budget whose other numbers are 0; its marks are the limit if not given."""
    zero = ("tail_tokens", "head_tokens", "quote_tokens", "most_quote_tokens")
    nothing: dict[str, Any] = dict.fromkeys(zero, 0)
    nothing |= {"prose_tokens": 100, "fold_tokens": 1_000_000, "min_gain": 0}
    nothing |= {"trigger": limit if trigger is None else trigger}
    nothing |= {"target": limit if target is None else target}
    return Budget(limit=limit, **{**nothing, **numbers})


class Sizes(ResultRenderer):
    """A renderer for plans: tokens of masks by message; quotes fill their room."""

    def __init__(self, masks: Mapping[int, int] | None) -> None:
        self._masks = dict(masks or {})

    def measure_excerpts(self, view: View, budget: Budget) -> dict[int, Segment]:
        return {}

    def measure_masks(self, view: View, budget: Budget) -> dict[int, int]:
        return self._masks

    def measure_quotes(self, view: View, run: Run, most_tokens: int, budget: Budget) -> int:
        return most_tokens


def planned(
    view: View, given: Budget, masks: Mapping[int, int] | None = None, **flags: Any
) -> Plan | None:
    """Return the plan or None; `flags` are fields of the budget."""
    return plan(view, replace(given, **flags), Sizes(masks))
