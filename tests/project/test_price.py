"""The price benchmark's cache and its schedule by hindsight."""

from __future__ import annotations

from dataclasses import replace

import pytest

from praison_compressor import CompressorConfig
from praison_compressor.view.budget import Budget
from tests.benchmarks.price.hindsight import Course, cheapest
from tests.benchmarks.price.prices import Provider, Run, Session, dollars

AT = Provider("here", "m", seconds=300, read=1, write=10, fresh=10, output=50)


@pytest.fixture(scope="module")
def talk() -> Session:
    """Return two turns; the first message is longer than the least cached prefix."""
    texts = ("word " * 2_000, "Yes.", "And then?", "No.", "Why?")
    messages = [
        {"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(texts)
    ]
    return Session("talk", messages)


def test_a_warm_prefix_costs_reads_and_the_rest_writes(talk: Session) -> None:
    """After a pause longer than the cache's life all of it is written again."""
    run = Run([[0, 1, 2], [0, 1, 2, 3, 4]])
    first, second = talk.size([0, 1, 2]), talk.size([3, 4])
    assert dollars(talk, run, [0, 300], AT) == 10 * first + first + 10 * second
    assert dollars(talk, run, [0, 301], AT) == 10 * first + 10 * (first + second)


def test_what_no_view_text_or_archive_has_is_lost(talk: Session) -> None:
    """A message that a summarizer read is not lost, and a text in the view counts for the rest."""
    run = Run([[0, 4]], represented={1})
    assert talk.lost(run) == talk.size([2, 3])
    assert talk.lost(Run([[0, 1, 2, 3, 4]])) == 0


def test_a_changed_or_a_short_prefix_is_not_cached(talk: Session) -> None:
    """Providers cache a prefix of 1,024 tokens or more."""
    for run in (Run([[0, 1], [2, 1]]), Run([[2, 3], [2, 3, 4]])):
        written = sum(map(talk.size, run.requests))
        assert dollars(talk, run, [0, 5], AT) == 10 * written


def course(cold: int = -1) -> Course:
    """Return a course of 40 requests of 400 tokens; the cache is cold at one of them."""
    budget = Budget.of(CompressorConfig(output_reserve=0), 16_000)
    sizes = [2_000 + 400 * n for n in range(40)]
    return Course(sizes, [n != cold for n in range(40)], 500, 600, 500, budget)


@pytest.mark.parametrize("cold", [-1, 5, 22, 38])
def test_hindsight_uses_what_it_may(cold: int) -> None:
    """More depths cost no more, and a free model saves money."""
    free, one = replace(AT, fresh=0, output=0), course(cold)
    assert cheapest(one, AT, at_any_depth=True) <= cheapest(one, AT, at_any_depth=False)
    assert cheapest(one, free, at_any_depth=False) < cheapest(one, AT, at_any_depth=False)


def test_a_cold_cache_in_the_middle_is_the_best_moment_of_all() -> None:
    """What has to be written again anyway is written shorter."""
    best = cheapest(course(cold=22), AT, at_any_depth=True)
    assert cheapest(course(cold=22), AT, at_any_depth=False) == best
