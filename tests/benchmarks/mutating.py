"""What a mutant is: one small change of one expression of a source file.

Docstrings, `__all__`, annotations and the texts of errors are left alone: no test should pin them.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from typing import NamedTuple

__all__ = ["Mutant", "mutants", "mutated"]

_COMPARED = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_COUNTED = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult}
Change = Callable[[ast.AST], None]


class Mutant(NamedTuple):
    """Where a change is made: in which file, at which node, and what is changed there."""

    path: str
    """Of the module, below the package."""
    node: int
    """Number of the node in `ast.walk`."""
    which: int
    words: str
    line: int
    start: int
    """First line of the statement, or of the head of a compound one."""
    end: int
    function: str | None
    """The outermost function that it is in; None: run when the module is imported."""
    first: int
    """First line of that function, decorators included."""


def changes(node: ast.AST) -> Iterator[tuple[str, Change]]:
    """What may be changed about one node, each with words for it."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _COMPARED:
        yield "comparison", _compare
    if isinstance(node, ast.BinOp) and type(node.op) in _COUNTED:
        yield "arithmetic", lambda n: setattr(n, "op", _COUNTED[type(n.op)]())  # type: ignore[attr-defined]
    if isinstance(node, ast.BoolOp):
        other = ast.Or if isinstance(node.op, ast.And) else ast.And
        yield "and/or", lambda n: setattr(n, "op", other())
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield "not", _truth
    if isinstance(node, ast.Constant) and type(node.value) in (int, bool, str, float):
        yield "constant", lambda n: setattr(n, "value", _other(n.value))  # type: ignore[attr-defined]
    if isinstance(node, ast.Return) and not _is_false(node.value):
        yield "return None", lambda n: setattr(n, "value", ast.Constant(None))
    if isinstance(node, (ast.Break, ast.Continue)):
        yield "break/continue", lambda n: None


def _is_false(value: ast.expr | None) -> bool:
    """None, or as good as None to who asks: another kind of change makes it true."""
    return value is None or (isinstance(value, ast.Constant) and not value.value)


def _truth(node: ast.AST) -> None:
    assert isinstance(node, ast.UnaryOp)
    node.operand = ast.UnaryOp(ast.Not(), node.operand)


def _compare(node: ast.AST) -> None:
    assert isinstance(node, ast.Compare)
    node.ops[0] = _COMPARED[type(node.ops[0])]()


def _other(value: object) -> object:
    if isinstance(value, bool):
        return not value
    return f"{value}XX" if isinstance(value, str) else value + 1  # type: ignore[operator]


def mutants(path: str, source: str) -> list[Mutant]:
    """Every mutant of a file."""
    tree = ast.parse(source)
    skipped, homes, statements = _not_code(tree), _homes(tree), _lines(tree)
    found = []
    for number, node in enumerate(ast.walk(tree)):
        if number in skipped:
            continue
        for which, (words, _) in enumerate(changes(node)):
            line = getattr(node, "lineno", 0)
            function, first = homes.get(id(node), (None, 0))
            start, end = statements.get(id(node), (line, line))
            found.append(
                Mutant(path, number, which, words, line, start, max(line, end), function, first)
            )
    return found


def _homes(tree: ast.Module) -> dict[int, tuple[str, int]]:
    """The outermost function that each node's code is in, with its first line."""
    found: dict[int, tuple[str, int]] = {}

    def enter(node: ast.AST) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                first = min([child.lineno, *(d.lineno for d in child.decorator_list)])
                for statement in child.body:
                    for inner in ast.walk(statement):
                        found[id(inner)] = (child.name, first)
            else:
                enter(child)

    enter(tree)
    return found


def _lines(tree: ast.Module) -> dict[int, tuple[int, int]]:
    """The lines of the innermost statement each node is in; of a compound one its head alone."""
    found: dict[int, tuple[int, int]] = {}
    for node in ast.walk(tree):
        if not isinstance(node, ast.stmt):
            continue
        body = getattr(node, "body", None)
        end = body[0].lineno - 1 if body else node.end_lineno or node.lineno
        for inner in ast.walk(node):
            # Inner statements are walked later and take their own nodes back.
            found[id(inner)] = (node.lineno, max(node.lineno, end))
    return found


def _not_code(tree: ast.Module) -> set[int]:
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


def mutated(source: str, mutant: Mutant) -> ast.Module:
    """The module with that one change."""
    tree = copy.deepcopy(ast.parse(source))
    node = next(node for n, node in enumerate(ast.walk(tree)) if n == mutant.node)
    if isinstance(node, (ast.Break, ast.Continue)):
        tree = _Swapped(node).visit(tree)
    else:
        list(changes(node))[mutant.which][1](node)
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
