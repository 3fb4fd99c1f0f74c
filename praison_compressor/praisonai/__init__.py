"""The host, praisonaiagents: `Agent(context=CompressorContext(...))` and `install()`.

In the order in which a turn passes them:

- `context`, `plugin`, `install`: switching it on
- `seams`: what is replaced in the host and what is read of it, and whether it is there
- `options`: what an agent asks for by `context=`
- `agents`: which agents asked, and whose turn is running; the host's own management, out of the way
- `commands`: slash commands; every other prompt begins a turn
- `wire`, `requests`, `answers`: every request on its way out and back; the calls of an answer
- `selector`: the same where the host has context selectors, and nothing of it is replaced
- `conversations`: whose conversation a request carries, and what is remembered of it
- `journal`: what a conversation's requests carried, the tool steps that the host drops among it
- `agent_compressor`: `agent.context_compressor`, the view of each request
- `recall`: the tools by which an agent reaches what was compressed
- `engines`: one `ContextCompressor` per model, and the agent's own model as summarizer
- `sessions`: where the ledger is, and compressions in the host's session store
- `restarts`: an agent's conversation after a restart
- `surfaces`: the terminal, the bots' saved histories and the gateway's idle loop
- `notices`: hooks, stream, display and status
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
