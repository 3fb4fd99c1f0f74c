"""Run the library from a terminal: the command `praison-compressor`.

Each module imports only from those below it:

- `app`: the list of commands, and the entry point
- `report`: the commands report and bill; HTML, style and script of the page are in `page/`
- `report_data`: a session's size over time, summaries and cost
- `demo`: the command demo
- `doctor`: the command doctor
- `agent_trial`: a test run of an agent, in a process of its own
- `demo_agent`: an agent that outgrows its window, for demo and doctor
- `compressing`: the commands compress and inspect
- `store_commands`: the commands that read or change a store
- `show`: the command show; the table of segments
- `parameters`: the parameters that commands share; the store that they name
- `terminal`: prints tables, JSON and errors, with exit codes; reads and writes files of messages
"""

from .app import build, main

__all__ = ["build", "main"]
