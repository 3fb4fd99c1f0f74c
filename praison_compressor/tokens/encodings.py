"""Count the tokens of a text by the vocabulary of a model: no network, bounded time whatever the
text.

It is a young package, so tiktoken stays the reference. toktok is tried on texts of known counts
before it is believed; texts that hold characters of which the two have not the same opinion, or
may come not to have, are tiktoken's; and after a fault all are.

Each library that counts has a room of its own here; which of them counts changes no count.
"""

from __future__ import annotations

import base64
import hashlib
import logging
import os
import re
import sys
import threading
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, wraps
from itertools import accumulate, compress
from pathlib import Path
from typing import Any, TypeVar

from ..messages.forks import renewed, undivided
from .models import bare_names, litellm_folder

__all__ = [
    "CL100K",
    "EXACT_CHARS",
    "KNOWN",
    "O200K",
    "PIECE_CHARS",
    "TRIED",
    "Bpe",
    "Count",
    "CountAll",
    "Counting",
    "Tiktoken",
    "Toktok",
    "Vocabulary",
    "common",
    "file_of_litellm",
    "loaded_once",
    "pieces",
    "tiktoken_of",
    "tokenizers_count",
    "toktok_of",
    "vocabulary_for",
]

logger = logging.getLogger(__name__)


# -------------------------------------------------------------- loading


Key = TypeVar("Key", bound=Hashable)


Loaded = TypeVar("Loaded")


def file_of_litellm(name: str) -> Path | None:
    """A tokenizer's file; litellm is found but not imported, no variable is read or set."""
    folder = litellm_folder()
    path = folder / "litellm_core_utils" / "tokenizers" / name if folder else None
    if path is None or not path.is_file():
        logger.warning("litellm's wheel carries no %s: tokens are estimated", name)
        return None
    return path


def loaded_once(load: Callable[[Key], Loaded]) -> Callable[[Key], Loaded]:
    """Load each vocabulary once, also for threads that ask together: each has some 40 MB."""
    lock = renewed(threading.Lock())
    cached = lru_cache(maxsize=4)(load)

    @wraps(load)
    def loaded(key: Key) -> Loaded:
        with undivided, lock:
            return cached(key)

    loaded.cache_clear = cached.cache_clear  # type: ignore[attr-defined]
    return loaded


# -------------------------------------------------------------- threads


CountAll = Callable[[Sequence[str]], "list[int]"]
"""Tokens of each of many texts."""


MOST_WORKERS = 4


LEAST_SHARE = 16_384
"""Characters: about a millisecond's work. A thread that comes back from less waits for the lock."""


def _workers() -> int:
    """How many threads may count at once."""
    return min(os.cpu_count() or 1, MOST_WORKERS)


class Counting:
    """Texts that threads of their own count, while whoever began it has something else to do.

    As many threads as may count at once, so that it waits for no work of its own: a system leaves
    one new thread on its maker's processor for long. Whoever reads messages meanwhile holds the
    interpreter's lock, and a thread that wants it back waits 5 ms: so the shares are large at
    first, and small at the end, for none to wait long for the last one.
    """

    def __init__(self, texts: Sequence[str], count_all: CountAll) -> None:
        self._texts = texts
        self._count_all = count_all
        self._sizes = [0] * len(texts)
        self._failures: deque[BaseException] = deque()
        threads = _workers()
        self._shares = deque(_shares([len(text) for text in texts], 2 * threads))
        wanted = min(threads, len(self._shares))
        self._threads = list(self._started(wanted)) if wanted > 1 else []

    def _started(self, number: int) -> Iterator[threading.Thread]:
        for n in range(number):
            name = f"praison-compressor-tokens-{n}"
            # No daemon: one that an interpreter's end cuts off inside a library can abort it.
            thread = threading.Thread(target=self._work, name=name)
            try:
                thread.start()
            except RuntimeError as error:  # no more threads, or the interpreter is about to end
                logger.debug("texts are counted without a thread: %s", error)
                return
            yield thread

    def counts(self) -> list[int]:
        """Tokens of each text, in their order.

        Raises:
            BaseException: whatever the library raised.
        """
        for thread in self._threads:
            thread.join()
        self._work()  # all that is left where no thread could be had
        if self._failures:
            raise self._failures[0]
        return self._sizes

    def by_text(self) -> dict[str, int]:
        """The same, by text.

        Raises:
            BaseException: whatever the library raised.
        """
        return dict(zip(self._texts, self.counts(), strict=True))

    def _work(self) -> None:
        try:
            while (share := self._next()) is not None:
                self._sizes[share] = self._count_all(self._texts[share])
        except BaseException as error:
            self._failures.append(error)

    def _next(self) -> slice | None:
        try:
            return self._shares.popleft()
        except IndexError:
            return None


