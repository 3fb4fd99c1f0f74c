"""Find an agent's compressor; replace methods of agents, teams and workflows."""

from __future__ import annotations

import asyncio
import functools
import inspect
import logging
import threading
import weakref
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

from ..concurrency import renew_after_fork, run
from ..errors import CompressorError, SessionNotFound
from ..messages import Message, digest, is_system, leading_count, tool_calls_of
from . import context_param
from .agent_compressor import AgentCompressor
from .agent_ledger import agent_title, session_id_of, stored_sessions
from .commands import ParsedCommand, answer_command, parse_prompt
from .conversation_finder import is_host_summary
from .running_turn import Turn, bot_conversation, in_turn, running_turn, stream_in_turn

logger = logging.getLogger(__name__)

# ------------------------------------------------------------ agents that request compression


class Agents:
    """The compressors of agents that ask for compression; keeps no agent alive."""

    def __init__(self, before_look_up: Callable[[], None]) -> None:
        """`before_look_up` is called before each look-up of a compressor."""
        self._before_look_up = before_look_up
        self.defaults: dict[str, Any] = {}
        """Options of `CompressorConfig` for agents that do not set these options."""
        self._in_code = False
        """Whether a program called `install()`: a disabled plugin then has no effect."""
        self._is_plugin_enabled: Callable[[], bool] = lambda: False
        self._lock = renew_after_fork(threading.RLock())
        self._open = True
        self._made: weakref.WeakKeyDictionary[Any, AgentCompressor] = weakref.WeakKeyDictionary()
        self._failed: weakref.WeakSet[Any] = weakref.WeakSet()

    def configure(
        self,
        defaults: Mapping[str, Any] | None,
        in_code: bool,
        is_plugin_enabled: Callable[[], bool] | None,
    ) -> None:
        """Activate from code or for the plugin; replace defaults unless None."""
        self._in_code = self._in_code or in_code
        self._is_plugin_enabled = is_plugin_enabled or self._is_plugin_enabled
        if defaults is not None:
            self.defaults = dict(defaults)

    @property
    def is_active(self) -> bool:
        """Whether agents that ask for compression get it now."""
        return self._open and (self._in_code or self._is_plugin_enabled())

    def compressor_of(self, agent: Any) -> AgentCompressor | None:
        """Return the agent's compressor, or None if the agent asks for none."""
        self._before_look_up()
        with self._lock:
            try:
                return self._compressor_of(agent)
            except Exception:  # a host in an unknown state
                if agent not in self._failed:
                    logger.exception("agent %s goes on uncompressed", agent_title(agent))
                self._failed.add(agent)
                return None

    def _compressor_of(self, agent: Any) -> AgentCompressor | None:
        requested = None
        if self.is_active:
            requested = context_param.requested_context(agent, self._is_plugin_enabled())
        agent_compressor = self._made.get(agent)
        if agent_compressor is not None and agent_compressor.requested != requested:
            agent_compressor.leave()
            del self._made[agent]
            agent_compressor = None
        if agent_compressor is None and requested is not None:
            model = getattr(agent, "llm", None)
            config = requested.config(model if isinstance(model, str) else None, self.defaults)
            agent_compressor = self._made[agent] = AgentCompressor(agent, requested, config)
        return agent_compressor

    def close(self) -> None:
        """Restore every agent's own settings and tools."""
        with self._lock:
            self._open = False
            for agent_compressor in list(self._made.values()):
                agent_compressor.leave()
            self._made.clear()


# ------------------------------------------------------------ calls of replaced methods


class HostCall(NamedTuple):
    """A call of a method of the host that we replaced."""

    original: Callable[..., Any]
    agents: Agents
    instance: Any
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]

    def go_on(self) -> Any:
        """Return what the host's own method returns."""
        return self.original(self.instance, *self.args, **self.kwargs)

    def argument(self, name: str) -> Any:
        """Return an argument's value, or None."""
        index = _position_of(self.original, name)
        return self.args[index] if index < len(self.args) else self.kwargs.get(name)

    def with_argument(self, name: str, value: Any) -> HostCall:
        """Return the call with another value for an argument."""
        index = _position_of(self.original, name)
        if index >= len(self.args):
            return self._replace(kwargs={**self.kwargs, name: value})
        return self._replace(args=(*self.args[:index], value, *self.args[index + 1 :]))


