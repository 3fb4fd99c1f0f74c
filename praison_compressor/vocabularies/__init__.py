"""Tokens of a text by the vocabulary of a model: no network, no hang.

Each library that counts has a room of its own here; which of them counts changes no count.
"""

from __future__ import annotations

import re

from ..models import bare_names
from .by_tiktoken import CL100K, O200K, Bpe, tiktoken_of
from .by_tokenizers import tokenizers_count
from .by_toktok import Toktok, toktok_of
from .loading import loaded_once
from .threads import Counting
from .vocabulary import EXACT_CHARS, PIECE_CHARS, Vocabulary, pieces

__all__ = ["EXACT_CHARS", "PIECE_CHARS", "Counting", "Vocabulary", "pieces", "vocabulary_for"]

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
