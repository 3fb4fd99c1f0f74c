"""What is replaced in the host and what is read of it, a table each; `install()` puts all of it in
place, once per process, and `uninstall()` takes all of it away again.
"""

from __future__ import annotations

import importlib
import inspect
import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import version
from typing import Any, NamedTuple

from ..errors import CompressorError
from ..messages.forks import renewed
from . import agents, commands, options, seam, wire
from .agent_compressor import AgentCompressor, model_of

log = logging.getLogger(__name__)


class HostMoved(CompressorError):
    """A place of the host that we build on is gone or has another shape.

    `seam` is its dotted name. Raised by `install()`, before any agent runs.
    """

    def __init__(self, seam: str, wanted: str) -> None:
        self.seam = seam
        super().__init__(
            f"praisonaiagents {version('praisonaiagents')} has no {wanted} at {seam}; "
            "use a host release that this version supports (>=1.7.4,<1.8)"
        )


# ------------------------------------------------------------ what is replaced


class Replaced(NamedTuple):
    """A name of the host that is another thing while we are installed.

    `uninstall` puts back the very object that the owner's own dictionary held, or takes away a name
    that it did not have. Where somebody wrapped ours since, theirs stays with ours inside, which
    then does nothing.
    """

    owner: str
    """A class below `praisonaiagents`."""
    name: str
    why: str
    by: Callable[..., Any]
    """Makes the replacement of what was there before and of our `Agents`."""
    kind: str = "method"
    """Or "property"; "new": the host has none."""


_AGENT, _MIXIN, _LLM = "agent.agent.Agent", "agent.chat_mixin.ChatMixin", "llm.llm.LLM"
_CLIENT = "llm.openai_client.OpenAIClient"
_PARSER = "workflows.yaml_parser.YAMLWorkflowParser"

_TURN = "a turn is known as its agent's; commands are answered without one"
_SENT = "every request goes out as the view that fits"
_BEFORE = "the host would cut the transcript before a request reaches us"
_ASKED = "this spelling of context= would not reach the agent"

REPLACED = (
    Replaced(_AGENT, "context_compressor", "for users", agents.context_compressor, "new"),
    # Who asks.
    Replaced(_AGENT, "clone_for_channel", _ASKED, agents.clone_for_channel),
    Replaced("agents.agents.AgentTeam", "__init__", _ASKED, options.team_init),
    Replaced(_PARSER, "_parse_workflow_data", _ASKED, options.parse_workflow_data),
    # Whose turn it is.
    Replaced(_MIXIN, "chat", _TURN, commands.chat),
    Replaced(_MIXIN, "achat", _TURN, commands.achat),
    Replaced(_MIXIN, "_start_stream", _TURN, commands.start_stream),
    # What it sends. Below the host's own recovery from a refusal, which would drop messages.
    Replaced(_CLIENT, "sync_client", _SENT, wire.client, "property"),
    Replaced(_CLIENT, "async_client", _SENT, wire.async_client, "property"),
    Replaced(_LLM, "_call_with_retry", _SENT, wire.call_with_retry),
    Replaced(_LLM, "_call_with_retry_async", _SENT, wire.acall_with_retry),
    Replaced(_LLM, "_stream_responses_api", _SENT, wire.stream_responses),
    Replaced(_LLM, "_stream_responses_api_async", _SENT, wire.astream_responses),
    # The host's own management, before a turn and in its tool loop.
    Replaced(_MIXIN, "_apply_context_management", _BEFORE, agents.unmanaged),
    Replaced(_LLM, "_manage_context_in_loop", _BEFORE, agents.unmanaged_in_loop),
)

ADDED = tuple(row for row in REPLACED if row.kind == "new")
"""All that is put in place where the host has a seam of its own (`seam`)."""

_ABSENT = object()


def _originals(rows: Sequence[Replaced]) -> Iterator[tuple[Replaced, Any, Any]]:
    """Each row with its owner and what that one's own dictionary holds.

    vars(), not getattr(): a function must come back as the function, a property as itself.
    """
    for row in rows:
        owner = _part(row.owner)
        before = _ABSENT if owner is None else vars(owner).get(row.name, _ABSENT)
        is_there = isinstance(before, property) if row.kind == "property" else callable(before)
        if not is_there and row.kind != "new":
            raise HostMoved(f"praisonaiagents.{row.owner}.{row.name}", row.kind)
        yield row, owner, before


