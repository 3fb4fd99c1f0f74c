"""Texts made shorter without a model: old tool outputs as one line each, results that are too large
as their first and last lines, and as the last resort messages that no window can take, cut in their
middle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import accumulate, takewhile
from typing import Any, NamedTuple

from ..config import CompressorConfig
from ..facts.commands import call_outcome
from ..facts.passages import call_text, said_by, without_notes
from ..ledger.passages import lines_of
from ..messages import (
    Message,
    ToolCall,
    is_answer_block,
    is_result,
    is_system,
    media_in,
    result_blocks,
    result_text,
    text_of,
    to_plain,
    tool_calls_of,
)
from ..messages.display import in_words
from ..messages.shapes import encodable
from .frame import LEFT_OUT, READ_ON

# -------------------------------------------------------------- static


MASK_CHARS = 160


def mask_line(call: ToolCall, text: str, own: str) -> str:
    """One line for an old tool output: tool, arguments, size, outcome, how it begins and ends.

    `text` is the whole output, `own` what of it the tool itself has written.
    """
    outcome = call_outcome(call, own)
    said = " ".join(call_text(call).split())
    if len(said) > MASK_CHARS:
        said = said[: MASK_CHARS - 1] + "…"
    lines = text.count("\n") + 1 if text else 0
    told = outcome.detail[:MASK_CHARS]
    detail = (f": {told}" if told else "") + _ends(own, told)
    return f"[masked] {said} -> {outcome.status}, {lines} lines, {len(text)} chars{detail}"


# -------------------------------------------------------------- masks


Calls = Mapping[str, ToolCall]
"""Calls by the ids that their results name."""

MASK, SUMMARIZE, KEEP = "mask", "summarize", "keep"


def policy_of(tool: str, config: CompressorConfig, default: str = MASK) -> str:
    """ "mask", "summarize" or "keep" for a tool: by its name, else the first pattern that fits."""
    policies = config.tool_policies
    if tool in policies:
        return policies[tool]
    fitting = (policy for name, policy in policies.items() if fnmatchcase(tool, name))
    return next(fitting, default)


def answered(messages: Sequence[Message]) -> Iterator[tuple[int, Calls]]:
    """Each message with results and the calls they answer; ids count only within their step."""
    calls: dict[str, ToolCall] = {}
    for index, message in enumerate(messages):
        ids = _answers(message)
        found = {id: calls[id] for id in ids if id in calls}
        if found:
            yield index, found
        if not ids:
            calls = {call.id: call for call in tool_calls_of(message)}


def _answers(message: Message) -> list[str]:
    """The ids that the results in a message name."""
    if is_result(message):
        return [str(message.get("tool_call_id") or "")]
    return [str(block.get("tool_use_id") or "") for block in result_blocks(message)]


def maskable(
    messages: Sequence[Message], tokens: Sequence[int], config: CompressorConfig
) -> dict[int, Calls]:
    """The messages whose results may become one line each, by index, with the calls of those
    results: large, and of a tool that allows it."""
    found: dict[int, Calls] = {}
    for index, calls in answered(messages):
        if tokens[index] > config.mask_above_tokens:
            free = {id: call for id, call in calls.items() if policy_of(call.name, config) == MASK}
            if free:
                found[index] = free
    return found


def masked_by_policy(
    messages: Sequence[Message], tokens: Sequence[int], config: CompressorConfig
) -> tuple[Message, ...]:
    """The messages with each large output as its line whose tool `tool_policies` says to mask.

    A tool that no policy names is masked to save a call: where one is made its outputs are read.
    """
    shown = list(messages)
    for index, calls in maskable(messages, tokens, config).items():
        named = {id: call for id, call in calls.items() if policy_of(call.name, config, "")}
        if named:
            # Without a reference: what reads it writes a summary, whose frame has one for all.
            shown[index] = mask(named, messages[index], host_prefixes=config.host_prefixes)
    return tuple(shown)


LIKE_A_NAME = "s999.1"
"""A reference of as many tokens as most have."""


def kept_steps(
    messages: Sequence[Message], steps: Sequence[range], config: CompressorConfig
) -> frozenset[int]:
    """The messages of steps that call a tool whose outputs are to stay verbatim."""
    if KEEP not in config.tool_policies.values():
        return frozenset()
    return frozenset(
        index
        for step in steps
        if any(policy_of(call.name, config) == KEEP for call in tool_calls_of(messages[step.start]))
        for index in step
    )


def mask(
    calls: Calls,
    message: Message,
    reference: str = "",
    *,
    host_prefixes: tuple[str, ...] = (),
) -> Message:
    """The message with the results of these calls replaced by one line each; all else stays.

    `reference` names the whole in the archive; "" where it is not recorded.
    What begins with one of the `host_prefixes` below a result is not the tool's own word.
    """
    again = WHOLE.format(reference) if reference else " | whole: call again"

    def line_of(call: ToolCall, result: Message, _: Sequence[Any]) -> str:
        text = result_text(result) if is_result(result) else said_by(result)
        own = without_notes(text, host_prefixes)
        return mask_line(call, text, own) + again

    return _rewritten(calls, message, line_of)


Rewrite = Callable[[ToolCall, Message, Sequence[Any]], str]
"""What stands for the result of a call: it is a message, or a block after those that are given."""


def _rewritten(calls: Calls, message: Message, rewrite: Rewrite) -> Message:
    """The message with the results of these calls as they are rewritten; all else stays."""
    if is_result(message):
        text = rewrite(calls[str(message.get("tool_call_id") or "")], message, ())
        # Plain, because it is stored: a host may hang objects of its own on a message.
        return encodable(to_plain({**message, "content": text}))
    blocks = list(message["content"])
    for place, part in enumerate(message["content"]):
        call = calls.get(str(part.get("tool_use_id") or "")) if is_answer_block(part) else None
        if call is not None:
            text = rewrite(call, part, message["content"][:place])
            # Beside a large result a small one is shorter than what would stand for it.
            if len(text) < len(str(part.get("content") or "")):
                blocks[place] = {**part, "content": text}
    return encodable(to_plain({**message, "content": blocks}))


WHOLE = " | whole: {} in the archive, or call again"


def _ends(text: str, told: str) -> str:
    """How a long text begins and ends, without the lines that are told already: there a result most
    often says what it is and concludes."""
    flat = " ".join(text.split())
    if len(flat) <= 240:
        return ""
    for line in told.split(" … "):
        words = " ".join(line.split())
        if len(words) > LEAST_TOLD:
            flat = flat.replace(words, "…")
    ends = {"begins": flat[:80], "ends": flat[80:][-80:]}
    return "".join(f" | {name}: {part}" for name, part in ends.items() if part.strip("… "))


LEAST_TOLD = 8
"""Characters of what may stand twice: "ok" also stands within other words."""


# -------------------------------------------------------------- excerpts


class TooLarge(NamedTuple):
    """A message with results that take too much of the window."""

    calls: Calls
    """Those that the results answer."""
    keep: int
    """Tokens of the message that stay."""


EXCERPT_SHARE = 0.25
"""Of what a result may take, so much of a larger one stays."""


def large_results(
    messages: Sequence[Message],
    tokens: Sequence[int],
    spans: Iterable[range],
    config: CompressorConfig,
    most: int,
) -> dict[int, TooLarge]:
    """The messages whose results are too large to stay whole, by index; `spans` are the steps.

    One alone may take `most` tokens, several of one step together twice that. Those that a policy
    keeps stay, and so do pictures and files: an archive is read in words.
    """
    found: dict[int, TooLarge] = {}
    for span in spans:
        if sum(tokens[span.start : span.stop]) <= most:
            continue
        step = messages[span.start : span.stop]
        free = {
            span.start + at: {
                id: call for id, call in calls.items() if policy_of(call.name, config) != KEEP
            }
            for at, calls in answered(step)
            if not media_in(step[at])
        }
        sizes = {index: tokens[index] for index, calls in free.items() if calls}
        each = most
        if sum(min(size, most) for size in sizes.values()) > 2 * most:
            each = 2 * most // len(sizes)
        keep = int(each * EXCERPT_SHARE)
        found |= {i: TooLarge(free[i], keep) for i, size in sizes.items() if size > each}
    return found


def excerpt(
    found: TooLarge, message: Message, tokens: int, reference: str, *, reads: bool
) -> Message:
    """The message of so many tokens with each result as its first and last lines, word for word.

    Between them stands what is left out and, where the agent `reads` the archive by tools, by which
    `reference` to the message it does; "" where it is not recorded.
    """
    whole = in_words(message)
    density = len(whole) / max(1, tokens)
    half = int(found.keep * density / len(found.calls)) // 2
    length = len(lines_of(whole))

    def ends(call: ToolCall, result: Message, before: Sequence[Any]) -> str:
        text = result_text(result) if is_result(result) else text_of(result)
        lines = lines_of(text)
        head, tail = _within(lines, half), len(lines) - _within(lines[::-1], half)
        if head >= tail:
            return text
        start, end = _place(text, lines[:head]), _place(text, lines[:tail])
        above = len(lines_of(said)) if (said := text_of({"content": list(before)})) else 0
        first, last = above + head + 1, above + tail
        rest = READ_ON.format(f"{reference}:{first}-{last}") if reference and reads else ""
        size = int((end - start) / density)
        told = LEFT_OUT.format(f"{first:,}", f"{last:,}", f"{length:,}", f"{size:,}", rest)
        return "\n".join([text[:start].rstrip("\n"), told, text[end:]])

    return _rewritten(found.calls, message, ends)


def _within(lines: Sequence[str], chars: int) -> int:
    """How many of the first lines take at most so many characters; one at least."""
    sizes = accumulate(len(line) + 1 for line in lines)
    return max(1, sum(1 for _ in takewhile(lambda size: size <= chars, sizes)))


def _place(text: str, lines: Sequence[str]) -> int:
    """Where these first lines of a text end in it; not each ends with a break: long ones wrap."""
    at = 0
    for line in lines:
        at += len(line)
        at += text.startswith("\n", at)
    return at


# -------------------------------------------------------------- shortening


Count = Callable[[Sequence[Message]], int]

LEAST_CHARS = 200


def shorten(messages: Sequence[Message], limit: int, count: Count) -> list[Message]:
    """The messages with their longest texts cut in the middle until they count at most `limit`.

    Tool results and the user's words after the task are cut first where that is enough; else
    everything but system messages and the newest, else all. The shortest possible list is returned
    where even that does not fit.
    """
    every = range(len(messages))
    users = [index for index in every if messages[index].get("role") == "user"]
    later = [index for index in every if is_result(messages[index]) or index in users[1:]]
    rest = [index for index in every[:-1] if not is_system(messages[index])]
    shortened = list(messages)
    for targets in (later, rest, every):
        if count(shortened) <= limit:
            break
        shortened = _level(list(messages), targets, limit, count)
    return shortened


def _level(
    messages: list[Message], targets: Sequence[int], limit: int, count: Count
) -> list[Message]:
    """Every target cut to one common length: the largest for which the list fits."""
    longest = max((len(str(messages[i].get("content") or "")) for i in targets), default=0)
    low, high = LEAST_CHARS, max(LEAST_CHARS, longest)
    best = _cut_all(messages, targets, low)
    while high - low > max(50, low // 50):
        middle = (low + high) // 2
        tried = _cut_all(messages, targets, middle)
        if count(tried) <= limit:
            best, low = tried, middle
        else:
            high = middle
    return best


def _cut_all(messages: Sequence[Message], targets: Sequence[int], chars: int) -> list[Message]:
    chosen = set(targets)
    return [_cut(m, chars) if i in chosen else m for i, m in enumerate(messages)]


def _cut(message: Message, chars: int) -> Message:
    content = message.get("content")
    if isinstance(content, str):
        return {**message, "content": _middle_out(content, chars)}
    if isinstance(content, list):
        return {**message, "content": [_cut_part(part, chars) for part in content]}
    return message


def _cut_part(part: Any, chars: int) -> Any:
    if isinstance(part, dict) and part.get("type") in ("text", "input_text"):
        return {**part, "text": _middle_out(str(part.get("text") or ""), chars)}
    if is_answer_block(part):
        return _cut(part, chars)
    return part


def _middle_out(text: str, chars: int) -> str:
    if len(text) <= chars:
        return text
    half = chars // 2
    left_out = len(text) - 2 * half
    return (
        f"{text[:half]}\n[… {left_out} characters left out: no window takes them …]\n{text[-half:]}"
    )
