"""Return docs/api.md, the reference of the public names, from the code."""

import ast
import inspect
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import is_dataclass
from itertools import pairwise
from typing import Any

import praison_compressor

HEAD = """# The library, name by name

`help(NAME)` in Python prints the parameters, their units and the errors of each name.
[Without the host](library.md) has examples; [configuration](configuration.md) lists the options.
"""
OPTIONS_CLASS = praison_compressor.CompressorConfig


def api_page() -> str:
    """Return the whole page."""
    public = [(name, getattr(praison_compressor, name)) for name in praison_compressor.__all__]
    errors = [thing for _, thing in public if _is_error(thing)]
    classes = [thing for _, thing in public if inspect.isclass(thing) and not _is_error(thing)]
    functions = [thing for _, thing in public if inspect.isfunction(thing)]
    parts = [HEAD, *map(_class_part, sorted(classes, key=lambda each: each.__name__))]
    rows = [(each.__name__ + _signature(each), _first_line(each)) for each in functions]
    parts.append("## Functions\n\n" + _table("function", rows))
    parts.append("## Errors\n\n" + _table("error", map(_error_row, errors)))
    return "\n".join(parts)


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a Markdown table of these columns, a line for each row."""
    return "\n".join([_line(columns), "|" + "---|" * len(columns), *map(_line, rows)])


def _line(cells: Iterable[object]) -> str:
    """Return the cells on one line, their bars escaped."""
    texts = (" ".join(str(cell).split()).replace("|", "\\|") for cell in cells)
    return f"| {' | '.join(texts)} |"


def _is_error(thing: Any) -> bool:
    return inspect.isclass(thing) and issubclass(thing, Exception)


def _class_part(cls: type) -> str:
    """Return a class's section: its first line, attributes and methods."""
    parts = [f"## {cls.__name__}\n\n{_first_line(cls)}\n"]
    attributes = [] if cls is OPTIONS_CLASS else [*_attributes(cls)]
    if attributes:
        parts.append(_table("attribute", attributes))
    methods = [_method_row(cls, name, member) for name, member in _methods(cls)]
    own = [row for row in methods if not row[1].startswith("See `")]
    if own:
        parts.append(_table("method", own))
    if own != methods:
        parts.append(f"`{cls.__name__}` has the methods of [Store](#store) too.\n")
    return "\n".join(parts)


def _attributes(cls: type) -> Iterator[tuple[str, str]]:
    """Yield each public field and property with its type and meaning."""
    (body,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    statements = [*body.body, None] if isinstance(body, ast.ClassDef) else [None]
    for field, after in pairwise(statements):
        if isinstance(field, ast.AnnAssign) and not ast.unparse(field.target).startswith("_"):
            kind = f"`{ast.unparse(field.annotation)}`"
            yield ast.unparse(field.target), f"{kind} {_text_of(after)}".strip()
    for name, member in vars(cls).items():
        if isinstance(member, property) and not name.startswith("_"):
            kind = inspect.signature(member.fget).return_annotation  # type: ignore[arg-type]
            yield name, f"`{kind}` {_first_line(member)}"


def _text_of(statement: ast.stmt | None) -> str:
    """Return the text of an attribute's docstring, or ""."""
    value = statement.value if isinstance(statement, ast.Expr) else None
    return inspect.cleandoc(str(value.value)) if isinstance(value, ast.Constant) else ""


def _methods(cls: type) -> Iterator[tuple[str, Any]]:
    for name, member in vars(cls).items():
        function = getattr(member, "__func__", member)
        # A dataclass's constructor has the attributes as its parameters.
        has_parameters = bool(inspect.signature(cls).parameters) and not is_dataclass(cls)
        is_listed = not name.startswith("_") or (name == "__init__" and has_parameters)
        if is_listed and inspect.isfunction(function) and function.__module__ == cls.__module__:
            yield name, function


def _method_row(cls: type, name: str, function: Any) -> tuple[str, str]:
    if name != "__init__":
        return name + _signature(function), _first_line(function)
    call = cls.__name__ + _signature(function).partition(" -> ")[0]
    return call, f"`help({cls.__name__})` describes the parameters."


def _error_row(error: type) -> tuple[str, str]:
    bases = ", ".join(base.__name__ for base in error.__bases__)
    return f"{error.__name__}({bases})", _first_line(error)


def _signature(function: Any) -> str:
    """Return a signature without the types of its parameters."""
    signature = inspect.signature(function)
    parameters = [
        each.replace(annotation=inspect.Parameter.empty)
        for each in signature.parameters.values()
        if each.name not in ("self", "cls")
    ]
    returned = signature.return_annotation
    bare = str(inspect.Signature(parameters))
    return bare if returned is inspect.Signature.empty else f"{bare} -> {returned}"


def _first_line(thing: Any) -> str:
    """Return a docstring's first paragraph on one line."""
    return " ".join((inspect.getdoc(thing) or "").partition("\n\n")[0].split())


def _table(title: str, rows: Iterable[tuple[str, str]]) -> str:
    return table((title, "meaning"), ((f"`{name}`", text) for name, text in rows)) + "\n"
