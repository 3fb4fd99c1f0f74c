"""Over many turns: details of earlier turns are found, random edits leave no orphan step."""

from __future__ import annotations

import hashlib
import itertools
import random
import re
from typing import Any

import pytest
from praisonaiagents import ExecutionConfig

from praison_compressor.ledger.recall import SEARCH
from praison_compressor.messages import text_of
from praison_compressor.testing import Asked, Call, LocalProvider, Reply
from tests.helpers.hosting import (
    EVERY_PATH,
    OPENAI,
    WORDS,
    agent,
    context,
    of_agent,
)

LONG = ExecutionConfig(max_iter=100, max_tool_calls_per_turn=500)
TURNS, CALLS = 10, 8


def detail(number: int, nth: int) -> str:
    """A value that nobody can guess."""
    return hashlib.sha256(f"{number}/{nth}".encode()).hexdigest()[:12]


def measure(place: str, number: int, nth: int) -> str:
    """Measure a place.

    Args:
        place: what to measure
        number: of the turn
        nth: of the call
    """
    return f"{WORDS * 6} The gauge G-{number}-{nth} reads {detail(number, nth)}. {WORDS * 6}"


class Surveyor:
    """A model that makes eight calls in a turn, and needs one reading of the turn before."""

    def __init__(self, at_once: int = 1) -> None:
        self.at_once = at_once
        """Calls in a round."""
        self.found: list[str] = []

    def __call__(self, asked: Asked) -> Reply:
        number = max(map(int, re.findall(r"Turn (\d+): measure", asked.text)))
        done = self._done(asked, number)
        if number and not done and len(self.found) < number:
            wanted = f"G-{number - 1}-{number % CALLS}"
            seen = re.search(rf"{wanted} reads (\w+)", asked.text)
            last, names = asked.messages[-1], [t["function"]["name"] for t in asked.tools]
            if seen is None and SEARCH in names and last["role"] != "tool":
                return Reply(calls=(Call(SEARCH, {"query": wanted}),))
            self.found.append(seen[1] if seen else "not found")
        coming = range(done, min(done + self.at_once, CALLS))
        given = [{"place": f"p{n}", "number": number, "nth": n} for n in coming]
        calls = [Call("measure", each, id=f"call_{number}_{each['nth']}") for each in given]
        return (
            Reply(calls=tuple(calls)) if calls else Reply(f"Measured {number}. " + "Noted. " * 10)
        )

    def _done(self, asked: Asked, number: int) -> int:
        ids = re.findall(rf"call_{number}_(\d+)", str(asked.messages))
        return max(map(int, ids), default=-1) + 1


@pytest.mark.parametrize("window", [8_000, 64_000])
def test_each_turn_finds_a_detail_of_the_turn_before(host: LocalProvider, window: int) -> None:
    """Ten turns of eight calls: 10 of 10 in view or by recall, and no tool is called again."""
    model = Surveyor()
    host.answer_with(model)
    host.set_window(window)
    made = agent(
        host, OPENAI, context(host, context_window=window), tools=[measure], execution=LONG
    )
    for number in range(TURNS + 1):
        made.chat(
            f"Turn {number}: measure all places, and name reading {number % CALLS} of before."
        )
    assert model.found == [detail(n - 1, n % CALLS) for n in range(1, TURNS + 1)]
    assert [r.error for r in of_agent(host) if r.status != 200] == []
    calls = [
        c for r in of_agent(host) for c in getattr(r.answer, "calls", ()) if c.name == "measure"
    ]
    assert len(calls) == (TURNS + 1) * CALLS


# ------------------------------------------------------------ edits at random


def steps_of(record: Any) -> set[int]:
    """The numbers of the turns whose steps a request carries."""
    said = " ".join(text_of(m) for m in record.messages if m.get("role") == "tool")
    return {int(number) for number in re.findall(r"G-(\d+)-", said)}


@pytest.mark.parametrize("path", EVERY_PATH)
def test_no_step_of_an_edited_exchange_is_sent(host: LocalProvider, path: str) -> None:
    """Seventy-five random edits of the history between turns: steps are kept or gone with them."""
    chosen = random.Random(path)
    host.set_window(200_000)
    made = agent(host, path, context(host, context_window=200_000), tools=[measure], execution=LONG)
    for number in range(75):
        given = [{"place": "p", "number": number, "nth": n} for n in range(2)]
        host.answer_with(
            [
                Reply(calls=tuple(Call("measure", each) for each in given)),
                f"Answer {number}, and all is measured as it should be.",
            ]
        )
        made.chat(f"Question {number}: what do the gauges of this place read today?")
        first = [
            r for r in of_agent(host) if text_of(r.messages[-1]).startswith(f"Question {number}:")
        ]
        assert steps_of(first[0]) <= whole(made.chat_history)
        edit(made.chat_history, chosen)
    assert len(steps_of(of_agent(host)[-1])) > 3


def whole(history: list[dict[str, Any]]) -> set[int]:
    """The turns whose question and answer stand side by side in a history."""
    said = [m["content"] for m in history]
    pairs = itertools.pairwise(said)
    found = [
        re.findall(r"^Question (\d+): .*today\?\nAnswer (\d+), .*be\.$", f"{a}\n{b}")
        for a, b in pairs
    ]
    return {int(q) for each in found for q, a in each if q == a}


def edit(history: list[dict[str, Any]], chosen: random.Random) -> None:
    """Delete a message or an exchange, or change a message."""
    place, kind = chosen.randrange(len(history)), chosen.randrange(4)
    if kind == 0 and place:  # providers want a user's message first
        del history[place]
    elif kind == 1:
        history[place] = {**history[place], "content": history[place]["content"] + " (edited)"}
    elif kind == 2:
        del history[place - place % 2 : place - place % 2 + 2]
