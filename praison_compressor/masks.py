"""Old tool outputs as one line each: which may be masked, and what the line says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

from .config import CompressorConfig
from .facts.reading import without_notes
from .messages import Message, ToolCall, is_result, result_text, to_plain, tool_calls_of
from .static import mask_line

__all__ = ["kept_steps", "mask", "maskable", "masked", "policy_of", "reference_of"]

MASK, SUMMARIZE, KEEP = "mask", "summarize", "keep"


def policy_of(tool: str, config: CompressorConfig) -> str:
    """ "mask", "summarize" or "keep" for a tool: by its name, else the first pattern that fits."""
    policies = config.tool_policies
    if tool in policies:
        return policies[tool]
    found = (policy for name, policy in policies.items() if fnmatchcase(tool, name))
    return next(found, MASK)


def answered(messages: Sequence[Message]) -> Iterator[tuple[int, ToolCall]]:
    """Each tool result's index and the call that it answers; ids count only within their step."""
    calls: dict[str, ToolCall] = {}
    for index, message in enumerate(messages):
        if not is_result(message):
            calls = {call.id: call for call in tool_calls_of(message)}
            continue
        found = calls.get(str(message.get("tool_call_id") or ""))
        if found is not None:
            yield index, found


def maskable(
    messages: Sequence[Message], tokens: Sequence[int], config: CompressorConfig
) -> dict[int, ToolCall]:
    """The results that may become one line, by index: large, and of a tool that allows it."""
    return {
        index: call
        for index, call in answered(messages)
        if tokens[index] > config.mask_above_tokens and policy_of(call.name, config) == MASK
    }


def masked(
    messages: Sequence[Message],
    tokens: Sequence[int],
    config: CompressorConfig,
    digest_of: Callable[[Message], str],
) -> list[tuple[int, Message]]:
    """The results that may become one line, by index, each as that line."""
    return [
        (
            index,
            mask(
                call,
                messages[index],
                reference_of(digest_of(messages[index])) if config.recall else None,
                host_prefixes=config.host_prefixes,
            ),
        )
        for index, call in maskable(messages, tokens, config).items()
    ]


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
    call: ToolCall,
    result: Mapping[str, object],
    reference: str | None = None,
    *,
    host_prefixes: tuple[str, ...] = (),
) -> Message:
    """The result with its content replaced by one line; everything else stays, the id above all.

    `reference` is that by which the recall tool reads the whole, given only where it exists.
    What begins with one of the `host_prefixes` below the result is not the tool's own word.
    """
    again = WHOLE if reference is None else RECALLED.format(reference)
    text = result_text(result)
    own = without_notes(text, host_prefixes)
    line = mask_line(call, text, own) + _ends(own) + again
    # Plain, because it is stored: a host may hang objects of its own on a message.
    return to_plain({**result, "content": line})


WHOLE = " | whole: in the archive of this conversation, or call again"
RECALLED = ' | whole: read_conversation_archive("{}"), or call again'
"""How to get it back: by the recall tool where the agent has it, by another call anywhere."""


def reference_of(digest: str) -> str:
    """By which the recall tool finds a message of that digest: known before it is archived."""
    return "m" + digest.partition(":")[2][:REFERENCE_DIGITS]


REFERENCE_DIGITS = 12


def _ends(text: str) -> str:
    """How a long text begins and ends: there a result most often says what it is and concludes."""
    flat = " ".join(text.split())
    return f" | begins: {flat[:80]} | ends: {flat[-80:]}" if len(flat) > 240 else ""
