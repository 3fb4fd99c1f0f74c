"""What a compression keeps verbatim: the tail and the view, at windows from 8k to 128k.

    python -m tests.benchmarks.tails [--words 60]

A generated session of twice the window, without a model and with one that answers in 100 words,
compressed once and again and again as it grows. "half" is half of what the target leaves beside
the head; a tail below it is red unless the next older step would pass it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from praison_compressor import CompressorConfig, ContextCompressor, TokenCounter
from praison_compressor.messages import Message, steps
from praison_compressor.view.budget import Budget
from praison_compressor.view.frame import is_framed
from tests.benchmarks.common import options, show
from tests.helpers.transcripts import session

WINDOWS = (8_000, 12_000, 16_000, 24_000, 32_000, 48_000, 64_000, 96_000, 128_000)
ASKED = (None, 1_000, 4_000, 40_000)
TOKENS = TokenCounter("gpt-4o")


@dataclass(frozen=True)
class Kept:
    """One compressed view, measured."""

    target: int
    head: int
    tail: int
    view: int
    step: int
    """Tokens of the step before the tail."""
    calls: int

    @property
    def half(self) -> int:
        """What the tail is to have at least."""
        return (self.target - self.head) // 2

    @property
    def is_enough(self) -> bool:
        """Whether it has that, or could not have it without a step that passes it."""
        return self.tail >= self.half or self.tail + self.step > self.half


def compressed(
    messages: list[Message],
    window: int,
    asked: int | None = None,
    *,
    by_model: bool = False,
    grows: bool = False,
    **options: Any,
) -> Kept:
    """What a compressor with that window keeps of the session, `grows`: turn for turn."""
    calls = 0

    async def model(_: list[Message]) -> str:
        nonlocal calls
        calls += 1
        read = ", ".join(f"src/mod_{n}/part_0.py" for n in range(1, 9))
        said = "Each module is looked after; lorem ipsum dolor, careful: the port must stay. "
        return f"## Done\nRead {read}.\n{said * 6}"

    if asked is not None:
        options["protect_last_n_tokens"] = asked
    config = CompressorConfig(
        model="gpt-4o", context_window=window, tool_policies={"*": "summarize"}, **options
    )
    ours = ContextCompressor(config, summarizer=model if by_model else None, tokens=TOKENS)
    for request in _requests(messages) if grows else (messages,):
        result = ours.compress_sync(request)
        if result.summary_method in ("model", "static"):
            found = _measured(result.messages, request, Budget.of(config, window).target, calls)
    return found


def _requests(messages: list[Message]) -> Iterator[list[Message]]:
    ends = (i + 1 for i, message in enumerate(messages) if message["role"] == "user")
    return (messages[:end] for end in (*ends, len(messages)))


def _measured(view: list[Message], messages: list[Message], target: int, calls: int) -> Kept:
    """The sizes of a view; its tail is what follows its last summary."""
    framed = [i for i, message in enumerate(view) if is_framed(message)]
    first, last = framed[0], framed[-1]
    tail = view[last + 1 :]
    start = len(messages) - len(tail)
    before = next(step for step in reversed(steps(messages)) if step.start < start)
    return Kept(
        target=target,
        head=_tokens(view[:first]),
        tail=_tokens(tail),
        view=TOKENS.messages(view),
        step=_tokens(messages[before.start : start]),
        calls=calls,
    )


def _tokens(messages: list[Message]) -> int:
    return sum(map(TOKENS.message, messages))


def twice(window: int, words: int) -> list[Message]:
    """A session of about twice the window."""
    each = _tokens(session(3, words=words)[1:]) // 3
    return session(2 * window // each + 1, words=words)


def rows(words: int) -> Iterator[tuple[object, ...]]:
    """Every window, asked for in every way."""
    for window in WINDOWS:
        messages = twice(window, words)
        for by_model, asked in itertools.product((False, True), ASKED):
            once = compressed(messages, window, asked, by_model=by_model)
            grown = compressed(messages, window, asked, by_model=by_model, grows=True)
            how = (window, "model" if by_model else "static", asked or "default")
            sizes = (once.target, once.head, once.half)
            yield *how, *sizes, _shown(once), once.view, _shown(grown), grown.view, grown.calls
        yield ()


def main() -> None:
    given = options(__doc__, words=60)
    columns = ("window", "by", "asked", "target", "head", "half", "tail", "view", "grown", "view")
    show("tail kept and view, once and as it grows", (*columns, "calls"), rows(given.words))


def _shown(kept: Kept) -> str:
    return f"{kept.tail:,}" if kept.is_enough else f"[red]{kept.tail:,}[/]"


if __name__ == "__main__":
    main()
