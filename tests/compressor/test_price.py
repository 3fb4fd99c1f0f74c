"""Break-even: where prices are known, a compression at a mark has to pay."""

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from praison_compressor import CompressorConfig, ContextCompressor, Event
from praison_compressor.compressor.session_states import SessionStates
from praison_compressor.view.costs import Balance, Costs
from tests.helpers.compressing import Model, compressor
from tests.helpers.transcripts import coding_turns, find_repairs

SONNET = Costs(cached=0.3e-6, written=3.75e-6, summary_input=3e-6, summary_output=15e-6)


def priced(model: str, **options: Any) -> ContextCompressor:
    """Return a static compressor with masks off, so that only the prices of `model` decide."""
    return compressor(model=model, tool_policies={"*": "summarize"}, **options)


def test_the_sum_is_one_line():
    """A balance says what a compression costs now and saves at each later request."""
    assert str(Balance(0.0214, 0.0042, None)) == (
        "compressing now costs $0.0214, saves $0.0042 a request"
    )
    assert str(Balance(-0.3, 4.2e-4, 3)) == "compressing now saves $0.3000, saves $0.0004 a request"


def test_a_compression_costs_its_summary_and_what_is_read_again():
    """With a warm cache a compression costs its summary and the new view, written again."""
    warm = SONNET.balance(freed=40_000, reread=50_000, read=60_000, prose=750)
    assert warm.cost == pytest.approx(60_000 * 3e-6 + 750 * 15e-6 + 50_000 * 3.45e-6)
    assert warm.saving == pytest.approx(40_000 * 0.3e-6)


def test_with_a_cold_cache_a_compression_saves_what_it_frees():
    """With a cold cache a compression pays by the price of the freed tokens."""
    cold = Costs(0.3e-6, 3.75e-6, is_cold=True).balance(freed=40_000, reread=50_000)
    assert cold.cost == pytest.approx(-40_000 * 3.75e-6)
    dear = replace(SONNET, growth=9_000.0, is_cold=True).balance(4_000, 9_000, 60_000, 750)
    assert (dear.cost > 0, dear.pays) == (True, True)
    slow = Costs(0.3e-6, 3.75e-6, cold_share=1.0).balance(freed=40_000, reread=0)
    assert slow.saving == pytest.approx(40_000 * 3.75e-6)


def test_half_of_the_requests_that_added_the_freed_tokens_count():
    """A compression has to pay within half of the requests that added the freed tokens."""
    assert Costs(0.3e-6, 3.75e-6, growth=500.0).balance(freed=10_000, reread=0).requests == 10


@given(st.integers(1, 10**6), st.integers(0, 10**6), st.integers(1, 10**5))
def test_a_slower_session_pays_where_a_faster_one_does(freed, again, growth):
    """The fewer tokens a request adds, the more requests a compression serves."""
    fast = Costs(0.3e-6, 3.75e-6, growth=2 * growth).balance(freed, again)
    slow = Costs(0.3e-6, 3.75e-6, growth=growth).balance(freed, again)
    assert slow.pays >= fast.pays


def test_the_rule_is_the_cheapest_schedule_of_a_steady_session():
    """With steady growth no other size at which to compress costs 2 % less over many requests."""
    low, growth, fixed = 40_000, 500, 0.05
    costs = Costs(cached=0.3e-6, written=3.75e-6, growth=growth)

    def bill(is_due: Any) -> float:
        size, spent = low, 0.0
        for _ in range(20_000):
            size += growth
            if is_due(size):
                spent += fixed + low * (costs.written - costs.cached)
                size = low
            spent += size * costs.cached + growth * costs.written
        return spent

    def by_rule(size: int) -> bool:
        found = costs.balance(size - low, low)
        return Balance(found.cost + fixed, found.saving, found.requests).pays

    best = min(bill(lambda size, at=at: size >= at) for at in range(42_000, 200_000, 2_000))
    assert bill(by_rule) <= 1.02 * best


def growing(words: int) -> Iterator[list[Any]]:
    """Yield the requests of a growing session; each turn has `words` words."""
    messages = coding_turns(2)
    for n in range(200):
        done = {"role": "assistant", "content": f"Step {n} is done. " + "lorem " * words}
        messages = [*messages, done, {"role": "user", "content": f"Go on with step {n + 1}."}]
        yield messages


def grown(ours: ContextCompressor, words: int) -> list[tuple[int, str]]:
    """Return size and status of each request until the first compression."""
    found = []
    for messages in growing(words):
        result = ours.compress_sync(messages, session_id="s")
        assert find_repairs(result.messages) == []
        found.append((result.tokens_before, result.context_status))
        if result.context_status != "full":
            break
    return found


