"""Define the package's errors: fact, numbers and remedy in each message.

CompressorError
├── ConfigError, InvalidMessages, BudgetTooSmall, HostMoved, NothingShorter
├── SummaryError
│   └── SummarizerUnavailable, SummaryRejected
└── LedgerError
    └── SessionNotFound, LedgerConflict, LedgerCorrupt, StoreUnavailable
"""

from __future__ import annotations

from typing import Any, Literal

FailureKind = Literal[
    "timeout", "auth", "quota", "context", "network", "refused", "provider", "rejected"
]
"""How a model failed.

"refused": a retry would be refused too, as for an unknown model or an invalid request. "provider":
any other failure of the provider. "rejected": the model's answer is no usable summary.
"""

RejectionReason = Literal[
    "no text",
    "empty",
    "too long",
    "refusal",
    "echo",
    "cut off",
    "error text",
    "tool call",
    "unfinished JSON",
    "no order",
    "not smaller",
    "unrelated",
    "repetition",
]
"""Why a model's answer is no usable summary."""


class CompressorError(Exception):
    """Any error that this package raises on purpose."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Let an error be copied, and pass from a worker process."""
        # `Exception` would call the constructor with the message alone.
        return _remake, (type(self), self.args), vars(self)


def _remake(kind: type[CompressorError], args: tuple[Any, ...]) -> CompressorError:
    return kind.__new__(kind, *args)


class ConfigError(CompressorError, ValueError):
    """An option has a value that cannot work."""


class InvalidMessages(CompressorError, ValueError):
    """The transcript is no list of chat messages, and cannot be repaired.

    `index` is the position of the wrong message; None if the list itself is wrong.
    """

    def __init__(self, index: int | None, wrong: str, expected: str) -> None:
        self.index = index
        self.wrong = wrong
        self.expected = expected
        where = "messages" if index is None else f"messages[{index}]"
        super().__init__(f"{where}: {wrong}; expected {expected}")


class BudgetTooSmall(CompressorError):
    """The messages that cannot be dropped exceed the budget.

    `needed` and `budget` are tokens of the whole request. `budget` is the window or
    `target_tokens`. `culprit` names the largest message that must stay.
    """

    def __init__(
        self, needed: int, budget: int, what: str, remedy: str, *, culprit: str = ""
    ) -> None:
        self.needed = needed
        self.budget = budget
        self.culprit = culprit
        largest = f" (the largest is {culprit})" if culprit else ""
        super().__init__(f"{what} need {needed} tokens{largest}, the budget is {budget}; {remedy}")


class HostMoved(CompressorError):
    """A name of praisonaiagents that we need is missing or different.

    `seam` is the dotted name. `install()` raises this before any agent runs.
    """

    def __init__(self, seam: str, message: str) -> None:
        self.seam = seam
        super().__init__(message)


class NothingShorter(CompressorError):
    """The provider refuses the shortest view as too long."""

    # The provider's own error is not raised: the host would recognise it, and would cut the
    # transcript or repeat the turn with its tools.
    def __init__(self) -> None:
        super().__init__(
            "the model's provider still refuses the conversation for its size, and nothing more of "
            "it can be left out; give this agent a model with a larger window"
        )


class SummaryError(CompressorError):
    """No usable summary came back."""

    kind: FailureKind = "provider"
    """How the model failed."""


class SummarizerUnavailable(SummaryError):
    """The auxiliary model did not answer.

    `retry_after` is the wait in seconds that the provider asked for, or None.
    """

    def __init__(
        self, message: str, *, kind: FailureKind = "provider", retry_after: float | None = None
    ) -> None:
        self.kind = kind
        self.retry_after = retry_after
        super().__init__(message)


class SummaryRejected(SummaryError):
    """The model's answer is no usable summary."""

    kind: FailureKind = "rejected"

    def __init__(self, reason: RejectionReason, detail: str = "") -> None:
        self.reason = reason
        super().__init__(f"summary refused ({reason})" + (f": {detail}" if detail else ""))


class LedgerError(CompressorError):
    """The ledger could not be read or written."""


class SessionNotFound(LedgerError, LookupError):
    """The namespace has no such session, epoch or segment."""


class LedgerConflict(LedgerError):
    """Another writer committed to the session first; open the session again."""


class LedgerCorrupt(LedgerError):
    """A stored entry cannot be read, or disagrees with its hash."""


class StoreUnavailable(LedgerError):
    """The store cannot be reached, opened or written."""
