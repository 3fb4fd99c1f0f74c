"""Kill a program with an agent and run it again; count what is paid twice or lost.

    python -m tests.benchmarks.restarts [--path P] [--mode M] [--kept K] [--kills N]

Each row is one conversation of a program that is killed by SIGKILL, every other time in the middle
of a turn, and one of a program that is not. Columns: kills; turns that were answered; calls of the
summarizer where nothing was killed and where it was; new segments of messages that the ledger had
before the kill; answered questions that neither the last request nor the archive has; results of
their turns that neither has; questions and results that stand twice in one request; requests that
the provider refused.
"""

import contextlib
import itertools
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from praison_compressor import open_store
from praison_compressor.ledger.segments import segments_in_force
from praison_compressor.messages import text_of
from praison_compressor.testing import Asked, LocalProvider, Worker
from tests.benchmarks.common import options, show, silence_host
from tests.helpers import hosting
from tests.helpers.restarting import KEPT, SESSION, Running, numbered, program
from tests.helpers.talks import archived

WINDOW = 12_000
PATIENCE_SECONDS = 60
MODES = ("chat", "achat", "stream", "iter_stream")
COLUMNS = ["kills", "turns", "calls, no kill", "calls", "twice", "lost", "results lost"]
COLUMNS += ["doubled", "refused", "took"]


@dataclass
class Life:
    """What a program's runs did."""

    answered: list[int] = field(default_factory=list)
    twice: int = 0
    kills: int = 0


def live(provider: LocalProvider, kind: tuple[str, str, str], kills: int, turns: int) -> Life:
    """Ask in all turns; kill the program at even distances."""
    run, life, chance = program(provider, *kind, window=WINDOW), Life(), random.Random(7)
    every = turns // kills if kills else turns
    running = Running(run, "fork")
    for number in range(turns):
        is_killed = kills > 0 and number % every == every - 1
        patience = chance.uniform(0.02, 0.3) if is_killed and life.kills % 2 else PATIENCE_SECONDS
        before = _represented()
        if running.ask(hosting.turn(number, words=40), patience) is not None:
            life.answered.append(number)
        if is_killed:
            running.kill()
            life.kills += 1
            life.twice += _again(before, _represented())
            running = Running(run, "fork")
    running.kill()
    return life


def _represented() -> list[tuple[str, ...]]:
    """Return the runs of all summaries in the ledger, oldest first."""
    store = open_store("sqlite:///restarts.db")
    entries = store.open("default", SESSION).entries
    store.close()
    return [segment.run for segment in segments_in_force(entries) if segment.kind == "summary"]


def _again(before: list[tuple[str, ...]], after: list[tuple[str, ...]]) -> int:
    """Count new runs that have messages of an old one without being its fold."""
    new = after[len(before) :]
    return sum(bool({*run} & {*old}) and not {*old} <= {*run} for run in new for old in before)


def lost(provider: LocalProvider, life: Life) -> tuple[int, int]:
    """Count answered questions, and their turns' results, that request and archive lack."""
    sent = hosting.of_agent(provider)
    kept = list(sent[-1].messages)
    store = open_store("sqlite:///restarts.db")
    with contextlib.suppress(LookupError):
        kept += archived(store, SESSION, "default")
    store.close()
    texts = {text for message in kept for text in _texts(message)}
    questions = {hosting.turn(number, words=40) for number in life.answered[:-1]}
    results = {
        text
        for record in sent
        if record.status == 200 and _of_user(record)[-1] in questions
        for text in _results(record)
    }
    return len(questions - texts), len(results - texts)


def _of_user(record: Any) -> list[str]:
    return [text for m in record.messages if m["role"] == "user" for text in _texts(m)]


def _results(record: Any) -> list[str]:
    return [text_of(m) for m in record.messages if m["role"] == "tool" and "END-" in text_of(m)]


def _texts(message: Any) -> list[str]:
    """Return the texts of a message: litellm joins two of the user's for Anthropic."""
    content = message.get("content")
    if not isinstance(content, list):
        return [text_of(message)]
    return [text_of({**message, "content": [part]}) for part in content]


def doubled(provider: LocalProvider) -> int:
    """Count questions and results that stand twice in one request."""
    each = [[*_results(record), *_of_user(record)] for record in hosting.of_agent(provider)]
    return sum(len(texts) - len(set(texts)) for texts in each)


def _answer(asked: Asked) -> str:
    """Answer with words that no other answer has: equal messages have equal digests."""
    return f"Noted as number {asked.number}. " + "Noted. " * 36


def run_cell(kind: tuple[str, str, str], kills: int) -> tuple[object, ...]:
    """Return the values of `COLUMNS` for one kind of program."""
    start, calls = time.perf_counter(), []
    for count in (0, kills):
        worker = Worker(1, arguments=numbered(), answer=_answer)
        with hosting.by_itself(worker, WINDOW, hosting.LEDGERS) as provider:
            life = live(provider, kind, count, 2 * kills)
            calls.append(len(provider.for_model("aux")))
            counts = (life.twice, *lost(provider, life), doubled(provider), len(provider.refused))
    took = f"{time.perf_counter() - start:.0f} s"
    return (life.kills, len(life.answered), *calls, *counts, took)


def main() -> None:
    args = options(__doc__, path=hosting.EVERY_PATH, mode=MODES, kept=KEPT, kills=20)
    silence_host()

    def rows() -> Iterator[tuple[object, ...]]:
        for kind in itertools.product(args.path, args.mode, args.kept):
            yield (*kind, *run_cell(kind, args.kills))

    show("programs killed and run again", ("path", "mode", "kept by", *COLUMNS), rows())


if __name__ == "__main__":
    main()
