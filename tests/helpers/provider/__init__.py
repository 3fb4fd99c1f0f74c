"""The provider of our tests: beside chat completions, strict twins of Anthropic's messages API and
of OpenAI's responses API.
"""

from __future__ import annotations

from typing import Any

from praison_compressor.testing import LocalProvider

from .anthropic import Anthropic
from .responses import Responses

__all__ = ["Anthropic", "Responses", "strict_provider"]


def strict_provider(answer: Any = None, **options: Any) -> LocalProvider:
    """A provider that speaks all three protocols."""
    return LocalProvider(answer, **options, protocols=(Anthropic(), Responses()))
