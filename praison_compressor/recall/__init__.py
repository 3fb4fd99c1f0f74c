"""Search and read the originals of a session's replaced messages.

In the order in which data passes the modules:

- `references`: names of archived text, as s2.14:900-940
- `layout`: a text's lines; JSON as lines and as tables
- `archive`: a session's archived messages, calls and results paired
- `passages`: the lines of a text that match a query
- `matches`: the passages of found messages, narrowed or widened
- `ranking`: passages, best first; the ones to quote and to list
- `search`: the answer to a search
- `outlines`: a segment as one line for each stretch of work
- `fitting`: lists, messages and lines within a budget of tokens
- `reading`: the texts at references, or their passages about something
- `answers`: answers within a turn's budget; the recall tools and their schemas
"""
