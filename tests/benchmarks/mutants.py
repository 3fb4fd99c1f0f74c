"""Mutation testing by hand: `python -m tests.benchmarks.mutants plan --sample 150`.

Each mutant is one small change of one expression of a module. It is imported in a forked child in
the place of the module, and the module's own tests run; a mutant that they do not notice survives.
mutmut and cosmic-ray start an interpreter for each mutant: here the fork shares all imports.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MESSAGES = ("shapes", "digests", "validity", "cleaning", "pairing", "reading")
TESTS = {
    "plan": ["tests/test_plan.py"],
    **{f"messages.{part}": ["tests/test_messages.py"] for part in MESSAGES},
    "ledger": ["tests/test_ledger.py", "tests/test_ledger_model.py"],
}
SECONDS = 150
"""For the tests of one mutant; a mutant that never ends is killed, and counts so."""

_COMPARED = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_COUNTED = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult}
Change = Callable[[ast.AST], None]


def changes(node: ast.AST) -> Iterator[tuple[str, Change]]:
    """What may be changed about one node, each with words for it."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _COMPARED:
        yield "comparison", lambda n: _compare(n)
    if isinstance(node, ast.BinOp) and type(node.op) in _COUNTED:
        yield "arithmetic", lambda n: setattr(n, "op", _COUNTED[type(n.op)]())  # type: ignore[attr-defined]
    if isinstance(node, ast.BoolOp):
        other = ast.Or if isinstance(node.op, ast.And) else ast.And
        yield "and/or", lambda n: setattr(n, "op", other())
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield "not", lambda n: setattr(n, "op", ast.UAdd()) or _truth(n)
    if isinstance(node, ast.Constant) and type(node.value) in (int, bool, str, float):
        yield "constant", lambda n: setattr(n, "value", _other(n.value))  # type: ignore[attr-defined]
    if isinstance(node, ast.Return) and node.value is not None:
        yield "return None", lambda n: setattr(n, "value", ast.Constant(None))
    if isinstance(node, (ast.Break, ast.Continue)):
        yield "break/continue", lambda n: None


def _truth(node: ast.AST) -> None:
    setattr(node, "op", ast.Not())  # noqa: B010
    inner = getattr(node, "operand")  # noqa: B009
    setattr(node, "operand", ast.UnaryOp(ast.Not(), inner))  # noqa: B010


def _compare(node: ast.AST) -> None:
    assert isinstance(node, ast.Compare)
    node.ops[0] = _COMPARED[type(node.ops[0])]()


def _other(value: object) -> object:
    if isinstance(value, bool):
        return not value
    return f"{value}XX" if isinstance(value, str) else value + 1  # type: ignore[operator]


def mutants(source: str) -> list[tuple[int, int, str, int]]:
    """Every mutant as (node number, change number, words, line); docstrings and names are left."""
    tree = ast.parse(source)
    skipped = _not_code(tree)
    found = []
    for number, node in enumerate(ast.walk(tree)):
        if number in skipped:
            continue
        for which, (words, _) in enumerate(changes(node)):
            found.append((number, which, words, getattr(node, "lineno", 0)))
    return found


def _not_code(tree: ast.Module) -> set[int]:
    """Docstrings, `__all__`, annotations and the texts of errors: no test should pin those."""
    unwanted: set[int] = set()
    numbers = {id(node): number for number, node in enumerate(ast.walk(tree))}
    for node in ast.walk(tree):
        hidden: list[ast.AST] = []
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            hidden.append(node)
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            hidden.append(node)
        if isinstance(node, ast.AnnAssign):
            hidden.append(node.annotation)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            hidden += [
                a.annotation for a in ast.walk(node.args) if isinstance(a, ast.arg) and a.annotation
            ]
            hidden += [node.returns] if node.returns else []
        if isinstance(node, (ast.Raise, ast.JoinedStr)):
            hidden.append(node)
        unwanted |= {numbers[id(inner)] for each in hidden for inner in ast.walk(each)}
    return unwanted


def mutated(source: str, number: int, which: int) -> ast.Module:
    """The module with that one change."""
    tree = copy.deepcopy(ast.parse(source))
    node = next(node for n, node in enumerate(ast.walk(tree)) if n == number)
    if isinstance(node, (ast.Break, ast.Continue)):
        tree = _Swapped(node).visit(tree)
    else:
        list(changes(node))[which][1](node)
    return ast.fix_missing_locations(tree)


class _Swapped(ast.NodeTransformer):
    """`break` for `continue` and the other way round, at one place."""

    def __init__(self, node: ast.AST) -> None:
        self._node = node

    def visit(self, node: ast.AST) -> ast.AST:
        if node is self._node:
            new = ast.Continue() if isinstance(node, ast.Break) else ast.Break()
            return ast.copy_location(new, node)
        return super().visit(node)  # type: ignore[no-any-return]


# ---------------------------------------------------------------- running


class _Finder:
    """Imports the mutant in the place of its module."""

    def __init__(self, name: str, path: Path, tree: ast.Module) -> None:
        self._name, self._path, self._tree = name, path, tree

    def find_spec(self, name: str, path: object, target: object = None) -> object:
        import importlib.util

        if name != self._name:
            return None
        return importlib.util.spec_from_loader(name, self, origin=str(self._path))  # type: ignore[arg-type]

    def create_module(self, spec: object) -> None:
        return None

    def exec_module(self, module: object) -> None:
        exec(compile(self._tree, str(self._path), "exec"), vars(module))


def survives(module: str, tree: ast.Module) -> bool:
    """Whether the module's tests pass with the mutant in its place, in a child of this process."""
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1] == 0
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(SECONDS)
    code = 1
    try:
        code = _tests_with(module, tree)
    finally:
        os._exit(code)


def _tests_with(module: str, tree: ast.Module) -> int:
    import pytest
    from hypothesis import HealthCheck, Phase, settings

    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    quick = settings(
        max_examples=6, database=None, derandomize=True, deadline=None,
        phases=(Phase.explicit, Phase.generate), suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    settings.register_profile("mutants", quick)
    settings.load_profile("mutants")
    for name in [n for n in sys.modules if n.startswith(("praison_compressor", "tests."))]:
        del sys.modules[name]
    path = ROOT / "praison_compressor" / f"{module.replace('.', '/')}.py"
    sys.meta_path.insert(0, _Finder(f"praison_compressor.{module}", path, tree))  # type: ignore[arg-type]
    return int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", *TESTS[module]]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("module", choices=TESTS)
    parser.add_argument("--sample", type=int, default=0, help="so many by chance; 0: all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after that long")
    options = parser.parse_args()
    os.chdir(ROOT)
    import praison_compressor.testing  # noqa: F401 - imported before the forks, which share it

    source = (ROOT / "praison_compressor" / f"{options.module.replace('.', '/')}.py").read_text(
        encoding="utf-8"
    )
    if not survives(options.module, ast.parse(source)):
        print("the tests fail without any mutant")
        return 2
    found = mutants(source)
    chosen = random.Random(options.seed).sample(
        found, min(options.sample or len(found), len(found))
    )
    lines, started, alive, tried = source.splitlines(), time.monotonic(), [], 0
    for number, which, words, line in chosen:
        tried += 1
        if survives(options.module, mutated(source, number, which)):
            alive.append((line, words))
            print(
                f"survives: {options.module}.py:{line} {words}: {lines[line - 1].strip()}",
                flush=True,
            )
        if time.monotonic() - started > options.seconds:
            break
    killed = tried - len(alive)
    print(
        f"{options.module}: {killed} of {tried} killed ({killed / tried:.0%}), "
        f"{len(found)} possible"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
