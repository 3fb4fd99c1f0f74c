"""Price a compression: its cost now, its saving in each later request."""

from __future__ import annotations

from dataclasses import dataclass

from ..messages.display import format_dollars


@dataclass(frozen=True)
class Balance:
    """What one compression costs, and what it saves later."""

    cost: float
    """US dollars of the summaries and of the messages that the provider reads again; negative if
    the compression is cheaper at once."""
    saving: float
    """US dollars saved in each later request."""
    requests: float | None
    """Number of later requests whose saving counts; None: unknown, or the cache is cold."""

    @property
    def pays(self) -> bool:
        """Whether `requests` times `saving` is at least `cost`."""
        return self.requests is None or self.cost <= self.saving * self.requests

    def __str__(self) -> str:
        now = "saves" if self.cost < 0 else "costs"
        cost, saving = map(format_dollars, (abs(self.cost), self.saving))
        return f"compressing now {now} {cost}, saves {saving} a request"


@dataclass(frozen=True)
class Costs:
    """Prices in US dollars a token; the session's pace."""

    cached: float
    """Price of input that the provider's cache has."""
    written: float
    """Price of input that the provider's cache lacks."""
    summary_input: float = 0.0
    """The summarizer's price of input."""
    summary_output: float = 0.0
    """The summarizer's price of output."""
    growth: float | None = None
    """Tokens that a request adds to the transcript; None: unknown."""
    is_cold: bool = False
    """Whether the provider's cache has none of the next request."""
    cold_share: float = 0.0
    """Share of the requests with a cold cache."""

    def balance(self, freed: int, reread: int, read: int = 0, prose: int = 0) -> Balance:
        """Return the balance of a compression.

        Args:
            freed: tokens by which the view shrinks.
            reread: tokens of the new view that the cache lacks.
            read: tokens that the summarizer reads.
            prose: tokens that the summarizer writes.
        """
        cost = read * self.summary_input + prose * self.summary_output
        cost += -freed * self.written if self.is_cold else reread * (self.written - self.cached)
        price = self.cached + self.cold_share * (self.written - self.cached)
        # The saving counts in half of the requests until the view is as large again.
        requests = freed / self.growth / 2 if self.growth else None
        # With a cold cache the number is left out: a later compression, with a warm cache, would
        # cost more (tests/benchmarks/price).
        requests = None if self.is_cold else requests
        return Balance(cost, freed * price, requests)
