"""The command `praison-compressor`: a skin over the library for a person at a terminal.

Its modules, from the command line inwards:

- `app`: the list of commands, and the entry point
- `options`: the options that commands share; the store that they name
- `compressing`: compress, inspect
- `report`: report: a session's life as one page of HTML
- `demo`: demo: a real agent with a scripted model
- `doctor`: doctor
- `sessions`: sessions, lineage, show, search
- `archives`: restore, verify, forget
- `transcripts`: files with messages: read and written
- `terminal`: what is printed: tables, JSON, errors and their exit codes
"""

from .app import build, main

__all__ = ["build", "main"]
