"""Connect the host, praisonaiagents: `Agent(context=CompressorContext(...))` and `install()`.

The modules, in the order in which a turn passes them:

- `install`, `plugin`: switch it on, for a process, for one agent, or by the host's configuration
- `host_names`: lists what is replaced in the host and what is read of it, and probes it
- `options`: reads what an agent asks for by `context=`; sets and restores the host's settings
- `agents`: knows which agents asked; keeps the host's own management out of their turns
- `turns`: answers a command, or begins a turn; restores the conversation after a restart
- `wire`: carries each request out as its view, and reads its answer
- `requests`, `provider_rules`: read and write a request; change a view as its provider demands
- `sending`: the view of each request; learns from answers and refusals
- `known_conversations`: finds the conversation that a request carries
- `conversations`: what is remembered of one conversation; the running turn
- `journal`: completes requests with the tool steps that the host drops, and records them
- `engines`: make one `ContextCompressor` per model, with the agent's own model as summarizer
- `ledgers`: open an agent's ledger, find its stored sessions, forget a part of it
- `recall`: gives the agent the recall tools; selects what they read
- `agent_compressor`, `commands`: `agent.context_compressor` and its slash commands
- `surfaces`: serves the host's terminal, bots and gateway
- `notices`: reports compressions to hooks, stream and display
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
