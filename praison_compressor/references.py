"""Where a rendering names the recall tool: taken out of the view of an agent that has none.

What the ledger holds is as it was written, for whoever resumes the session with the tool.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from .ledger import Segment
from .masks import RECALLED, WHOLE
from .messages import is_answer_block
from .prompts import ORIGINALS

__all__ = ["unreferenced"]


def unreferenced(segment: Segment) -> Segment:
    """The segment with a rendering that names no recall tool; itself where it names none."""
    content = segment.rendered.get("content")
    plain = _plain(content, segment.kind)
    if plain == content:
        return segment
    return replace(segment, rendered={**segment.rendered, "content": plain})


def _plain(content: Any, kind: str) -> Any:
    if isinstance(content, list):  # results in blocks: a line in each that is masked
        return [
            {**part, "content": _plain(part.get("content"), kind)}
            if is_answer_block(part)
            else part
            for part in content
        ]
    if not isinstance(content, str) or _TOOL not in content:
        return content
    if kind == "mask":
        return _MASKED.sub(lambda _: WHOLE, content)
    first, newline, rest = content.partition("\n")
    return _FRAMED.sub("", first) + newline + rest


_TOOL = "read_conversation_archive("


def _at_the_end(written: str, reference: str) -> re.Pattern[str]:
    before, after = map(re.escape, written.split("{}"))
    return re.compile(before + reference + after + r"\Z")


_FRAMED = _at_the_end(ORIGINALS, r"s\d+")
_MASKED = _at_the_end(RECALLED, r"m[0-9a-f]+")
