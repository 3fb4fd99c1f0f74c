"""Count the words of another person that a hundred people on one agent are sent: limit 0.

    python -m tests.benchmarks.tenants              all rows
    python -m tests.benchmarks.tenants --people 20 --only memory

"bot" is the host's `BotSessionManager` on one event loop. "threads" is a server that names nobody:
it swaps the agent's history under a lock, eight threads at once. Every sentence of a person bears
that person's mark. Each turn one person has another model (`/model`). "alone" gives each person an
agent and a ledger of the same kind: what the calls of the summarizer are compared with.
"""

import asyncio
import io
import itertools
import logging
import re
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from praisonai_bot.bots._session import BotSessionManager

from praison_compressor import CompressorConfig, ContextCompressor
from praison_compressor.cli.report import render
from praison_compressor.cli.report_data import data_of_session
from praison_compressor.messages.display import message_as_text
from praison_compressor.recall.answers import READ, SEARCH
from praison_compressor.testing import Asked, Call, LocalProvider, Reply
from tests.benchmarks.common import databases, options, show
from tests.helpers import hosting
from tests.helpers.hosting import OPENAI, WORDS, look_up

ROUNDS = 8
THREADS = 8
OTHER_MODEL = "gpt-4o"
MARK = re.compile(r"P\d{3}Q")
SAID = re.compile(r"(?:For later|Turn|I have noted)[^.]{0,60}[.]")
"""What the summarizer repeats."""
FIRST = "my account ends in"
WANTED = "What did I say about my account?"
COLUMNS = (
    *("host", "store", "background", "requests", "tokens", "of another", "texts"),
    *("own found", "by recall", "calls", "calls alone"),
)


def words_of(mark: str, turn: int) -> str:
    """Return what a person says in a turn."""
    if turn == 0:
        return f"Good morning. {mark}"
    if turn == 1:
        return f"For later: {FIRST} {mark}-SEVEN. " + WORDS.replace("the", f"the {mark}") * 8
    return f"Turn {turn} of {mark}. " + WORDS.replace("the", f"the {mark}") * 36


def answered(asked: Asked) -> Any:
    """Answer in the person's words; look something up in each third turn, or what is wanted."""
    mark = (MARK.findall(asked.last_user) or ["nobody"])[-1]
    tools = {tool["function"]["name"] for tool in asked.tools}
    if asked.messages[-1].get("role") == "tool":
        return f"I have noted what {mark} said, and looked it up. " * 4
    if WANTED in asked.last_user and SEARCH in tools:
        # In words that everybody has said.
        return Reply(calls=(Call(SEARCH, {"query": FIRST}), Call(READ, {"reference": ""})))
    if f"Turn 3 of {mark}" in asked.last_user and "look_up" in tools:
        return Reply(calls=(Call("look_up", {"topic": mark, "part": 3}),))
    return f"I have noted what {mark} said. " * 6


# -------------------------------------------------------------- hosts of many people

Say = Callable[[Sequence[tuple[str, str]]], list[str]]
"""Sends the words of many people at once; returns their answers."""


def by_bot(made: Any) -> Say:
    """Return a sender through the host's session manager, on one event loop."""
    manager = BotSessionManager(platform="telegram", max_history=100)
    loop = asyncio.new_event_loop()
    turns = itertools.count()

    async def every(said: Sequence[tuple[str, str]]) -> list[str]:
        other = said[next(turns) % len(said)][0]
        manager._model_overrides = {other: OTHER_MODEL}
        return list(await asyncio.gather(*(manager.chat(made, *each) for each in said)))

    return lambda said: loop.run_until_complete(every(said))


def by_threads(made: Any) -> Say:
    """Return a sender that swaps the agent's history itself, from many threads."""
    histories: dict[str, list[Any]] = {}
    lock, turns, own = threading.Lock(), itertools.count(), made.llm

    def one(person: str, words: str, model: str) -> str:
        with lock:
            made.chat_history, made.llm = list(histories.get(person, [])), model
            try:
                return str(made.chat(words))
            finally:
                histories[person] = made.chat_history[-100:]
                made.chat_history, made.llm = [], own

    def every(said: Sequence[tuple[str, str]]) -> list[str]:
        other = said[next(turns) % len(said)][0]
        with ThreadPoolExecutor(THREADS) as pool:
            models = [OTHER_MODEL if person == other else own for person, _ in said]
            return list(pool.map(one, *zip(*said, strict=True), models))

    return every


HOSTS = {"bot": by_bot, "threads": by_threads}


# -------------------------------------------------------------- what is measured