# ------------------------------------------------------------ what is only read


NEEDED = {
    _AGENT: "_context_param _context_manager _context_manager_initialized chat_history "
    "clear_history execution",
    "config.feature_configs.ExecutionConfig": "context_compaction",
    "context.models.ContextConfig": "strategy auto_compact compact_threshold protected_tools "
    "from_env",
}
"""Names of the host that are read or set. Where one had moved, nothing would fail: requests
would leave an agent as if it had not asked. So `install()` refuses."""


def missing() -> list[str]:
    """What the installed host lacks of them."""
    return [
        f"praisonaiagents.{owner}.{name}"
        for owner, names in NEEDED.items()
        for name in names.split()
        if not _has(_part(owner), name)
    ]


def _part(path: str) -> Any:
    """A class of the host; None where it is gone."""
    module, _, name = path.rpartition(".")
    try:
        return getattr(importlib.import_module(f"praisonaiagents.{module}"), name, None)
    except ImportError:
        return None


def _has(owner: Any, name: str) -> bool:
    """Whether it is there: on the owner, as a field of its, or set when one is made."""
    if hasattr(owner, name) or name in getattr(owner, "__dataclass_fields__", ()):
        return True
    makers = [vars(kind).get("__init__") for kind in getattr(owner, "__mro__", ())]
    codes = [getattr(inspect.unwrap(f), "__code__", None) for f in makers if callable(f)]
    return any(name in code.co_names for code in codes if code is not None)


# ------------------------------------------------------------ putting it in place


class Installation:
    """What one `install()` did: the agents that asked, and every name that was replaced."""

    def __init__(self) -> None:
        """Raises:
        HostMoved: a place that we build on is gone; nothing was replaced.
        """
        for name in missing():
            raise HostMoved(name, "attribute")
        self.defaults: dict[str, Any] = {}
        """Options of `CompressorConfig` where an agent says nothing."""
        self.agents = agents.Agents(options.asked_by, self._compressor_for)
        self.patches: list[tuple[Any, str, Any, Any]] = []
        """Owner, name, what was there and what we put there."""
        host = seam.find()
        for row, owner, before in list(_originals(REPLACED if host is None else ADDED)):
            after = row.by(before, self.agents)
            setattr(owner, row.name, after)
            self.patches.append((owner, row.name, before, after))
        self._leave_seam = None if host is None else seam.register(host, self.agents)

    def _compressor_for(self, agent: Any, asked: options.RequestedContext) -> AgentCompressor:
        return AgentCompressor(agent, asked, asked.config(model_of(agent), self.defaults))

    def close(self) -> None:
        """Give the host its own names back, and the agents what they had."""
        self.agents.close()
        if self._leave_seam is not None:
            self._leave_seam()
        while self.patches:
            owner, name, before, after = self.patches.pop()
            if vars(owner).get(name) is not after:
                log.warning("%s.%s was replaced again after us", owner.__name__, name)
            elif before is _ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, before)


# The host's classes are the process's, so there is one installation of it.
_lock = renewed(threading.RLock())
_installation: Installation | None = None


def install(defaults: Mapping[str, Any] | None = None) -> Installation:
    """Make `Agent(context="summarize")`, in every spelling, compress as this package does.

    `defaults` are options of `CompressorConfig` for agents that do not say otherwise. Calling it
    again changes nothing but the defaults, where they are given. Agents that did not ask for the
    SUMMARIZE strategy behave as before.

    Raises:
        HostMoved: this release of praisonaiagents lacks a place that we build on.
    """
    global _installation
    with _lock:
        done = _installation = _installation or Installation()
        if defaults is not None:
            done.defaults = dict(defaults)
        # Who installs in code means it: a plugin's gate does not stay.
        done.agents.gate = None
        return done


def uninstall() -> None:
    """Put the host back exactly as it was; agents that compressed go back to its own ways."""
    global _installation
    with _lock:
        if _installation is not None:
            _installation.close()
            _installation = None


def installed() -> Installation | None:
    """The installation of this process, if there is one."""
    return _installation
