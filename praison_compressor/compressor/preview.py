"""`Preview`: show the next compression. `ContextUse`: tokens of the window by part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ..ledger.segments import Segment
from ..messages import Message, text_of, tool_calls_of
from ..messages.display import pluralize
from ..tokens.counter import TokenCounter
from ..tokens.models import model_limits
from ..view.budget import Budget
from ..view.costs import Balance
from ..view.masks import results_with_calls
from ..view.view import Tile, View
from .choices import known_references
from .decision import Decision, Reason, balance_of, trigger_of
from .request import Request


@dataclass(frozen=True)
class Part:
    """A run of the transcript, and its form in the view."""

    name: str
    """ "head", "summary", "kept", "tail", or "all" if nothing is summarized."""
    start: int
    """Index of its first message."""
    messages: int
    """Messages of the run."""
    tokens_before: int
    """Tokens of the run's original messages."""
    tokens_after: int
    """Tokens of the run in the view."""
    masked: int = 0
    """Tool outputs of the run that masks or excerpts replace."""
    segment: Segment | None = None
    """The summary in the ledger that replaces the run."""
    to_write: bool = False
    """Whether the compression would summarize the run, in at most `tokens_after` tokens."""
    why: str = ""
    """Why the run has this form, in one phrase."""
    text: str = ""
    """The summary's text; "" while a model has not written it."""
    reference: str = ""
    """The summary's reference, as s2."""


@dataclass(frozen=True)
class Preview:
    """The next compression, with counts by the view's model."""

    parts: tuple[Part, ...]
    """The runs of the transcript, in order."""
    messages: tuple[Message, ...]
    """The transcript, with malformed parts repaired."""
    message_tokens: tuple[int, ...]
    """Tokens of each of `messages`."""
    replaced_results: Mapping[int, Segment]
    """Index of a tool output -> the mask or excerpt that replaces it, or would replace it."""
    references: tuple[str, ...]
    """The reference of each message that is or would be archived, as s2.14; "" for every other
    message."""
    user_kept: frozenset[int]
    """Indices of the messages that the user keeps."""
    window: int
    """Tokens of the model's window."""
    window_source: str
    """The table or option that has the window."""
    limit: int
    """Upper bound of the messages' tokens: the usable window, or `target_tokens`."""
    trigger: int
    """Tokens of the messages above which they are compressed."""
    target: int
    """Tokens of the messages to which a compression brings them."""
    opening: int
    """Tokens of a request without messages."""
    tokens: int
    """Tokens of the view before the compression."""
    tokens_after: int
    """Tokens of the view after the compression; an upper bound while a summary is not written."""
    would_compress: bool
    """Whether `compress` would compress now."""
    reason: Reason
    """Why `compress` would compress: "due" (above the trigger), "asked" or "cold cache". Or why it
    would not: "fits", "fixed part", "no gain" or "price", as in the event "skipped"."""
    new_masks: int
    """Outputs that this compression would mask or cut to their ends."""
    repaired: int
    """Messages that repair inserted."""
    balance: Balance | None
    """Cost and saving in US dollars; `str` gives one line. None without a plan or known prices."""

    @property
    def would_write(self) -> int:
        """Number of summaries that would be written."""
        return sum(part.to_write for part in self.parts)

    def fates(self) -> Iterator[tuple[int, str]]:
        """Yield each index with "keep", "mask", "excerpt" or its summary's reference."""
        for part in self.parts:
            for index in range(part.start, part.start + part.messages):
                result = self.replaced_results.get(index)
                yield index, part.reference or ("keep" if result is None else result.kind)


# -------------------------------------------------------------- the window now


MOST_LARGE = 5


@dataclass(frozen=True)
class LargeMessage:
    """A message that is sent verbatim."""

    index: int | None
    """Index in the given list; None for a message that repair inserted."""
    role: str
    """The message's role, as "user" or "tool"."""
    tool: str
    """Tool that the message calls, or whose result it has; "" for other messages."""
    tokens: int
    """Tokens of the message."""


