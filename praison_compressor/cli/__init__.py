"""The command `praison-compressor`: a skin over the library for a person at a terminal.

Its modules, from the command line inwards:

- `app`: the list of commands, and the entry point
- `options`: options that commands share; the decorator that makes a command of a function
- `compressing`: compress, inspect
- `sessions`: sessions, lineage, show, search, rules
- `archives`: restore, resume, new, verify, forget, export, import
- `report`: report: a session's life as one page of HTML
- `evaluating`: eval
- `doctor`: doctor
- `demo`: demo: a real agent with a scripted model
- `transcripts`: files with messages: read and written
- `terminal`: what is printed: tables, JSON, errors and their exit codes
"""

from .app import build, main

__all__ = ["build", "main"]
