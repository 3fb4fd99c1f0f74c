"""Replace old tool outputs by one line each, by policy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from ..config import POLICIES, CompressorConfig
from ..messages import Message, ToolCall, is_result, result_text, text_of, to_plain, tool_calls_of
from ..messages.calls import call_text
from ..messages.display import pluralize
from ..messages.shapes import MASK_OPENS, is_result_block, replace_surrogates, result_blocks
from ..messages.shortening import cut_line
from ..messages.speakers import without_notes
from ..quotes import deciding_line

CALL_CHARS = 100
DECIDING_CHARS = 80


def _block_text(block: Mapping[str, Any]) -> str:
    """Return a result block's text, with its `is_error` flag if set."""
    text = text_of(block)
    return f"is_error: {text}" if block.get("is_error") is True else text


def mask_line(call: ToolCall, text: str, output: str, reference: str = "") -> str:
    r"""Return one line for an old output, with its reference.

    Args:
        text: the whole result.
        output: the text without the host's notes.
        reference: names the whole output; "" if the archive cannot be read.

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
"""Call id in the result → call."""

MASK, _, KEEP = POLICIES
LEAST_MASKED = 200  # tokens of the smallest output that is masked


def policy_of(tool: str, config: CompressorConfig, default: str = MASK) -> str:
    """Return a tool's policy by name, else by the first pattern."""
    policies = config.tool_policies
    if tool in policies:
        return policies[tool]
    fitting = (policy for name, policy in policies.items() if fnmatchcase(tool, name))
    return next(fitting, default)


def results_with_calls(messages: Sequence[Message]) -> Iterator[tuple[int, CallsById]]:
    """Yield each message with results, and their calls by id."""
    calls: dict[str, ToolCall] = {}  # of the newest step: ids may be used again
    for index, message in enumerate(messages):
        ids = _result_ids(message)
        if not ids:
            calls = {call.id: call for call in tool_calls_of(message)}
        elif answered := {id: calls[id] for id in ids if id in calls}:
            yield index, answered


def _result_ids(message: Message) -> list[str]:
    """Return the call ids that a message's results name."""
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

    Such a result is large, and its tool's policy is "mask"; a tool without one has the default.
    """
    policies = config.tool_policies
    if MASK not in (*policies.values(), "" if "*" in policies else default):
        return {}
    maskable: dict[int, CallsById] = {}
    for index, calls in results_with_calls(messages):
        if tokens[index] > LEAST_MASKED:
            policy = {id: policy_of(call.name, config, default) for id, call in calls.items()}
            if free := {id: call for id, call in calls.items() if policy[id] == MASK}:
                maskable[index] = free
    return maskable


def mask_by_policy(
    messages: Sequence[Message], tokens: Sequence[int], config: CompressorConfig
) -> tuple[Message, ...]:
    """Return the messages, large outputs masked where a policy is "mask".

    Outputs of tools that no policy names stay: the summarizer reads them.
    """
    shown = list(messages)
    for index, calls in maskable_results(messages, tokens, config, default="").items():
        # No reference here: the summary's frame names the whole segment.
        shown[index] = mask_results(calls, messages[index])
    return tuple(shown)


SAMPLE_REFERENCE = "s999.1"
"""Stand-in reference, to count a mask before it has its own."""


def messages_to_keep(
    messages: Sequence[Message], steps: Sequence[range], config: CompressorConfig
) -> frozenset[int]:
    """Return the messages of steps that a "keep" policy keeps."""
    if KEEP not in config.tool_policies.values():
        return frozenset()
    return frozenset(
        index
        for step in steps
        if any(policy_of(call.name, config) == KEEP for call in tool_calls_of(messages[step.start]))
        for index in step
    )


def mask_results(calls: CallsById, message: Message, reference: str = "") -> Message:
    """Return the message, each result of these calls on one line.

    `reference` names the whole output; "" if it cannot be read from the archive.
    """

    def line_of(call: ToolCall, result: Message, _: Sequence[Any]) -> str:
        text = result_text(result) if is_result(result) else _block_text(result)
        return mask_line(call, text, without_notes(text), reference)

    return rewrite_results(calls, message, line_of)


Rewrite = Callable[[ToolCall, Message, Sequence[Any]], str]
"""(call, its result, blocks before the result) -> replacement text.

The result is a message or a block."""


def rewrite_results(calls: CallsById, message: Message, rewrite: Rewrite) -> Message:
    """Return the message with the results of these calls rewritten."""
    if is_result(message):
        text = rewrite(calls[str(message.get("tool_call_id") or "")], message, ())
        # Plain, because it is stored: a host may hang objects of its own on a message.
        return replace_surrogates(to_plain({**message, "content": text}))
    blocks = list(message["content"])
    for place, part in enumerate(message["content"]):
        call = calls.get(str(part.get("tool_use_id") or "")) if is_result_block(part) else None
        if call is not None:
            text = rewrite(call, part, message["content"][:place])
            # Skip a result that is shorter than its replacement.
            if len(text) < len(str(part.get("content") or "")):
                blocks[place] = {**part, "content": text}
    return replace_surrogates(to_plain({**message, "content": blocks}))
