"""What became of a transcript, or would: head, summaries and tail as rows of one table."""

from __future__ import annotations

from collections.abc import Sequence

from ..messages import Message, digest, read
from ..preview import Part, named
from ..result import CompressResult
from ..tokens import TokenCounter
from .terminal import Screen, number

__all__ = ["of_result", "show"]


def of_result(given: Sequence[Message], result: CompressResult, tokens: TokenCounter) -> list[Part]:
    """The parts of a view that was made of `given`."""
    originals = read(given).messages
    parts: list[Part] = []
    waiting = list(result.segments)
    at = 0
    for message in result.messages:
        segment = waiting[0] if waiting and message == waiting[0].rendered else None
        end = at + (len(segment.run) if segment else 1)
        before = sum(map(tokens.message, originals[at:end]))
        masked = int(segment is None and digest(message) != digest(originals[at]))
        parts.append(Part("", at, end - at, before, tokens.message(message), masked, segment))
        if segment is not None:
            waiting.pop(0)
        at = end
    return named(parts)


def show(
    screen: Screen, parts: Sequence[Part], what: Sequence[str], *, view_messages: int, opens: int
) -> None:
    """The table of the parts, `what` said of each; `opens` are the tokens of the reply's frame."""
    before = sum(part.tokens_before for part in parts) + opens
    after = sum(part.tokens_after for part in parts) + opens
    messages = sum(part.messages for part in parts)
    saved = f"{100 * (before - after) / before:.0f} % saved" if after < before else ""
    rows = [
        [part.name, number(part.messages), number(part.tokens_before), number(part.tokens_after), w]
        for part, w in zip(parts, what, strict=True)
    ]
    rows.append(
        ["total", f"{messages:,} -> {view_messages:,}", number(before), number(after), saved]
    )
    styles = ["yellow" if part.segment or part.to_write else "" for part in parts]
    screen.table(
        ["part", "messages#", "tokens before#", "tokens after#", "what"],
        rows,
        last_is_total=True,
        styles=styles,
    )
