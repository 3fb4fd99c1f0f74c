"""What of the host we read or override without replacing it, and what fails where it has moved.

A seam that we replace fails by itself when it is gone. These would be missed in silence.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from types import CodeType
from typing import Any, NamedTuple

from .patches import HostMoved

__all__ = [
    "READS",
    "Missing",
    "Read",
    "check",
    "missing",
]


class Read(NamedTuple):
    """Names of one class or module of the host."""

    owner: str
    """Below `praisonaiagents`."""
    names: tuple[str, ...]
    lost: str
    """What no longer works without them."""
    needed: bool = False
    """Without them requests would leave an agent as if it had not asked: `install()` refuses."""


class Missing(NamedTuple):
    """A name that this release of the host does not have."""

    seam: str
    lost: str


_HEARD = "what an agent asks for by context="


_OWN_MODEL = "summaries by the agent's own model at its own endpoint"


_SESSION = "a ledger kept where the agent's own session is kept"


_SHOWN = "compressions in the host's own session store"


_TOLD = "the host's hooks and memory at a compression"


_STREAM = "events of a compression in the agent's own stream"


_SEEN = "the spinner and the line of output='verbose'"


READS = (
    Read(
        "agent.agent.Agent",
        (
            "_context_param",
            "_context_manager",
            "_context_manager_initialized",
            "chat_history",
            "clear_history",
        ),
        _HEARD,
        needed=True,
    ),
    Read(
        "context.models.ContextConfig",
        ("strategy", "auto_compact", "compact_threshold", "protected_tools", "from_env"),
        _HEARD,
        needed=True,
    ),
    Read(
        "context.manager.ContextManager",
        ("process", "emergency_truncate", "_deduplicate_messages", "_optimize_with_benefit_check"),
        "whole transcripts: the host's own manager would cut them first",
        needed=True,
    ),
    Read("agent.agent.Agent", ("llm", "_using_custom_llm"), _OWN_MODEL),
    Read("agent.agent.Agent", ("llm_instance", "_openai_client"), _OWN_MODEL),
    Read("llm.llm.LLM", ("_build_completion_params",), _OWN_MODEL),
    Read("llm.openai_client.OpenAIClient", ("api_key",), _OWN_MODEL),
    Read("agent.agent.Agent", ("_history_session_id", "_session_id", "_db"), _SESSION),
    Read("agent.agent.Agent", ("_session_store", "_session_store_initialized"), _SESSION),
    Read("session", ("get_default_session_store",), _SESSION),
    Read("session.store.DefaultSessionStore", ("session_dir",), _SESSION),
    Read("session", ("HierarchicalSessionStore",), _SHOWN),
    Read(
        "session.store.DefaultSessionStore",
        ("session_exists", "delete_session", "add_message", "update_session_metadata"),
        _SHOWN,
    ),
    Read("session.HierarchicalSessionStore", ("create_session",), _SHOWN),
    Read("paths", ("get_sessions_dir",), "forget through to the host's sessions, from the command"),
    Read("agent.agent.Agent", ("_hook_runner", "_memory_instance"), _TOLD),
    Read("hooks.types.HookEvent", ("BEFORE_COMPACTION", "AFTER_COMPACTION"), _TOLD),
    Read(
        "hooks.types.HookInput",
        ("session_id", "cwd", "event_name", "timestamp", "agent_name", "extra"),
        _TOLD,
    ),
    Read("agent.agent.Agent", ("stream_emitter",), _STREAM),
    Read("streaming.events.StreamEventType", ("TOOL_PROGRESS",), _STREAM),
    Read(
        "streaming.events.StreamEvent",
        ("type", "content", "tool_call", "metadata", "session_id"),
        _STREAM,
    ),
    Read("agent.agent.Agent", ("verbose", "_llm_instance", "console"), _SEEN),
    Read("main", ("sync_display_callbacks",), "the line in the host's modes that trace actions"),
    Read("agent.agent.Agent", ("tools",), "the recall tools"),
    Read("agent.agent.Agent", ("name", "display_name"), "the agent's name in the log"),
    Read(
        "agent.agent.Agent",
        ("_cost_lock", "_total_cost", "_total_tokens_in", "_total_tokens_out"),
        "what summaries cost in cost_summary",
    ),
    Read("agent.agent.Agent", ("skill_manager",), "a skill before our command of the same name"),
    Read("agents.agents.AgentTeam", ("agents", "_context_param"), "a team's context="),
    Read("workflows.workflows.Workflow", ("context",), "a workflow file's context:"),
    Read("plugins.manager.PluginManager", ("is_enabled",), "switching the plugin off"),
)


def missing(*, needed: bool = False) -> Iterator[Missing]:
    """What the installed host lacks of them; with `needed` only of those."""
    for read in READS:
        if read.needed or not needed:
            owner = _owner(read.owner)
            for name in read.names:
                if not _has(owner, name):
                    yield Missing(f"praisonaiagents.{read.owner}.{name}", read.lost)


def check() -> None:
    """Refuse a host in which requests would pass us by.

    Raises:
        HostMoved: the first of the needed names that is gone.
    """
    for seam, lost in missing(needed=True):
        raise HostMoved(seam, f"attribute (needed for {lost})")


def _owner(path: str) -> Any:
    """A class or a module of the host; None where it is gone."""
    module, _, last = path.rpartition(".")
    is_class = last[0].isupper()
    try:
        found = importlib.import_module(f"praisonaiagents.{module if is_class else path}")
    except ImportError:
        return None
    return getattr(found, last, None) if is_class else found


def _has(owner: Any, name: str) -> bool:
    """Whether it is there: on the owner, as a field of its, or set when one is made."""
    if hasattr(owner, name) or name in getattr(owner, "__dataclass_fields__", ()):
        return True
    return any(name in code.co_names for code in _constructors(owner))


def _constructors(owner: Any) -> Iterator[CodeType]:
    """The code that makes an instance: names of its attributes are in it."""
    for kind in getattr(owner, "__mro__", ()):
        init = vars(kind).get("__init__")
        code = getattr(inspect.unwrap(init), "__code__", None) if callable(init) else None
        if code is not None:
            yield code
