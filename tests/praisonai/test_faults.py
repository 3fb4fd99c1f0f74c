"""The list of host faults names tests that are there."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from tests.helpers.host_faults import FAULTS

NAMES = [name.partition("[")[0] for fault in FAULTS for name in fault.tests]


@pytest.mark.parametrize("name", dict.fromkeys(NAMES))
def test_a_listed_test_is_there(name: str) -> None:
    """A renamed test would otherwise leave its fault behind, expected and never met."""
    file, _, function = name.partition("::")
    path = "tests." + file.removesuffix(".py").replace("/", ".")
    module: Any = importlib.import_module(path)
    assert callable(getattr(module, function))