def _shares(lengths: Sequence[int], divisor: int) -> Iterator[slice]:
    """Stretches of the texts, each a part of what is left of them: large first, small at last."""
    left, start, taken = sum(lengths), 0, 0
    for end, reached in enumerate(accumulate(lengths), 1):
        if reached - taken >= max(LEAST_SHARE, (left - taken) // divisor):
            yield slice(start, end)
            start, taken = end, reached
    if start < len(lengths):
        yield slice(start, len(lengths))


# -------------------------------------------------------------- vocabulary


Count = Callable[[str], int]
"""Tokens of a text; literal special tokens in it are ordinary text."""


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
    count_piece: Count
    """Counts at most PIECE_CHARS characters at once."""
    by: str = ""
    """For a person: the library that counts. Counts do not depend on it."""
    count_pieces: CountAll | None = None
    """Counts many of such texts; None: it has no way that is sooner."""

    def count(self, text: str) -> int:
        """Tokens of `text`, in bounded time; literal special tokens are ordinary text."""
        if len(text) <= PIECE_CHARS:
            return self.count_piece(text)
        if len(text) > EXACT_CHARS:
            return self._sampled(text)
        return sum(map(self.count_piece, pieces(text)))

    def begin(self, texts: Sequence[str]) -> Counting:
        """Begin to count each of them, in other threads while this one has something to do."""
        return Counting(texts, self._count_share)

    def count_all(self, texts: Sequence[str]) -> list[int]:
        """`count` of each of them."""
        return self.begin(texts).counts()

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


# -------------------------------------------------------------- by tokenizers


@loaded_once
def tokenizers_count(name: str) -> Count | None:
    """Counts by the vocabulary of this file of litellm's; None where it carries none."""
    path = file_of_litellm(name)
    if path is None:
        return None
    from tokenizers import Tokenizer

    tokenizer: Any = Tokenizer.from_file(str(path))

    def count(text: str) -> int:
        # A lone surrogate, which JSON may carry, is no Unicode text to the Rust side.
        clean = text.encode("utf-8", "replace").decode("utf-8")
        return len(tokenizer.encode(clean, add_special_tokens=False).ids)

    return count


# -------------------------------------------------------------- by tiktoken


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


# -------------------------------------------------------------- by toktok


WHOLE = sys.maxsize
"""No text has as many tokens: nothing is cut."""


TRIED = (
    "Hello, world",
    "def f(x):\n    return [y for y in x if y != 'it\\'s']  # don't\n\n",
    '{"id": 1234567,\r\n\t"path": "/srv/app/HTTPServer.py", "ok": true}  ',
    "naïve Ünïcode, Привет мир! 你好，世界。これはテストです 한국어",
    "<|endoftext|> 🙂👍 ✓ → ──┐",
    "WE'LL I'd we've   \n \n\t\tx   ",
)


KNOWN = {"o200k_base": [3, 24, 25, 22, 16, 10], "cl100k_base": [3, 25, 25, 31, 18, 12]}
"""Their tokens as tiktoken counts them."""


# Characters that Unicode has had for ten years: the two libraries carry its tables of different
# years, and take a letter that one of them does not know yet for a sign. Missing among them is the
# long s, which tiktoken takes for the `s` of a contraction; lone surrogates, which toktok refuses;
# and scripts with gaps between their characters.
_COMMON = re.compile(
    "["
    "\x00-\u017e\u0180-\u024f"  # Latin
    "\u0391-\u03a1\u03a3-\u052f"  # Greek, Cyrillic
    "\u05d0-\u05ea\u0620-\u06ff\u0900-\u097f"  # Hebrew, Arabic, Devanagari
    "\u0e01-\u0e3a\u0e3f-\u0e5b"  # Thai
    "\u1e00-\u1eff"  # Vietnamese
    "\u2000-\u2064\u20a0-\u20bf\u2100-\u218b\u2190-\u23ff\u2500-\u2aff"  # marks, arrows, boxes
    "\u3000-\u303f\u3041-\u3096\u3099-\u30ff"  # Japanese
    "\u3400-\u4db5\u4e00-\u9fa5\uac00-\ud7a3"  # Chinese, Korean
    "\ufe0f\uff01-\uff9f\ufffd"
    "\U0001f300-\U0001f64f\U0001f680-\U0001f6c5\U0001f910-\U0001f93a"  # emoji
    "]*"
)


def common(text: str) -> bool:
    """Whether the text has only characters of which both libraries are known to think alike."""
    return text.isascii() or _COMMON.fullmatch(text) is not None


def toktok_of(name: str, reference: Count) -> Toktok | None:
    """Counts by the vocabulary of this name, and by `reference` what toktok may count otherwise.

    None where toktok is not installed, and where it is not to be believed.
    """
    try:
        import toktok

        found = Toktok(toktok, name, reference)
        counts = [found.one(text) for text in TRIED], found.many(TRIED)
    except BaseException as error:
        if not _is_fault(error):
            raise
        if not (isinstance(error, ModuleNotFoundError) and error.name == "toktok"):
            logger.warning("toktok does not work, tiktoken counts: %r", error)
        return None
    if counts != (KNOWN[name], KNOWN[name]):
        logger.warning("toktok counts %s, not %s: tiktoken counts", counts, KNOWN[name])
        return None
    return found


class Toktok:
    """One vocabulary of toktok's as long as nothing is wrong with it, and the reference."""

    def __init__(self, library: Any, name: str, reference: Count) -> None:
        self._library = library
        self._name = name
        self._reference = reference
        self._sound = True

    def __call__(self, text: str) -> int:
        """Tokens of a text."""
        if self._sound and common(text):
            try:
                return self.one(text)
            except BaseException as error:
                self._failed(error)
        return self._reference(text)

    def all(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each of many texts."""
        if not self._sound:
            return list(map(self._reference, texts))
        known = list(map(common, texts))
        try:
            counts = iter(self.many(list(compress(texts, known))))
        except BaseException as error:
            self._failed(error)
            return list(map(self._reference, texts))
        return [
            next(counts) if ours else self._reference(text)
            for text, ours in zip(texts, known, strict=True)
        ]

    def one(self, text: str) -> int:
        """As toktok itself counts."""
        # What it offers for many texts takes fifteen times as long as tiktoken for a short one.
        _, tokens = self._library.truncate(text, WHOLE, self._name)
        return int(tokens)

    def many(self, texts: Sequence[str]) -> list[int]:
        """The same of many texts."""
        return list(self._library.batch_count(texts, self._name, threads=1))

    def _failed(self, error: BaseException) -> None:
        """Have tiktoken count from now on.

        Raises:
            BaseException: the error itself, where it is none of toktok's.
        """
        if not _is_fault(error):
            raise error
        self._sound = False
        logger.warning("toktok failed, tiktoken counts from now on: %r", error)


def _is_fault(error: BaseException) -> bool:
    """A panic of Rust is no Exception; an interrupt of the user is no fault."""
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"


# -------------------------------------------------------------- vocabularies


_IS_O200K = re.compile(r"(ft:)?(chatgpt-4o|gpt-4o|gpt-4\.[15]|gpt-5|gpt-oss|o[134])(?![a-z0-9])")


_IS_CL100K = re.compile(
    r"(ft:)?(gpt-4|gpt-3\.5|gpt-35|davinci-002|babbage-002|text-embedding-)(?![.0-9a-np-z])"
)


_CLAUDE_FILE = "anthropic_tokenizer.json"


def vocabulary_for(model: str | None, *, fast: bool = True) -> Vocabulary:
    """The model's own vocabulary where it is at hand, else the nearest, saying so.

    `fast`: count with toktok where it is installed (the extra `[fast]`); else with tiktoken.
    """
    names = bare_names(model)
    if any(_IS_O200K.match(name) for name in names):
        return _openai(O200K, fast, exact=True)
    if any(_IS_CL100K.match(name) for name in names):
        return _openai(CL100K, fast, exact=True)
    if any("claude" in name for name in names):
        return _claude(fast)
    return _openai(O200K, fast, exact=False)


def _openai(bpe: Bpe, fast: bool, *, exact: bool) -> Vocabulary:
    source = bpe.name if exact else f"estimate by {bpe.name}"
    sooner = _sooner(bpe) if fast else None
    if sooner is not None:
        return Vocabulary(source, exact, sooner, by="toktok-rs", count_pieces=sooner.all)
    found = tiktoken_of(bpe)
    if found is None:
        return Vocabulary("estimate from the number of bytes", False, _by_bytes)
    return Vocabulary(source, exact, found, by="tiktoken", count_pieces=found.all)


@loaded_once
def _sooner(bpe: Bpe) -> Toktok | None:
    # tiktoken's copy of the vocabulary, another 90 MB, is loaded when a text needs it.
    return toktok_of(bpe.name, lambda text: (tiktoken_of(bpe) or _by_bytes)(text))


def _claude(fast: bool) -> Vocabulary:
    count = tokenizers_count(_CLAUDE_FILE)
    if count is None:
        return _openai(O200K, fast, exact=False)
    # Anthropic publishes none for its newer models; this one is what litellm counts by.
    source = "estimate by the published Claude 2 vocabulary"
    return Vocabulary(source, False, count, by="tokenizers")


def _by_bytes(text: str) -> int:
    # English is near 4 bytes a token, Chinese 3, logs and hashes 2: rather too many than too few.
    return -(-len(text.encode("utf-8", "surrogatepass")) // 3)
