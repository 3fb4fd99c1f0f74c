"""Quote a segment's messages verbatim, without interpreting them.

In the order in which data passes the modules:

- `quoting`: `read_quotes`, one pass over the messages; `Quotes.render`; the sections of texts
- `todo_list`: the newest state of the todo list
- `output_lines`: which words of an output are quoted; the sections of calls
- `rendering`: sections within a budget, and the outline of the calls that no section quotes
"""

from .output_lines import deciding_line
from .quoting import Quotes, read_quotes

__all__ = ["Quotes", "deciding_line", "read_quotes"]
