"""Recorded coding sessions as turns of a real agent: with the steps of earlier turns, and without.

    python -m tests.benchmarks.turns --corpus FILE [--least 10000] [--path P] [--window 128000]

Each recorded session of at least `--least` tokens with calls in two turns or more is replayed: model
and tool return what was recorded. `keep_tool_steps` is off in one run and on in the other. Columns:
the share of earlier turns' results (of 200 characters or more) that a turn's first request holds
word for word; calls that repeat an earlier turn's call, and for how many of them the request holds
the earlier result; input tokens, uncached ones, calls of the summarizer, the price at three lists.
"fitting" sessions never reach the trigger, "longer" ones do; "short questions" is a conversation of
independent questions with one large result each.
"""

from __future__ import annotations

import itertools
import json
import logging
import random
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from praisonaiagents import ExecutionConfig

from praison_compressor.messages import text_of, tool_calls_of
from praison_compressor.testing import Asked, Call, Reply, Summarizer
from praison_compressor.tokens.models import cached_input_price, input_price
from tests.benchmarks.common import options, recorded, show, words
from tests.helpers import hosting

LONG = {"max_iter": 500, "max_tool_calls_per_turn": 5_000}
PRICED = ("gpt-4o", "claude-sonnet-4-5", "gemini-2.5-pro")
"""Models of three providers; their listed prices of fresh and cached input are taken."""
SHORT = "short questions"
FITS = 0.6
"""Share of the window below which a session is never compressed."""


@dataclass(frozen=True)
class Turn:
    """One recorded turn: a question, rounds of calls with their results, an answer."""

    question: str
    rounds: tuple[tuple[tuple[str, str, str], ...], ...]
    """For each round its calls: name, arguments, result."""
    answer: str


def turns_of(messages: Sequence[dict[str, Any]]) -> list[Turn]:
    """The turns of a recorded session."""
    found: list[Turn] = []
    starts = [i for i, m in enumerate(messages) if m["role"] == "user" and text_of(m).strip()]
    for start, end in itertools.pairwise([*starts, len(messages)]):
        part = messages[start + 1 : end]
        results = {m.get("tool_call_id"): text_of(m) for m in part if m["role"] == "tool"}
        calls = [tool_calls_of(m) for m in part if m["role"] == "assistant"]
        rounds = tuple(
            tuple((c.name, c.arguments, results.get(c.id, "")) for c in each)
            for each in calls
            if each
        )
        said = [text_of(m) for m in part if m["role"] == "assistant" and not tool_calls_of(m)]
        question = f"[{len(found)}] {text_of(messages[start])}"
        found.append(Turn(question, rounds, (said or ["Done."])[-1].strip() or "Done."))
    return found


def short_questions(turns: int = 20) -> list[Turn]:
    """Questions that have nothing to do with each other."""
    chance = random.Random(5)
    return [
        Turn(
            f"[{n}] What is {words(chance, 6)}?",
            ((("look_up", json.dumps({"topic": n}), words(chance, 700)),),),
            words(chance, 30),
        )
        for n in range(turns)
    ]


class Replay:
    """The model and the tool of a replayed session."""

    def __init__(self, turns: Sequence[Turn]) -> None:
        self.turns = turns
        self.number = 0

    def __call__(self, asked: Asked) -> Reply:
        turn, done = self.turns[self.number], self._done(asked)
        if not asked.tools or done >= len(turn.rounds):
            return Reply(turn.answer)
        return Reply(
            calls=tuple(
                Call(
                    "run",
                    {"tool": name, "arguments": given, "place": f"{self.number}/{done}/{k}"},
                    id=f"call_{self.number}_{done}_{k}_{asked.number}",
                )
                for k, (name, given, _) in enumerate(turn.rounds[done])
            )
        )

    def _done(self, asked: Asked) -> int:
        for message in reversed(asked.messages):
            found = re.match(r"call_(\d+)_(\d+)_", str(message.get("tool_call_id") or ""))
            if found and int(found[1]) == self.number:
                return int(found[2]) + 1
            if message.get("role") == "user":
                return 0
        return 0

    def run(self, tool: str, arguments: str, place: str) -> str:
        """Run a tool.

        Args:
            tool: its name
            arguments: what it is given, as JSON
            place: where it stands
        """
        turn, done, k = map(int, place.split("/"))
        return self.turns[turn].rounds[done][k][2] or "(nothing)"


