"""Connect the host, praisonaiagents: `Agent(context=CompressorContext(...))` and `install()`.

State: `Installation` of the process, `AgentCompressor` of an agent, `Conversation` of a
conversation, `Turn` of a turn, `RoundTrip` of a request.

In the order in which data passes the modules:

- `install`, `plugin`: switches compression on: in a process, an agent, the host's configuration
- `patches`: lists and checks the names that are replaced in the host
- `context_param`: reads `context=` of an agent; sets and restores the host's settings
- `agents`: finds an agent's compressor; replaces methods of agents, teams and workflows; restores
  an agent's session after a restart
- `running_turn`: the turn that runs in this context, and its bot
- `bots_and_terminal`: switches off compaction by the host's terminal, gateway and bots
- `wire`: replaces the host's calls of a provider, to send each request as its view
- `agent_requests`: makes the view of each request; records and bills its answer
- `request_shapes`: reads requests; writes views as API and provider take them: cache marks, order
  of roles, refused keys, another model's steps
- `conversation_finder`: decides to which conversation a request belongs, if to any
- `conversations`: the state of each conversation
- `journal`: adds the tool steps that the host dropped; records each conversation in the store
- `model_compressors`: makes a `ContextCompressor` for each model; learns what the model refuses
- `agent_ledger`: opens an agent's ledger; finds and forgets stored sessions
- `recall_tools`: gives the agent the recall tools
- `agent_compressor`: `agent.context_compressor`
- `commands`: the slash commands of the chat
- `notices`: reports compressions to hooks, memory, bill, log and screen
- `wording`: words of replies to commands, of statuses and of reports
- `realtime`: voice conversations
"""

from __future__ import annotations

from ..errors import HostMoved

try:
    from .install import CompressorContext, Installation, install, installed, uninstall
except ImportError as error:
    if not (error.name or "").startswith("praisonaiagents."):
        raise
    raise HostMoved(error.name or "", f"what we import ({error})") from error

__all__ = [
    "CompressorContext",
    "HostMoved",
    "Installation",
    "install",
    "installed",
    "uninstall",
]
