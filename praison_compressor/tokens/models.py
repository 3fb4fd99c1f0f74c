"""Look up models' windows, prices and vocabularies, offline, without importing litellm."""

from __future__ import annotations

import hashlib
import json
import logging
import re
import sys
from binascii import a2b_base64
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec, module_from_spec
from itertools import accumulate
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from ..concurrency import fork_guard, renew_after_fork, start_thread

logger = logging.getLogger(__name__)

GUESSED_WINDOW = 128_000
"""Window of an unknown model, as in the host."""


@dataclass(frozen=True)
class Limits:
    """Limits of a model, in tokens."""

    window: int
    """Input tokens."""
    output: int | None
    """Tokens of one answer; None: unknown."""
    source: str
    guessed: bool


def litellm_folder() -> Path | None:
    """Return litellm's folder, found without importing litellm."""
    try:
        spec = find_spec("litellm")
    except (ImportError, ValueError):
        return None
    return Path(spec.origin).parent if spec is not None and spec.origin else None


def model_limits(model: str | None, context_window: int | None = None) -> Limits:
    """Return the limits from `context_window`, else litellm's table.

    An unknown name is tried without its route (`openrouter/anthropic/`), tag, region and date. Else
    the window is guessed, with one warning a model.
    """
    entries = (_limits(entry, source) for entry, source in _table_entries(model))
    listed = next(filter(None, entries), None)
    if context_window is not None:
        return Limits(context_window, listed.output if listed else None, "context_window", False)
    if listed is None:
        _warn_unknown(model)
        return Limits(GUESSED_WINDOW, None, "guess", True)
    return listed


class Prices(NamedTuple):
    """Listed US dollars a token, or None."""

    input: float | None
    cached: float | None
    written: float | None
    """Price of input that is cached for minutes."""
    written_1h: float | None
    """Price of input that is cached for an hour."""
    output: float | None


_PRICED = (
    "input_cost_per_token",
    "cache_read_input_token_cost",
    "cache_creation_input_token_cost",
    "cache_creation_input_token_cost_above_1hr",
    "output_cost_per_token",
)
"""Fields of litellm's table, in the order of `Prices`."""


def prices_of(model: str | None) -> Prices:
    """Return the model's prices in litellm's table."""
    return Prices(*(_price(model, field) for field in _PRICED))


def _price(model: str | None, field: str) -> float | None:
    prices = (entry.get(field) for entry, _ in _table_entries(model))
    return next((float(p) for p in prices if isinstance(p, (int, float)) and p > 0), None)


@lru_cache(maxsize=256)
def _warn_unknown(model: str | None) -> None:
    """Warn once per model; `lru_cache` remembers which."""
    subject = f"the context window of model {model!r} is unknown" if model else "no model is named"
    logger.warning(
        "%s, %s tokens are assumed; set context_window for the agent's model; for an auxiliary "
        "model call litellm.register_model",
        subject,
        f"{GUESSED_WINDOW:,}",
    )


def _table_entries(model: str | None) -> Iterator[tuple[Mapping[str, Any], str]]:
    for table, source in _tables():
        for name in _candidate_names(model):
            entry = table.get(name)
            if isinstance(entry, Mapping):
                yield entry, f"{source}: {name}"


def _tables() -> Iterator[tuple[Mapping[str, Any], str]]:
    """Yield litellm's table with the user's deployments, else litellm's file."""
    live = getattr(sys.modules.get("litellm"), "model_cost", None)
    if isinstance(live, Mapping) and live:  # reading the file takes a third of a first request
        yield live, "litellm.model_cost"
    else:
        yield _file_table(), "litellm's table"


def _limits(entry: Mapping[str, Any], source: str) -> Limits | None:
    output = _positive_int(entry.get("max_output_tokens"))
    # `max_tokens` is older and may mean input or output.
    older = _positive_int(entry.get("max_tokens"))
    window = _positive_int(entry.get("max_input_tokens")) or older
    return Limits(window, output or older, source, False) if window else None


