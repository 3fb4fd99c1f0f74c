"""Replay recorded coding sessions as turns of a real agent, without and with `keep_tool_steps`.

    python -m tests.benchmarks.turns --corpus FILE [--least 10000] [--path P] [--window 128000]
    python -m tests.benchmarks.turns --script [--path P]

Each recorded session of at least `--least` tokens with calls in two turns or more is replayed:
model and tool return what was recorded. Columns: the share of earlier turns' results (of 200
characters or more) that a turn's first request holds word for word; calls that repeat an earlier
turn's call, and for how many of them the request holds the earlier result; input tokens, uncached
ones, calls of the summarizer, refused requests, the price at three lists. "fitting" sessions never
reach the trigger, "longer" ones do; "short questions" is a conversation of independent questions
with one large result each. `--script` is ten turns of eight calls. Each turn needs a reading of the
turn before, found in view or by recall.
"""

import itertools
import json
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from praison_compressor.messages import text_of, tool_calls_of
from praison_compressor.testing import Asked, Call, Reply
from praison_compressor.tokens.models import prices_of
from tests.benchmarks.common import faults, options, read_sessions, show, silence_host, words
from tests.helpers import hosting
from tests.helpers.surveying import CALLS, TURNS, Surveyor, detail, measure

PRICED = ("gpt-4o", "claude-sonnet-4-5", "gemini-2.5-pro")
"""Models of three providers, at their listed prices of fresh and cached input."""
SHORT = "short questions"
FITS = 0.6
"""Share of the window below which a session is never compressed."""
COLUMNS = ["path", "sessions", "steps", "results in view", "repeated calls in view", "input"]
COLUMNS += ["uncached", "summaries", "refused", *(f"$ {name}" for name in PRICED)]


@dataclass(frozen=True)
class Turn:
    """One recorded turn: a question, rounds of calls with their results, an answer."""

    question: str
    rounds: tuple[tuple[tuple[str, str, str], ...], ...]
    """For each round its calls: name, arguments, result."""
    answer: str


def turns_of(messages: Sequence[dict[str, Any]]) -> list[Turn]:
    """Return the turns of a recorded session."""
    turns: list[Turn] = []
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
        question = f"[{len(turns)}] {text_of(messages[start])}"
        turns.append(Turn(question, rounds, (said or ["Done."])[-1].strip() or "Done."))
    return turns


def short_questions(turns: int = 20) -> list[Turn]:
    """Return questions that have nothing to do with each other."""
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
        place = f"{self.number}_{done}"
        calls = enumerate(turn.rounds[done])
        return Reply(
            calls=tuple(
                Call(
                    "run",
                    {"tool": name, "arguments": arguments, "place": f"{place}_{k}"},
                    id=f"call_{place}_{k}_{asked.number}",
                )
                for k, (name, arguments, _) in calls
            )
        )

    def _done(self, asked: Asked) -> int:
        """Return how many rounds of the present turn the request holds."""
        for message in reversed(asked.messages):
            match = re.match(r"call_(\d+)_(\d+)_", str(message.get("tool_call_id") or ""))
            if match and int(match[1]) == self.number:
                return int(match[2]) + 1
            if message.get("role") == "user":
                break
        return 0

    def run(self, tool: str, arguments: str, place: str) -> str:
        """Run a tool.

        Args:
            tool: its name
            arguments: its arguments, as JSON
            place: its place in the recording
        """
        turn, done, k = map(int, place.split("_"))
        return self.turns[turn].rounds[done][k][2] or "(nothing)"


@dataclass
class Figures:
    """The sums of some replays."""

    held: int = 0
    results: int = 0
    repeated: int = 0
    in_view: int = 0
    tokens: int = 0
    cached: int = 0
    summaries: int = 0
    bad: int = 0

    def price(self, model: str) -> float:
        """Return the price of the input at a model's list."""
        prices = prices_of(model)
        fresh, cached = prices.input or 0.0, prices.cached or 0.0
        return (self.tokens - self.cached) * fresh + self.cached * cached

    def compare(self, turn: Turn, before: dict[tuple[str, str], str], request: str) -> None:
        """Count the earlier results that a turn's first request holds."""
        text = re.sub(r"(\\n|[^A-Za-z0-9])+", " ", request)
        samples = [found for found in map(sample, before.values()) if found]
        self.results += len(samples)
        self.held += sum(each in text for each in samples)
        calls = ((name, arguments) for each in turn.rounds for name, arguments, _ in each)
        again = [sample(before[call]) for call in calls if call in before]
        self.repeated += sum(map(bool, again))
        self.in_view += sum(bool(each) and each in text for each in again)


