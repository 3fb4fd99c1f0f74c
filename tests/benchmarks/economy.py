"""What compression costs over a long session: calls, tokens, and the provider's prompt cache.

    python -m tests.benchmarks.economy [--turns 300] [--window 64000] [--output-words 300]

One generated session, every request of it: ours, and the host's own `SummarizeOptimizer` repaired,
which is given a function that really asks a model; once as it is configured (it keeps five
messages) and once keeping the number of newest messages that we keep. The summarizer is a program:
only what it is sent counts. "in all" is the uncached input of the agent's requests and of the
summarizer's.
To reach: a tenth of the host's calls, 95 % of the prefix, a fifth of the host's uncached input at
the same tail and in all.
"""

from __future__ import annotations

import functools
import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from praison_compressor import CompressorConfig, ContextCompressor, TokenCounter
from praison_compressor.messages import Message, text_of
from praison_compressor.view.budget import Budget
from tests.benchmarks.common import options, show, words
from tests.helpers.compressing import requests_of
from tests.helpers.transcripts import step

SUMMARY = "The work went on as planned; the parser, its tests and the report are in order. " * 12


@dataclass
class Account:
    """The sums of one way over the session."""

    name: str
    counter: TokenCounter
    calls: int = 0
    auxiliary: int = 0
    requests: list[list[Message]] = field(default_factory=list)
    note: str = ""

    def ask(self, messages: Sequence[Message]) -> str:
        """Return the auxiliary model's summary."""
        self.calls += 1
        self.auxiliary += self.counter.messages(messages)
        said = " ".join(text_of(message) for message in messages[1:]).split()
        some = " ".join(said[len(said) // 2 :][:12])  # else it is no summary of anything
        return f"{SUMMARY}{self.calls} {some}"

    def kept(self) -> float:
        """Return the mean share of a request with which the next one begins."""
        pairs = itertools.pairwise(self.requests)
        shares = [self._tokens(a[: _common(a, b)]) / self._tokens(a) for a, b in pairs]
        return sum(shares) / len(shares)

    def uncached(self) -> int:
        """Count the tokens that were not in the request before."""
        pairs = itertools.pairwise([[], *self.requests])
        return sum(self._tokens(b[_common(a, b) :]) for a, b in pairs)

    def _tokens(self, messages: Sequence[Message]) -> int:
        return sum(map(self.counter.message, messages))


def _common(a: Sequence[Message], b: Sequence[Message]) -> int:
    pairs = enumerate(zip(a, b, strict=False))
    return next((i for i, (x, y) in pairs if x != y), min(len(a), len(b)))


def session(turns: int, output_words: int) -> list[Message]:
    """Return turns of a question, a call, its result, an answer."""
    chance = random.Random(7)
    messages: list[Message] = [{"role": "system", "content": "You are a coding agent. " * 40}]
    for turn in range(turns):
        output = words(chance, chance.randint(output_words // 2, output_words * 3 // 2))
        messages += [
            {"role": "user", "content": f"{words(chance, 25)} turn {turn}"},
            *step(f"call_{turn}", output, path=f"src/f{turn}.py"),
            {"role": "assistant", "content": words(chance, 40)},
        ]
    return messages


# ---------------------------------------------------------------- ways


def ours(account: Account, messages: list[Message], window: int, **options: Any) -> None:
    async def summarizer(asked: list[Message]) -> str:
        return account.ask(asked)

    config = CompressorConfig(
        model="gpt-4o", auxiliary_model="gpt-4o", context_window=window, **options
    )
    compressor = ContextCompressor(config, summarizer=summarizer, tokens=account.counter)
    for request in requests_of(messages):
        account.requests.append(compressor.compress_sync(request).messages)
    entries = compressor.store.open("default", compressor.session_id).entries
    summaries = sum(entry.segment.kind == "summary" for entry in entries)
    masks = sum(entry.segment.kind == "mask" for entry in entries)
    account.note = f"{summaries} summaries, {masks} masks"


def host(account: Account, messages: list[Message], window: int, keep: int = 5) -> None:
    """Once per user turn over the whole history: nothing is written back (host.md)."""
    from praisonaiagents.context.optimizer import SummarizeOptimizer
    from praisonaiagents.context.tokens import estimate_messages_tokens

    optimizer = SummarizeOptimizer(
        preserve_recent=keep,
        llm_summarize_fn=lambda older, limit: account.ask(
            [{"role": "user", "content": "\n".join(f"{m['role']}: {text_of(m)}" for m in older)}]
        ),
    )
    budget = _budget(window)
    view: list[Message] = []
    taken = 0
    for request in requests_of(messages):
        if request[-1]["role"] == "user":
            view, taken = request, len(request)
            if estimate_messages_tokens(request) > budget.trigger:
                view, _ = optimizer.optimize(request, budget.target)
        account.requests.append([*view, *request[taken:]])
    account.note = f"once per user turn, keeps {keep} messages"


def _budget(window: int) -> Budget:
    return Budget.of(CompressorConfig(model="gpt-4o", context_window=window), window)


# ---------------------------------------------------------------- the table


def measured(name: str, run: Callable[..., None], messages: list[Message], window: int) -> Account:
    account = Account(name, TokenCounter("gpt-4o"))
    run(account, messages, window)
    return account


def row(account: Account) -> list[object]:
    return [
        *(account.name, account.calls, account.auxiliary),
        f"{account.kept():.1%}",
        *(account.uncached(), account.uncached() + account.auxiliary, account.note),
    ]


def accounts(messages: list[Message], window: int) -> Iterator[Account]:
    """Yield every way over the session."""
    run = functools.partial(measured, messages=messages, window=window)
    no_masks = functools.partial(ours, tool_policies={"*": "summarize"})
    mine = run("ours", ours)
    yield mine
    yield run("ours, without masks", no_masks)
    yield run("host, repaired", host)
    tail = sum(message in mine.requests[-1] for message in messages[-400:])
    yield run("host, repaired, same tail", functools.partial(host, keep=tail))


def main() -> None:
    given = options(__doc__, turns=300, window=64_000, output_words=300)
    messages = session(given.turns, given.output_words)
    tokens = TokenCounter("gpt-4o").messages(messages)
    title = (
        f"{given.turns} turns, {tokens:,} tokens, {2 * given.turns} requests, "
        f"window {given.window:,}; every message must be sent uncached once: {tokens:,}"
    )
    columns = ("", "calls", "aux. input", "prefix", "uncached", "in all", "note")
    show(title, columns, map(row, accounts(messages, given.window)))


if __name__ == "__main__":
    main()
