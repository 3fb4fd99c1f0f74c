"""`/status`, `/compact [focus]`, `/prune`, `/new` and `/resume ID`, answered without a request."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Generator
from typing import TYPE_CHECKING, Any, NamedTuple

from ..compressor.result import CompressResult
from ..errors import CompressorError
from .patches import Patches, host_module, method

if TYPE_CHECKING:
    from .agent_compressor import AgentCompressor
    from .agents import Agents

__all__ = [
    "COMMANDS",
    "Command",
    "patch",
    "read",
]


COMMANDS = ("status", "compact", "prune", "new", "resume")


class Command(NamedTuple):
    """A slash command as it was typed."""

    name: str
    argument: str


def read(agent: Any, prompt: Any) -> Command | None:
    """The command in a prompt; None for words to the model, or to a skill of that name."""
    if not isinstance(prompt, str) or not prompt.startswith("/"):
        return None
    name, _, argument = prompt[1:].strip().partition(" ")
    if name not in COMMANDS or _is_skill(agent, name):
        return None
    return Command(name, argument.strip())


def _is_skill(agent: Any, name: str) -> bool:
    manager = getattr(agent, "skill_manager", None)
    get = getattr(manager, "get_skill", None)
    return bool(callable(get) and get(name) is not None)


def patch(agents: Agents, patches: Patches) -> None:
    """Answer commands before a turn begins: nothing is recorded, nothing is sent."""
    mixin = host_module("agent.chat_mixin").ChatMixin
    patches.replace(mixin, "chat", _chat(agents, method(mixin, "chat")))
    patches.replace(mixin, "achat", _achat(agents, method(mixin, "achat")))
    patches.replace(mixin, "_start_stream", _stream(agents, method(mixin, "_start_stream")))
    # With `planning=True`, `start` and `run` would first have a model plan how to do a command.
    planner, name = host_module("agent.execution_mixin").ExecutionMixin, "_start_with_planning"
    patches.replace(planner, name, _chat(agents, method(planner, name)))


def _chat(agents: Agents, original: Any) -> Any:
    @functools.wraps(original)
    def chat(self: Any, prompt: Any, *args: Any, **kwargs: Any) -> Any:
        found = _found(agents, self, prompt)
        return original(self, prompt, *args, **kwargs) if found is None else _answer(*found)

    return chat


def _achat(agents: Agents, original: Any) -> Any:
    @functools.wraps(original)
    async def achat(self: Any, prompt: Any, *args: Any, **kwargs: Any) -> Any:
        found = _found(agents, self, prompt)
        if found is None:
            return await original(self, prompt, *args, **kwargs)
        return await _aanswer(*found)

    return achat


def _stream(agents: Agents, original: Any) -> Any:
    @functools.wraps(original)
    def _start_stream(self: Any, prompt: Any, *args: Any, **kwargs: Any) -> Any:
        found = _found(agents, self, prompt)
        return original(self, prompt, *args, **kwargs) if found is None else _one(*found)

    return _start_stream


def _one(compressor: AgentCompressor, command: Command) -> Generator[str, None, None]:
    yield _answer(compressor, command)


def _found(agents: Agents, agent: Any, prompt: Any) -> tuple[AgentCompressor, Command] | None:
    command = read(agent, prompt)
    if command is None:
        return None
    compressor = agents.of(agent)
    return None if compressor is None else (compressor, command)


def _answer(compressor: AgentCompressor, command: Command) -> str:
    try:
        if command.name == "compact":
            return _told(compressor, compressor.compress(command.argument or None))
        return _at_once(compressor, command)
    except CompressorError as error:
        return str(error)


async def _aanswer(compressor: AgentCompressor, command: Command) -> str:
    try:
        if command.name == "compact":
            result = await compressor.acompress(command.argument or None)
            return _told(compressor, result)
        return await asyncio.to_thread(_at_once, compressor, command)  # it reads the store
    except CompressorError as error:
        return str(error)


def _at_once(compressor: AgentCompressor, command: Command) -> str:
    if command.name == "status":
        return str(compressor.status())
    if command.name == "prune":
        return f"Masked {compressor.mask()} tool outputs"
    if command.name == "new":
        return f"New session {compressor.new_session()}"
    if not command.argument:
        return "Which session? /resume ID"
    return f"Session {compressor.resume(command.argument)}"


def _told(compressor: AgentCompressor, result: CompressResult) -> str:
    is_news = result.written or result.newly_masked
    return compressor.notice or "" if is_news else "Nothing to compress yet."
