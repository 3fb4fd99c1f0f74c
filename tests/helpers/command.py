"""Runs the command in this process and returns its output."""

import json
import re
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from praison_compressor.cli import main

SESSION = "audit-1"
SUMMARIZE = ("--set", 'tool_policies={"*": "summarize"}')
"""Options by which masks are not enough."""
NAMED = [
    ("lineage", SESSION),
    ("show", SESSION),
    ("restore", SESSION),
    ("forget", SESSION, "--yes"),
    ("verify", SESSION),
]
"""Commands that name a session."""
SEARCHED = ("search", "FACT-3", "--session", SESSION)
RAW = re.compile(r"(?<![\w.,:/-])(\d{5,}(?![\w-])|\d+\.\d{5,})")
"""A number as no person reads it."""


class Ran(NamedTuple):
    """Exit code and output of a command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output as one JSON value."""
        return json.loads(self.out)


Run = Callable[..., Ran]


def runner(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """Return a function that runs the command."""

    def run(*arguments: object) -> Ran:
        capfd.readouterr()
        monkeypatch.setattr(sys, "argv", ["praison-compressor", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capfd.readouterr()
        code = ended.value.code
        return Ran(code if isinstance(code, int) else int(code is not None), out, err)

    return run
