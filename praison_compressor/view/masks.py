"""Mask old tool results, excerpt large ones, cut long messages."""

from __future__ import annotations

import functools
import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import accumulate, takewhile
from typing import Any, NamedTuple

from ..config import POLICIES, CompressorConfig
from ..messages import (
    Message,
    ToolCall,
    is_result,
    is_system,
    result_text,
    text_of,
    to_plain,
    tool_calls_of,
)
from ..messages.calls import call_text
from ..messages.display import message_as_text, pluralize
from ..messages.shapes import (
    MASK_OPENS,
    is_result_block,
    makes_calls,
    media_count,
    replace_surrogates,
    result_blocks,
)
from ..messages.shortening import cut_line, with_shorter_calls
from ..messages.speakers import without_notes
from ..quotes import deciding_line
from ..quotes.output_lines import TALLY, is_failure
from ..recall.layout import split_lines
from .frame import LEFT_OUT, READ_ON

CALL_CHARS = 100
DECIDING_CHARS = 80


def _block_text(block: Mapping[str, Any]) -> str:
    text = text_of(block)
    return f"is_error: {text}" if block.get("is_error") is True else text


def mask_line(call: ToolCall, text: str, output: str, reference: str = "") -> str:
    r"""Return the mask of an old output.

    Args:
        text: the whole result.
        output: the text without the host's notes.
        reference: the output's reference; "" if the agent cannot read the archive.

    >>> mask_line(ToolCall("c", "bash", '{"command": "cat a.py"}'), "x = 1\n" * 99, "", "s2.1")
    '[masked] bash cat a.py: 100 lines, 594 characters; s2.1'
    """
    lines = text.count("\n") + 1 if text else 0
    size = f"{pluralize(lines, 'line')}, {len(text):,} characters"
    deciding = " ".join(deciding_line(call, output).split())
    parts = [f"{MASK_OPENS} {cut_line(call_text(call), CALL_CHARS)}: {size}"]
    if deciding and len(deciding) < len(text):
        parts.append(f'"{cut_line(deciding, DECIDING_CHARS)}"')
    return "; ".join([*parts, reference] if reference else parts)


# -------------------------------------------------------------- masks

CallsById = Mapping[str, ToolCall]

MASK, _, KEEP = POLICIES
LEAST_MASKED_TOKENS = 200


def policy_of(tool: str, config: CompressorConfig, default: str = MASK) -> str:
    """Return a tool's policy by name, else by the first matching pattern."""
    policies = config.tool_policies
    if tool in policies:
        return policies[tool]
    fitting = (policy for name, policy in policies.items() if fnmatchcase(tool, name))
    return next(fitting, default)


def results_with_calls(messages: Sequence[Message]) -> Iterator[tuple[int, CallsById]]:
    """Yield the index of each message with results, and the results' calls."""
    calls: dict[str, ToolCall] = {}  # of one step: a later step may use an id again
    for index, message in enumerate(messages):
        ids = _result_ids(message)
        if not ids:
            calls = {call.id: call for call in tool_calls_of(message)}
        elif answered := {id: calls[id] for id in ids if id in calls}:
            yield index, answered


def _result_ids(message: Message) -> list[str]:
    if is_result(message):
        return [str(message.get("tool_call_id") or "")]
    return [str(block.get("tool_use_id") or "") for block in result_blocks(message)]


def maskable_results(
    messages: Sequence[Message],
    tokens: Sequence[int],
    config: CompressorConfig,
    default: str = MASK,
) -> dict[int, CallsById]:
    """Return the calls with maskable results, by message index.

    `default`: the policy of a tool that has no configured policy.
    """
    policies = config.tool_policies
    if MASK not in (*policies.values(), "" if "*" in policies else default):
        return {}
    maskable: dict[int, CallsById] = {}
    for index, calls in results_with_calls(messages):
        if tokens[index] > LEAST_MASKED_TOKENS:
            policy = {id: policy_of(call.name, config, default) for id, call in calls.items()}
            if free := {id: call for id, call in calls.items() if policy[id] == MASK}:
                maskable[index] = free
    return maskable


