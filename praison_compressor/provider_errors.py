"""What went wrong when a provider was asked: by the names and words of its errors.

litellm is not imported to read them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .overflow import overflow_of

__all__ = ["kind_of", "retry_after"]

_CREDIT = re.compile(r"insufficient_quota|exceeded your current quota|billing|credit", re.I)

_KINDS = (
    # By class name, the most special first.
    ("timeout", {"Timeout", "APITimeoutError", "TimeoutException"}),
    ("context", {"ContextWindowExceededError"}),
    ("auth", {"AuthenticationError", "PermissionDeniedError"}),
    ("quota", {"RateLimitError", "BudgetExceededError"}),
    # Not APIConnectionError: litellm names so whatever it did not expect.
    ("network", {"TransportError", "ConnectionError", "gaierror"}),
)


def kind_of(error: BaseException) -> str:
    """One of the kinds of SummarizerUnavailable, from the error or what caused it."""
    names = {base.__name__ for cause in _causes(error) for base in type(cause).__mro__}
    for kind, classes in _KINDS:
        if names & classes:
            return kind
    words = str(error)
    if getattr(error, "status_code", None) == 402 or _CREDIT.search(words):
        return "quota"
    return "provider" if overflow_of(error) is None else "context"


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        yield cause
        hidden = cause.__suppress_context__  # by `from None`
        cause = cause.__cause__ or (None if hidden else cause.__context__)


def retry_after(error: BaseException) -> float | None:
    """The seconds that the provider asked us to wait, if it did."""
    for cause in _causes(error):
        headers = getattr(getattr(cause, "response", None), "headers", None)
        value = headers.get("retry-after") if headers is not None else None
        if value is not None:
            return _seconds(value)
    return None


def _seconds(value: str) -> float | None:
    try:
        return max(0.0, float(value))
    except ValueError:
        # The header may be a date; the compressor's own backoff serves as well.
        return None
