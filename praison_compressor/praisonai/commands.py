"""Answer slash commands without a request to the agent's model.

The commands: `/status`, `/context`, `/compact [focus]`, `/pin TEXT`, `/undo`, `/new`, `/resume ID`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from ..compressor.preview import ContextUse, Preview
from ..compressor.result import CompressResult
from ..config import nearest
from ..errors import CompressorError
from ..ledger.segments import Segment
from .agent_compressor import AgentCompressor
from .conversations import short
from .journal import KeptSteps

MISSPELLED, PREVIEW = "no command", "compact preview"
"""Names that nobody can type: the name of a command ends at a blank."""

AT_ONCE: dict[str, Callable[[AgentCompressor, str], str]] = {
    "status": lambda ours, said: f"Last request: {ours.status()}",
    "context": lambda ours, said: filled(ours.context_use(), ours.kept()),
    "undo": lambda ours, said: undone(ours.undo(), ours.context_use()),
    "pin": lambda ours, said: pinned(ours.pin(said) if said else ours.conversation.pinned),
    "new": lambda ours, said: f"New session {ours.new_session()}",
    "resume": lambda ours, said: (
        f"Session {ours.resume(said)}" if said else "Which session? /resume ID"
    ),
    PREVIEW: lambda ours, said: previewed(ours.preview(), ours.kept()),
    MISSPELLED: lambda ours, said: said,
}
"""The answer to a command and the words behind it; `compact` waits for a model."""

MEANT = {name: name for name in ("status", "context", "compact", "resume")} | {
    "compress": "compact"
}
"""Commands that are suggested for a misspelled word; many words are near the shorter ones."""


def read(agent: Any, prompt: Any) -> tuple[str, str] | None:
    """Return a prompt's command and argument, or None for other words."""
    if not isinstance(prompt, str) or not prompt.startswith("/"):
        return None
    name, _, argument = prompt[1:].strip().partition(" ")
    skill = getattr(getattr(agent, "skill_manager", None), "get_skill", lambda name: None)
    if skill(name) is not None:
        return None
    if name in (*AT_ONCE, "compact"):
        return name, argument.strip()
    meant = nearest(name, MEANT) if name.isalpha() and not argument else None
    if meant is None:
        return None
    answer = f"No command /{name}; did you mean /{MEANT[meant]}? Nothing was sent to the model."
    return MISSPELLED, answer


async def answer(compressor: AgentCompressor, name: str, argument: str) -> str:
    """Return the agent's answer to a command."""
    try:
        if (name, argument) == ("compact", "preview"):
            name = PREVIEW
        if name in AT_ONCE:  # it reads the store
            return await asyncio.to_thread(AT_ONCE[name], compressor, argument)
        result = await compressor.acompress(argument or None)
    except CompressorError as error:
        return str(error)
    if result.written or result.newly_masked:
        return f"{compressor.notice}\n{compacted(result)}"
    return "Not compressed: a hook refused it." if result.vetoed else "Nothing to compress yet."


# ------------------------------------------------------------ answers in words


def filled(use: ContextUse, earlier: KeptSteps) -> str:
    """Return the answer to `/context`: the window's parts, then its largest messages."""
    notes = {name: f"{n} message{'s' * (n != 1)}" for name, n in use.messages.items()}
    notes |= {"free": f"compressed above {short(use.trigger)}", "reserve": "for the answer"}
    share = round(100 * use.used / use.window)
    lines = [f"{short(use.used)} of {short(use.window)} ({share} %), {use.model}"]
    for name, tokens in use.parts.items():
        lines.append(f"{name:<14} {short(tokens):>6}  {notes.get(name, '')}".rstrip())
    if earlier.steps:
        lines.append(f"{earlier}, before compression")
    if use.largest:
        lines.append("largest messages sent word for word:")
    for one in use.largest:
        index = "-" if one.index is None else one.index
        lines.append(f"{f'[{index}]':<6} {short(one.tokens):>6}  {one.role} {one.tool}".rstrip())
    return "\n".join(lines)


def previewed(preview: Preview, earlier: KeptSteps) -> str:
    """Return the answer to `/compact preview`: a line for each part of the view."""
    lines = ["Nothing to compress yet."]
    if preview.would_compress:
        before = sum(part.tokens_before for part in preview.parts)
        after = sum(part.tokens_after for part in preview.parts)
        lines = [f"/compact would send {short(before)} as {short(after)}:"]
    for part in preview.parts:
        sizes = f"{short(part.tokens_before)} → {short(part.tokens_after)}"
        lines.append(f"{part.name:<10} {part.messages:>4} messages  {sizes:<14} {part.why}")
    return "\n".join([*lines, *([str(earlier)] if earlier.steps else [])])


def compacted(result: CompressResult) -> str:
    """Return the answer to `/compact`: what became of the messages."""
    by = [text.model or "a model" for text in result.written if text.method == "model"]
    how = f"by {by[0]}" if by else "without a model"
    done = [f"{result.newly_summarized} messages summarized {how}"] if result.written else []
    done += [f"{result.newly_masked} outputs masked"] if result.newly_masked else []
    kept = len(result.messages) - len(result.segments) - result.masked
    return f"{', '.join(done)}; {kept} messages kept verbatim. /undo takes it back."


def pinned(texts: Sequence[str]) -> str:
    """Return the answer to `/pin`: the texts that every view keeps."""
    if not texts:
        return "Nothing is pinned. /pin TEXT keeps a text word for word."
    return "\n".join(["Pinned, and kept word for word by each compression:", *texts])


def undone(segments: Sequence[Segment], use: ContextUse) -> str:
    """Return the answer to `/undo`: what was taken back."""
    if not segments:
        return "Nothing to take back."
    messages = sum(len(segment.run) for segment in segments)
    tokens = sum(segment.source_tokens for segment in segments)
    then = "Nothing is compressed by itself until the window is full; /compact does it at once."
    if use.parts["free"] < 0:
        then = "They do not fit the window: the next message is answered from a compressed view."
    return (
        f"Taken back: {messages} messages ({short(tokens)}) are sent again in the place of "
        f"{short(sum(segment.tokens for segment in segments))}. {then}"
    )
