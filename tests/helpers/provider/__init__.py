"""The tests' provider: chat completions and strict twins of two more APIs."""

from typing import Any

from praison_compressor.testing import LocalProvider

from .anthropic import Anthropic
from .responses import Responses

__all__ = ["Anthropic", "Responses", "strict_provider"]


def strict_provider(answer: Any = None, **options: Any) -> LocalProvider:
    """Return a provider of all three protocols."""
    return LocalProvider(answer, **options, protocols=(Anthropic(), Responses()))
