"""Quote a segment's messages verbatim, without interpreting them.

In the order in which data passes them:

- `speakers`: who wrote which text of a message; the user's words inside results
- `telling`: which words of an output are quoted
- `user`, `todos`, `work`: the sections
- `rendering`: sections within a budget
- `quoting`: `read_quotes`, one pass over the messages; `Quotes.text`; `read_calls`
"""

from .quoting import Quotes, read_calls, read_quotes, user_words_exceed
from .telling import telling_line

__all__ = ["Quotes", "read_calls", "read_quotes", "telling_line", "user_words_exceed"]