@functools.lru_cache
def _position_of(method: Callable[..., Any], name: str) -> int:
    """Return a parameter's index without `self`, or 0 if there is none."""
    names = list(inspect.signature(method).parameters)[1:]
    return names.index(name) if name in names else 0


Replacement = Callable[[Any, Agents], Any]
"""(the host's object, our agents) -> its replacement."""


def replacing(answer: Callable[[HostCall], Any]) -> Replacement:
    """Return a `Replacement` that passes each call of a method to `answer`."""

    def make(original: Any, agents: Agents) -> Any:
        @functools.wraps(original)
        def call_replacement(self: Any, *args: Any, **kwargs: Any) -> Any:
            return answer(HostCall(original, agents, self, args, kwargs))

        @functools.wraps(original)
        async def call_async_replacement(self: Any, *args: Any, **kwargs: Any) -> Any:
            return await answer(HostCall(original, agents, self, args, kwargs))

        return call_async_replacement if inspect.iscoroutinefunction(answer) else call_replacement

    return make


def attribute(name: str, get: Callable[[Any], Any]) -> property:
    """Return a property that the host may set."""
    return property(get, lambda self, value: vars(self).__setitem__(name, value))


# ------------------------------------------------------------ an agent's turns


@replacing
def chat(call: HostCall) -> Any:
    """Replace `chat`: run a turn, or answer a command."""
    agent_compressor, command = _read_call(call)
    if agent_compressor is not None and command is not None:
        return run(answer_command(agent_compressor, command))
    with _turn_of(agent_compressor) as turn, in_turn(turn):
        return call.go_on()


@replacing
async def achat(call: HostCall) -> Any:
    """Replace `achat`: do what `chat` does, on the event loop."""
    agent_compressor, command = _read_call(call)
    if agent_compressor is not None and command is not None:
        return await answer_command(agent_compressor, command)
    if agent_compressor is not None:
        await asyncio.to_thread(restore_session, call.instance, agent_compressor)
    async with _turn_of(agent_compressor) as turn:
        with in_turn(turn):
            return await call.go_on()


@replacing
def start_stream(call: HostCall) -> Any:
    """Replace `_start_stream`: run a turn, or answer a command in one piece."""
    agent_compressor, command = _read_call(call)
    if agent_compressor is not None and command is not None:
        return _stream_answer(agent_compressor, command)
    return _stream_turn(agent_compressor, call.go_on())


def _read_call(call: HostCall) -> tuple[AgentCompressor | None, ParsedCommand | None]:
    agent = call.instance
    return call.agents.compressor_of(agent), parse_prompt(agent, call.argument("prompt"))


def _turn_of(agent_compressor: AgentCompressor | None) -> Turn | nullcontext[None]:
    return nullcontext() if agent_compressor is None else agent_compressor.turn()


def _stream_answer(agent_compressor: AgentCompressor, command: ParsedCommand) -> Iterator[str]:
    yield run(answer_command(agent_compressor, command))


def _stream_turn(
    agent_compressor: AgentCompressor | None, stream: Generator[Any, Any, Any]
) -> Generator[Any, Any, Any]:
    with _turn_of(agent_compressor) as turn:
        return (yield from stream_in_turn(turn, stream))


@replacing
def init_session_store(call: HostCall) -> None:
    """Replace `_init_session_store`: restore the whole session."""
    call.go_on()
    agent_compressor = call.agents.compressor_of(call.instance)
    if agent_compressor is not None:
        restore_session(call.instance, agent_compressor)


# ------------------------------------------------------------ agents, teams and workflows


def context_compressor(original: object, agents: Agents) -> property:
    """Return `agent.context_compressor`, which is None on other agents."""
    return property(agents.compressor_of)


def context_config(original: object, agents: Agents) -> property:
    """Return `_context_config`, which a channel's clone gets as its `context=`."""

    def get(self: Any) -> Any:
        value = self._context_param if agents.compressor_of(self) is not None else None
        return vars(self).get("_context_config", value)

    return attribute("_context_config", get)


@replacing
def keep_messages(call: HostCall) -> Any:
    """Replace the host's context management, which separates calls from results."""
    if call.agents.compressor_of(call.instance) is None:
        return call.go_on()
    return call.argument("messages"), None


