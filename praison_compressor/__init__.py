"""Context compression for praisonaiagents: long conversations go on, and nothing is forgotten."""

from __future__ import annotations

from typing import Any

from .compressor import ContextCompressor
from .config import CompressorConfig
from .errors import (
    BudgetTooSmall,
    CompressorError,
    ConfigError,
    InvalidMessages,
    LedgerConflict,
    LedgerCorrupt,
    LedgerError,
    SessionNotFound,
    StoreUnavailable,
    SummarizerUnavailable,
    SummaryError,
    SummaryRejected,
)
from .events import Event
from .ledger import MemoryStore, Segment, Store, Usage
from .prompts import Summarizer, SummaryReply
from .result import CompressResult
from .tokens import TokenCounter

__version__ = "0.1.0"

__all__ = [
    "BudgetTooSmall",
    "CompressResult",
    "CompressorConfig",
    "CompressorError",
    "ConfigError",
    "ContextCompressor",
    "Event",
    "InvalidMessages",
    "LedgerConflict",
    "LedgerCorrupt",
    "LedgerError",
    "MemoryStore",
    "Segment",
    "SessionNotFound",
    "Store",
    "StoreUnavailable",
    "Summarizer",
    "SummarizerUnavailable",
    "SummaryError",
    "SummaryRejected",
    "SummaryReply",
    "TokenCounter",
    "Usage",
    "__version__",
    "install",
    "uninstall",
]


def __getattr__(name: str) -> Any:
    """`install` and `uninstall` need the host: it is imported when they are asked for."""
    if name in ("install", "uninstall"):
        from . import praisonai

        return getattr(praisonai, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