@pytest.mark.parametrize(("model", "waits"), [("claude-sonnet-4-5", True), ("unlisted-1", False)])
def test_a_compression_that_pays_too_late_waits(model, waits):
    """A compression waits, with one event, if its prices say that it pays too late."""
    events: list[Event] = []
    sizes = grown(ContextCompressor(priced(model).config, on_event=events.append), 150)
    assert [e.data["reason"] for e in events if e.name == "skipped"] == ["price"] * waits
    above = [size for size, status in sizes if size > 3_600 and status == "full"]
    assert bool(above) == waits
    assert sizes[-1][1] == "summarized"
    assert max(size for size, status in sizes if status == "full") <= 4_500


@pytest.mark.parametrize(("model", "waits"), [("claude-sonnet-4-5", True), ("unlisted-1", False)])
def test_in_the_background_a_summary_waits_too(model, waits):
    """Above the soft mark, too, no summary is begun that pays too late."""
    asked = Model()
    config = priced(model, background=True, auxiliary_model="gpt-4o").config
    ours = ContextCompressor(config, summarizer=asked)
    for messages in growing(150):
        size = ours.compress_sync(messages, session_id="s").tokens_before
        assert ours.wait_for_summaries(30)
        if asked.requests:
            break
    assert (size > 3_700) == waits


def test_without_a_cache_a_request_saves_at_the_full_price():
    """Once the provider's reports show no cached input, a compression at the mark pays."""
    ours, sizes = priced("claude-sonnet-4-5"), []
    for messages in itertools.islice(growing(150), 40):
        result = ours.compress_sync(messages, session_id="s")
        ours.record_usage(
            {"prompt_tokens": result.tokens_after, "completion_tokens": 9}, session_id="s"
        )
        sizes.append((result.tokens_after, result.context_status))
    assert max(size for size, _ in sizes) <= 3_700
    assert sizes[-1][1] == "summarized"


def test_at_the_mark_a_slow_session_is_compressed():
    """A compression that pays before the view is as large again is done at the trigger."""
    sizes = grown(priced("claude-sonnet-4-5"), 3)
    assert [size for size, status in sizes if size > 3_700 and status == "full"] == []


def test_without_a_pace_a_compression_at_the_mark_is_done():
    """A session's first request above the trigger is compressed."""
    ours = priced("claude-sonnet-4-5")
    assert ours.compress_sync(coding_turns(30), session_id="s").context_status == "summarized"


def test_a_pace_is_known_after_four_requests():
    """The requests whose saving counts are known once a session had four requests."""
    ours, known = priced("claude-sonnet-4-5"), []
    for messages in itertools.islice(growing(150), 6):
        shown = ours.preview(messages, session_id="s", target_tokens=1_000)
        known.append(shown.balance.requests is not None)
        ours.compress_sync(messages, session_id="s")
    assert known == [False] * 4 + [True] * 2


def test_the_pace_is_a_moving_average():
    """A request weighs a quarter in the pace if it is longer than the last one."""
    states, key = SessionStates(), ("default", "s")
    result = compressor().compress_sync(coding_turns(1))
    paces = []
    for size in (1_000, 1_100, 1_500, 1_400):
        states.record_sizes(key, replace(result, tokens_before=size))
        paces.append(states.state(key).growth_tokens)
    assert paces == [0, 100, 175, 175]


@pytest.mark.parametrize("asked", [{"force": True}, {"target_tokens": 3_000}])
def test_a_requested_compression_asks_for_no_price(asked):
    """`force` and `target_tokens` compress where a plain request waits for a better price."""
    events: list[Event] = []
    ours = ContextCompressor(priced("claude-sonnet-4-5").config, on_event=events.append)
    requests = growing(150)
    while not any(event.name == "skipped" for event in events):
        ours.compress_sync(messages := next(requests), session_id="s")
    assert ours.compress_sync(messages, session_id="s", **asked).written


def test_a_preview_shows_the_sum():
    """`preview` has a balance where it has a plan and a price."""
    ours = priced("claude-sonnet-4-5")
    assert "compressing now" in str(ours.preview(coding_turns(30), force=True).balance)
    assert ours.preview(coding_turns(2)).balance is None
    assert priced("unlisted-1").preview(coding_turns(30), force=True).balance is None
    config = CompressorConfig(model="claude-sonnet-4-5", context_window=6_000)
    own = ContextCompressor(config, summarizer=Model())  # its price is unknown
    assert own.preview(coding_turns(30), force=True).balance is None
