"""OpenAI's published vocabularies, counted by its own library: the reference."""

from __future__ import annotations

import base64
import hashlib
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .loading import file_of_litellm, loaded_once
from .vocabulary import Count

__all__ = ["CL100K", "O200K", "Bpe", "tiktoken_count"]

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


@loaded_once
def tiktoken_count(bpe: Bpe) -> Count | None:
    """Counts by this vocabulary; None where litellm carries it not, or another in its place."""
    import tiktoken
    import tiktoken.registry

    loaded: Any = tiktoken.registry.ENCODINGS.get(bpe.name)
    if loaded is None:
        ranks = _ranks(bpe)
        if ranks is None:
            return None
        loaded = tiktoken.Encoding(
            bpe.name, pat_str=bpe.pattern, mergeable_ranks=ranks, special_tokens={}
        )
    encode: Callable[[str], list[int]] = loaded.encode_ordinary
    return lambda text: len(encode(text))


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