def mask_by_policy(
    messages: Sequence[Message], tokens: Sequence[int], config: CompressorConfig
) -> tuple[Message, ...]:
    """Mask the outputs of tools with the policy "mask"; return all messages."""
    shown = list(messages)
    for index, calls in maskable_results(messages, tokens, config, default="").items():
        shown[index] = mask_results(calls, messages[index])
    return tuple(shown)


SAMPLE_REFERENCE = "s999.1"
"""Reference in a mask that is only counted; few references are longer."""


def messages_to_keep(
    messages: Sequence[Message], steps: Sequence[range], config: CompressorConfig
) -> frozenset[int]:
    """Return the messages of steps with a tool of the policy "keep"."""
    if KEEP not in config.tool_policies.values():
        return frozenset()
    return frozenset(
        index
        for step in steps
        if any(policy_of(call.name, config) == KEEP for call in tool_calls_of(messages[step.start]))
        for index in step
    )


def mask_results(calls: CallsById, message: Message, reference: str = "") -> Message:
    """Return the message with the results of these calls masked."""

    def line_of(call: ToolCall, result: Message, _: Sequence[Any]) -> str:
        text = result_text(result) if is_result(result) else _block_text(result)
        return mask_line(call, text, without_notes(text), reference)

    return rewrite_results(calls, message, line_of)


Rewrite = Callable[[ToolCall, Message, Sequence[Any]], str]
"""(call, result message or block, blocks before the result) -> replacement text."""


def rewrite_results(calls: CallsById, message: Message, rewrite: Rewrite) -> Message:
    """Return the message with the results of these calls rewritten."""
    if is_result(message):
        text = rewrite(calls[str(message.get("tool_call_id") or "")], message, ())
        # The store needs plain data; a host may add objects to a message.
        return replace_surrogates(to_plain({**message, "content": text}))
    blocks = list(message["content"])
    for place, part in enumerate(message["content"]):
        call = calls.get(str(part.get("tool_use_id") or "")) if is_result_block(part) else None
        if call is not None:
            text = rewrite(call, part, message["content"][:place])
            if len(text) < len(str(part.get("content") or "")):
                blocks[place] = {**part, "content": text}
    return replace_surrogates(to_plain({**message, "content": blocks}))


# -------------------------------------------------------------- excerpts


class LargeResults(NamedTuple):
    """The large results of a message."""

    calls: CallsById
    kept_tokens: int
    """Upper bound of the tokens of all excerpts together."""


EXCERPT_SHARE = 0.25


def large_results(
    messages: Sequence[Message],
    tokens: Sequence[int],
    steps: Iterable[range],
    config: CompressorConfig,
    most: int,
) -> dict[int, LargeResults]:
    """Return the results and calls that are too large, by message index.

    Results of tools with the policy "keep" are left out. So are results with pictures or files,
    because the archive returns only text.

    Args:
        most: upper bound of the tokens of one result. The results of a step together may take twice
            that number, and so may the calls of a message.
    """
    large: dict[int, LargeResults] = {}
    for step in steps:
        if sum(tokens[step.start : step.stop]) > most:
            large |= _large_in_step(messages, tokens, step, config, most)
    return large


def _large_in_step(
    messages: Sequence[Message],
    tokens: Sequence[int],
    span: range,
    config: CompressorConfig,
    most: int,
) -> dict[int, LargeResults]:
    step = messages[span.start : span.stop]
    results = {
        span.start + at: _calls_not_kept(calls.values(), config)
        for at, calls in results_with_calls(step)
        if not media_count(step[at])
    }
    sizes = {index: tokens[index] for index in results if results[index]}
    limit = most
    if sum(min(size, most) for size in sizes.values()) > 2 * most:
        limit = 2 * most // len(sizes)
    kept_tokens = int(limit * EXCERPT_SHARE)
    large = {n: LargeResults(results[n], kept_tokens) for n, size in sizes.items() if size > limit}
    calls = _calls_not_kept(tool_calls_of(step[0]), config)
    outweigh = sum(len(call.arguments) for call in calls.values()) > len(text_of(step[0]))
    if tokens[span.start] > 2 * most and outweigh:
        large[span.start] = LargeResults(calls, int(most * EXCERPT_SHARE))
    return large


