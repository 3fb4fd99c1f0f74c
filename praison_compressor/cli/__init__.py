"""Run the library from a terminal: the command `praison-compressor`.

In the order in which data passes the modules:

- `app`: the list of commands, and the entry point
- `parameters`: the parameters that commands share; the store that they name
- `terminal`: prints tables, JSON and errors, with exit codes; reads and writes files of messages
- `compressing`: the commands compress and inspect
- `report_data`: a session's size over time, summaries and cost
- `report`: the commands report and bill; HTML, style and script of the page are in `page/`
- `demo_agent`: an agent that outgrows its window, for demo and doctor
- `demo`: the command demo
- `agent_trial`: a test run of an agent, in a process of its own
- `doctor`: the command doctor
- `store_commands`: the commands that read or change a store
- `show`: the command show; the table of segments
"""

from .app import build, main

__all__ = ["build", "main"]
