"""Connect the host, praisonaiagents: `Agent(context=CompressorContext(...))` and `install()`.

A request is one call of a provider by the host. `compressor` names a `ContextCompressor`,
`agent_compressor` an `AgentCompressor`. State is kept for the process by `Installation`, for an
agent by `AgentCompressor`, for a conversation by `Conversation`, for a turn by `Turn`, for a
request by `RoundTrip`.

In the order in which data passes the modules:

- `install`: switches compression on for a process, or for one agent
- `plugin`: switches compression on by configuration
- `patches`: lists the host's names that are replaced
- `tested_releases`: the tested releases of the host; the error for others
- `context_param`: reads an agent's `context=`; changes the host's settings
- `agents`: replaces methods of agents, teams and workflows; restores sessions after a restart
- `running_turn`: tracks the turn that runs in this context
- `bots_and_terminal`: switches off compaction by the host's terminal, gateway and bots
- `wire`: replaces the host's calls of a provider
- `agent_requests`: makes the view of each request; bills its answer
- `request_shapes`: reads requests and writes views in each API's form
- `conversation_finder`: finds the conversation of a request
- `conversations`: holds the state of each conversation
- `journal`: keeps all messages of a conversation, in memory and in the store
- `model_compressors`: makes a `ContextCompressor` for each model; applies learned windows
- `agent_ledger`: opens an agent's ledger; finds its stored sessions
- `recall_tools`: gives an agent the recall tools
- `agent_compressor`: `agent.context_compressor`
- `commands`: the slash commands of the chat
- `notices`: reports compressions to hooks, memory, bill, log and screen
- `wording`: puts statuses, reports and replies to commands into words
- `realtime`: voice conversations
"""

from __future__ import annotations

from ..errors import HostMoved
from .tested_releases import host_moved

try:
    from .install import CompressorContext, Installation, install, installed, uninstall
except ImportError as error:
    if not (error.name or "").startswith("praisonaiagents."):
        raise
    raise host_moved(error.name or "", f"what we import ({error})") from error

__all__ = [
    "CompressorContext",
    "HostMoved",
    "Installation",
    "install",
    "installed",
    "uninstall",
]
