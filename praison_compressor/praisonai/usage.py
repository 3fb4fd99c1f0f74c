"""The prompt tokens that a provider reports: with an answer, or in the pieces of a streamed one;
and what summaries cost, told to the host.

A stream of chat completions is asked for it (`shapes`), others tell it unasked.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from ..ledger import Usage

__all__ = ["awatched", "bill", "prompt_tokens", "watched"]

Learn = Callable[[int], None]


def prompt_tokens(answer: Any) -> int | None:
    """What an answer or a piece of one reports; None where it says nothing.

    Chat completions call them prompt tokens, responses input tokens; the last event of a response
    carries the whole response, and so does what the host makes of such a stream.
    """
    if isinstance(answer, tuple):  # text, calls, response
        answer = answer[-1] if answer else None
    # litellm keeps what a provider sent unasked, as Anthropic does, beside the chunk.
    for holder in (answer, _field(answer, "response"), _field(answer, "_hidden_params")):
        usage = _field(holder, "usage")
        found = _field(usage, "prompt_tokens") or _field(usage, "input_tokens")
        if isinstance(found, int) and found > 0:
            return found
    return None


def bill(agent: Any, usage: Usage) -> None:
    """Add what summaries cost to the agent's `cost_summary`, which its budget is held against."""
    lock = getattr(agent, "_cost_lock", None)
    if lock is None or usage == Usage():
        return
    with lock:
        agent._total_cost += usage.cost or 0.0
        agent._total_tokens_in += usage.prompt_tokens
        agent._total_tokens_out += usage.completion_tokens


def _field(holder: Any, name: str) -> Any:
    return holder.get(name) if isinstance(holder, dict) else getattr(holder, name, None)


def watched(answer: Any, learn: Learn, *, asked: bool) -> Any:
    """The answer, whose usage is learned now, or when it comes by in a stream.

    `asked`: the stream's usage was our wish. A piece that carries nothing else is then not passed
    on: some of the host's readers take the first choice of every piece.
    """
    if _learned(answer, learn) or not _is_stream(answer):
        return answer
    return _Pieces(answer, learn, asked)


def awatched(answer: Any, learn: Learn, *, asked: bool) -> Any:
    """The same where the stream is asynchronous."""
    if _learned(answer, learn) or not hasattr(answer, "__aiter__"):
        return answer
    return _AsyncPieces(answer, learn, asked)


def _is_stream(answer: Any) -> bool:
    """Whether it comes in pieces; a response that is whole can be iterated too, by its fields."""
    return hasattr(answer, "__next__") or hasattr(answer, "__anext__")


def _learned(answer: Any, learn: Learn) -> bool:
    reported = prompt_tokens(answer)
    if reported is not None:
        learn(reported)
    return reported is not None


class _Watch:
    """A stream that is itself in everything else; the first report in it is learned."""

    def __init__(self, stream: Any, learn: Learn, asked: bool) -> None:
        self._stream = stream
        self._learn = learn
        self._asked = asked
        self._told = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def _passes(self, piece: Any) -> bool:
        """Learn from a piece; whether the reader is to have it."""
        if not self._told:
            self._told = _learned(piece, self._learn)
        return not (self._asked and _field(piece, "choices") == [])

    def _ended(self) -> None:
        # litellm keeps what comes after the last words to itself.
        kept = () if self._told else getattr(self._stream, "chunks", None) or ()
        self._told = self._told or any(_learned(chunk, self._learn) for chunk in kept)


class _Pieces(_Watch):
    _pieces: Iterator[Any] | None = None

    def __iter__(self) -> _Pieces:
        return self

    def __next__(self) -> Any:
        if self._pieces is None:
            self._pieces = iter(self._stream)
        for piece in self._pieces:
            if self._passes(piece):
                return piece
        self._ended()
        raise StopIteration

    def __enter__(self) -> _Pieces:
        self._stream.__enter__()
        return self

    def __exit__(self, *failure: Any) -> Any:
        return self._stream.__exit__(*failure)


class _AsyncPieces(_Watch):
    _pieces: AsyncIterator[Any] | None = None

    def __aiter__(self) -> _AsyncPieces:
        return self

    async def __anext__(self) -> Any:
        if self._pieces is None:
            self._pieces = self._stream.__aiter__()
        async for piece in self._pieces:
            if self._passes(piece):
                return piece
        self._ended()
        raise StopAsyncIteration

    async def __aenter__(self) -> _AsyncPieces:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *failure: Any) -> Any:
        return await self._stream.__aexit__(*failure)
