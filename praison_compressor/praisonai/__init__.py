"""Connect the host, praisonaiagents: `Agent(context=CompressorContext(...))` and `install()`.

The modules, in the order in which a turn passes them:

- `context`, `plugin`, `install`: switch it on
- `seams`: lists what is replaced in the host and what is read of it, and probes it
- `options`: reads what an agent asks for by `context=`
- `agents`: knows which agents asked; keeps the host's own management out of their turns
- `commands`: answers slash commands; every other prompt begins a turn
- `restarts`: restores an agent's conversation after a restart
- `wire`, `requests`, `cache_marks`, `answers`: carry each request out and its answer back
- `agent_compressor`: `agent.context_compressor`, the view of each request and a user's commands
- `whose`, `conversations`: find whose conversation a request carries, and remember it
- `journal`: completes requests with the tool steps that the host drops, and records them
- `engines`: make one `ContextCompressor` per model, with the agent's own model as summarizer
- `sessions`: opens the ledger and forgets a part of it
- `settings`, `recall`: change the agent's settings and its tools while it is ours
- `surfaces`: serves the terminal, the bots' saved histories and the gateway's idle loop
- `notices`: reports to hooks, stream, display and status
- `realtime`: voice conversations
"""

from __future__ import annotations

from ..errors import HostMoved

try:
    from .context import CompressorContext
    from .install import Installation, install, installed, uninstall
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
