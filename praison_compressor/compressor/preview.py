"""What a compression would do, without doing it: each stretch of the transcript, and why; and what
fills the window now.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

from ..ledger.segments import Segment
from ..messages import Message, tool_calls_of
from ..tokens.counter import TokenCounter
from ..tokens.models import Limits, model_limits
from ..view.budget import Budget
from ..view.layout import Layout
from ..view.masks import answered
from ..view.plan import Plan
from .call import Look


@dataclass(frozen=True)
class Part:
    """A stretch of the transcript and what stands for it in the view."""

    name: str
    """ "head", "summary", "kept", "tail", or "all" where nothing is summarized."""
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
    why: str = ""
    """One phrase for a person."""


@dataclass(frozen=True)
class Preview:
    """What `ContextCompressor.preview` found. Counts are tokens of the model at hand."""

    parts: tuple[Part, ...]
    messages: tuple[Message, ...]
    """The transcript as it was read: malformed parts are repaired."""
    message_tokens: tuple[int, ...]
    masks: frozenset[int]
    """Indices of the tool outputs that are masked, or would be."""
    budget: Budget
    limits: Limits
    """The window counted with, and where it is from."""
    opening: int
    """Tokens that frame every request."""
    tokens: int
    """Of the view as the ledger has it now."""
    would_compress: bool
    new_masks: int
    """How many outputs this compression would mask."""
    repaired: int
    """How many messages had to be repaired to be read."""

    @property
    def would_write(self) -> int:
        """How many summaries would be written."""
        return sum(part.to_write for part in self.parts)

    def fates(self) -> Iterator[tuple[int, str]]:
        """Each message's index, and "keep", "mask" or the name of the summary it goes into."""
        for part in self.parts:
            summarized = part.to_write or part.segment is not None
            for index in range(part.start, part.start + part.messages):
                masked = "mask" if index in self.masks else "keep"
                yield index, part.name if summarized else masked


# -------------------------------------------------------------- the window now


MOST_LISTED = 5


@dataclass(frozen=True)
class LargeMessage:
    """A message that is sent word for word."""

    index: int | None
    """In the list that was given; None for one that was put in as a repair."""
    role: str
    tool: str
    """Whose result it is, or what it calls; "" for words."""
    tokens: int


@dataclass(frozen=True)
class ContextUse:
    """What fills the window, in tokens of the model at hand."""

    model: str | None
    window: int
    parts: Mapping[str, int]
    """Tokens of "tool schemas" (with what frames every request), "system prompt", "head" (the task
    and the first step, word for word), "summaries", "masked outputs" (one line each), "tail" (all
    other messages, word for word), "free" (below 0 where the next request has to be made smaller)
    and "reserve" (for the answer). They sum to `window`."""
    messages: Mapping[str, int]
    """How many messages the view has of each part that is made of messages."""
    trigger: int
    """Messages are compressed when they take more than this together."""
    largest: tuple[LargeMessage, ...]

    @property
    def used(self) -> int:
        """What a request takes."""
        return self.window - self.parts["free"] - self.parts["reserve"]


def context_use_of(look: Look, tokens: TokenCounter, overhead: int) -> ContextUse:
    """What fills the window as a look finds it; `overhead` is what is sent beside messages."""
    call, budget = look.call, look.budget
    layout, messages = look.layout, look.layout.transcript.messages
    held: dict[str, list[int]] = {"system prompt": [], "head": []}
    held |= {"summaries": [each.tokens for each in layout.summaries()]}
    held |= {"masked outputs": [], "tail": []}
    verbatim: list[int] = []
    for index in sorted(set(range(len(messages))) - layout.covered()):
        name = "head" if index < layout.head_end else "tail"
        if index < layout.transcript.leading:
            name = "system prompt"
        elif index in layout.replaced:
            name = "masked outputs"
        else:
            verbatim.append(index)
        held[name].append(layout.message_tokens(index))
    verbatim.sort(key=layout.tokens.__getitem__, reverse=True)
    answers = dict(answered(messages))

    def tools(index: int) -> str:
        """Whose results a message brings, and what it calls."""
        calls = [*answers.get(index, {}).values(), *tool_calls_of(messages[index])]
        return ", ".join(dict.fromkeys(call.name for call in calls))

    window = model_limits(call.config.model, call.config.context_window).window
    parts = {"tool schemas": overhead + tokens.messages([])}
    parts |= {name: sum(sizes) for name, sizes in held.items()}
    parts["free"] = budget.limit - layout.size()
    parts["reserve"] = window - sum(parts.values())
    return ContextUse(
        model=call.config.model,
        window=window,
        parts=parts,
        messages={name: len(sizes) for name, sizes in held.items()},
        trigger=budget.trigger,
        largest=tuple(
            LargeMessage(
                layout.transcript.origins[index],
                str(messages[index].get("role")),
                tools(index),
                layout.tokens[index],
            )
            for index in verbatim[:MOST_LISTED]
        ),
    )


