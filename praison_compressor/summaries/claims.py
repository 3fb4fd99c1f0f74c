"""Names in a model's summary that nothing it was written from has: they are marked.

A model that summarizes makes up a file, a hash or an address now and then, and the agent has no
original left to tell. What a machine can know for certain is that a name stands nowhere in them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from ..facts.identifiers import Classifier
from ..messages import Message, text_of, tool_calls_of
from .protocol import Brief

__all__ = [
    "DOUBTS",
    "doubted",
    "sources",
    "ungrounded",
]

DOUBTS = "Not in the originals, check before use: "
"""Opens the line that names them."""

MOST = 8
"""Names in that line: a text with more is not saved by a longer one."""

_KINDS = ("hash", "uuid", "url", "email", "id", "file", "number", "symbol")
"""What is looked for, the most harmful first. Folders, paths and dotted names are put together from
what is known; a path's own file is a name of its own here. Dates are written in many ways."""

_OF_WORDS = ("symbol", "id")

_LINE = re.compile(rf"^{re.escape(DOUBTS)}(.*)$", re.M)

_COUNTED = re.compile(r"\d+-[a-z]+(?:-[a-z]+)*", re.I)  # "a 10-minute wait", "the 8-step plan"

_BETWEEN = re.compile(r"[\W_]+")

_CODE = re.compile(r"`[^`\n]*`|\b\w+\(")


def sources(brief: Brief) -> Iterator[str]:
    """The texts that a summary's names can be from: the view's, the originals', the earlier
    summaries'. What was doubted in one of those is from nowhere."""
    yield brief.visible
    yield from _texts(brief.messages)
    for text in chain(brief.folded, brief.earlier):
        yield _without_doubted(text)


def _texts(messages: Iterable[Message]) -> Iterator[str]:
    for message in messages:
        yield text_of(message)
        yield str(message.get("name", ""))
        for call in tool_calls_of(message):
            yield f"{call.name} {call.arguments}"


def ungrounded(text: str, brief: Brief, patterns: Mapping[str, str] | None = None) -> list[str]:
    """Names of the text that neither the transcript, the tools, nor earlier summaries have.

    `patterns` find a domain's own identifiers, as in `CompressorConfig.fact_patterns`; they come
    first. Deterministic, in time linear in what the summary was written from.
    """
    kinds = (*(patterns or {}), *_KINDS)
    found = Classifier(patterns).names(text)
    names = [name for name, kind in found.items() if kind in kinds and _is_made(name, kind, text)]
    left = _unsaid(names, brief)
    said = _said_in_words([name for name in left if found[name] in _OF_WORDS], brief)
    doubts: list[str] = []
    for name in sorted(left, key=lambda name: kinds.index(found[name])):
        # Another spelling, or a part, of what is doubted already is no second doubt.
        known = name in said or any(name.casefold() in other.casefold() for other in doubts)
        doubts += [] if known else [name]
    return doubts


def doubted(text: str, names: Iterable[str]) -> str:
    """The text with a line below it that names what is not in the originals; as it is without.

    A line that the model copied from an earlier summary gives way to it.
    """
    shown = ", ".join(list(names)[:MOST])
    return f"{_LINE.sub('', text).rstrip()}\n\n{DOUBTS}{shown}" if shown else text


def _is_made(name: str, kind: str, text: str) -> bool:
    """Whether a model must have it from somewhere: no count of things, no product's name."""
    if not name.isascii() or (kind == "id" and _COUNTED.fullmatch(name)):
        return False
    if kind != "symbol" or "_" in name:
        return True
    return any(name in found.group() for found in _CODE.finditer(text))


def _unsaid(names: Iterable[str], brief: Brief) -> list[str]:
    """Those of the names that no text has."""
    left = {name: name.casefold() for name in names}
    for text in map(str.casefold, _known(brief)):
        left = {name: plain for name, plain in left.items() if not _stands(plain, text)}
        if not left:
            break
    return list(left)


def _known(brief: Brief) -> Iterator[str]:
    """What a model may name: what it was shown first, since most names are from there."""
    yield from sources(brief)
    yield from _texts(brief.originals)
    yield json.dumps(brief.tools, ensure_ascii=False, default=str)


def _said_in_words(names: Sequence[str], brief: Brief) -> set[str]:
    """Those of the names that some text has in words: `maxRetries` may be "max retries"."""
    plain = {name: _BETWEEN.sub("", name.casefold()) for name in names}
    texts = [_BETWEEN.sub("", text.casefold()) for text in _known(brief)] if names else []
    return {name for name in names if any(plain[name] in text for text in texts)}


def _stands(name: str, text: str) -> bool:
    """Whether the text has the name, and not as the end of a longer one."""
    at = text.find(name)
    while at > 0 and text[at - 1].isalnum() and text[max(0, at - 2)] != "\\":  # as in "\\nname"
        at = text.find(name, at + 1)
    return at >= 0


def _without_doubted(text: str) -> str:
    lines = _LINE.findall(text)
    if not lines:
        return text
    own = _LINE.sub("", text)
    for name in (name for line in lines for name in line.split(", ")):
        own = re.sub(rf"(?<![\w./-]){re.escape(name)}(?![\w-])", "", own)
    return own
