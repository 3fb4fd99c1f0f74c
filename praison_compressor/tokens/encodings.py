"""Vocabularies: count a text's tokens as the model's tokenizer does, offline, in bounded time."""

from __future__ import annotations

import base64
import hashlib
import logging
import os
import re
import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache, wraps
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

from ..messages.forks import renewed, undivided
from .models import bare_names, litellm_folder

__all__ = [
    "EXACT_CHARS",
    "PIECE_CHARS",
    "Tiktoken",
    "Vocabulary",
    "pieces",
    "vocabulary_for",
]

logger = logging.getLogger(__name__)

Count = Callable[[str], int]
CountAll = Callable[[Sequence[str]], "list[int]"]

PIECE_CHARS = 65_536
"""Longer texts are cut: tiktoken panics on a million spaces, and slows on other long runs."""

EXACT_CHARS = 4_000_000
"""Beyond this (about a million tokens, more than a window) a text is sampled, not read whole."""

SAMPLES = 16

MOST_THREADS = 4

THREADED_CHARS = 200_000
"""Shorter than this in all, texts are counted before other threads have begun."""


@dataclass(frozen=True)
class Vocabulary:
    """How a model's text becomes tokens."""

    source: str
    """For a person: which vocabulary, and whether it is the model's own."""
    exact: bool
    """Whether it is the model's own."""
    count_piece: Count
    """Counts at most PIECE_CHARS characters at once; special tokens are ordinary text."""
    count_pieces: CountAll | None = None
    """Counts many such texts at once; None: one by one."""

    def count(self, text: str) -> int:
        """Tokens of `text`, in bounded time; literal special tokens are ordinary text."""
        if len(text) <= PIECE_CHARS:
            return self.count_piece(text)
        if len(text) > EXACT_CHARS:
            return self._sampled(text)
        return sum(map(self.count_piece, pieces(text)))

    def count_all(self, texts: Sequence[str]) -> list[int]:
        """`count` of each of them; a long transcript's in a few threads."""
        threads = min(os.cpu_count() or 1, MOST_THREADS)
        if threads > 1 and sum(map(len, texts)) >= THREADED_CHARS:
            size = -(-len(texts) // (4 * threads))
            shares = [texts[start : start + size] for start in range(0, len(texts), size)]
            try:
                with ThreadPoolExecutor(threads, "praison-compressor-tokens") as pool:
                    return list(chain.from_iterable(pool.map(self._count_share, shares)))
            except RuntimeError as error:  # no more threads, or the interpreter is about to end
                logger.debug("texts are counted without threads: %s", error)
        return self._count_share(texts)

    def _count_share(self, texts: Sequence[str]) -> list[int]:
        if self.count_pieces is None:
            return list(map(self.count, texts))
        counts = iter(self.count_pieces([text for text in texts if len(text) <= PIECE_CHARS]))
        return [next(counts) if len(text) <= PIECE_CHARS else self.count(text) for text in texts]

    def _sampled(self, text: str) -> int:
        step = len(text) // SAMPLES
        samples = [text[start : start + PIECE_CHARS] for start in range(0, len(text), step)]
        tokens = sum(map(self.count_piece, samples))
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


# ---------------------------------------------------------------- which vocabulary counts
_IS_O200K = re.compile(r"(ft:)?(chatgpt-4o|gpt-4o|gpt-4\.[15]|gpt-5|gpt-oss|o[134])(?![a-z0-9])")

_IS_CL100K = re.compile(
    r"(ft:)?(gpt-4|gpt-3\.5|gpt-35|davinci-002|babbage-002|text-embedding-)(?![.0-9a-np-z])"
)

_CLAUDE_FILE = "anthropic_tokenizer.json"


def vocabulary_for(model: str | None) -> Vocabulary:
    """The model's own vocabulary where it is at hand, else the nearest, saying so."""
    names = bare_names(model)
    if any(_IS_O200K.match(name) for name in names):
        return _openai(O200K, exact=True)
    if any(_IS_CL100K.match(name) for name in names):
        return _openai(CL100K, exact=True)
    count = _by_tokenizers(_CLAUDE_FILE) if any("claude" in name for name in names) else None
    if count is None:
        return _openai(O200K, exact=False)
    # Anthropic publishes none for its newer models; this one is what litellm counts by.
    source = "estimate by the published Claude 2 vocabulary"
    return Vocabulary(source, False, count)


def _openai(bpe: Bpe, *, exact: bool) -> Vocabulary:
    found = _by_tiktoken(bpe)
    if found is None:
        return Vocabulary("estimate from the number of bytes", False, _by_bytes)
    source = bpe.name if exact else f"estimate by {bpe.name}"
    return Vocabulary(source, exact, found, count_pieces=found.all)


def _by_bytes(text: str) -> int:
    # English is near 4 bytes a token, Chinese 3, logs and hashes 2: rather too many than too few.
    return -(-len(text.encode("utf-8", "surrogatepass")) // 3)


# ---------------------------------------------------------------- loading a vocabulary
Key = TypeVar("Key", bound=Hashable)
Loaded = TypeVar("Loaded")


def _loaded_once(load: Callable[[Key], Loaded]) -> Callable[[Key], Loaded]:
    """Load each vocabulary once, also for threads that ask together: each has some 40 MB."""
    lock = renewed(threading.Lock())
    cached = lru_cache(maxsize=4)(load)

    @wraps(load)
    def loaded(key: Key) -> Loaded:
        with undivided, lock:
            return cached(key)

    loaded.cache_clear = cached.cache_clear  # type: ignore[attr-defined]
    return loaded


def _file_of_litellm(name: str) -> Path | None:
    """A tokenizer's file; litellm is found but not imported, no variable is read or set."""
    folder = litellm_folder()
    path = folder / "litellm_core_utils" / "tokenizers" / name if folder else None
    if path is None or not path.is_file():
        logger.warning("litellm's wheel carries no %s: tokens are estimated", name)
        return None
    return path


@_loaded_once
def _by_tokenizers(name: str) -> Count | None:
    """Counts by the vocabulary of this file of litellm's; None where it carries none."""
    path = _file_of_litellm(name)
    if path is None:
        return None
    from tokenizers import Tokenizer

    tokenizer: Any = Tokenizer.from_file(str(path))

    def count(text: str) -> int:
        # A lone surrogate, which JSON may carry, is no Unicode text to the Rust side.
        clean = text.encode("utf-8", "replace").decode("utf-8")
        return len(tokenizer.encode(clean, add_special_tokens=False).ids)

    return count


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
    """Counts by tiktoken's encoding of one vocabulary."""

    def __init__(self, encoding: Any) -> None:
        self._encoding = encoding
        # Tokens as bytes: a list of them takes a sixth of the time, and the interpreter's lock.
        # The public way to these bytes, `encode_to_numpy`, wants numpy.
        core = getattr(encoding, "_core_bpe", None)
        self._together: Any = getattr(core, "encode_to_tiktoken_buffer", None)

    def __call__(self, text: str) -> int:
        """Tokens of a text; what looks like a special token is ordinary text."""
        return len(self._encoding.encode_ordinary(text))

    def all(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each of many texts, encoded in one go so that threads can work side by side."""
        if self._together is None or not texts or any(BETWEEN in text for text in texts):
            return list(map(self, texts))
        try:
            tokens = bytes(self._together(BETWEEN.join(texts), {BETWEEN}))
        except UnicodeEncodeError:  # half of a pair, which `encode_ordinary` mends
            return list(map(self, texts))
        return list(_sizes(tokens, bytes(self._together(BETWEEN, {BETWEEN})), len(texts)))


def _sizes(tokens: bytes, between: bytes, count: int) -> Iterator[int]:
    """Yield how many tokens stand before, between and behind the `count` - 1 separators.

    A separator is found only where it stands: the upper two bytes of a token's four are below 4,
    and the lower two of a separator's are not, so that no two tokens have it between them.
    """
    width, start = len(between), 0
    for _ in range(count - 1):
        end = tokens.find(between, start)
        yield (end - start) // width
        start = end + width
    yield (len(tokens) - start) // width


@_loaded_once
def _by_tiktoken(bpe: Bpe) -> Tiktoken | None:
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
    path = _file_of_litellm(bpe.file)
    data = path.read_bytes() if path else b""
    if not data:
        return None
    if hashlib.sha256(data).hexdigest() != bpe.sha256:
        logger.warning("litellm's %s is not the published one: tokens are estimated", bpe.name)
        return None
    pairs = (line.split() for line in data.splitlines() if line)
    return {base64.b64decode(token): int(rank) for token, rank in pairs}
