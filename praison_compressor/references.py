"""Where a rendering names the recall tool: taken out of the view of an agent that has none.

What the ledger holds is as it was written, for whoever resumes the session with the tool.
"""

from __future__ import annotations

import re
from dataclasses import replace

from .ledger import Segment
from .masks import RECALLED, WHOLE
from .prompts import ORIGINALS

__all__ = ["unreferenced"]


def unreferenced(segment: Segment) -> Segment:
    """The segment with a rendering that names no recall tool; itself where it names none."""
    content = segment.rendered.get("content")
    if not isinstance(content, str) or _TOOL not in content:
        return segment
    if segment.kind == "mask":
        plain = _MASKED.sub(lambda _: WHOLE, content)
    else:
        first, newline, rest = content.partition("\n")
        plain = _FRAMED.sub("", first) + newline + rest
    return replace(segment, rendered={**segment.rendered, "content": plain})


_TOOL = "read_conversation_archive("


def _at_the_end(written: str, reference: str) -> re.Pattern[str]:
    before, after = map(re.escape, written.split("{}"))
    return re.compile(before + reference + after + r"\Z")


_FRAMED = _at_the_end(ORIGINALS, r"s\d+")
_MASKED = _at_the_end(RECALLED, r"m[0-9a-f]+")
