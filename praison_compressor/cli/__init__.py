"""Run the library from a terminal: the command `praison-compressor`.

Its modules, from the command line inwards:

- `app`: the list of commands, and the entry point
- `compressing`: compress, inspect
- `report`: bill; report, with the page's HTML, style and script in `page/`
- `report_data`: a session's size over time, summaries and cost, as `report` shows them
- `demo`: demo; `demo_agent`: the agent that it watches
- `doctor`: doctor; `agent_trial`: the agent that it runs
- `store_commands`: sessions, lineage, search, restore, verify, forget; `show`: show
- `parameters`: the parameters that commands share; the store that they name
- `terminal`: what is printed: tables, JSON, errors and their exit codes; files with messages: read
  and written
"""

from .app import build, main

__all__ = ["build", "main"]