def sample(result: str) -> str:
    """Return words that find a result again, in any escaping; "" for a short one."""
    plain = re.sub(r"[^A-Za-z0-9]+", " ", result).strip()
    return plain[:200] if len(plain) >= 200 else ""


def replay(path: str, turns: Sequence[Turn], window: int, total: Figures, *, keeps: bool) -> None:
    """Replay a session; add its figures to the total."""
    model = Replay(turns)
    with hosting.by_itself(model, window) as provider:
        ours = hosting.context(provider, context_window=window, keep_tool_steps=keeps)
        made = hosting.agent(provider, path, ours, tools=[model.run], execution=hosting.LONG)
        before: dict[tuple[str, str], str] = {}
        for model.number, turn in enumerate(turns):
            count = len(provider.requests)
            made.chat(turn.question)
            sent = [r for r in provider.requests[count:] if r.model != "aux"]
            total.compare(turn, before, sent[0].text if sent else "")
            before |= {(name, args): r for each in turn.rounds for name, args, r in each}
        total.tokens += sum(record.prompt_tokens for record in provider.requests)
        total.cached += sum(record.cached_tokens for record in provider.requests)
        total.summaries += len(provider.for_model("aux"))
        total.bad += sum(faults(hosting.of_agent(provider)))


def sessions(corpus: Path | None, least: int, window: int) -> dict[str, list[list[Turn]]]:
    """Return recorded sessions with calls in several turns, and the short questions."""
    chosen: dict[str, list[list[Turn]]] = {"fitting": [], "longer": [], SHORT: [short_questions()]}
    for one in read_sessions(corpus) if corpus else ():
        turns, tokens = turns_of(one["messages"]), one["meta"]["tokens_cl100k"]
        if tokens >= least and sum(bool(turn.rounds) for turn in turns) >= 2:
            chosen["fitting" if tokens < FITS * window else "longer"].append(turns)
    return {kind: listed for kind, listed in chosen.items() if listed}


def rows(args: Any) -> Iterator[Sequence[object]]:
    """Yield two lines for each path and kind of session: without the steps, and with."""
    chosen = sessions(args.corpus, args.least, args.window)
    for path, (kind, each) in itertools.product(args.path, chosen.items()):
        for keeps in (False, True):
            total = Figures()
            for turns in each:
                replay(path, turns, args.window, total, keeps=keeps)
            yield (
                *(path, f"{kind} ({len(each)})", "kept" if keeps else "as the host"),
                f"{100 * total.held / max(1, total.results):.0f} % of {total.results}",
                f"{total.in_view} of {total.repeated}",
                *(total.tokens, total.tokens - total.cached, total.summaries, total.bad),
                *(f"{total.price(model):.2f}" for model in PRICED),
            )
        yield ()


def scripted(path: str, mode: str, window: int) -> tuple[object, ...]:
    """Return what ten turns of eight calls found of the turn before."""
    one_round = path == hosting.OPENAI and "stream" in mode  # the host runs no second one
    model = Surveyor(CALLS if one_round else 1)
    with hosting.by_itself(model, window) as provider:
        ours = hosting.context(provider, context_window=window)
        made = hosting.agent(provider, path, ours, tools=[measure], execution=hosting.LONG)
        for n in range(TURNS + 1):
            hosting.MODES[mode](
                made, [f"Turn {n}: measure all, name reading {n % CALLS} of before."]
            )
        bad, summaries = sum(faults(hosting.of_agent(provider))), len(provider.for_model("aux"))
    wanted = [detail(n - 1, n % CALLS) for n in range(1, TURNS + 1)]
    right = sum(one == other for one, other in zip(model.found, wanted, strict=True))
    return (path, mode, window, f"{right} of {TURNS}", bad, summaries)


def main() -> None:
    chosen: dict[str, Any] = {"path": hosting.EVERY_PATH, "window": 128_000, "script": False}
    args = options(__doc__, corpus=Path, least=10_000, **chosen)
    silence_host()
    if not args.script:
        show("turns of recorded sessions", COLUMNS, rows(args))
        return
    cells = itertools.product(args.path, hosting.MODES, (8_000, 64_000))
    columns = ("path", "mode", "window", "readings found", "refused", "summaries")
    show("ten turns of eight calls", columns, (scripted(*cell) for cell in cells))


if __name__ == "__main__":
    main()
