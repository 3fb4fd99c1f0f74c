"""Faults of a model over HTTP: a valid view, the right fallback, nothing bad stored, one bill."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from praison_compressor import ContextCompressor, Event
from praison_compressor.messages import check, text_of
from praison_compressor.summaries.litellm_client import LiteLLMSummarizer
from praison_compressor.testing import Asked, Failure, LocalProvider, Reply
from tests.helpers.compressing import compressor
from tests.helpers.misbehaving import BEHAVIOURS, Misbehaving
from tests.helpers.transcripts import session
from tests.hostile.invariants import refusals

POISON = "POISONED-TEXT"
"""In every bad answer that has words at all: it must turn up nowhere."""
GOOD = "## Done\nThe modules so far are in order, V-0003 among them."


@dataclass(frozen=True)
class Fault:
    """One way to misbehave: what is answered, and what should come of it."""

    name: str
    answer: Any
    """The text of a bad reply, a reply, or the name of a behaviour."""
    reason: str
    """Words in the event; empty where no event is due."""
    method: str = "static"
    """What stands in the view when there is no other model to ask."""
    calls: int = 2
    """Requests that the faulty model gets before it is left alone."""
    retries: int = 0
    seconds: float = 60.0
    """For one call: short only where nothing comes, for a busy machine is slow to answer too."""

    def answerer(self) -> Callable[[Asked], Any]:
        """Answers so, from the beginning."""
        if self.method == "model":  # the failure the first time, a good answer ever after
            answers = [self.answer]
            return lambda asked: answers.pop() if answers else Reply(GOOD)
        if isinstance(self.answer, str) and self.answer in BEHAVIOURS:
            return Misbehaving(self.answer, text=f"{POISON} the earlier work went on.")
        reply = Reply(self.answer) if isinstance(self.answer, str) else self.answer
        return lambda asked: reply


LATE = Reply(f"{POISON} too late", delay_seconds=4)
LIMITED = Failure(429, "Rate limit reached.", "tokens", retry_after_seconds=0.02)
FAULTS = (
    Fault("timeout", LATE, "timeout_seconds", calls=1, seconds=2),
    Fault("connection reset", "reset", "aux:", calls=1),
    Fault("429 with retry-after, then well", LIMITED, "", "model", 2, 1),
    Fault("429 with retry-after, for ever", "rate_limited", "Rate limit", "static", 2, 1),
    # Refused whole, and then the first part, alone, at each of two smaller sizes.
    Fault("400 context length", "context", "maximum context length", calls=3),
    Fault("a refusal in a field of its own", "refusal_field", "refusal"),
    Fault("cut off by length", "cut_off", "cut off"),
)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_summarizer_that_misbehaves(fault: Fault, provider: LocalProvider) -> None:
    """A misbehaving model gives a static text, or the next model's; no bad text is stored."""
    provider.set_window(128_000)
    provider.route("aux", fault.answerer())
    provider.route("backup", lambda asked: Reply(GOOD))
    aux = LiteLLMSummarizer("aux", api_base=provider.base_url, context_window=128_000)
    # litellm's first call loads modules for seconds, which are not the model's.
    hello = [{"role": "user", "content": "hello"}]
    asyncio.run(aux.summarize(hello, max_tokens=100, model="backup"))
    events: list[Event] = []

    def ours(**options: Any) -> ContextCompressor:
        limits = {"summary_max_retries": fault.retries, "timeout_seconds": fault.seconds}
        return compressor(aux, events.append, auxiliary_model="aux", **limits, **options)

    alone = ours()
    first = alone.compress_sync(session(20), session_id="s")
    calls = len(provider.for_model("aux"))
    # Not by force: who asks for it himself asks the model again, whatever it did before.
    later = alone.compress_sync(session(24), session_id="s")
    reasons = [str(event.data["reason"]) for event in events if event.name == "fell_back"]
    assert (first.summary_method, calls) == (fault.method, fault.calls)
    assert len(provider.for_model("aux")) - calls == (fault.method == "model")
    assert fault.reason.lower() in " ".join(reasons[:1]).lower()
    assert bool(reasons) == bool(fault.reason)
    assert later.written

    provider.route("aux", fault.answerer())
    helped = ours(fallback_models=("backup",))
    second = helped.compress_sync(session(20), session_id="s")
    by = "aux" if fault.method == "model" else "backup"
    assert (second.summary_method, second.segments[0].model) == ("model", by)

    kept = [entry.segment for each in (alone, helped) for entry in
            each.store.open("default", "s").entries]  # fmt: skip
    assert [text for segment in kept if POISON in (text := text_of(segment.rendered))] == []
    for view in (first.messages, later.messages, second.messages):
        assert check(view) == []
        assert refusals(view) == []
