"""Fixtures that every test may use."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

# litellm fetches its price map while it is imported; without a network its retry thread can
# deadlock with that import. Tests must run without one, so this comes before any import of it.
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

from praison_compressor.testing import LocalProvider


@pytest.fixture
def provider() -> Iterator[LocalProvider]:
    """A strict local provider on a free loopback port, stopped after the test."""
    with LocalProvider() as running:
        yield running
