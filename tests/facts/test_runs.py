"""Which runs are of one thing: a check that passes elsewhere does not undo a failure here."""

from __future__ import annotations

import pytest

from praison_compressor.facts.commands import run_of


@pytest.mark.parametrize(
    ("command", "program", "on"),
    [
        ("cd x && PORT=1 python -m pytest -q tests | tail", ("python", "pytest"), {"tests"}),
        ("cargo test -p a", ("cargo", "test"), {"a"}),
        ("cargo doc", ("cargo", "doc"), set()),
        ("time uv run pytest", ("pytest",), set()),
        ("./mvnw test", ("mvnw", "test"), set()),
        ("pytest a.py > out.txt", ("pytest",), {"a.py", "out.txt"}),
        ("pytest -q 2>&1; echo done", ("pytest",), set()),
        ("", (), set()),
    ],
)
def test_the_program_is_what_runs_in_the_end(
    command: str, program: tuple[str, ...], on: set[str]
) -> None:
    """With its subcommand, without options and what stands before."""
    assert run_of(command) == (program, frozenset(on))


@pytest.mark.parametrize(
    ("failed", "worked", "is_within"),
    [
        ("pytest tests/a.py::b", "pytest tests/", True),
        ("pytest tests/a.py", "pytest", True),
        ("pytest", "pytest tests/a.py", False),
        ("go test ./...", "go test ./... -run TestA", False),
        ("cargo test", "cargo doc", False),
        ("ls a", "ls b", True),
    ],
)
def test_a_wider_run_that_worked_settles_a_failure(
    failed: str, worked: str, is_within: bool
) -> None:
    """Of checks; what only looks is settled by any look that worked."""
    assert run_of(failed).is_within(run_of(worked)) is is_within
