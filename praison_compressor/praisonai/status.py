"""Where an agent's conversation stands, as values and as the line that a person reads."""

from __future__ import annotations

from dataclasses import dataclass

from ..compressor.context_compressor import ContextCompressor
from ..compressor.result import CompressResult
from ..messages import is_system

__all__ = [
    "Status",
    "line",
    "short",
    "status_of",
]


@dataclass(frozen=True)
class Status:
    """The last request of a conversation. Tokens of the model at hand; `tokens` is their sum."""

    session_id: str
    epoch: str
    """The newest; the session's id itself before the first compression."""
    context_status: str
    model: str | None
    window: int
    tokens_before: int
    """Of the whole conversation, tool schemas included."""
    system_tokens: int = 0
    summary_tokens: int = 0
    kept_tokens: int = 0
    tool_tokens: int = 0
    summaries: int = 0
    masked_secrets: int = 0
    """Keys and tokens masked in the archive."""
    store: str = "memory"
    """Where the ledger is."""
    cost_saved: float | None = None
    """US dollars that the request cost less, at the listed input price; None: no price is known."""

    @property
    def tokens(self) -> int:
        """What is sent."""
        return self.system_tokens + self.summary_tokens + self.kept_tokens + self.tool_tokens

    @property
    def used(self) -> float:
        """Share of the window."""
        return self.tokens / self.window

    def __str__(self) -> str:
        less = f", ${self.cost_saved:.4f} less a request" if self.cost_saved else ""
        return f"{_parts(self)} of {short(self.window)} ({self.context_status}){less}"


def status_of(
    result: CompressResult | None,
    engine: ContextCompressor,
    *,
    session_id: str,
    overhead: int,
    window: int,
    store: str,
) -> Status:
    """The status after a result; before the first request nothing is used."""
    if result is None:
        return Status(session_id, session_id, "full", engine.config.model, window, 0, store=store)
    count = engine.tokens.message
    system = sum(count(message) for message in result.messages if is_system(message))
    summaries = sum(segment.tokens for segment in result.segments)
    return Status(
        session_id=session_id,
        epoch=result.session_id,
        context_status=result.context_status,
        model=engine.config.model,
        window=window,
        tokens_before=result.tokens_before + overhead,
        system_tokens=system,
        summary_tokens=summaries,
        kept_tokens=max(0, result.tokens_after - system - summaries),
        tool_tokens=overhead,
        summaries=len(result.segments),
        masked_secrets=result.masked_secrets,
        store=store,
        cost_saved=result.cost_saved,
    )


def line(status: Status) -> str:
    """`Compressed 157k → 9.1k (system 1.8k, summary 3.2k, kept 2.7k, tools 1.4k) · 6 % of 150k`."""
    return f"Compressed {short(status.tokens_before)} → {_parts(status)} of {short(status.window)}"


def _parts(status: Status) -> str:
    parts = ", ".join(
        f"{name} {short(tokens)}"
        for name, tokens in (
            ("system", status.system_tokens),
            ("summary", status.summary_tokens),
            ("kept", status.kept_tokens),
            ("tools", status.tool_tokens),
        )
    )
    return f"{short(status.tokens)} ({parts}) · {round(100 * status.used)} %"


def short(tokens: int) -> str:
    """`980`, `9.1k`, `157k`."""
    if tokens < 1_000:
        return str(tokens)
    return f"{tokens / 1_000:.1f}k" if tokens < 10_000 else f"{tokens / 1_000:.0f}k"