@dataclass
class RunCounts:
    """What one run sent and said."""

    texts: int = 0
    tokens: int = 0
    of_another: int = 0
    """Marks of somebody else in a text for one person, or of anybody in a log."""
    own: int = 0
    recalled: int = 0
    requests: int = 0
    calls: int = 0
    examples: list[str] = field(default_factory=list)

    def read(self, text: str, mark: str | None = None) -> None:
        """Count others' marks in a text for the person of that mark, or of the text's first."""
        marks = Counter(MARK.findall(text))
        whose = mark if mark is not None else next(iter(marks), "")
        strange = sum(count for each, count in marks.items() if each != whose)
        self.texts += 1
        self.of_another += strange
        if strange and len(self.examples) < 5:
            self.examples.append(f"{whose}: {dict(marks)} in {text[:200]!r}")

    def read_request(self, record: Any) -> None:
        """Count a request, and whether it holds what its person asked for."""
        asked = message_as_text([m for m in record.messages if m.get("role") == "user"][-1])
        mark = None if record.model == "aux" else MARK.findall(asked)[-1]
        self.read(record.text, mark)
        self.tokens += record.prompt_tokens
        self.requests += record.model != "aux"
        self.calls += record.model == "aux"
        if WANTED in asked and record.messages[-1].get("role") == "tool":
            wanted = f"{FIRST} {mark}-SEVEN"
            self.recalled += any(wanted in message_as_text(m) for m in record.messages[-2:])
            self.own += wanted in record.text and words_of(str(mark), 0) in record.text


def measure(people: int, host_name: str, url: str | None, background: bool) -> RunCounts:
    """Let all people talk through one agent; read all that was sent, said, logged and reported."""
    counts, stream, log = RunCounts(), io.StringIO(), logging.getLogger("praison_compressor")
    heard = logging.StreamHandler(stream)
    log.addHandler(heard)
    log.setLevel(logging.DEBUG)
    with hosting.by_itself(answered, hosting.WINDOW, SAID) as host:
        made = agent(host, url, background)
        for mark, said in talk(HOSTS[host_name](made), people, lambda: settle(made)):
            counts.read(str(said), mark)
        for record in host.requests:
            counts.read_request(record)
        for page in reports(made):
            counts.read(page)
    log.removeHandler(heard)
    for line in stream.getvalue().splitlines():
        counts.read(line, "")
    return counts


def agent(host: LocalProvider, url: str | None, background: bool) -> Any:
    """Return an agent with a tool."""
    context = hosting.context(host, background=background, store_url=url)
    return hosting.agent(host, OPENAI, context, tools=[look_up])


def settle(made: Any) -> None:
    """Wait for what is written in the background."""
    made.context_compressor.for_model().wait_for_summaries(120)
    made.context_compressor.for_model(OTHER_MODEL).wait_for_summaries(120)


def talk(say: Say, people: int, settled: Callable[[], None]) -> Iterator[tuple[str, str]]:
    """Yield each person's mark with each answer."""
    marks = [f"P{number:03d}Q" for number in range(people)]
    rounds = [[words_of(mark, n) for mark in marks] for n in range(ROUNDS)]
    wanted = [f"{WANTED} {mark}" for mark in marks]
    # Another turn after it: what a run costs does not hang on whether it ends at a mark.
    last = [words_of(mark, ROUNDS) for mark in marks]
    for words in (*rounds, wanted, last, ["/status"] * people, ["/context"] * people):
        yield from zip(marks, say([*zip(marks, words, strict=True)]), strict=True)
        settled()


def reports(made: Any) -> Iterator[str]:
    """Yield a report's page for each conversation that the ledger has."""
    store = made.context_compressor.ledger
    compressor = ContextCompressor(CompressorConfig(), store=store)
    for info in store.sessions("default") if hasattr(store, "sessions") else ():
        yield render(data_of_session(compressor, info.id))


def alone(people: int, background: bool) -> int:
    """Return the summarizer's calls where each person has an agent of one's own."""
    with hosting.by_itself(answered, hosting.WINDOW, SAID) as host:
        for number in range(people):
            made, mark = agent(host, None, background), f"P{number:03d}Q"
            own = made.llm
            said = [words_of(mark, n) for n in range(ROUNDS + 1)]
            said.insert(ROUNDS, f"{WANTED} {mark}")
            for n, words in enumerate(said):
                made.llm = OTHER_MODEL if n % people == number else own
                made.chat(words)
                settle(made)
        return len(host.for_model("aux"))


def rows(people: int, only: str) -> Iterator[Sequence[object]]:
    """Yield a row for each host, store and way to summarize; leaks are printed as errors."""
    compared = (False, True) if only in ("", "memory") else ()
    calls: dict[bool, object] = {each: alone(people, each) for each in compared}
    for store, new_url in itertools.chain([("memory", lambda: None)], databases()):
        for host_name, background in itertools.product(HOSTS, (False, True)):
            if only and only not in (store, host_name):
                continue
            counts = measure(people, host_name, new_url(), background)
            print(*counts.examples, sep="\n", file=sys.stderr)
            yield (
                *(host_name, store, background, counts.requests, counts.tokens),
                *(counts.of_another, counts.texts, f"{counts.own} of {people}", counts.recalled),
                *(counts.calls, calls.get(background, "")),
            )


def main() -> None:
    args = options(__doc__, people=100, only="")
    show(f"{args.people} people, one agent", COLUMNS, rows(args.people, args.only))


if __name__ == "__main__":
    main()
