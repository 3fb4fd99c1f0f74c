"""Answer slash commands without a request; begin a turn for every other prompt.

The commands: `/status`, `/context`, `/compact [focus]`, `/pin TEXT`, `/undo`, `/new`, `/resume ID`.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from ..config import nearest
from ..errors import CompressorError
from ..summaries.threads import run
from .agent_compressor import AgentCompressor
from .agents import Agents, Argument
from .conversations import Turn, during, each_step_during
from .notices import compacted, filled, pinned, previewed, undone
from .restarts import begin

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
    """Return the command in a prompt and its argument; None for words to a model or a skill."""
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
    told = f"No command /{name}; did you mean /{MEANT[meant]}? Nothing was sent to the model."
    return MISSPELLED, told


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


# ------------------------------------------------------------ replaced in the host


def chat(original: Any, agents: Agents) -> Any:
    """Replace `chat`: run a turn, or answer a command."""
    prompt = Argument(original, "prompt")

    @functools.wraps(original)
    def chat(self: Any, *args: Any, **kwargs: Any) -> Any:
        compressor, command = agents.of(self), read(self, prompt.of(args, kwargs))
        if compressor is not None and command is not None:
            return run(answer(compressor, *command))
        with _turn(compressor) as turn, during(turn):
            said = original(self, *args, **kwargs)
        if compressor is not None:
            compressor.settle(turn)
        return said

    return chat


def achat(original: Any, agents: Agents) -> Any:
    """Replace `achat`: the same on the event loop."""
    prompt = Argument(original, "prompt")

    @functools.wraps(original)
    async def achat(self: Any, *args: Any, **kwargs: Any) -> Any:
        compressor, command = agents.of(self), read(self, prompt.of(args, kwargs))
        if compressor is not None and command is not None:
            return await answer(compressor, *command)
        await asyncio.to_thread(begin, self, compressor)
        with _turn(compressor) as turn, during(turn):
            said = await original(self, *args, **kwargs)
        if compressor is not None:
            await asyncio.to_thread(compressor.settle, turn)
        return said

    return achat


def start_stream(original: Any, agents: Agents) -> Any:
    """Replace `_start_stream`: the same as a stream; a command's answer is one piece."""
    prompt = Argument(original, "prompt")

    @functools.wraps(original)
    def _start_stream(self: Any, *args: Any, **kwargs: Any) -> Any:
        compressor, command = agents.of(self), read(self, prompt.of(args, kwargs))
        if compressor is not None and command is not None:
            return _said(compressor, *command)
        return _streamed(compressor, original(self, *args, **kwargs))

    return _start_stream


def _said(compressor: AgentCompressor, name: str, argument: str) -> Generator[str, None, None]:
    yield run(answer(compressor, name, argument))


def _streamed(
    compressor: AgentCompressor | None, stream: Generator[Any, Any, Any]
) -> Generator[Any, Any, Any]:
    with _turn(compressor) as turn:
        said = yield from each_step_during(turn, stream)
    if compressor is not None:
        compressor.settle(turn)
    return said


def _turn(compressor: AgentCompressor | None) -> AbstractContextManager[Turn]:
    return nullcontext(Turn(None)) if compressor is None else compressor.turn()