def _calls_not_kept(calls: Iterable[ToolCall], config: CompressorConfig) -> CallsById:
    return {call.id: call for call in calls if policy_of(call.name, config) != KEEP}


def excerpt_results(large: LargeResults, message: Message, tokens: int, reference: str) -> Message:
    """Return the message with each large result as an excerpt.

    Long strings in a call's arguments lose their middle; the arguments stay JSON.

    Args:
        tokens: the message's size.
        reference: the message's reference; "" if the agent cannot read the archive.
    """
    whole = message_as_text(message)
    density = len(whole) / max(1, tokens)
    half = int(large.kept_tokens * density / len(large.calls)) // 2
    if makes_calls(message):
        way_back = f"{reference} has them" if reference else ""
        shorten = functools.partial(leave_out_middle, reason=way_back)
        shorter = with_shorter_calls(message, 2 * half, shorten, large.calls)
        return replace_surrogates(to_plain(shorter))
    length = len(split_lines(whole))

    def excerpt(call: ToolCall, result: Message, before: Sequence[Any]) -> str:
        text = result_text(result) if is_result(result) else text_of(result)
        gap = _gap_in(text, call, half)
        if gap is None:
            return text
        above = len(split_lines(earlier)) if (earlier := text_of({"content": list(before)})) else 0
        first, last = above + gap.first, above + gap.last
        way_back = READ_ON.format(f"{reference}:{first}-{last}") if reference else ""
        size = int((gap.end - gap.start) / density)
        marks = [LEFT_OUT.format(f"{first:,}", f"{last:,}", f"{length:,}", f"{size:,}", way_back)]
        if gap.quoted:
            marks.append(f"[line {above + gap.quoted_at:,}] {gap.quoted}")
        return "\n".join([text[: gap.start].rstrip("\n"), *marks, text[gap.end :]])

    return rewrite_results(large.calls, message, excerpt)


class _Gap(NamedTuple):
    """The lines that an excerpt leaves out."""

    start: int
    end: int
    first: int
    """Number of the first line that is left out, counted from 1."""
    last: int
    quoted: str = ""
    """A deciding line in the gap, which the excerpt shows."""
    quoted_at: int = 0


QUOTED_CHARS = 150
"""Upper bound of the characters of `_Gap.quoted` and its line number together."""


def _gap_in(text: str, call: ToolCall, half: int) -> _Gap | None:
    """Return the gap that leaves `half` characters at each end, or None."""
    lines = split_lines(text)
    ends = _line_ends(text, lines)
    before, after = _lines_within(lines, half), len(lines) - _lines_within(lines[::-1], half)
    if before >= after:
        return None
    end = ends[after - 1]
    at = _deciding_place(call, text, ends[before - 1], end) if half > 2 * QUOTED_CHARS else -1
    if at < 0:
        return _Gap(ends[before - 1], end, before + 1, after)
    number = bisect_right(ends, at)
    before = _lines_within(lines, half - QUOTED_CHARS)
    quoted = cut_line(lines[number], QUOTED_CHARS - len(f"[line {number:,}] "))
    return _Gap(ends[before - 1], end, before + 1, after, quoted, number + 1)


def _deciding_place(call: ToolCall, text: str, start: int, end: int) -> int:
    """Return where the text's failure or tally begins, or -1."""
    for part in _EXIT_CODE.sub("", deciding_line(call, text)).split(" … "):
        # `deciding_line` collapses spaces.
        words = r"\s+".join(map(re.escape, part.split()))
        place = re.compile(words).search(text, start, end)
        if place and (is_failure(part) or TALLY.search(part)):
            return place.start()
    return -1


_EXIT_CODE = re.compile(r"\Aexit code \S+: ")


