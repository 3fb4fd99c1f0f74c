"""A summarizer that misbehaves, over real HTTP: fault × expected × observed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from praison_compressor import CompressorConfig, ContextCompressor, Event
from praison_compressor.messages import check, text_of
from praison_compressor.summaries.litellm_client import LiteLLMSummarizer
from praison_compressor.testing import Asked, Failure, LocalProvider, Reply
from tests.helpers.misbehaving import Misbehaving
from tests.helpers.transcripts import session
from tests.hostile.invariants import refusal_of_anthropic, refusal_of_openai

POISON = "POISONED-TEXT"
"""In every bad answer that has words at all: it must turn up nowhere."""

STALLED = 3.0
"""Seconds to wait for what never comes; a good answer must come within it."""

GOOD = "## Done\nThe modules so far are in order, V-0003 among them."


@dataclass(frozen=True)
class Fault:
    """One way to misbehave and what should come of it."""

    name: str
    answer: Callable[[Asked], Any]
    reason: str
    """Words of the event that tells of it; empty where no event is due."""
    method: str = "static"
    """What stands in the view when there is no other model to ask."""
    calls: int = 1
    """Requests that the faulty model gets before it is left alone."""
    retries: int = 0
    seconds: float = 60.0
    """For one call: short only where nothing comes, for a busy machine is slow to answer too."""


@dataclass(frozen=True)
class Observed:
    """What came of it."""

    method: str | None
    reason: str
    calls: int
    calls_next_turn: int
    backup_method: str | None
    backup_model: str | None
    problems: tuple[str, ...]
    """What a provider would refuse in the views, and poison that was stored."""

    def row(self) -> tuple[Any, ...]:
        """What the table compares."""
        backup = f"{self.backup_method} by {self.backup_model}"
        return (self.method, self.calls, self.calls_next_turn, backup, self.problems)


def expected_row(fault: Fault) -> tuple[Any, ...]:
    """The row that the fault should give."""
    model = "aux" if fault.method == "model" else "backup"
    next_turn = 1 if fault.method == "model" else 0
    return (fault.method, fault.calls, next_turn, f"model by {model}", ())


def _plays(behaviour: Any, *more: Any) -> Callable[[Asked], Any]:
    return Misbehaving(behaviour, *more, text=f"{POISON} the earlier work went on.")


def _says(text: str, **options: Any) -> Callable[[Asked], Any]:
    return lambda asked: Reply(text, **options)


class _Once:
    """A failure the first time, a good answer ever after."""

    def __init__(self, failure: Failure) -> None:
        self._failures = [failure]

    def __call__(self, asked: Asked) -> Any:
        return self._failures.pop() if self._failures else Reply(GOOD)


ANOTHERS = f"""## Goal and constraints
Ship billing-service v2.14.0 with invoice_total fixed before 2031-05-17. {POISON}
## Files
cmd/billing/main_server.go, internal/ledger_sync.go, ticket BILL-48213, commit 9f8e7d6c5b4a"""


def faults() -> list[Fault]:
    """The table, with fresh answers."""
    error_text = f"Error: litellm.RateLimitError: 429 {POISON}"
    limited = Failure(429, "Rate limit reached.", "tokens", retry_after_seconds=0.02)
    return [
        Fault(
            "timeout", _says(f"{POISON} too late", delay_seconds=6), "no answer", seconds=STALLED
        ),
        Fault("connection reset", _plays("reset"), "aux:"),
        Fault("401", _plays("unauthorized"), "API key"),
        Fault("429 with retry-after, then well", _Once(limited), "", "model", 2, retries=1),
        Fault(
            "429 with retry-after, for ever",
            _plays("rate_limited"),
            "Rate limit",
            calls=2,
            retries=1,
        ),
        Fault("429 without retry-after", _plays("rate_limited_bare"), "Rate limit"),
        Fault("429 quota", _plays("quota"), "quota"),
        Fault("500", _plays("server_error"), "error while processing"),
        Fault("503 overloaded", _plays("overloaded"), "overloaded"),
        # Refused whole, and then the first part, alone, at each of two smaller sizes.
        Fault("400 context length", _plays("context"), "maximum context length", calls=3),
        Fault(
            "content filter",
            _says(f"{POISON} the first half", finish="content_filter"),
            "content_filter",
            calls=2,
        ),
        Fault("empty", _plays("empty"), "empty", calls=2),
        Fault("whitespace", _plays("whitespace"), "empty", calls=2),
        Fault("refusal", _says(f"I'm sorry, but I can't assist. {POISON}"), "refusal", calls=2),
        Fault("refusal in its own field", _plays("refusal_field"), "refusal", calls=2),
        Fault("error text as content", _says(error_text), "error text", calls=2),
        Fault("echo of the prompt", _plays("echo_prompt"), "echo", calls=2),
        Fault("ten times the target", _plays("verbose"), "repetition", calls=2),
        Fault("cut off by length", _plays("cut_off"), "cut off", calls=2),
        Fault("a tool call instead of text", _plays("tool_call"), "tool call", calls=2),
        Fault("reasoning only", _plays("thinking_only"), "empty", calls=2),
        Fault("reasoning that never closes", _plays("unclosed_reasoning"), "empty", calls=2),
        Fault("invalid UTF-8", _plays("invalid_utf8"), "aux:"),
        Fault("not JSON", _plays("not_json"), "aux:"),
        Fault("a stream that stalls", _plays("stall"), "no answer", seconds=STALLED),
        Fault("another conversation's summary", _says(ANOTHERS), "unrelated", calls=2),
    ]


def observe(fault: Fault) -> Observed:
    """Let it misbehave: with nobody to help, on the turn after, and with a second model."""
    with LocalProvider(window=128_000) as provider:
        provider.route("aux", fault.answer)
        provider.route("backup", lambda asked: Reply(GOOD))
        _warm(provider)
        events: list[Event] = []
        alone = _compressor(provider, fault, (), events)
        first = alone.compress_sync(session(20), session_id="s")
        calls = len(provider.for_model("aux"))
        # Not by force: who asks for it himself asks the model again, whatever it did before.
        later = alone.compress_sync(session(24), session_id="s")
        after = len(provider.for_model("aux")) - calls
        fresh = next(other for other in faults() if other.name == fault.name)
        provider.route("aux", fresh.answer)
        helped = _compressor(provider, fault, ("backup",), [])
        second = helped.compress_sync(session(20), session_id="s")
        stores = (alone.store, helped.store)
        kept = [e.segment for s in stores for e in s.open("default", "s").entries]
    texts = [text_of(segment.rendered) for segment in kept]
    problems = [f"stored: {POISON}" for text in texts if POISON in text]
    problems += [] if later.written else ["the next turn had nothing to write"]
    for view in (first.messages, later.messages, second.messages):
        problems += [str(p) for p in check(view)]
        problems += [p for p in (refusal_of_openai(view), refusal_of_anthropic(view)) if p]
    reasons = [str(event.data["reason"]) for event in events if event.name == "fell_back"]
    return Observed(
        first.summary_method,
        " ".join(reasons[:1]),
        calls,
        after,
        second.summary_method,
        second.segments[0].model,
        tuple(problems),
    )


def _warm(provider: LocalProvider) -> None:
    """One good call: litellm's first one loads modules for seconds, which are not the model's."""
    warm = LiteLLMSummarizer("backup", api_base=provider.base_url, context_window=128_000)
    asyncio.run(warm.summarize([{"role": "user", "content": "hello"}], max_tokens=100))


def _compressor(
    provider: LocalProvider, fault: Fault, fallbacks: tuple[str, ...], events: list[Event]
) -> ContextCompressor:
    config = CompressorConfig(
        model="gpt-4o",
        context_window=6_000,
        protect_last_n_tokens=1_000,
        auxiliary_model="aux",
        fallback_models=fallbacks,
        summary_max_retries=fault.retries,
        timeout_seconds=fault.seconds,
    )
    summarizer = LiteLLMSummarizer("aux", api_base=provider.base_url, context_window=128_000)
    return ContextCompressor(config, summarizer=summarizer, on_event=events.append)