@dataclass(frozen=True)
class ContextUse:
    """The window's tokens by part, as the view's model counts them."""

    model: str | None
    """The model that reads the view."""
    window: int
    """Tokens of the model's window."""
    parts: Mapping[str, int]
    """Tokens of "tool schemas", "system prompt", "head" (its rest, and the pinned texts),
    "summaries", "masked outputs" (masks and excerpts), "tail" (all other messages, verbatim, with
    the opening of a request), "free" (below 0 if the next request must be made smaller) and
    "reserve" (for the answer). They sum to `window`."""
    messages: Mapping[str, int]
    """Messages of the view in each part."""
    message_tokens: int
    """Tokens of the messages, without the opening of a request and the pinned texts."""
    trigger: int
    """`message_tokens` above which the messages are compressed."""
    largest: tuple[LargeMessage, ...]
    """The largest messages that are sent verbatim, the largest first."""

    @property
    def used(self) -> int:
        """Tokens of a request."""
        return self.window - self.parts["free"] - self.parts["reserve"]


def context_use_of(request: Request, view: View, tokens: TokenCounter) -> ContextUse:
    """Return the window's tokens by part."""
    part_of = {i: _part_name(view, i) for i in range(len(view.tokens)) if i not in view.covered}
    sizes = _part_sizes(view, part_of)
    parts = {"tool schemas": request.overhead_tokens}
    parts |= {name: sum(part) for name, part in sizes.items()}
    parts["tail"] += tokens.messages([])
    # The budget reserves tokens for the pinned texts, even in a view without these texts.
    aside = 0 if view.pinned is None else view.pinned.tokens - view.pinned_tokens()
    parts["free"] = request.budget.limit - view.size() + aside
    window = model_limits(request.config.model, request.config.context_window).window
    parts["reserve"] = window - sum(parts.values())
    return ContextUse(
        model=request.config.model,
        window=window,
        parts=parts,
        messages={name: len(part) for name, part in sizes.items()},
        message_tokens=view.size(),
        trigger=trigger_of(request, view.session),
        largest=_largest(view, [i for i, name in part_of.items() if name in ("head", "tail")]),
    )


def _part_sizes(view: View, part_of: Mapping[int, str]) -> dict[str, list[int]]:
    names = ("system prompt", "head", "summaries", "masked outputs", "tail")
    sizes: dict[str, list[int]] = {name: [] for name in names}
    for index, name in part_of.items():
        sizes[name].append(view.message_tokens(index))
    sizes["summaries"] += [segment.tokens for segment in view.summaries()]
    sizes["summaries"] += view.bridges(0, len(view.tokens))
    if view.pinned_tokens():
        sizes["head"].append(view.pinned_tokens())
    return sizes


def _part_name(view: View, index: int) -> str:
    if index < view.transcript.leading:
        return "system prompt"
    if index in view.result_segments:
        return "masked outputs"
    return "head" if index < view.head_end else "tail"


def _largest(view: View, verbatim: list[int]) -> tuple[LargeMessage, ...]:
    messages = view.transcript.messages
    answers = dict(results_with_calls(messages))

    def tools(index: int) -> str:
        calls = [*answers.get(index, {}).values(), *tool_calls_of(messages[index])]
        return ", ".join(dict.fromkeys(call.name for call in calls))

    return tuple(
        LargeMessage(
            index=view.transcript.origins[index],
            role=str(messages[index].get("role")),
            tool=tools(index),
            tokens=view.tokens[index],
        )
        for index in sorted(verbatim, key=view.tokens.__getitem__, reverse=True)[:MOST_LARGE]
    )


# -------------------------------------------------------------- a compression to come


