"""The breaker: a model that failed is left alone, longer each time, unless much has changed."""

from __future__ import annotations

import pytest

from praison_compressor import CompressorConfig, ContextCompressor, SummarizerUnavailable
from praison_compressor.summaries.retries import REMEMBERED, Breaker
from tests.helpers.transcripts import session, step


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize(
    ("kind", "rests"),
    [
        ("timeout", [60, 300, 900, 900]),
        ("provider", [60, 300, 900, 900]),
        ("rejected", [60, 300, 900, 900]),
        ("quota", [300, 900, 900]),
        ("auth", [900, 900]),
    ],
)
def test_each_failure_in_a_row_rests_longer(kind, rests):
    """60, 300, 900 s; what no short wait mends starts further on."""
    clock = Clock()
    breaker = Breaker(clock)
    for rest in rests:
        assert breaker.allows("s", "m", 1_000)
        assert breaker.failed("s", "m", 1_000, kind) == rest
        clock.now += rest - 1
        assert not breaker.allows("s", "m", 1_000)
        clock.now += 1
    assert breaker.allows("s", "m", 1_000)


def test_a_success_forgets_the_failures():
    """The next failure is a first one."""
    breaker = Breaker(Clock())
    breaker.failed("s", "m", 1_000, "timeout")
    breaker.failed("s", "m", 1_000, "timeout")
    breaker.succeeded("s", "m")
    assert breaker.allows("s", "m", 1_000)
    assert breaker.failed("s", "m", 1_000, "timeout") == 60


def test_growth_releases():
    """Half as much again is worth another try, however long the cooldown."""
    breaker = Breaker(Clock())
    breaker.failed("s", "m", 1_000, "auth")
    assert not breaker.allows("s", "m", 1_499)
    assert breaker.allows("s", "m", 1_500)


def test_stretches_of_one_compression_fail_once():
    """Kept outputs divide the middle: one request, one failure of 60 s, not of 900."""
    asked = []

    async def down(messages):
        asked.append(1)
        raise SummarizerUnavailable("503", kind="timeout")

    clock, events = Clock(), []
    config = CompressorConfig(
        model="gpt-4o",
        context_window=16_000,
        protect_last_n_tokens=1_000,
        tool_policies={"ask": "keep"},
    )
    ours = ContextCompressor(config, summarizer=down, on_event=events.append)
    ours._pipeline.writing.breaker = Breaker(clock)
    kept = step("k", "The expert says so. " * 30, name="ask")
    turns = [session(10), session(10), session(10)]
    messages = [m for turn in turns for m in [*turn[turn is not turns[0] :], *kept]]
    result = ours.compress_sync([*messages, {"role": "user", "content": "And?"}], session_id="s")
    assert [text.method for text in result.written] == ["static"] * 3
    assert len(asked) == 1
    assert not ours._pipeline.writing.breaker.allows("s", None, 1)
    clock.now = 60.0
    assert ours._pipeline.writing.breaker.allows("s", None, 1)


def test_models_and_sessions_rest_apart():
    """One conversation's trouble is not another's; a fallback is still asked."""
    breaker = Breaker(Clock())
    breaker.failed("s", "m", 1_000, "timeout")
    assert breaker.allows("other", "m", 1_000)
    assert breaker.allows("s", "other", 1_000)


def test_it_remembers_a_bounded_number():
    """A process that serves many sessions for long does not grow."""
    breaker = Breaker(Clock())
    for number in range(REMEMBERED + 1):
        breaker.failed(f"s{number}", "m", 1, "auth")
    assert breaker.allows("s0", "m", 1)
    assert not breaker.allows("s1", "m", 1)


def test_a_resting_model_is_not_asked_and_the_turn_goes_on():
    """The static summary meanwhile; once rested and grown it is asked again."""
    asked = []

    async def down(messages):
        asked.append(1)
        raise SummarizerUnavailable("503", kind="timeout")

    clock, events = Clock(), []
    config = CompressorConfig(model="gpt-4o", context_window=6_000, protect_last_n_tokens=1_000)
    ours = ContextCompressor(config, summarizer=down, on_event=events.append)
    ours._pipeline.writing.breaker = Breaker(clock)
    assert ours.compress_sync(session(20), session_id="s").summary_method == "static"
    assert len(asked) == 1
    assert ours.compress_sync(session(24), session_id="s").summary_method == "static"
    assert len(asked) == 1
    assert "skipped" in [event.name for event in events]
    clock.now = 60.0
    ours.compress_sync(session(40), session_id="s")
    assert len(asked) == 2


@pytest.mark.parametrize("kind", ["timeout", "auth"])
def test_a_person_who_asks_is_not_told_to_wait(kind):
    """`force` asks a resting model once more; what it fails of is told, and it rests again."""
    asked = []

    async def down(messages):
        asked.append(1)
        raise SummarizerUnavailable("no such key", kind=kind)

    events = []
    config = CompressorConfig(model="gpt-4o", context_window=6_000, protect_last_n_tokens=1_000)
    ours = ContextCompressor(config, summarizer=down, on_event=events.append)
    ours._pipeline.writing.breaker = Breaker(Clock())
    ours.compress_sync(session(20), session_id="s")
    events.clear()
    forced = ours.compress_sync(session(24), session_id="s", force=True)
    assert (len(asked), forced.summary_method) == (2, "static")
    reasons = [event.data["reason"] for event in events if event.name == "fell_back"]
    assert reasons == ["no such key"]
    ours.compress_sync(session(25), session_id="s")
    assert len(asked) == 2


def test_a_forced_success_lets_the_model_write_again():
    """Once it answers, later turns need no force."""
    answers = [SummarizerUnavailable("gone", kind="auth"), "## Done\nAll modules are in order."]

    async def model(messages):
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    config = CompressorConfig(model="gpt-4o", context_window=6_000, protect_last_n_tokens=1_000)
    ours = ContextCompressor(config, summarizer=model)
    methods = [
        ours.compress_sync(session(size), session_id="s", force=force).summary_method
        for size, force in ((20, False), (24, False), (26, True), (50, False))
    ]
    assert methods == ["static", "static", "model", "model"]
