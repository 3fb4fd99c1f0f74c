"""Each test states one promise."""

import ast
import re
from collections.abc import Iterator

from tests.helpers.processes import ROOT

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
TESTS = ROOT / "tests"


def promises() -> Iterator[tuple[str, str]]:
    """Yield each test's name and its docstring without code."""
    for path in sorted(TESTS.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, FUNCTIONS) and node.name.startswith("test_"):
                text = re.sub(r"`[^`]*`", "code", ast.get_docstring(node) or "")
                yield f"{path.relative_to(TESTS)}::{node.name}", text


def test_each_test_states_one_promise():
    """A test's docstring is one sentence without a semicolon."""
    one = re.compile(r"(?:[^;.!?]|[.!?](?=\S))+\.")
    assert [name for name, text in promises() if not one.fullmatch(text)] == []
