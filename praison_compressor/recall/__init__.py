"""Search and read the originals of a session's replaced messages.

Each module imports only from those below it:

- `answers`: answers within a turn's budget; holds the recall tools and their schemas
- `reading`: reads the texts at references, or their passages about something
- `outlines`: outlines a segment, with a row for each run of steps
- `fitting`: writes searches' answers, lists, messages and lines within a budget of tokens
- `search`: finds the parts of a search's answer; `fitting` writes the text
- `ranking`: sorts passages by score; chooses passages to quote and to list
- `matches`: narrows and widens the passages of found messages
- `passages`: finds the lines of a text that match a query
- `archive`: reads a session's archived messages; pairs calls with results
- `layout`: splits texts into lines; shows JSON as tables
- `references`: parses and writes names of archived text, such as s2.14:900-940
"""
