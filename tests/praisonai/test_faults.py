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
    module: Any = importlib.import_module("tests." + file.removesuffix(".py").replace("/", "."))
    assert callable(getattr(module, function))


def test_a_fault_is_met_by_one_test_or_one_of_its_parameters() -> None:
    """With parameters only that one, without them all of the test's."""
    one = FAULTS[0]
    assert one.shows_in(
        "tests/praisonai/test_agents.py::test_every_mode[openai client-chat in a loop]"
    )
    assert not one.shows_in("tests/praisonai/test_agents.py::test_every_mode[litellm-chat]")
    whole = next(fault for fault in FAULTS if "model object" in fault.reason)
    assert whole.shows_in("tests/praisonai/test_turns.py::test_a_shared_model_object")
