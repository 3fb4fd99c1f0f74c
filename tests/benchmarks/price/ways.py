"""The ways to keep a session short: ours, the host's, LangChain's, a plain rolling summary."""

import itertools
import json
from collections.abc import Callable, Sequence
from typing import Any

from praison_compressor import CompressorConfig, ContextCompressor
from praison_compressor.messages import Message, text_of
from praison_compressor.view.budget import Budget
from tests.helpers.compressing import Clock

from .prices import COUNTER, Provider, Run, Session

SUMMARY_WORDS, PHRASE = 300, 12  # words of a summary, and of each phrase that it quotes


def summary(asked: Sequence[Message], run: Run) -> str:
    """Return a summary of a fixed length in words of the request, and note its tokens."""
    said = " ".join(map(text_of, asked[-1:])).split()
    every = max(PHRASE, len(said) // (SUMMARY_WORDS // PHRASE))
    lines = (" ".join(said[n : n + PHRASE]) for n in range(0, len(said), every))
    text = "## Done\n" + "\n".join(f"- {line}" for line in lines)
    run.asked.append((COUNTER.messages(list(asked)), COUNTER.text(text)))
    return text


def plainly(messages: Sequence[Message], run: Run) -> str:
    """Return a summary of the messages, given to the model as one text."""
    asked = "\n".join(f"{m['role']}: {text_of(m)}" for m in messages)
    return summary([{"role": "user", "content": asked}], run)


# -------------------------------------------------------------- the ways


def ours(
    session: Session,
    window: int,
    pauses: Sequence[float],
    at: Provider | None,
    *,
    has_model: bool = True,
    **settings: Any,
) -> Run:
    """Return our run; without a provider it knows neither clock nor prices."""
    run, clock = Run(), Clock()

    async def summarizer(asked: list[Message]) -> str:
        return summary(asked, run)

    known: dict[str, Any] = {"idle_trigger_ratio": 1}
    if at is not None:
        known = {"model": at.model, "cache_ttl_seconds": at.seconds}
        known |= {"auxiliary_model": at.model} if has_model else {}
    config = CompressorConfig(context_window=window, **{**known, **settings})
    writes = summarizer if has_model else None
    compressor = ContextCompressor(config, summarizer=writes, tokens=COUNTER, clock=clock)
    view: list[Message] = []
    for request, pause in zip(session.requests, pauses, strict=True):
        clock.now += pause
        view = compressor.compress_sync(request).messages
        run.requests.append(session.keys(view))
    texts = [json.dumps(message) for message in compressor.verbatim(view)]
    run.represented |= {n for n, m in enumerate(session.messages) if json.dumps(m) in texts}
    return run


def host(session: Session, window: int, *, repaired: bool, keep: int = 5) -> Run:
    """Return the run of the host's optimizer: once a turn, over everything, never written back."""
    from praisonaiagents.context.optimizer import SummarizeOptimizer
    from praisonaiagents.context.tokens import estimate_messages_tokens

    run = Run()

    def ask(older: list[Message], _: int) -> str:
        run.represented |= set(session.keys(older))
        return plainly(older, run)

    optimizer = SummarizeOptimizer(preserve_recent=keep, llm_summarize_fn=ask if repaired else None)
    budget, view, taken = budget_of(window), list[Message](), 0
    for request in session.requests:
        if request[-1]["role"] == "user":
            view, taken = request, len(request)
            if estimate_messages_tokens(request) > budget.trigger:
                view, _ = optimizer.optimize(request, budget.target)
        run.requests.append(session.keys([*view, *request[taken:]]))
    return run


def rolling(
    session: Session, trigger: int, cut: Callable[[int], int], head: int, most: int | None
) -> Run:
    """Return the run of one summary that each next one replaces.

    Above the trigger the messages between head and `cut(end)` become a summary. The model reads
    their newest `most` tokens.
    """
    run, start, first = Run(), head, list[Message]()
    for request in session.requests:
        view = [*request[:head], *first, *request[start:]]
        until = cut(len(request))
        if session.size(session.keys(view)) > trigger and until > start:
            older = [*first, *request[start:until]]
            if most is not None:
                older = _newest(session, older, most)
            run.represented |= set(session.keys(older))
            text = plainly(older, run)
            first, start = [{"role": "user", "content": f"Summary so far:\n{text}"}], until
            view = [*request[:head], *first, *request[start:]]
        run.requests.append(session.keys(view))
    return run


def _newest(session: Session, messages: list[Message], most: int) -> list[Message]:
    sizes = itertools.accumulate(session.size([key]) for key in session.keys(messages[::-1]))
    return messages[-sum(size <= most for size in sizes) :]


def budget_of(window: int) -> Budget:
    """Return our budget in a window."""
    return Budget.of(CompressorConfig(context_window=window), window)


def langchain(session: Session, window: int) -> Run:
    """Return the run of LangChain's middleware: it keeps 20 messages and reads 4,000 tokens."""
    system = sum(m["role"] == "system" for m in session.messages)

    def cut(end: int) -> int:
        return max((s for s in session.steps if s <= end - 20), default=0)

    return rolling(session, int(0.85 * window), cut, system, 4_000)


def plain(session: Session, window: int) -> Run:
    """Return the run of our trigger and target with a rolling summary and no quotes."""
    budget, head = budget_of(window), session.head()
    room = budget.target - session.size(range(head)) - 2 * SUMMARY_WORDS
    return rolling(session, budget.trigger, lambda end: session.tail(end, room), head, None)
