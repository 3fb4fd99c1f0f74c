"""Search and read the originals of a session's replaced messages.

In the order in which data passes the modules:

- `references`: names of archived text, as s2.14:900-940
- `layout`: a text's lines, long JSON by its members; JSON of like objects as tables
- `archive`: a session's archived messages, and those around one, calls and results paired
- `passages`: the lines of a text that match a query
- `matches`: the passages of found messages, referenced, narrowed and widened
- `ranking`: these passages, best first; the ones to quote and to list
- `search`: what matches, counted, quoted with call and results, listed by reference
- `outlines`: a segment as one line for each stretch of work
- `fitting`: lists, messages and lines within a budget of tokens; noise goes first
- `reading`: the texts at references, or the passages about something
- `answers`: the answers to a search and to a read, within a turn's budget; the agent's two
  functions that ask for them, and their schemas for each API
"""
