"""Vocabularies are read once, from the files that litellm's wheel carries."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Hashable
from functools import lru_cache, wraps
from pathlib import Path
from typing import TypeVar

from ..forks import renewed, undivided
from ..models import litellm_folder

__all__ = ["file_of_litellm", "loaded_once"]

logger = logging.getLogger(__name__)

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