# -------------------------------------------------------------- a compression to come


def preview_of(
    look: Look, plan: Plan | None, lines: Mapping[int, Message], tokens: TokenCounter
) -> Preview:
    """The preview of a plan; `lines` are what outputs would say that may be masked."""
    call, layout = look.call, look.layout
    runs = [("summary", job.start, job.end, job.room) for job in plan.jobs] if plan else []
    masks = plan.masks if plan else ()
    runs += [("mask", index, index + 1, tokens.message(lines[index])) for index in masks]
    # Stand-ins for what would be written, laid along the transcript as it would be.
    new = [Segment(kind, layout.digests[a:b], {}, size, 0, "") for kind, a, b, size in runs]
    opening = tokens.messages([])
    after = layout.adding(new)
    return Preview(
        parts=tuple(_parts(after, {id(segment) for segment in new}, call.budget)),
        messages=tuple(look.reading.own),
        message_tokens=layout.tokens,
        masks=frozenset(after.replaced),
        budget=call.budget,
        limits=model_limits(call.config.model, call.config.context_window),
        opening=opening,
        tokens=layout.size() + opening,
        would_compress=plan is not None,
        new_masks=len(masks),
        repaired=layout.transcript.repaired,
    )


def _parts(after: Layout, new: set[int], budget: Budget) -> Iterator[Part]:
    """The parts of a view, end to end; `new` are the ids of the segments that are to be written."""
    summaries, told, length = len(after.tiles), 0, len(after.tokens)
    ends = [(-1, 0, None), *after.tiles, (length, length, None)]
    gaps = [(gap, start, None) for (_, gap, _), (start, _, _) in pairwise(ends) if gap < start]
    for start, end, segment in sorted([*after.tiles, *gaps], key=lambda stretch: stretch[0]):
        size, before = end - start, after.source(start, end)
        if segment is not None:
            told += 1
            name = f"summary {told}" if summaries > 1 else "summary"
            is_new = id(segment) in new
            known = None if is_new else segment
            part = Part(name, start, size, before, segment.tokens, segment=known, to_write=is_new)
        else:
            name = "tail" if end == length else "kept" if told else "head"
            masked = sum(index in after.replaced for index in range(start, end))
            name, left = name if summaries else "all", after.span(start, end)
            part = Part(name, start, size, before, left, masked)
        yield replace(part, why=_why(part, budget, after))


def _why(part: Part, budget: Budget, layout: Layout) -> str:
    masked = f"; {part.masked} tool outputs become one line each" if part.masked else ""
    if part.to_write:
        return f"would be summarized, in at most {part.tokens_after:,} tokens"
    if part.segment is not None:
        return f"found in the ledger ({part.segment.method}): not paid for again"
    if part.name == "head":
        step = "first exchange" if part.messages > layout.transcript.leading + 1 else "task"
        return f"kept: system prompt and {step} (head_tokens {budget.head:,}){masked}"
    if part.name == "tail":
        return f"kept: the newest (protect_last_n_tokens {budget.tail:,}){masked}"
    if part.name == "all":
        return f"kept{masked}"
    messages = layout.transcript.messages[part.start : part.start + part.messages]
    only_users = all(message.get("role") == "user" for message in messages)
    kind = "the newest user message" if only_users else "pinned, or too small to gain"
    return f"kept: {kind}{masked}"