@dataclass
class Figures:
    """What one run of a session came to."""

    held: int = 0
    results: int = 0
    repeated: int = 0
    in_view: int = 0
    tokens: int = 0
    cached: int = 0
    summaries: int = 0
    bad: int = 0

    def add(self, other: Figures) -> None:
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)

    def price(self, model: str) -> float:
        fresh, cached = input_price(model) or 0.0, cached_input_price(model) or 0.0
        return (self.tokens - self.cached) * fresh + self.cached * cached


def sample(result: str) -> str:
    """Words by which a result is found again, in any escaping; "" for a short one."""
    plain = re.sub(r"[^A-Za-z0-9]+", " ", result).strip()
    return plain[:200] if len(plain) >= 200 else ""


def figures(path: str, turns: Sequence[Turn], window: int, *, keeps: bool) -> Figures:
    """Replay a session."""
    replay, found = Replay(turns), Figures()
    with hosting.by_itself(replay, window) as provider:
        provider.route("aux", Summarizer())
        provider.set_window(window)
        made = hosting.agent(
            provider,
            path,
            hosting.context(provider, context_window=window, keep_tool_steps=keeps),
            tools=[replay.run],
            execution=ExecutionConfig(**LONG),
        )
        before: dict[tuple[str, str], str] = {}
        for number, turn in enumerate(turns):
            replay.number, count = number, len(provider.requests)
            made.chat(turn.question)
            sent = [r for r in provider.requests[count:] if r.model != "aux"]
            text = re.sub(r"(\\n|[^A-Za-z0-9])+", " ", sent[0].text) if sent else ""
            samples = [s for s in map(sample, before.values()) if s]
            found.results += len(samples)
            found.held += sum(each in text for each in samples)
            calls = [call for each in turn.rounds for call in each]
            again = [before[name, given] for name, given, _ in calls if (name, given) in before]
            found.repeated += sum(bool(sample(each)) for each in again)
            found.in_view += sum(bool(sample(each)) and sample(each) in text for each in again)
            before |= {(name, given): result for name, given, result in calls}
        requests = provider.requests
        found.tokens = sum(record.prompt_tokens for record in requests)
        found.cached = sum(record.cached_tokens for record in requests)
        found.summaries = len(provider.for_model("aux"))
        found.bad = sum(r.status != 200 or r.over_window for r in hosting.of_agent(provider))
    return found


def sessions(corpus: Path | None, least: int, window: int) -> dict[str, list[list[Turn]]]:
    """Return recorded sessions with calls in several turns, and the short questions."""
    chosen: dict[str, list[list[Turn]]] = {"fitting": [], "longer": [], SHORT: [short_questions()]}
    for one in recorded(corpus) if corpus else ():
        turns, tokens = turns_of(one["messages"]), one["meta"]["tokens_cl100k"]
        if tokens >= least and sum(bool(turn.rounds) for turn in turns) >= 2:
            chosen["fitting" if tokens < FITS * window else "longer"].append(turns)
    return {kind: found for kind, found in chosen.items() if found}


def rows(given: Any) -> Iterator[Sequence[object]]:
    """Two lines for each path and kind of session: without the steps, and with."""
    chosen = sessions(given.corpus, given.least, given.window)
    for path, (kind, each) in itertools.product(
        [given.path] if given.path else hosting.EVERY_PATH, chosen.items()
    ):
        for keeps in (False, True):
            total = Figures()
            for turns in each:
                total.add(figures(path, turns, given.window, keeps=keeps))
            yield (
                *(path, f"{kind} ({len(each)})", "kept" if keeps else "as the host"),
                f"{100 * total.held / max(1, total.results):.0f} % of {total.results}",
                f"{total.in_view} of {total.repeated}",
                *(total.tokens, total.tokens - total.cached, total.summaries, total.bad),
                *(f"{total.price(model):.2f}" for model in PRICED),
            )
        yield ()


def main() -> None:
    given = options(__doc__, corpus=Path, least=10_000, path=hosting.EVERY_PATH, window=128_000)
    logging.disable(logging.ERROR)
    warnings.simplefilter("ignore")
    columns = ("path", "sessions", "steps", "results in view", "repeated calls in view", "input")
    columns += ("uncached", "summaries", "refused", *(f"$ {name}" for name in PRICED))
    show("turns of recorded sessions", columns, rows(given))


if __name__ == "__main__":
    main()
