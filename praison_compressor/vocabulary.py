"""Tokens of a text, by the vocabularies that litellm's wheel carries: no network, no hang.

litellm is found but not imported; no environment variable is read or set.
"""

from __future__ import annotations

import base64
import hashlib
import logging
import re
import threading
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from functools import lru_cache, wraps
from pathlib import Path
from typing import Any, TypeVar

from .models import bare_names, litellm_folder

__all__ = ["Vocabulary", "pieces", "vocabulary_for"]

logger = logging.getLogger(__name__)

Encode = Callable[[str], "list[int]"]
Key = TypeVar("Key", bound=Hashable)

PIECE_CHARS = 65_536
"""Longer texts are cut: tiktoken panics on a million spaces, and slows on other long runs."""

EXACT_CHARS = 4_000_000
"""Beyond this (about a million tokens, more than a window) a text is sampled, not read whole."""

SAMPLES = 16


@dataclass(frozen=True)
class Vocabulary:
    """How a model's text becomes tokens."""

    source: str
    """For a person: which vocabulary, and whether it is the model's own."""
    exact: bool
    """Whether it is the model's own."""
    encode: Encode

    def count(self, text: str) -> int:
        """Tokens of `text`, in bounded time; literal special tokens are ordinary text."""
        if len(text) <= PIECE_CHARS:
            return len(self.encode(text))
        if len(text) > EXACT_CHARS:
            return self._sampled(text)
        return sum(len(self.encode(piece)) for piece in pieces(text))

    def _sampled(self, text: str) -> int:
        step = len(text) // SAMPLES
        samples = [text[start : start + PIECE_CHARS] for start in range(0, len(text), step)]
        tokens = sum(len(self.encode(sample)) for sample in samples)
        return round(tokens * len(text) / sum(map(len, samples)))


# Here a vocabulary's own pattern always starts a new piece, so that a cut changes no count:
# before a word at the start of a line; between a word and one mark that leads the next word;
# between letters and digits.
_SEAM = re.compile(
    r"(?<=\n)(?=[^\W_])"
    r"|(?<=[^\W_])(?=[ ,.;:、。，；：！？(-][^\W\d_])"
    r"|(?<=[^\W\d_])(?=\d)"
)


def pieces(text: str) -> Iterator[str]:
    """`text` in parts of at most PIECE_CHARS, cut where a token ends if there is such a place."""
    start = 0
    while len(text) - start > PIECE_CHARS:
        end = _last_seam(text, start, start + PIECE_CHARS)
        yield text[start:end]
        start = end
    yield text[start:]


def _last_seam(text: str, start: int, end: int) -> int:
    reach = 256
    while reach < PIECE_CHARS:
        seams = [m.start() for m in _SEAM.finditer(text, end - reach, end)]
        if seams:
            return seams[-1]
        reach *= 16
    return end


# ---------------------------------------------------------------- which one


@dataclass(frozen=True)
class _Bpe:
    """One of OpenAI's published vocabularies: the file's name is tiktoken's own for it."""

    name: str
    file: str
    sha256: str
    pattern: str


_CL100K = _Bpe(
    "cl100k_base",
    "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
    "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
    r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
)
_O200K = _Bpe(
    "o200k_base",
    "fb374d419588a4632f3f557e76b4b70aebbca790",
    "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
)
_CLAUDE_FILE = "anthropic_tokenizer.json"

_IS_O200K = re.compile(r"(ft:)?(chatgpt-4o|gpt-4o|gpt-4\.[15]|gpt-5|gpt-oss|o[134])(?![a-z0-9])")
_IS_CL100K = re.compile(
    r"(ft:)?(gpt-4|gpt-3\.5|gpt-35|davinci-002|babbage-002|text-embedding-)(?![.0-9a-np-z])"
)


def vocabulary_for(model: str | None) -> Vocabulary:
    """The model's own vocabulary where it is at hand, else the nearest, saying so."""
    names = bare_names(model)
    if any(_IS_O200K.match(name) for name in names):
        return _openai(_O200K, exact=True)
    if any(_IS_CL100K.match(name) for name in names):
        return _openai(_CL100K, exact=True)
    if any("claude" in name for name in names):
        return _claude()
    return _openai(_O200K, exact=False)


def _openai(bpe: _Bpe, exact: bool) -> Vocabulary:
    encode = _bpe_encode(bpe)
    if encode is None:
        return Vocabulary("estimate from the number of bytes", False, _by_bytes)
    return Vocabulary(bpe.name if exact else f"estimate by {bpe.name}", exact, encode)


def _claude() -> Vocabulary:
    encode = _json_encode(_CLAUDE_FILE)
    if encode is None:
        return _openai(_O200K, exact=False)
    # Anthropic publishes none for its newer models; this one is what litellm counts by.
    return Vocabulary("estimate by the published Claude 2 vocabulary", False, encode)


def _by_bytes(text: str) -> list[int]:
    # English is near 4 bytes a token, Chinese 3, logs and hashes 2: rather too many than too few.
    return [0] * -(-len(text.encode("utf-8", "surrogatepass")) // 3)


# ---------------------------------------------------------------- loading


def _file(name: str) -> Path | None:
    folder = litellm_folder()
    path = folder / "litellm_core_utils" / "tokenizers" / name if folder else None
    if path is None or not path.is_file():
        logger.warning("litellm's wheel carries no %s: tokens are estimated", name)
        return None
    return path


def _loaded_once(load: Callable[[Key], Encode | None]) -> Callable[[Key], Encode | None]:
    """Load each vocabulary once, also for threads that ask together: each has some 40 MB."""
    lock = threading.Lock()
    cached = lru_cache(maxsize=4)(load)

    @wraps(load)
    def loaded(key: Key) -> Encode | None:
        with lock:
            return cached(key)

    loaded.cache_clear = cached.cache_clear  # type: ignore[attr-defined]
    return loaded


@_loaded_once
def _bpe_encode(bpe: _Bpe) -> Encode | None:
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
    encode: Encode = loaded.encode_ordinary
    return encode


def _ranks(bpe: _Bpe) -> dict[bytes, int] | None:
    path = _file(bpe.file)
    data = path.read_bytes() if path else b""
    if not data:
        return None
    if hashlib.sha256(data).hexdigest() != bpe.sha256:
        logger.warning("litellm's %s is not the published one: tokens are estimated", bpe.name)
        return None
    pairs = (line.split() for line in data.splitlines() if line)
    return {base64.b64decode(token): int(rank) for token, rank in pairs}


@_loaded_once
def _json_encode(name: str) -> Encode | None:
    path = _file(name)
    if path is None:
        return None
    from tokenizers import Tokenizer

    tokenizer: Any = Tokenizer.from_file(str(path))

    def encode(text: str) -> list[int]:
        # A lone surrogate, which JSON may carry, is no Unicode text to the Rust side.
        clean = text.encode("utf-8", "replace").decode("utf-8")
        ids: list[int] = tokenizer.encode(clean, add_special_tokens=False).ids
        return ids

    return encode