def _positive_int(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


@lru_cache(maxsize=1)
def _file_table() -> dict[str, dict[str, Any]]:
    """Return the chat models of litellm's file (3 MB)."""
    folder = litellm_folder()
    path = folder / "model_prices_and_context_window_backup.json" if folder else None
    if path is None or not path.is_file():
        logger.warning("litellm's wheel carries no model table: context windows are guessed")
        return {}
    limits = ("max_input_tokens", "max_output_tokens", "max_tokens")
    wanted = (*limits, *_PRICED)
    table = json.loads(path.read_bytes())
    return {
        name: {field: entry.get(field) for field in wanted}
        for name, entry in table.items()
        if entry.get("mode") in ("chat", "completion", "responses")
    }


# ---------------------------------------------------------------- names
def bare_names(model: str | None) -> list[str]:
    """Return the model's possible names, in lower case, without routes."""
    return [name for name in _candidate_names((model or "").lower()) if "/" not in name]


def _candidate_names(model: str | None) -> Iterator[str]:
    seen, routed = {""}, model or ""
    while True:
        for name in _spellings(routed):
            if name not in seen:
                seen.add(name)
                yield name
        if "/" not in routed:
            return
        routed = routed.partition("/")[2]


_EXTRAS = (
    re.compile(r"^(us|eu|apac|au|jp|global|us-gov)\.(?=[a-z]+\.)"),
    re.compile(r"(-v\d+)?:[\w.-]*$"),
    re.compile(r"^(anthropic|openai|meta|mistral|amazon|cohere|deepseek|qwen)\.(?=[a-z])"),
    re.compile(r"[-@](20\d\d-?[01]\d-?[0-3]\d|latest|default)$"),
)
"""Parts around a model's name, removed in this order: region, version, vendor, date."""


def _spellings(name: str) -> Iterator[str]:
    yield name
    if name.startswith("ft:"):
        # ft:gpt-4o-2024-08-06:organisation:suffix:id
        base = name.split(":")[1]
        yield f"ft:{base}"
        yield from _spellings(base)
        return
    for extra in _EXTRAS:
        shorter = extra.sub("", name)
        if shorter != name:
            name = shorter
            yield name
    yield name.replace("gpt-35", "gpt-3.5")
    if "claude" in name:
        yield name.replace(".", "-")  # some routers spell it claude-sonnet-4.5


# ---------------------------------------------------------------- vocabularies
#
# Vocabularies count tokens of texts offline and in bounded time.

CountPieces = Callable[[Sequence[str]], "list[int]"]

END = "<|endoftext|>"
"""A special token, but ordinary text in a message."""
NUMBER_BYTES = 4
"""Bytes of a token's number in tiktoken's buffers."""
PIECE_CHARS = 65_536
"""Longer texts are cut: on a million spaces tiktoken panics."""
SEAM_CHARS = 4_096
"""Characters of a piece's end that are searched for a place to cut."""
EXACT_CHARS = 4_000_000
"""Longer texts are sampled."""
SAMPLES = 16


@dataclass(frozen=True)
class Vocabulary:
    """Count a text's tokens for a model."""

    source: str
    exact: bool
    """Whether the vocabulary is the model's own."""
    count_piece: Callable[[str], int]
    """Count at most PIECE_CHARS characters; special tokens are ordinary text."""
    count_pieces: CountPieces | None = None
    """Count texts without `END` in one call."""

    def count(self, text: str) -> int:
        """Return the tokens of a text, in bounded time."""
        if len(text) <= PIECE_CHARS:
            return self.count_piece(text)
        if len(text) > EXACT_CHARS:
            return self._estimate_by_samples(text)
        return sum(map(self.count_piece, split_pieces(text)))

    def begin_count(self, texts: Sequence[str]) -> Callable[[], list[int]]:
        """Begin to count in a thread; return a function that finishes."""
        ends = [0, *accumulate(map(len, texts))]
        cut = bisect_left(ends, int(ends[-1] * AHEAD_SHARE))
        ahead: Future[dict[int, int]] | None = None
        if cut and self.count_pieces:
            with suppress(RuntimeError):  # no thread can start at exit
                ahead = start_thread(lambda: self._count_together(texts, range(cut)))

        def finish_count() -> list[int]:
            sizes = self._count_together(texts, range(cut, len(texts)))
            if ahead is not None:
                sizes |= ahead.result()
            return [sizes[n] if n in sizes else self.count(x) for n, x in enumerate(texts)]

        return finish_count

    def _count_together(self, texts: Sequence[str], indices: range) -> dict[int, int]:
        """Return the sizes of short texts by index."""
        sizes: dict[int, int] = {}
        if (count := self.count_pieces) is None:
            return sizes
        with suppress(Exception):  # `finish_count` counts a missing size again
            for at in range(0, len(indices), TEXTS_PER_CALL):
                batch = indices[at : at + TEXTS_PER_CALL]
                joint = [n for n in batch if len(texts[n]) <= PIECE_CHARS and END not in texts[n]]
                sizes.update(zip(joint, count([texts[n] for n in joint]), strict=True))
        return sizes

    def _estimate_by_samples(self, text: str) -> int:
        step = len(text) // SAMPLES
        samples = [text[start : start + PIECE_CHARS] for start in range(0, len(text), step)]
        tokens = sum(map(self.count_piece, samples))
        return round(tokens * len(text) / sum(map(len, samples)))


AHEAD_SHARE = 0.55
"""Share of the texts that the thread counts while the caller works."""

TEXTS_PER_CALL = 1_024
"""Texts that one call counts. Taking Python's lock takes as long as counting one text
(tests/benchmarks/latency.py)."""


# No token crosses these places: before a word at a line's start, between a word and one mark before
# the next word, between letters and digits.
_SEAM = re.compile(
    r"(?<=\n)(?=[^\W_])"
    r"|(?<=[^\W_])(?=[ ,.;:、。，；：！？(-][^\W\d_])"
    r"|(?<=[^\W\d_])(?=\d)"
)


def split_pieces(text: str) -> Iterator[str]:
    """Yield parts of at most PIECE_CHARS, cut between tokens."""
    start = 0
    while len(text) - start > PIECE_CHARS:
        end = start + PIECE_CHARS
        seams = [match.start() for match in _SEAM.finditer(text, end - SEAM_CHARS, end)]
        end = seams[-1] if seams else end
        yield text[start:end]
        start = end
    yield text[start:]


# ---------------------------------------------------------------- which vocabulary counts
_IS_O200K = re.compile(r"(ft:)?(chatgpt-4o|gpt-4o|gpt-4\.[15]|gpt-5|gpt-oss|o[134])(?![a-z0-9])")

_IS_CL100K = re.compile(
    r"(ft:)?(gpt-4|gpt-3\.5|gpt-35|davinci-002|babbage-002|text-embedding-)(?![.0-9a-np-z])"
)

_loading = renew_after_fork(Lock())
"""A vocabulary takes 40 MB: only one thread loads it."""


def vocabulary_for(model: str | None) -> Vocabulary:
    """Return the model's vocabulary, else an estimate."""
    names = bare_names(model)
    with fork_guard, _loading:
        if any(_IS_O200K.match(name) for name in names):
            return _openai_vocabulary("o200k_base", exact=True)
        if any(_IS_CL100K.match(name) for name in names):
            return _openai_vocabulary("cl100k_base", exact=True)
        # Newer models of Anthropic and Google have no public vocabulary.
        return _openai_vocabulary("o200k_base", exact=False)


def _openai_vocabulary(name: str, *, exact: bool) -> Vocabulary:
    encoding = _load_encoding(name)
    if encoding is None:
        return Vocabulary("estimate from the number of bytes", False, _estimate_by_bytes)
    source = name if exact else f"estimate by {name}"
    encode = encoding.encode_ordinary
    return Vocabulary(source, exact, lambda text: len(encode(text)), _joint_counter(encoding))


def _joint_counter(encoding: Any) -> CountPieces | None:
    encode = getattr(encoding._core_bpe, "encode_to_tiktoken_buffer", None)
    if encode is None:
        return None
    # Only one byte of END's number is 0: the mark is found only where a number begins.
    mark = encoding.eot_token.to_bytes(NUMBER_BYTES, sys.byteorder)

    def count(texts: Sequence[str]) -> list[int]:
        numbers = bytes(memoryview(encode(END.join(texts), {END})))
        return [len(part) // NUMBER_BYTES for part in numbers.split(mark)]

    return count


def _estimate_by_bytes(text: str) -> int:
    # English has about 4 bytes a token, Chinese 3, logs and hashes 2.
    return -(-len(text.encode("utf-8", "surrogatepass")) // 3)


# ---------------------------------------------------------------- loading a vocabulary
@lru_cache(maxsize=4)
def _load_encoding(name: str) -> Any:
    """Return tiktoken's encoding, or None without the published file."""
    import tiktoken
    import tiktoken.registry

    if known := tiktoken.registry.ENCODINGS.get(name):
        return known
    # A copy of tiktoken's module, which reads litellm's files and downloads nothing.
    spec = find_spec("tiktoken_ext.openai_public")
    if spec is None or spec.loader is None:
        return None
    module: Any = module_from_spec(spec)
    spec.loader.exec_module(module)
    module.load_tiktoken_bpe = _read_ranks
    try:
        return tiktoken.Encoding(**getattr(module, name)())
    except OSError:
        logger.warning("litellm's wheel carries no %s: tokens are estimated", name)
        return None


def _read_ranks(url: str, expected_hash: str) -> dict[bytes, int]:
    """Return the ranks in litellm's file."""
    folder = litellm_folder()
    if folder is None:
        raise FileNotFoundError("litellm is not installed")
    name = hashlib.sha1(url.encode(), usedforsecurity=False).hexdigest()
    data = (folder / "litellm_core_utils" / "tokenizers" / name).read_bytes()
    if hashlib.sha256(data).hexdigest() != expected_hash:
        raise FileNotFoundError(f"{name} is not the published file")
    fields = data.split()  # token, rank, token, rank ...
    return dict(zip(map(a2b_base64, fields[::2]), map(int, fields[1::2]), strict=True))
