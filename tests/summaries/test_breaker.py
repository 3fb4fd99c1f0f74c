"""A model that failed is not asked for a while, longer after each failure."""

import re
from collections import Counter

import pytest

from praison_compressor import SummarizerUnavailable
from praison_compressor.summaries.breaker import MOST_FAILURES, CircuitBreaker
from praison_compressor.testing import Failure, LocalProvider, Reply
from tests.helpers.compressing import at, compressor
from tests.helpers.transcripts import coding_turns


@pytest.mark.parametrize(
    ("kind", "rests"),
    [
        ("rejected", [60, 300, 900, 900]),
        ("quota", [300, 900, 900]),
        ("auth", [900, 900]),
        ("refused", [60, 300, 900, 900]),
    ],
)
def test_each_failure_in_a_row_rests_longer(kind, rests):
    """The kind of a failure and the failures before it decide the rest."""
    now = 0.0
    breaker = CircuitBreaker(lambda: now)
    for rest in rests:
        assert breaker.allows("s", "m", 1_000)
        assert breaker.record_failure("s", "m", 1_000, kind) == rest
        now += rest - 1
        assert not breaker.allows("s", "m", 1_000)
        now += 1
    assert breaker.allows("s", "m", 1_000)


@pytest.fixture
def tripped():
    """Return a breaker after one failure."""
    breaker = CircuitBreaker(lambda: 0.0)
    breaker.record_failure("s", "m", 1_000, "timeout")
    return breaker


def test_growth_by_half_releases_a_model(tripped):
    """A model is asked again when there is half as much more to summarize."""
    assert not tripped.allows("s", "m", 1_499)
    assert tripped.allows("s", "m", 1_500)


def test_a_success_releases_a_model(tripped):
    """After a success a model has no failure behind it."""
    tripped.record_success("s", "m")
    assert tripped.allows("s", "m", 1_000)
    assert tripped.record_failure("s", "m", 1_000, "timeout") == 60


def test_the_cooldowns_of_one_session_are_ended(tripped):
    """`end_cooldowns` ends those of its session alone."""
    tripped.record_failure("other", "m", 1_000, "timeout")
    tripped.end_cooldowns("s")
    assert [tripped.allows(session, "m", 1_000) for session in ("s", "other")] == [True, False]
    assert tripped.record_failure("s", "m", 1_000, "timeout") == 300


def test_a_failure_holds_no_other_session_or_model(tripped):
    """A failure holds only its own model in its own session."""
    assert tripped.allows("other", "m", 1_000)
    assert tripped.allows("s", "other", 1_000)


def test_a_breaker_remembers_a_bounded_number_of_failures(tripped):
    """A process that serves many sessions forgets the oldest failure."""
    assert not tripped.allows("s", "m", 1_000)
    for number in range(MOST_FAILURES):
        tripped.record_failure(f"s{number}", "m", 1, "auth")
    assert tripped.allows("s", "m", 1_000)


REFUSALS = [
    Failure(401, "Incorrect API key.", "authentication_error", "invalid_api_key"),
    Failure(400, "gone is not a valid model ID", "invalid_request_error"),
]


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda refusal: refusal.status)
def test_a_refusal_that_stays_is_asked_for_once(refusal, caplog):
    """A model with a lasting refusal is asked only once."""
    with LocalProvider(lambda asked: refusal) as provider:
        provider.route("there", lambda asked: Reply("## Done\nThe modules so far are in order."))
        options = {"auxiliary_model": "openai/gone", "fallback_models": ["openai/there"]}
        ours = at(provider, **options, context_window=6_000, summary_max_retries=2)
        talks = [coding_turns(steps) for steps in (10, 40, 80)]
        methods = [ours.compress_sync(talk, session_id="s").summary_method for talk in talks]
        asked = Counter(record.model for record in provider.requests)
    assert set(methods) == {"model"}
    assert asked == {"gone": 1, "there": 3}
    (logged,) = [text for text in caplog.messages if "not retried" in text]
    assert re.search(r"from openai/gone, not retried for \d+ s: ", logged)


def test_force_gives_a_resting_model_one_more_try():
    """`force` gives a resting model one more try."""
    asked = []

    async def down(messages):
        asked.append(1)
        raise SummarizerUnavailable("no such key", kind="auth")

    events = []
    ours = compressor(down, events.append)
    ours.compress_sync(coding_turns(20), session_id="s")
    events.clear()
    forced = ours.compress_sync(coding_turns(24), session_id="s", force=True)
    assert (len(asked), forced.summary_method) == (2, "static")
    reasons = [event.data["reason"] for event in events if event.name == "fell_back"]
    assert reasons == ["no such key"]
    ours.compress_sync(coding_turns(25), session_id="s")
    assert len(asked) == 2