def preview_of(decision: Decision, segments: Sequence[Segment], tokens: TokenCounter) -> Preview:
    """Return the preview of a decision with its plan's segments."""
    request, view, plan = decision.request, decision.view, decision.plan
    opening = tokens.messages([])
    limits = model_limits(request.config.model, request.config.context_window)
    costs = request.budget.costs
    text_tokens = {view.digests[job.start : job.end]: job.text_tokens for job in plan.jobs}
    new = [s if s.rendered else replace(s, tokens=text_tokens[s.run]) for s in segments]
    after = view.with_segments(new)
    references = {index: reference for reference, index in known_references(after).items()}
    return Preview(
        parts=tuple(_preview_parts(after, {id(segment) for segment in new}, request.budget)),
        messages=tuple(view.caller_messages),
        message_tokens=view.tokens,
        replaced_results={
            index: segment
            for index, segment in after.result_segments.items()
            if index not in after.covered
        },
        references=tuple(references.get(index, "") for index in range(len(view.tokens))),
        user_kept=view.user_kept,
        window=limits.window,
        window_source=limits.source,
        limit=request.budget.limit,
        trigger=request.budget.trigger,
        target=request.budget.target,
        opening=opening,
        tokens=view.size() + view.pinned_tokens() + opening,
        tokens_after=after.size() + after.pinned_tokens() + opening,
        would_compress=decision.is_compression,
        reason=decision.reason,
        new_masks=len(plan.masks + plan.excerpted),
        repaired=view.transcript.stub_count,
        balance=balance_of(view, plan, costs) if decision.is_compression and costs else None,
    )


def _preview_parts(after: View, new: set[int], budget: Budget) -> Iterator[Part]:
    """Yield the parts of a view; `new` has ids of new segments."""
    ends = [0, *(end for tile in after.tiles for end in tile[:2]), len(after.tokens)]
    gaps = (gap for gap in zip(ends[::2], ends[1::2], strict=True) if gap[0] < gap[1])
    parts = [_verbatim_part(after, start, end) for start, end in gaps]
    parts += [_summary_part(after, tile, new) for tile in after.tiles]
    for part in sorted(parts, key=lambda part: part.start):
        yield replace(part, why=_reason_for(part, budget, after))


def _verbatim_part(after: View, start: int, end: int) -> Part:
    name = "tail" if end == len(after.tokens) else "kept" if start else "head"
    return Part(
        name=name if after.tiles else "all",
        start=start,
        messages=end - start,
        tokens_before=after.original_tokens(start, end),
        tokens_after=after.span_tokens(start, end) + sum(after.bridges(start, end)),
        masked=sum(index in after.result_segments for index in range(start, end)),
    )


def _summary_part(after: View, tile: Tile, new: set[int]) -> Part:
    start, end, segment = tile
    is_new = id(segment) in new
    number = next(n for n, other in enumerate(after.segments, 1) if other is segment)
    return Part(
        name="summary",
        start=start,
        messages=end - start,
        tokens_before=after.original_tokens(start, end),
        tokens_after=segment.tokens + sum(after.bridges(start, end)),
        segment=None if is_new else segment,
        to_write=is_new,
        text=text_of(segment.rendered),
        reference=f"s{number}",
    )


def _reason_for(part: Part, budget: Budget, view: View) -> str:
    if part.to_write:
        return "would be summarized" if part.text else "would be summarized, in at most that"
    if part.segment is not None:
        return f"found in the ledger ({part.segment.method}): not paid for again"
    inside = range(part.start, part.start + part.messages)
    kept = sum(index in view.user_kept and index >= view.head_end for index in inside)
    also = f"; {pluralize(kept, 'message')} chosen by the user" if kept else ""
    if part.masked:
        also += f"; {pluralize(part.masked, 'tool output')} as one line each"
    if part.name == "all":
        return f"kept{also}"
    if part.name == "head":
        step = "first exchange" if view.head_end > view.transcript.leading + 1 else "task"
        return f"kept: system prompt and {step} (head_tokens={budget.head_tokens:_}){also}"
    if part.name == "tail":
        newest = "the newest that fit" if part.tokens_before < budget.tail_tokens else "the newest"
        return f"kept: {newest} (protect_last_n_tokens={budget.tail_tokens:_}){also}"
    if kept == part.messages:
        return f"kept{also}"
    only_users = all(view.transcript.messages[index].get("role") == "user" for index in inside)
    kind = "the newest user message" if only_users else "kept by a policy, or too small to gain"
    return f"kept: {kind}{also}"
