"""OpenAI's published vocabularies, counted by its own library: the reference."""

from __future__ import annotations

import base64
import hashlib
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from .loading import file_of_litellm, loaded_once

__all__ = ["CL100K", "O200K", "Bpe", "Tiktoken", "tiktoken_of"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Bpe:
    """One of OpenAI's published vocabularies: the file's name is tiktoken's own for it."""

    name: str
    file: str
    sha256: str
    pattern: str


CL100K = Bpe(
    "cl100k_base",
    "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
    "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
    r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
)
O200K = Bpe(
    "o200k_base",
    "fb374d419588a4632f3f557e76b4b70aebbca790",
    "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
)


BETWEEN = "<|endoftext|>"
"""Stands between texts that are counted together: a special token, at which no text runs on."""


class Tiktoken:
    """One vocabulary, by tiktoken's encoding of it."""

    def __init__(self, encoding: Any) -> None:
        self._encoding = encoding
        # Tokens as bytes: a list of them takes a sixth of the time, and the interpreter's lock.
        # The public way to these bytes, `encode_to_numpy`, wants numpy.
        core = getattr(encoding, "_core_bpe", None)
        self._together: Together | None = getattr(core, "encode_to_tiktoken_buffer", None)

    def __call__(self, text: str) -> int:
        """Tokens of a text; what looks like a special token is ordinary text."""
        return len(self._encoding.encode_ordinary(text))

    def all(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each of many texts, encoded in one go: the lock is taken up once, not once for
        each of them."""
        if self._together is None or not texts or any(BETWEEN in text for text in texts):
            return list(map(self, texts))
        try:
            tokens = bytes(self._together(BETWEEN.join(texts), {BETWEEN}))
        except UnicodeEncodeError:  # half of a pair, which `encode_ordinary` mends
            return list(map(self, texts))
        return list(_sizes(tokens, bytes(self._together(BETWEEN, {BETWEEN})), len(texts)))


Together = Callable[[str, "set[str]"], Any]


def _sizes(tokens: bytes, between: bytes, count: int) -> Iterator[int]:
    """How many tokens stand before, between and behind the `count` - 1 separators.

    One is found only where it stands: the upper two bytes of a token's four are below 4, and the
    lower two of a separator's are not, so that no two tokens have it between them.
    """
    width, start = len(between), 0
    for _ in range(count - 1):
        end = tokens.find(between, start)
        yield (end - start) // width
        start = end + width
    yield (len(tokens) - start) // width


@loaded_once
def tiktoken_of(bpe: Bpe) -> Tiktoken | None:
    """Counts by this vocabulary; None where litellm carries it not, or another in its place."""
    import tiktoken
    import tiktoken.registry

    loaded: Any = tiktoken.registry.ENCODINGS.get(bpe.name)
    if loaded is None:
        ranks = _ranks(bpe)
        if ranks is None:
            return None
        loaded = tiktoken.Encoding(
            bpe.name,
            pat_str=bpe.pattern,
            mergeable_ranks=ranks,
            special_tokens={BETWEEN: len(ranks)},
        )
    return Tiktoken(loaded)


def _ranks(bpe: Bpe) -> dict[bytes, int] | None:
    path = file_of_litellm(bpe.file)
    data = path.read_bytes() if path else b""
    if not data:
        return None
    if hashlib.sha256(data).hexdigest() != bpe.sha256:
        logger.warning("litellm's %s is not the published one: tokens are estimated", bpe.name)
        return None
    pairs = (line.split() for line in data.splitlines() if line)
    return {base64.b64decode(token): int(rank) for token, rank in pairs}
