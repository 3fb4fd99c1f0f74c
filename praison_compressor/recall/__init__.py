"""Search and read the originals of a session's replaced messages.

In the order in which data passes the modules:

- `answers`: answers within a turn's budget; holds the recall tools and their schemas
- `references`: parses and writes names of archived text, such as s2.14:900-940
- `archive`: reads a session's archived messages; pairs calls with results
- `layout`: splits texts into lines; shows JSON as tables
- `passages`: finds the lines of a text that match a query
- `matches`: narrows and widens the passages of found messages
- `ranking`: sorts passages by score; chooses passages to quote and to list
- `search`: finds the parts of a search's answer; `fitting` writes the text
- `outlines`: outlines a segment, with a row for each run of steps
- `reading`: reads the texts at references, or their passages about something
- `fitting`: writes searches' answers, lists, messages and lines within a budget of tokens
"""
