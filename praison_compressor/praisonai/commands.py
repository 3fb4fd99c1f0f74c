"""Turns of an agent: `/status`, `/context`, `/compact [focus]`, `/undo`, `/new` and `/resume ID`
are answered without a request; every other prompt begins a turn that is known as that agent's.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Generator
from typing import Any, NamedTuple

from ..errors import CompressorError
from ..summaries.threads import run
from .agent_compressor import AgentCompressor
from .agents import Agents, Argument, each_step_in_turn, turn_of
from .notices import compacted, filled, undone

COMMANDS = ("status", "context", "compact", "undo", "new", "resume")


class Command(NamedTuple):
    """A slash command as it was typed."""

    name: str
    argument: str


def read(agent: Any, prompt: Any) -> Command | None:
    """The command in a prompt; None for words to the model, or to a skill of that name."""
    if not isinstance(prompt, str) or not prompt.startswith("/"):
        return None
    name, _, argument = prompt[1:].strip().partition(" ")
    skill = getattr(getattr(agent, "skill_manager", None), "get_skill", lambda name: None)
    if name not in COMMANDS or skill(name) is not None:
        return None
    return Command(name, argument.strip())


async def aanswer(compressor: AgentCompressor, command: Command) -> str:
    """What the agent says to a command."""
    try:
        if command.name != "compact":
            return await asyncio.to_thread(_at_once, compressor, command)  # it reads the store
        result = await compressor.acompress(command.argument or None)
    except CompressorError as error:
        return str(error)
    if result.written or result.newly_masked:
        return f"{compressor.notice}\n{compacted(result)}"
    return "Not compressed: a hook refused it." if result.vetoed else "Nothing to compress yet."


def answer(compressor: AgentCompressor, command: Command) -> str:
    """The same from anywhere."""
    return run(aanswer(compressor, command))


def _at_once(compressor: AgentCompressor, command: Command) -> str:
    if command.name == "status":
        return str(compressor.status())
    if command.name == "context":
        return filled(compressor.context_use())
    if command.name == "undo":
        return undone(compressor.undo(), compressor.context_use())
    if command.name == "new":
        return f"New session {compressor.new_session()}"
    if not command.argument:
        return "Which session? /resume ID"
    return f"Session {compressor.resume(command.argument)}"


# ------------------------------------------------------------ replaced in the host


Ours = Agents[AgentCompressor]


def chat(original: Any, agents: Ours) -> Any:
    """A turn, or the answer to a command."""
    prompt = Argument(original, "prompt")

    @functools.wraps(original)
    def chat(self: Any, *args: Any, **kwargs: Any) -> Any:
        compressor, command = agents.of(self), read(self, prompt.of(args, kwargs))
        if compressor is not None and command is not None:
            return answer(compressor, command)
        begun = compressor.begin_turn() if compressor is not None else 0
        with turn_of(compressor):
            said = original(self, *args, **kwargs)
        if compressor is not None:
            compressor.end_turn(begun, said)
        return said

    return chat


def achat(original: Any, agents: Ours) -> Any:
    """The same on the event loop."""
    prompt = Argument(original, "prompt")

    @functools.wraps(original)
    async def achat(self: Any, *args: Any, **kwargs: Any) -> Any:
        compressor, command = agents.of(self), read(self, prompt.of(args, kwargs))
        if compressor is not None and command is not None:
            return await aanswer(compressor, command)
        begun = compressor.begin_turn() if compressor is not None else 0
        with turn_of(compressor):
            said = await original(self, *args, **kwargs)
        if compressor is not None:
            compressor.end_turn(begun, said)
        return said

    return achat


def start_stream(original: Any, agents: Ours) -> Any:
    """The same as a stream; a command's answer is one piece of it."""
    prompt = Argument(original, "prompt")

    @functools.wraps(original)
    def _start_stream(self: Any, *args: Any, **kwargs: Any) -> Any:
        compressor, command = agents.of(self), read(self, prompt.of(args, kwargs))
        if compressor is not None and command is not None:
            return _one_piece(compressor, command)
        stream = each_step_in_turn(compressor, original(self, *args, **kwargs))
        return stream if compressor is None else _turn_of_stream(compressor, stream)

    return _start_stream


def _turn_of_stream(
    compressor: AgentCompressor, stream: Generator[Any, Any, Any]
) -> Generator[Any, Any, Any]:
    begun = compressor.begin_turn()
    last = yield from stream
    compressor.end_turn(begun, True)
    return last


def _one_piece(compressor: AgentCompressor, command: Command) -> Generator[str, None, None]:
    yield answer(compressor, command)
