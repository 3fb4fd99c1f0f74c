"""What became of a transcript, or would: head, summaries and tail as rows of one table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from ..layout import Layout
from ..ledger import Segment
from ..messages import Message, digest, read
from ..plan import Plan
from ..result import CompressResult
from ..tokens import TokenCounter
from .terminal import Screen, number

__all__ = ["Part", "of_layout", "of_result", "show"]


@dataclass(frozen=True)
class Part:
    """A stretch of the transcript and what stands for it in the view."""

    name: str
    start: int
    """Index of its first message."""
    messages: int
    tokens_before: int
    tokens_after: int
    masked: int = 0
    """How many of its messages are represented by one line each."""
    segment: Segment | None = None
    """The summary that stands for it, where one does."""
    to_write: bool = False
    """Would be summarized; `tokens_after` is then what the summary may take."""


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
    return _named(_merged(parts))


def of_layout(layout: Layout, plan: Plan | None, masks: Mapping[int, int]) -> list[Part]:
    """The parts of the view that a plan would make; `masks` are the tokens of what it masks."""
    jobs = plan.jobs if plan is not None else ()
    parts: list[Part] = []
    at = 0
    while at < len(layout.tokens):
        job = next((job for job in jobs if job.start == at), None)
        tile = next(tile for tile in layout.tiles if tile.start <= at < tile.end)
        if job is not None:
            parts.append(Part("", at, job.end - at, job.source_tokens, job.room, to_write=True))
        elif tile.segment is not None:
            before = layout.source(tile.start, tile.end)
            parts.append(
                Part("", at, tile.end - at, before, tile.segment.tokens, segment=tile.segment)
            )
        else:
            after = masks.get(at, layout.message_tokens(at))
            masked = int(at in masks or at in layout.replaced)
            parts.append(Part("", at, 1, layout.tokens[at], after, masked))
        at += parts[-1].messages
    return _named(_merged(parts))


def _merged(parts: Sequence[Part]) -> Iterator[Part]:
    """Verbatim messages that follow each other become one part."""
    for kept, group in groupby(parts, lambda part: part.segment is None and not part.to_write):
        if not kept:
            yield from group
            continue
        run = list(group)
        yield Part(
            "",
            run[0].start,
            sum(part.messages for part in run),
            sum(part.tokens_before for part in run),
            sum(part.tokens_after for part in run),
            sum(part.masked for part in run),
        )


def _named(parts: Iterator[Part]) -> list[Part]:
    found = list(parts)
    summaries = [i for i, p in enumerate(found) if p.segment is not None or p.to_write]
    named = []
    for index, part in enumerate(found):
        if index in summaries:
            name = "summary" if len(summaries) == 1 else f"summary {summaries.index(index) + 1}"
        elif not summaries:
            name = "all"
        elif index < summaries[0]:
            name = "head"
        else:
            name = "tail" if index > summaries[-1] else "kept"
        named.append(replace(part, name=name))
    return named


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