def _lines_within(lines: Sequence[str], chars: int) -> int:
    """Return how many first lines fit `chars` characters; at least 1."""
    sizes = accumulate(len(line) + 1 for line in lines)
    return max(1, sum(1 for _ in takewhile(lambda size: size <= chars, sizes)))


def _line_ends(text: str, lines: Sequence[str]) -> list[int]:
    ends, at = [], 0
    for line in lines:
        at += len(line)
        at += text.startswith("\n", at)  # a wrapped line ends without a break
        ends.append(at)
    return ends


# -------------------------------------------------------------- messages too long for the window

CountMessages = Callable[[Sequence[Message]], int]

LEAST_CUT_CHARS = 200


def shorten_messages(
    messages: Sequence[Message], limit: int, count: CountMessages
) -> list[Message]:
    """Return the messages with the longest texts cut to fit `limit` tokens.

    Texts are cut in this order until the messages fit: tool results and every user message except
    the first; all messages except system messages and the newest message; all messages; the
    arguments of calls.
    """
    every = range(len(messages))
    users = [index for index in every if messages[index].get("role") == "user"]
    later = {*users[1:], *(index for index in every if is_result(messages[index]))}
    not_newest = {index for index in every[:-1] if not is_system(messages[index])}
    shortened = list(messages)
    for targets in (later, not_newest, every):
        if count(shortened) <= limit:
            return shortened
        shortened = _cut_evenly(messages, targets, limit, count, _cut_message)
    if count(shortened) <= limit or not any(map(makes_calls, messages)):
        return shortened
    cut_calls = functools.partial(with_shorter_calls, shorten=leave_out_middle)
    return _cut_evenly(shortened, every, limit, count, cut_calls)


def shorten_fixed(
    messages: Sequence[Message], replaceable: Sequence[bool], limit: int, count: CountMessages
) -> list[Message]:
    """Return the messages, those not replaceable cut to fit `limit` tokens."""
    pairs = list(zip(messages, replaceable, strict=True))
    shorter = iter(shorten_messages([m for m, is_one in pairs if not is_one], limit, count))
    return [message if is_one else next(shorter) for message, is_one in pairs]


def _cut_evenly(
    messages: Sequence[Message],
    targets: Collection[int],
    limit: int,
    count: CountMessages,
    cut: Callable[[Message, int], Message],
) -> list[Message]:
    def cut_to(chars: int) -> list[Message]:
        return [cut(m, chars) if n in targets else m for n, m in enumerate(messages)]

    low = LEAST_CUT_CHARS
    high, best = max([low, *(_longest_text(messages[index]) for index in targets)]), cut_to(low)
    while high - low > max(50, low // 50):
        middle = (low + high) // 2
        tried = cut_to(middle)
        if count(tried) <= limit:
            best, low = tried, middle
        else:
            high = middle
    return best


def _longest_text(message: Message) -> int:
    arguments = (len(call.arguments) for call in tool_calls_of(message))
    return max([len(str(message.get("content") or "")), *arguments])


def _cut_message(message: Message, chars: int) -> Message:
    content = message.get("content")
    if isinstance(content, str):
        return {**message, "content": leave_out_middle(content, chars)}
    if isinstance(content, list):
        return {**message, "content": [_cut_part(part, chars) for part in content]}
    return message


def _cut_part(part: Any, chars: int) -> Any:
    if isinstance(part, dict) and part.get("type") in ("text", "input_text"):
        return {**part, "text": leave_out_middle(str(part.get("text") or ""), chars)}
    if is_result_block(part):
        return _cut_message(part, chars)
    return part


def leave_out_middle(text: str, chars: int, reason: str = "too long for the window") -> str:
    """Replace a text's middle by its size and the reason."""
    if len(text) <= chars:
        return text
    half = chars // 2
    left_out = f"{len(text) - 2 * half:,} characters left out"
    note = f"{left_out}: {reason}" if reason else left_out
    return f"{text[:half]}\n[… {note} …]\n{text[-half:]}"
