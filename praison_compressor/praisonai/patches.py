"""List the host's names that are replaced or read; check their shapes."""

from __future__ import annotations

import inspect
import pkgutil
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from typing import Any, NamedTuple

from . import agents, wire
from . import bots_and_terminal as apps
from .tested_releases import host_moved

METHOD, COROUTINE, PROPERTY, NEW = "method", "coroutine method", "property", "free name"


class Patch(NamedTuple):
    """A name of the host that we replace; `docs/host.md` gives the reason."""

    owner: str
    """`module:Class` in `praisonaiagents`; `/package.module:Class` in another package."""
    name: str
    make: Callable[..., Any]
    """(the host's object, our `Agents`) -> the replacement."""
    kind: str = METHOD
    parameter: str = ""
    """A parameter that the host's method must have; "**": any keyword."""
    part: str = ""
    """The part that is left out if the name has moved; "" if the name is essential."""


class ReadNames(NamedTuple):
    """Names of the host that are read or set, not replaced."""

    owner: str
    """A module, a class or a method, written as in `Patch`."""
    names: str
    part: str = ""


_AGENT, _TEAM = "agent.agent:Agent", "agents.agents:AgentTeam"
_LLM, _CLIENT = "llm.llm:LLM", "llm.openai_client:OpenAIClient"
_PARSER = "workflows.yaml_parser:YAMLWorkflowParser"
_BOTS = "/praisonai_bot.bots._session:BotSessionManager"
_TERMINAL = "/praisonai_code.cli.interactive.async_tui:AsyncTUI"
_GATEWAY = "/praisonai_bot.gateway.server:WebSocketGateway"

BOTS = "the bots' own ids of conversations (their messages identify them)"
CLONES = "context= in clones for a channel"
TEAMS = "context= of an AgentTeam for its members"
FLOWS = "context: in workflow files"
ATTRIBUTE = "agent.context_compressor"
OWN_MODEL = "summaries by the agent's own model"
HOST_SESSIONS = "a ledger beside the host's sessions (memory without store_url)"
LARGE = "results of more than 16,000 characters whole in the archive"
COSTS = "the cost of summaries in agent.cost_summary"
HOOKS = "the host's hooks around a compression"
MEMORY = "notice to the agent's memory before a compression"
CONSOLE = "reports on the console of the agent's model"
FILES = "the files of the plugin's settings, in its warnings and in doctor"
RESTARTS = "sessions restored whole, with the tool calls"
AUTOMATIC = "switching off the terminal's own compaction before a turn"
SLASHES = "/compact, /status, /context and /undo in the terminal"
IDLE = "switching off the gateway's own compaction of idle sessions"
SAVED = "switching off the bots' own compaction of saved histories"

REPLACED = (
    # A turn.
    Patch(_AGENT, "chat", agents.chat, parameter="prompt"),
    Patch(_AGENT, "achat", agents.achat, COROUTINE, "prompt"),
    Patch(_AGENT, "_start_stream", agents.start_stream, parameter="prompt"),
    Patch(_AGENT, "_init_session_store", agents.init_session_store, part=RESTARTS),
    # Its requests, below the host's recovery from refusals, which drops messages.
    Patch(_CLIENT, "sync_client", wire.client, PROPERTY),
    Patch(_CLIENT, "async_client", wire.async_client, PROPERTY),
    Patch(_LLM, "_call_with_retry", wire.call_with_retry, METHOD, "**"),
    Patch(_LLM, "_call_with_retry_async", wire.acall_with_retry, COROUTINE, "**"),
    Patch(_LLM, "_stream_responses_api", wire.stream_responses, METHOD, "params"),
    Patch(_LLM, "_stream_responses_api_async", wire.astream_responses, COROUTINE, "params"),
    # The host's own compaction, before a turn and in its tool loop.
    Patch(_AGENT, "_apply_context_management", agents.keep_messages, parameter="messages"),
    Patch(_LLM, "_in_loop_compaction", agents.in_loop_compaction, NEW),
    # `context=`.
    Patch(_AGENT, "context_compressor", agents.context_compressor, NEW, part=ATTRIBUTE),
    Patch(_AGENT, "_context_config", agents.context_config, NEW, part=CLONES),
    Patch(_TEAM, "__init__", agents.team_init, part=TEAMS),
    Patch(_PARSER, "_parse_workflow_data", agents.parse_workflow_data, METHOD, "data", FLOWS),
)

IN_OTHER_PACKAGES = (
    Patch(_TERMINAL, "_maybe_auto_compact", apps.maybe_auto_compact, part=AUTOMATIC),
    Patch(_TERMINAL, "_compact_context", apps.compact_context, METHOD, "manual", SLASHES),
    Patch(_TERMINAL, "_handle_command", apps.handle_command, METHOD, "command", SLASHES),
    Patch(_GATEWAY, "_idle_compaction_candidates", apps.idle_candidates, part=IDLE),
    Patch(_BOTS, "chat", apps.bot_chat, COROUTINE, "agent", BOTS),
    Patch(_BOTS, "_maybe_fire_session_start", apps.bot_session_start, METHOD, "agent", BOTS),
    Patch(_BOTS, "_compaction_enabled", apps.compaction_enabled, NEW, part=SAVED),
)
"""Names in the host's other packages, replaced once the host has imported their modules: a plugin
must not import a terminal."""

