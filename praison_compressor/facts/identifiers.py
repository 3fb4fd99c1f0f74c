"""Identifiers: names that nobody could guess and that a later step may need, and the clauses that
bind them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from .language import UNSPACED
from .model import Excerpt
from .passages import Passage

# -------------------------------------------------------------- identifiers


# One pass, one alternation, nothing that backtracks: the text may be a megabyte of dashes.
TOKEN = re.compile(r"https?://[^\s\"'<>()\[\]{}`\\|]+|[\w~#@./][\w@./+~-]*")
_UNSPACED = re.compile(rf"[{UNSPACED}]+")
# A folder in other letters shows where the path begins: in 文件config/部署.yaml nothing does.
_UNSPACED_PATH = re.compile(
    r"(?:\.{0,2}/|~/)?[A-Za-z0-9_][A-Za-z0-9_.@+-]*/[\w.@+/-]*\.([A-Za-z]\w{0,7})"
)
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
        self._known: dict[str, tuple[tuple[str, str], ...]] = {}
        self._own = [(kind, re.compile(pattern)) for kind, pattern in (patterns or {}).items()]

    def keys(self, text: str) -> list[tuple[str, str, int, int]]:
        """(key, kind, start, end) for each identifier of the text, parts of a path included."""
        out: list[tuple[str, str, int, int]] = []
        known = self._known
        for found in TOKEN.finditer(text):
            raw = found.group()
            if len(raw) < 4:
                continue
            names = known.get(raw)
            if names is None:
                names = known[raw] = tuple(_names(raw))
            for key, kind in names:
                out.append((key, kind, found.start(), found.end()))
        for kind, pattern in self._own:
            out += [(m.group(), kind, m.start(), m.end()) for m in pattern.finditer(text)]
        return out

    def names(self, text: str) -> dict[str, str]:
        """The identifiers of the text with their kind, in order, where no place matters."""
        out: dict[str, str] = {}
        known = self._known
        for raw in TOKEN.findall(text):
            if len(raw) >= 4:
                names = known.get(raw)
                if names is None:
                    names = known[raw] = tuple(_names(raw))
                if names:
                    out.update(names)
        for kind, pattern in self._own:
            out.update((found.group(), kind) for found in pattern.finditer(text))
        return out


def _names(raw: str) -> Iterator[tuple[str, str]]:
    if not raw.isascii() and _UNSPACED.search(raw) and not _is_unspaced_path(raw):
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


def _is_unspaced_path(raw: str) -> bool:
    """Whether a token is a path with such signs in it, `docs/部署.md`, and no words beside it."""
    found = _UNSPACED_PATH.fullmatch(raw) if len(raw) <= MAX_LENGTH else None
    return found is not None and found[1].lower() in _SUFFIXES


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


# -------------------------------------------------------------- excerpts


CLAUSE_CHARS = 240
# What a tool prints before each line: a number that means nothing away from the file.
_GUTTER = re.compile(r"^\s*\d+(?:→|\t|[:|-](?=\s))\s?", re.M)
_BREAK = re.compile(r"(?<=[.;!?])\s+|(?<=,)\s+|(?<=[}\])])\s*,")


def clauses(passage: Passage) -> Iterator[str]:
    """The passage in verbatim runs of at most CLAUSE_CHARS, cut where a line or sentence ends.

    Neighbouring lines stay together: the words that explain a name often stand on the next line.
    """
    text = f"{passage.lead} {passage.text}" if passage.lead else passage.text
    if passage.source == "result":
        text = _GUTTER.sub("", text)
    run = ""
    for line in text.splitlines():
        flat = " ".join(line.split())
        if not flat:
            continue
        if len(run) + len(flat) < CLAUSE_CHARS:
            run = f"{run} {flat}" if run else flat
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
