"""What compression costs over a long session: calls, tokens, and the provider's prompt cache.

    python -m tests.benchmarks.economy [--turns 300] [--window 32000]

One recorded-like session, every request of it, three ways: ours, LangChain's summarization
middleware (its defaults, our trigger), and the host's own `SummarizeOptimizer` repaired, which is
given a function that really asks a model. The summarizer is a program: only what it is sent counts.
LangChain is no dependency; without it its row says how to get it.
"""

from __future__ import annotations

import argparse
import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console
from rich.table import Table

from praison_compressor import CompressorConfig, ContextCompressor, TokenCounter
from praison_compressor.messages import Message, text_of
from praison_compressor.plan import Budget

from .tokens import transcript

FACT = re.compile(r"FACT-\d{4}")
SUMMARY = "The work went on as planned; the parser, its tests and the report are in order. " * 12


@dataclass
class Account:
    """What one way of keeping a conversation short did over the session."""

    name: str
    counter: TokenCounter
    calls: int = 0
    auxiliary: int = 0
    removed: int = 0
    """Tokens of messages that summaries stand for at the end."""
    seen: set[str] = field(default_factory=set)
    """Planted facts that its summarizer was ever shown."""
    requests: list[list[Message]] = field(default_factory=list)
    note: str = ""

    def ask(self, messages: Sequence[Message]) -> str:
        """The auxiliary model."""
        self.calls += 1
        self.auxiliary += self.counter.messages(messages)
        for message in messages:
            self.seen.update(FACT.findall(text_of(message)))
        return f"{SUMMARY}{self.calls}"

    def shares(self) -> list[float]:
        """Of each request's tokens those with which the next one begins."""
        pairs = itertools.pairwise(self.requests)
        return [self._tokens(a[: _common(a, b)]) / self._tokens(a) for a, b in pairs]

    def uncached(self) -> int:
        """Tokens of all requests that were not the beginning of the one before."""
        pairs = itertools.pairwise([[], *self.requests])
        return sum(self._tokens(b[_common(a, b) :]) for a, b in pairs)

    def _tokens(self, messages: Sequence[Message]) -> int:
        return sum(map(self.counter.message, messages))


def _common(a: Sequence[Message], b: Sequence[Message]) -> int:
    pairs = enumerate(zip(a, b, strict=False))
    return next((i for i, (x, y) in pairs if x != y), min(len(a), len(b)))


def session(turns: int) -> list[Message]:
    """A question with a planted fact, a call, its result, an answer, and so on."""
    messages = [{"role": "system", "content": "You are a coding agent. " * 40}]
    for number, message in enumerate(transcript(turns, seed=7)):
        if message["role"] == "user":
            message["content"] += f" FACT-{number // 4:04d}"
        messages.append(message)
    return messages


def growing(messages: Sequence[Message]) -> Iterator[list[Message]]:
    """The transcript as it stands at every request."""
    for end, message in enumerate(messages, 1):
        if message["role"] in ("user", "tool"):
            yield list(messages[:end])


# ---------------------------------------------------------------- three ways


def ours(account: Account, messages: list[Message], window: int, **options: Any) -> None:
    async def summarizer(asked: list[Message]) -> str:
        return account.ask(asked)

    config = CompressorConfig(model="gpt-4o", context_window=window, **options)
    compressor = ContextCompressor(config, summarizer=summarizer, tokens=account.counter)
    for request in growing(messages):
        account.requests.append(compressor.compress_sync(request).messages)
    entries = compressor.store.open("default", compressor.session_id).entries
    summaries = [entry.segment for entry in entries if entry.segment.kind == "summary"]
    sizes = {seen.digest: account.counter.message(m) for m, seen in _seen(compressor, messages)}
    run = {digest for segment in summaries for digest in segment.run}
    account.removed = sum(sizes[digest] for digest in run)
    masks = sum(entry.segment.kind == "mask" for entry in entries)
    account.note = f"{len(summaries)} summaries, {masks} masks"


def _seen(compressor: ContextCompressor, messages: list[Message]) -> Iterator[tuple[Message, Any]]:
    return zip(messages, compressor.tokens.cache.all(messages), strict=True)


def host(account: Account, messages: list[Message], window: int) -> None:
    """Once per user turn over the whole history: nothing is written back (host.md)."""
    from praisonaiagents.context.optimizer import SummarizeOptimizer
    from praisonaiagents.context.tokens import estimate_messages_tokens

    optimizer = SummarizeOptimizer(
        llm_summarize_fn=lambda older, limit: account.ask(
            [{"role": "user", "content": "\n".join(f"{m['role']}: {text_of(m)}" for m in older)}]
        )
    )
    budget = _budget(window)
    view: list[Message] = []
    taken = 0
    for request in growing(messages):
        if request[-1]["role"] == "user":
            view, taken = request, len(request)
            if estimate_messages_tokens(request) > budget.trigger:
                view, _ = optimizer.optimize(request, budget.target)
        account.requests.append([*view, *request[taken:]])
    account.note = "per user turn"