READ = (
    ReadNames(_AGENT, "_context_param _context_manager _context_manager_initialized chat_history"),
    ReadNames(_AGENT, "clear_history execution"),
    ReadNames("config.feature_configs:ExecutionConfig", "context_compaction"),
    ReadNames(
        "context.models:ContextConfig", "strategy auto_compact compact_threshold protected_tools"
    ),
    ReadNames("context.models:ContextConfig", "from_env"),
    ReadNames(_LLM, "_in_loop_compaction"),
    ReadNames(f"{_AGENT}.clone_for_channel", "_context_config", CLONES),
    ReadNames(_TEAM, "agents _context_param", TEAMS),
    ReadNames(_AGENT, "_using_custom_llm llm_instance _openai_client", OWN_MODEL),
    ReadNames(_LLM, "_build_completion_params", OWN_MODEL),
    ReadNames(_AGENT, "_db _session_store _session_id _history_session_id", HOST_SESSIONS),
    ReadNames("session", "get_default_session_store", HOST_SESSIONS),
    ReadNames(_AGENT, "_cost_lock _total_cost _total_tokens_in _total_tokens_out", COSTS),
    ReadNames(_AGENT, "tool_output_limit _truncate_tool_output", LARGE),
    ReadNames(_AGENT, "_hook_runner", HOOKS),
    ReadNames("hooks.types", "HookEvent HookInput", HOOKS),
    ReadNames(_AGENT, "_memory_instance", MEMORY),
    ReadNames(_AGENT, "_llm_instance", CONSOLE),
    ReadNames("config.loader", "_discover_config_files _load_config _parse_config_file", FILES),
)
"""If an essential name moved, requests would go out uncompressed: `install()` refuses."""

ABSENT = object()


class Target(NamedTuple):
    """A class of the installed host, and its object for a row."""

    row: Patch
    holder: Any
    """The class that has or will have the name in its own dictionary."""
    original: Any


def probe(
    rows: Sequence[Patch] = REPLACED, reads: Sequence[ReadNames] = READ
) -> tuple[list[Target], dict[str, str]]:
    """Return the targets to replace, and each left-out part's reason.

    Raises:
        HostMoved: an essential name is gone or has another shape.
    """
    targets = [_target(row) for row in rows]
    lacking: dict[str, str] = {}
    for part, name, wanted in (*_misfits(targets), *_missing_names(reads)):
        where = _full(name).replace(":", ".")
        if not part:
            raise host_moved(where, wanted)
        lacking.setdefault(part, f"no {wanted} at {where}")
    return [target for target in targets if target.row.part not in lacking], lacking


def in_installed_packages() -> list[Patch]:
    """Return `IN_OTHER_PACKAGES` of installed packages; import the bots' module."""
    rows = [r for r in IN_OTHER_PACKAGES if find_spec(r.owner[1:].partition(".")[0]) is not None]
    if any(row.owner == _BOTS for row in rows):
        _resolve(_BOTS)  # takes 5 ms; the first turn needs its bot's id
    return rows


def is_imported(row: Patch) -> bool:
    """Return whether the host has finished importing the row's module."""
    module = sys.modules.get(row.owner[1:].partition(":")[0])
    spec = getattr(module, "__spec__", None)
    return module is not None and not getattr(spec, "_initializing", False)


def _target(row: Patch) -> Target:
    owner = _resolve(row.owner)
    for holder in getattr(owner, "__mro__", ()):
        if row.name in vars(holder):
            return Target(row, holder, vars(holder)[row.name])
    return Target(row, owner, ABSENT)


def _misfits(targets: list[Target]) -> Iterator[tuple[str, str, str]]:
    for row, holder, original in targets:
        if holder is None or not _has_shape(row, original):
            wanted = row.kind + (
                f" with a parameter {row.parameter}" if row.parameter.isalpha() else ""
            )
            yield row.part, f"{row.owner}.{row.name}", wanted


def _has_shape(row: Patch, original: Any) -> bool:
    if row.kind == NEW or original is ABSENT:
        return (row.kind == NEW) is (original is ABSENT)
    if row.kind == PROPERTY:
        return isinstance(original, property) and not inspect.iscoroutinefunction(original.fget)
    if not inspect.isfunction(original):
        return callable(original)  # a wrapper, whose signature is unknown
    if not _has_parameter(inspect.signature(original).parameters.values(), row.parameter):
        return False
    function = inspect.unwrap(original)
    if not str(getattr(function, "__module__", "")).startswith("praisonai"):
        return True
    is_async = inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)
    return is_async is (row.kind == COROUTINE)


def _has_parameter(parameters: Any, name: str) -> bool:
    kinds = {parameter.kind for parameter in parameters}
    if name == "**":
        return inspect.Parameter.VAR_KEYWORD in kinds
    is_open = inspect.Parameter.VAR_POSITIONAL in kinds
    return not name or is_open or any(parameter.name == name for parameter in parameters)


def _missing_names(reads: Sequence[ReadNames]) -> Iterator[tuple[str, str, str]]:
    for read in reads:
        owner = _resolve(read.owner)
        named = _names_in_code(owner)
        for name in read.names.split():
            if not hasattr(owner, name) and name not in named:
                yield read.part, f"{read.owner}.{name}", "attribute"


def _full(path: str) -> str:
    return path[1:] if path.startswith("/") else f"praisonaiagents.{path}"


def _resolve(path: str) -> Any:
    try:
        return pkgutil.resolve_name(_full(path))
    except (ImportError, AttributeError):
        return None


def _names_in_code(owner: Any) -> set[str]:
    """Return the names and strings in a function's or constructor's code."""
    makers = [vars(kind).get("__init__") for kind in getattr(owner, "__mro__", ())]
    names: set[str] = set()
    for maker in (owner, *makers):
        code = getattr(inspect.unwrap(maker), "__code__", None) if callable(maker) else None
        if code is not None:
            words = code.co_consts if maker is owner else ()
            names.update(code.co_names, (word for word in words if isinstance(word, str)))
    return names
