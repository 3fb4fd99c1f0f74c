"""A vocabulary in the hub's JSON form, counted by its library."""

from __future__ import annotations

from typing import Any

from .loading import file_of_litellm, loaded_once
from .vocabulary import Count

__all__ = ["tokenizers_count"]


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
