"""Identifiers (names that nobody could guess and that a later step may need), the clauses that bind
them, and how likely each is to be needed again.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache

from .language import UNSPACED
from .model import Excerpt, Identifier, Said
from .passages import Passage

# One pass, one alternation, nothing that backtracks: the text may be a megabyte of dashes.
TOKEN = re.compile(r"https?://[^\s\"'<>()\[\]{}`\\|]+|[\w~#@./][\w@./+~-]*")
_UNSPACED = re.compile(rf"[{UNSPACED}]+")
_PLAIN = re.compile(r"[A-Za-z]?[a-z]+|\d{1,3}|[A-Z]+|_+")
_EDGES = "./+-@~"
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:T[\d.:]*Z?)?")
_HEX = re.compile(r"[0-9a-f]{7,64}")
_NUMBER = re.compile(r"\d{4,}(?:\.\d+)*|\d+\.\d{2,}|\d+(?:\.\d+){2,}")
_DIGIT = re.compile(r"\d")
_LETTER = re.compile(r"[^\W\d_]")
_YEAR = re.compile(r"(?:19|20)\d\d")
_MAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_FILE = re.compile(r"[\w-][\w.@+-]*\.[A-Za-z][A-Za-z0-9]{0,7}")
_CAMEL = re.compile(r"[a-z]+[A-Z]\w*|[A-Z][a-z0-9]+[A-Z]\w*|[A-Z]{2,}[a-z]\w+")
_SNAKE = re.compile(r"_*[A-Za-z]\w*_\w*[A-Za-z0-9]")
_MEASURE = re.compile(
    r"\d+(?:st|nd|rd|th|px|ms|s|m|h|d|k|x|[KMGT]B?|kb|mb)|[vVL]?\d+|[A-Za-z]{1,2}\d"
)
_SUFFIXES = frozenset(
    "py pyi go ts tsx js jsx mjs cjs rs java kt rb c h cc cpp hpp cs php sh bash zsh md rst txt "
    "ps1 yaml yml toml json jsonl lock sql html css scss csv tsv xml ini cfg conf env log pdf "
    "png jpg jpeg gif svg zip gz tar db sqlite ipynb proto tf diff patch enc swift scala vue "
    "svelte lua mod sum gradle bat ex exs dart r m mm hs ml sol graphql service dockerfile".split()
)
# What every project has: seeing it tells nothing, and anyone can guess it.
COMMON = frozenset(
    "package.json package-lock.json tsconfig.json readme.md go.mod go.sum main.go index.ts "
    "index.js index.html main.py setup.py pyproject.toml requirements.txt __init__.py __main__.py "
    "node_modules dev/null /dev/null /tmp /usr/bin usr/bin bin/bash /bin/bash utf-8 utf8 "
    "file_path old_string new_string python3 sha256 base64 github.com origin/main origin/master "
    "stdout stderr and/or e.g i.e n/a true/false localhost".split()
)
MAX_LENGTH = 200


class Classifier:
    """Names the identifiers in a text; what it learned of a token it remembers for one reading.

    `patterns` find a domain's own: kind -> regular expression.
    """

    def __init__(self, patterns: Mapping[str, str] | None = None) -> None:
        self._names = lru_cache(maxsize=None)(lambda token: tuple(_names(token)))
        self._own = [(kind, re.compile(pattern)) for kind, pattern in (patterns or {}).items()]

    def keys(self, text: str) -> list[tuple[str, str, int, int]]:
        """(key, kind, start, end) for each identifier of the text, parts of a path included."""
        out = [
            (key, kind, *found.span())
            for found in TOKEN.finditer(text)
            for key, kind in self._names(found.group())
        ]
        for kind, pattern in self._own:
            out += [(found.group(), kind, *found.span()) for found in pattern.finditer(text)]
        return out

    def names(self, text: str) -> dict[str, str]:
        """The identifiers of the text with their kind, in order."""
        out = {key: kind for raw in TOKEN.findall(text) for key, kind in self._names(raw)}
        for kind, pattern in self._own:
            out.update((found.group(), kind) for found in pattern.finditer(text))
        return out


def _names(raw: str) -> Iterator[tuple[str, str]]:
    if not raw.isascii() and _UNSPACED.search(raw):
        # There a name touches the words round it: 端口改为9090.
        for part in _UNSPACED.split(raw.strip("、。")):
            if len(part) >= 4:
                yield from _names(part)
        return
    rooted = "/" in raw and raw[0] in "./~"
    token = raw.rstrip(_EDGES) if rooted else raw.strip(_EDGES)
    if not 4 <= len(token) <= MAX_LENGTH or token.lower() in COMMON:
        return
    kind = kind_of(token)
    if kind is None and token[0] == "#" and "/" not in token:
        token = token[1:]
        kind = kind_of(token) if len(token) >= 4 else None
    if kind is None:
        return
    yield key_of(token, kind), kind
    if kind == "path":
        name = token.rpartition("/")[2]
        inner = kind_of(name) if name.lower() not in COMMON and len(name) >= 4 else None
        if inner:
            yield name, inner
            folder = token.rpartition("/")[0]
            if folder.count("/") >= 1 and kind_of(folder) == "path":
                yield key_of(folder, "path"), "folder"
    elif kind == "dotted":
        for part in token.split("."):
            inner = kind_of(part) if len(part) >= 4 else None
            if inner in ("symbol", "id", "hash"):
                yield part, inner


def key_of(token: str, kind: str) -> str:
    """The name under which mentions are counted: a path by its last two parts."""
    if kind != "path":
        return token
    parts = [part for part in token.split("/") if part not in ("", "~", ".", "..")]
    return "/".join(parts[-2:]) if len(parts) >= 3 else token


def kind_of(token: str) -> str | None:
    """What sort of identifier a token is, or None if it is an ordinary word."""
    if _PLAIN.fullmatch(token):
        return None
    if token.startswith("http") and "://" in token:
        return "url"
    if "/" in token:
        return _path(token)
    return _written_with_digits(token) or _name(token)


def _path(token: str) -> str | None:
    if not _LETTER.search(token):
        return None
    if token[0] in "/~." or token.count("/") >= 2:
        return "path"
    return "path" if any(char in "._-" or char.isdigit() for char in token) else None


def _written_with_digits(token: str) -> str | None:
    if not _DIGIT.search(token):
        return None
    if _UUID.fullmatch(token):
        return "uuid"
    if _DATE.fullmatch(token):
        return "date"
    if _NUMBER.fullmatch(token):
        return None if _YEAR.fullmatch(token) else "number"
    if _HEX.fullmatch(token) and _LETTER.search(token):
        return "hash"
    if "." in token or "@" in token or _MEASURE.fullmatch(token):
        return None
    return "id" if _LETTER.search(token) and "_" not in token else None


def _name(token: str) -> str | None:
    if "@" in token:
        return "email" if _MAIL.fullmatch(token) else None
    if "." in token:
        if _FILE.fullmatch(token) and token.rpartition(".")[2].lower() in _SUFFIXES:
            return "file"
        return "dotted" if all(part.isidentifier() for part in token.split(".")) else None
    if _CAMEL.fullmatch(token) or _SNAKE.fullmatch(token):
        return "symbol"
    return None


# -------------------------------------------------------------- clauses


CLAUSE_CHARS = 240
# What a tool prints before each line: a number that means nothing away from the file.
_GUTTER = re.compile(r"^\s*\d+(?:→|\t|[:|-](?=\s))\s?", re.M)
_BREAK = re.compile(r"(?<=[.;!?])\s+|(?<=,)\s+|(?<=[}\])])\s*,")


def clauses(passage: Passage) -> Iterator[str]:
    """The passage in verbatim runs of at most CLAUSE_CHARS, cut where a line or sentence ends.

    Neighbouring lines stay together: the words that explain a name often stand on the next line.
    """
    text = f"{passage.lead} {passage.text}" if passage.lead else passage.text
    text = _GUTTER.sub("", text) if passage.source == "result" else text
    run = ""
    for line in text.splitlines():
        flat = " ".join(line.split())
        if not flat:
            continue
        if len(run) + len(flat) < CLAUSE_CHARS:
            run = f"{run}\n{flat}" if run else flat
            continue
        if run:
            yield run
        if len(flat) > CLAUSE_CHARS:
            *whole, flat = _pieces(flat)
            yield from whole
        run = flat
    if run:
        yield run


def _pieces(line: str) -> Iterator[str]:
    start = 0
    while len(line) - start > CLAUSE_CHARS:
        window = line[start : start + CLAUSE_CHARS]
        cut = max((found.end() for found in _BREAK.finditer(window)), default=0)
        if cut < CLAUSE_CHARS // 3:
            cut = window.rfind(" ") + 1 or CLAUSE_CHARS
        yield line[start : start + cut].strip()
        start += cut
    yield line[start:].strip()


def excerpts_of(
    passage: Passage, classifier: Classifier
) -> Iterator[tuple[Excerpt, dict[str, str]]]:
    """The clauses of the passage that hold an identifier, with the kind of each."""
    for text in clauses(passage):
        names = classifier.names(text)
        if names:
            yield Excerpt(passage.at, passage.source, text, tuple(names)), names


# -------------------------------------------------------------- worth


# A logistic model on what can be counted without knowing the future, fitted over 230 cuts of 60
# recorded agent sessions (label: the agent later used the identifier in a call before anything
# showed it again) and rounded. By hand: the user's own identifiers weigh nothing here (the user's
# words have a section of their own), and `SHARPNESS` undoes the shrinking.
SHARPNESS = 2.0
BASE = -2.2
KINDS = {
    "uuid": 1.5,
    "id": 0.9,
    "hash": 0.35,
    "symbol": 0.3,
    "path": 0.25,
    "date": 0.1,
    "number": -0.2,
    "folder": -0.2,
    "url": -0.25,
    "dotted": -0.35,
    "file": -0.7,
    "email": -0.5,
}
NAMED, NAMED_AGAIN = 1.1, 0.85
"""A call names it in a short argument, and per logarithm of how many do."""
ONLY_SHOWN, SAID = -0.3, 0.15
"""Nobody used it: it stood in outputs; the assistant wrote it."""
CROWD, SPREAD, LENGTH = -0.12, 0.1, 0.2
"""Per logarithm of those beside it, of the passages that have it, of its characters."""
FOUNDATION = 0.55
"""It was there from the beginning: it is what the session is about."""
CURRENT, ASKED = 0.7, 0.3
"""Per share of its words that the newest calls name, and that the user wrote: an agent that calls
`read checkpoint_store.go` next needs `SaveCheckpoint`, which it saw once among five hundred."""
NEWEST_NAMES = 15
_SHOWING = {"result", "host"}
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def weighed(
    items: Iterable[Identifier], user: Iterable[Said], messages: int, own: Iterable[str] = ()
) -> tuple[Identifier, ...]:
    """The identifiers with their worth; one of the domain's `own` kinds is worth all there is."""
    items, own = tuple(items), frozenset(own)
    named = sorted((item for item in items if item.named), key=lambda item: -item.last)
    calls = {word for item in named[:NEWEST_NAMES] for word in words_of(item.text)}
    asked = {word for said in user if not said.pasted for word in words_of(said.text)}

    def worth(item: Identifier) -> float:
        """The odds, as a weight between 0 and 1, that the identifier is needed again."""
        score = BASE + KINDS.get(item.kind, 0.0) + LENGTH * math.log(len(item.text))
        if item.named:
            score += NAMED + NAMED_AGAIN * math.log1p(item.named)
        score += SAID * ("assistant" in item.sources) + ONLY_SHOWN * (item.sources <= _SHOWING)
        score += CROWD * math.log(item.crowd) + SPREAD * math.log1p(item.spread)
        score += FOUNDATION * (messages - item.first) / max(1, messages)
        if words := words_of(item.text):
            score += (CURRENT * len(words & calls) + ASKED * len(words & asked)) / len(words)
        return 1.0 / (1.0 + math.exp(-SHARPNESS * score))

    return tuple(replace(item, worth=1.0 if item.kind in own else worth(item)) for item in items)


def words_of(name: str) -> frozenset[str]:
    """The words of three letters and more that a name or a sentence is made of.

    >>> sorted(words_of("saveCheckpointTo_db2"))
    ['checkpoint', 'save']
    """
    return frozenset(part.lower() for part in _PART.findall(name) if len(part) > 2)