def in_loop_compaction(original: object, agents: Agents) -> property:
    """Return the host's switch for compaction in loops: off in our turns."""
    # The switch is not set on the `LLM`, because other agents may share the `LLM`.
    name = "_in_loop_compaction"
    return attribute(name, lambda self: running_turn() is None and vars(self).get(name, True))


@replacing
def team_init(call: HostCall) -> None:
    """Replace a team's constructor: members without a `context=` get the team's."""
    call.go_on()
    team = call.instance
    if not call.agents.is_active or context_param.parse_context(team._context_param) is None:
        return
    for member in team.agents:
        # With tools the host turns a missing `context=` into True.
        is_silent = member._context_param is None or (
            member._context_param is True and bool(member.tools)
        )
        if is_silent and member._context_manager is None:
            member._context_param = team._context_param
            member._context_manager_initialized = False


# Second names that the host's parser accepts.
_ALIASES = {
    "enabled": "auto_compact",
    "max_tool_output_tokens": "tool_output_max",
    "threshold": "compact_threshold",
    "tool_output_limits": "tool_limits",
}


@replacing
def parse_workflow_data(call: HostCall) -> Any:
    """Replace the workflow parser: keep `context: summarize` and our keys."""
    workflow = call.go_on()
    data = call.argument("data")
    param = data.get("context") if isinstance(data, Mapping) else None
    mapping = param if isinstance(param, Mapping) else {"strategy": param}
    if call.agents.is_active and context_param.is_summarize(mapping.get("strategy")):
        workflow.context = {_ALIASES.get(key, key): value for key, value in mapping.items()}
    return workflow


# ------------------------------------------------------------ a session restored after a restart


def restore_session(agent: Any, agent_compressor: AgentCompressor) -> None:
    """Complete an agent's history before its first request, from host or ledger."""
    # A bot sets each person's history itself.
    host_id = session_id_of(agent)
    if agent_compressor.requests.request_count or host_id is None or bot_conversation(agent).bot_id:
        return
    sessions = stored_sessions(agent_compressor.ledger, agent_compressor.config.namespace, host_id)
    name = next((session.id for session in sessions), host_id)
    try:
        if not agent.chat_history:
            agent_compressor.resume(name)
        elif stored := _stored_history(agent):
            agent.chat_history[:] = map(dict, stored)
            if _is_cut(agent._session_store, stored):
                transcript = agent_compressor.for_model().verbatim(session_id=name)
                agent.chat_history[:] = _with_missing_front(transcript, agent.chat_history)
    except SessionNotFound:
        return  # the first run
    except CompressorError as error:
        logger.warning("session %s is not resumed: %s", host_id, error)


def _stored_history(agent: Any) -> Sequence[Message]:
    # The host restores only roles and contents (`MemoryMixin._init_session_store`). Without
    # their calls the messages match no segment.
    store, name = getattr(agent, "_session_store", None), getattr(agent, "_session_id", None)
    read = getattr(store, "get_working_history", None)
    stored: Sequence[Message] = read(name) if read is not None and name else ()
    restored = [*map(_role_and_content, agent.chat_history)]
    return stored if [*map(_role_and_content, stored)] == restored else ()


def _is_cut(store: Any, stored: Sequence[Message]) -> bool:
    # By default the host keeps the newest 100 messages.
    bound: int = getattr(store, "active_window", 0) or getattr(store, "max_messages", len(stored))
    is_full = len(stored) > bound // 2  # a cut amid tool calls leaves fewer than the bound
    return is_full or is_host_summary(stored[0])


def _with_missing_front(transcript: Sequence[Message], history: list[Message]) -> list[Message]:
    restored = history[leading_count(history) :]  # without the host's summary
    keeps_tools = any(message.get("role") == "tool" for message in restored)
    kept = [
        message
        for message in transcript
        if (keeps_tools and not is_system(message))
        or (message.get("role") in ("user", "assistant") and not tool_calls_of(message))
    ]
    digests = [*map(digest, kept)]
    # Match two messages, because one may recur; only two, because a killed turn's end may differ.
    first = [*map(digest, restored[:2])]
    starts = (at for at in range(len(digests), -1, -1) if digests[at : at + len(first)] == first)
    start = next(starts, 0)
    return [*kept[:start], *restored] if start else history


def _role_and_content(message: Message) -> tuple[Any, Any]:
    return message.get("role"), message.get("content")
