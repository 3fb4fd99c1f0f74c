"""How a message is found by its words: the same on every database, and without one.

The databases' own tokenizers disagree (stemming, underscores, Chinese), so the words are made here
and handed over ready: what matches on a laptop matches on a server.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import ConfigError
from ..messages import Message, result_text, tool_calls_of

_LONGEST = 64
# A script without spaces is found by its characters.
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True)
class Hit:
    """A message that a search found."""

    session_id: str
    entry: str
    """The hash of the newest entry that covers it; "" where it stands in the transcript itself."""
    ordinal: int
    """Its place among that entry's originals; 0 where there is none."""
    digest: str
    """Its content digest, by which it can be forgotten."""
    message: Message
    snippet: str
    score: float


Place = tuple[str, str, int]
"""Session, entry and ordinal of a hit."""


def hits(
    query: str, pool: Mapping[str, Message], limit: int, place: Callable[[str], Place]
) -> list[Hit]:
    """The best of the messages (by content digest); `place` is asked only where those are.

    Raises:
        ConfigError: a limit below 1.
    """
    if limit < 1:
        raise ConfigError(f"limit={limit}: expected a whole number, 1 or more")
    digests = list(pool)
    texts = [readable(message) for message in pool.values()]
    return [
        Hit(*place(digests[n]), digests[n], pool[digests[n]], snippet(query, texts[n]), score)
        for score, n in rank(query, texts)[:limit]
    ]


def words(text: str) -> list[str]:
    """The distinct words of a text in their order, folded: no case, no underscores."""
    spaced = _UNSPACED.sub(r" \g<0> ", _fold(text))
    return list(dict.fromkeys(word[:_LONGEST] for word in _WORD.findall(spaced)))


def holds(text: str, wanted: Sequence[str], *, every: bool) -> bool:
    """Whether the text has all of these words, or any of them."""
    held = set(wanted).intersection(words(text))
    return len(held) == len(wanted) if every else bool(held)


def _fold(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def readable(message: Mapping[str, Any]) -> str:
    """What can be searched of a message: its text, and the tools it calls with what."""
    lines = [result_text(message)]
    for call in tool_calls_of(message):
        try:
            arguments = json.loads(call.arguments)
        except (ValueError, RecursionError):
            arguments = call.arguments
        lines += [call.name, *_strings(arguments)]
    return "\n".join(line for line in lines if line)


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield str(key)
            yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
    elif value is not None:
        yield str(value)


def rank(query: str, texts: Sequence[str]) -> list[tuple[float, int]]:
    """Scores and indices of the texts that match, best first; of equals the later one first.

    A word counts for more the fewer of the texts have it; the query as one phrase counts most.
    """
    wanted = words(query)
    phrase = " ".join(_fold(query).split())
    found = [set(wanted) & set(words(text)) for text in texts]
    holding = Counter(word for each in found for word in each)
    scores = []
    for index, (each, text) in enumerate(zip(found, texts, strict=True)):
        score = sum(math.log(1 + len(texts) / holding[word]) for word in each)
        if len(wanted) > 1 and phrase in " ".join(_fold(text).split()):
            score *= 2
        if score:
            scores.append((score, index))
    return sorted(scores, key=lambda pair: (-pair[0], -pair[1]))


def snippet(query: str, text: str, width: int = 240) -> str:
    """A stretch of the text round the first place where the query is found."""
    flat = " ".join(text.split())
    folded = flat.casefold()
    places = [folded.find(" ".join(query.casefold().split()))]
    places += [folded.find(word) for word in words(query)]
    at = next((place for place in places if place >= 0), 0)
    start = max(0, min(at - width // 3, len(flat) - width))
    cut = flat[start : start + width]
    return ("…" if start else "") + cut + ("…" if start + width < len(flat) else "")
