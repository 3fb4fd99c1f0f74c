"""Price a compression: its cost now, its saving in each later request.

Pure: prices in US dollars and the session's pace are arguments.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..messages.display import format_dollars


@dataclass(frozen=True)
class Balance:
    """What one compression costs, and what it saves later."""

    cost: float
    """US dollars of the summaries and of the messages that the provider reads again; may be
    negative with a cold cache."""
    saving: float
    """US dollars saved in each later request."""
    requests: float | None
    """Later requests whose saving counts; None: the pace is unknown, or the cache is cold."""

    @property
    def pays(self) -> bool:
        """Whether the requests that count save what the compression costs."""
        return self.requests is None or self.cost <= self.saving * self.requests

    def __str__(self) -> str:
        now = "saves" if self.cost < 0 else "costs"
        cost, saving = map(format_dollars, (abs(self.cost), self.saving))
        return f"compressing now {now} {cost}, saves {saving} a request"


@dataclass(frozen=True)
class Costs:
    """Prices of one token in US dollars; the session's pace."""

    cached: float
    """Input that the provider's cache has."""
    written: float
    """Input that the provider's cache lacks."""
    summary_input: float = 0.0
    """Input of the model that summarizes."""
    summary_output: float = 0.0
    """Output of the model that summarizes."""
    growth: float | None = None
    """Tokens that a request adds to the transcript; None: unknown."""
    is_cold: bool = False
    """Whether the next request finds the cache cold."""
    cold_share: float = 0.0
    """Share of requests that find the cache cold."""

    def balance(self, freed: int, reread: int, read: int = 0, prose: int = 0) -> Balance:
        """Return the balance of a compression.

        Args:
            freed: tokens by which the view shrinks.
            reread: tokens of the new view after its first change, which no cache has.
            read: tokens that the summarizer reads.
            prose: tokens that the summarizer writes.
        """
        cost = read * self.summary_input + prose * self.summary_output
        cost += -freed * self.written if self.is_cold else reread * (self.written - self.cached)
        price = self.cached + self.cold_share * (self.written - self.cached)
        # The cheapest moment to compress is when carrying the tokens has cost as much as freeing
        # them. With steady growth half of them were carried on average, hence the 2.
        requests = freed / self.growth / 2 if self.growth else None
        # With a cold cache only the trigger decides: a later compression meets a warm cache and
        # costs more (tests/benchmarks/price).
        requests = None if self.is_cold else requests
        return Balance(cost, freed * price, requests)
