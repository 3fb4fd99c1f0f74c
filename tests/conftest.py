"""Fixtures that every test may use."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# litellm fetches its price map while it is imported; without a network its retry thread can
# deadlock with that import. Tests must run without one, so this comes before any import of it.
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
# Tests never use the ledger of the person who runs them.
os.environ.pop("PRAISON_COMPRESSOR_STORE", None)
# Every client of theirs would read all certificates of this machine, for a provider without any.
os.environ.pop("SSL_CERT_FILE", None)
os.environ["SSL_CERT_DIR"] = str(Path(__file__).parent)

from praison_compressor.testing import SummaryModel, Worker
from tests.helpers import host_faults
from tests.helpers.provider import strict_provider

pytest_plugins = ["tests.helpers.stores"]

# Time is no property of ours: a busy machine must not turn a promise red.
settings.register_profile(
    "anywhere",
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("anywhere")


@pytest.fixture
def provider():
    """Run a strict local provider on a free loopback port."""
    with strict_provider() as running:
        yield running


@pytest.fixture
def host(monkeypatch, tmp_path, provider):
    """Give the host the strict provider and our installation."""
    from tests.helpers.hosting import at_home

    with at_home(monkeypatch, tmp_path, provider) as running:
        running.answer_with(Worker(answer="Noted. " * 12))
        running.route("aux", SummaryModel(r"L-\d+"))
        yield running


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Expect the faults of an older host, by name."""
    host_faults.expect(items)
