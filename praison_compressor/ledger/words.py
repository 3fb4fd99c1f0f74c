"""Search by words: the same in memory, on SQLite and on PostgreSQL.

The databases' tokenizers disagree (stemming, underscores, Chinese), so words are split here.
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
# Scripts without spaces: each character is a word.
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True)
class Hit:
    """A message that a search found."""

    session_id: str
    entry: str
    """Hash of the newest entry that covers the message; "" where none does."""
    ordinal: int
    """The message's place among that entry's originals, from 0."""
    digest: str
    """Content digest, as `forget` takes it."""
    message: Message
    snippet: str
    score: float


HitPlace = tuple[str, str, int]
"""Session, entry and ordinal of a hit."""


def hits(
    query: str, pool: Mapping[str, Message], limit: int, place: Callable[[str], HitPlace]
) -> list[Hit]:
    """Return the best messages of a pool; call `place` only for these.

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
    """Return a text's distinct words in order, without case and underscores."""
    spaced = _UNSPACED.sub(r" \g<0> ", _fold(text))
    return list(dict.fromkeys(word[:_LONGEST] for word in _WORD.findall(spaced)))


def holds(text: str, wanted: Sequence[str], *, every: bool) -> bool:
    """Return whether the text has every (or any) of these words."""
    held = set(wanted).intersection(words(text))
    return len(held) == len(wanted) if every else bool(held)


def _fold(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def readable(message: Mapping[str, Any]) -> str:
    """Return a message's text, and its tool calls with their arguments."""
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
    """Return scores and indices of matching texts: best first, then later first.

    A rare word counts more than a common one; the query as a phrase doubles the score.
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
    """Return the text around the first match of the query."""
    flat = " ".join(text.split())
    folded = flat.casefold()
    places = [folded.find(" ".join(query.casefold().split()))]
    places += [folded.find(word) for word in words(query)]
    at = next((place for place in places if place >= 0), 0)
    start = max(0, min(at - width // 3, len(flat) - width))
    cut = flat[start : start + width]
    return ("…" if start else "") + cut + ("…" if start + width < len(flat) else "")
