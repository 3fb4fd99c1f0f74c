"""Keep long-running agents inside the context window without losing their work.

`.github/CONTRIBUTING.md` lists the packages, and which of them a request passes.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .config import CompressorConfig
from .errors import (
    BudgetTooSmall,
    CompressorError,
    ConfigError,
    HostMoved,
    InvalidMessages,
    LedgerConflict,
    LedgerCorrupt,
    LedgerError,
    NothingShorter,
    SessionNotFound,
    StoreUnavailable,
    SummarizerUnavailable,
    SummaryError,
    SummaryRejected,
)
from .events import Event

if TYPE_CHECKING:
    from .compressor.bills import Bill, RequestUsage
    from .compressor.context_compressor import ContextCompressor
    from .compressor.preview import ContextUse, Part, Preview
    from .compressor.result import CompressResult
    from .compressor.telemetry import Telemetry
    from .ledger.memory_store import MemoryStore
    from .ledger.segments import Epoch, Segment, Session, Usage
    from .ledger.sql.store import open_store
    from .ledger.stores import Store
    from .ledger.words import Hit
    from .messages.responses import to_items, to_messages
    from .praisonai.install import install, uninstall
    from .summaries.protocol import Summarizer, SummaryReply
    from .tokens.counter import TokenCounter
    from .view.costs import Balance

__version__ = "0.1.0"

__all__ = [
    "Balance",
    "Bill",
    "BudgetTooSmall",
    "CompressResult",
    "CompressorConfig",
    "CompressorError",
    "ConfigError",
    "ContextCompressor",
    "ContextUse",
    "Epoch",
    "Event",
    "Hit",
    "HostMoved",
    "InvalidMessages",
    "LedgerConflict",
    "LedgerCorrupt",
    "LedgerError",
    "MemoryStore",
    "NothingShorter",
    "Part",
    "Preview",
    "RequestUsage",
    "Segment",
    "Session",
    "SessionNotFound",
    "Store",
    "StoreUnavailable",
    "Summarizer",
    "SummarizerUnavailable",
    "SummaryError",
    "SummaryRejected",
    "SummaryReply",
    "Telemetry",
    "TokenCounter",
    "Usage",
    "__version__",
    "install",
    "open_store",
    "to_items",
    "to_messages",
    "uninstall",
]


_HOMES = {
    "compressor.bills": ("Bill", "RequestUsage"),
    "compressor.context_compressor": ("ContextCompressor",),
    "compressor.preview": ("ContextUse", "Part", "Preview"),
    "compressor.result": ("CompressResult",),
    "compressor.telemetry": ("Telemetry",),
    "ledger.memory_store": ("MemoryStore",),
    "ledger.segments": ("Epoch", "Segment", "Session", "Usage"),
    "ledger.sql.store": ("open_store",),
    "ledger.stores": ("Store",),
    "ledger.words": ("Hit",),
    "messages.responses": ("to_items", "to_messages"),
    "praisonai.install": ("install", "uninstall"),
    "summaries.protocol": ("Summarizer", "SummaryReply"),
    "tokens.counter": ("TokenCounter",),
    "view.costs": ("Balance",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_HOME_OF[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