def langchain(account: Account, messages: list[Message], window: int) -> None:
    """Before every model call; what it returns replaces the agent's state, as in its agents."""
    from langchain.agents.middleware import SummarizationMiddleware
    from langchain_core.language_models.chat_models import BaseChatModel
    from langchain_core.messages import AIMessage, convert_to_messages, convert_to_openai_messages
    from langchain_core.outputs import ChatGeneration, ChatResult
    from langgraph.graph.message import add_messages

    class Model(BaseChatModel):
        @property
        def _llm_type(self) -> str:
            return "counted"

        def _generate(self, messages: Any, *args: Any, **keywords: Any) -> ChatResult:
            text = account.ask(convert_to_openai_messages(messages))
            return ChatResult(generations=[ChatGeneration(message=AIMessage(text))])

    def count(given: Any) -> int:
        return account.counter.messages(convert_to_openai_messages(list(given)))

    middleware = SummarizationMiddleware(
        Model(), trigger=("tokens", _budget(window).trigger), token_counter=count
    )
    system, state = messages[:1], add_messages([], [])
    taken = 1
    for request in growing(messages):
        state = add_messages(state, convert_to_messages(request[taken:]))
        taken = len(request)
        update = middleware.before_model({"messages": state}, None)  # type: ignore[typeddict-item,arg-type]
        if update:
            state = add_messages(state, update["messages"])
        account.requests.append([*system, *convert_to_openai_messages(state)])
    account.note = "shows its summarizer the last 4,000 tokens"


def _budget(window: int) -> Budget:
    return Budget.of(CompressorConfig(model="gpt-4o", context_window=window), window)


# ---------------------------------------------------------------- the table


def measured(name: str, run: Callable[..., None], messages: list[Message], window: int) -> Account:
    account = Account(name, TokenCounter("gpt-4o"))
    run(account, messages, window)
    return account


def row(account: Account, turns: int) -> list[str]:
    shares = account.shares()
    removed = f"{account.auxiliary / account.removed:.2f}" if account.removed else "-"
    return [
        account.name,
        str(account.calls),
        f"{account.auxiliary:,}",
        removed,
        f"{sum(shares) / len(shares):.1%}",
        f"{account.uncached():,}",
        f"{len(account.seen)}",
        account.note,
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--turns", type=int, default=300)
    parser.add_argument("--window", type=int, default=32_000)
    given = parser.parse_args()
    messages = session(given.turns)
    console = Console()
    title = f"{given.turns} turns, {TokenCounter('gpt-4o').messages(messages):,} tokens, "
    table = Table(title=title + f"window {given.window:,}, {2 * given.turns} requests")
    for head in ("", "calls", "auxiliary input", "/ removed", "prefix kept", "uncached input"):
        table.add_column(head, justify="right" if head else "left")
    table.add_column("facts shown", justify="right")
    table.add_column("")

    def no_masks(account: Account, messages: list[Message], window: int) -> None:
        ours(account, messages, window, tool_policies={"*": "summarize"})

    accounts = [measured("ours", ours, messages, given.window)]
    accounts.append(measured("ours, no masks", no_masks, messages, given.window))
    accounts.append(measured("host, repaired", host, messages, given.window))
    try:
        accounts.append(measured("LangChain", langchain, messages, given.window))
    except ImportError as error:
        missing = f"not installed: python -m pip install langchain ({error.name})"
        table.caption = f"LangChain: {missing}"
    for account in accounts:
        table.add_row(*row(account, given.turns))
    mine, theirs = accounts[0], accounts[2]
    table.add_section()
    table.add_row(
        "to reach (ours)",
        f"<= {theirs.calls // 10}",
        "",
        "<= 1.15",
        ">= 95 %",
        f"<= {theirs.uncached() // 5:,}",
        "",
        "calls and uncached input beside the host's",
    )
    console.print(table)
    reached = {
        "calls": mine.calls <= theirs.calls / 10,
        "input / removed": mine.auxiliary <= 1.15 * mine.removed,
        "prefix": sum(mine.shares()) / len(mine.shares()) >= 0.95,
        "uncached": mine.uncached() <= theirs.uncached() / 5,
    }
    console.print({name: "reached" if held else "MISSED" for name, held in reached.items()})


if __name__ == "__main__":
    main()
