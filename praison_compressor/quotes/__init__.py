"""Quote a segment's messages verbatim, without interpreting them.

In the order in which data passes the modules:

- `quoting`: `read_quotes`; the sections of texts
- `todo_list`: the newest state of the todo list
- `output_lines`: the deciding words of an output; the sections of calls
- `rendering`: sections within a budget; the outline of calls that no section quotes
"""

from .output_lines import deciding_line
from .quoting import Quotes, read_quotes

__all__ = ["Quotes", "deciding_line", "read_quotes"]
