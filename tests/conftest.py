"""Fixtures that every test may use."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from praison_compressor.testing import LocalProvider


@pytest.fixture
def provider() -> Iterator[LocalProvider]:
    """A strict local provider on a free loopback port, stopped after the test."""
    with LocalProvider() as running:
        yield running
