"""Words that try to stand as the user's own."""

from __future__ import annotations

import pytest

from tests.benchmarks.attacks import Attack, attacks, stands_in


@pytest.mark.parametrize("attack", attacks(), ids=lambda attack: attack.name)
def test_no_attack_stands_as_the_users_words(attack: Attack) -> None:
    """A page, a file, a call, another agent or a forged frame, in quotes and view."""
    assert list(stands_in(attack)) == []
