"""praison_compressor/docs/cli.md and the tables of docs/options.md and host.md, from the code.

python -m tests.helpers.readme_tables      writes them anew
"""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path
from typing import Any

import typer.main

from praison_compressor import CompressorConfig
from praison_compressor.cli import build
from praison_compressor.cli.terminal import EXIT_CODES
from praison_compressor.praisonai.seams import NEW, READ, REPLACED

ROOT = Path(__file__).parent.parent.parent
README = ROOT / "README.md"
DOCS = ROOT / "praison_compressor" / "docs"
REFERENCE = DOCS / "cli.md"
OPTIONS = DOCS / "options.md"
HOST = DOCS / "host.md"


def commands() -> dict[str, Any]:
    """Every command of the program by its name, as the parser knows it."""
    return dict(typer.main.get_command(build()).commands)  # type: ignore[attr-defined]


def options_table() -> str:
    """The options of `CompressorConfig`: name, default and docstring."""
    lines = ["| option | default | meaning |", "|---|---|---|"]
    for name, default, meaning in _options():
        lines.append(f"| `{name}` | {default} | {meaning} |")
    return "\n".join(lines)


def _options() -> list[tuple[str, str, str]]:
    tree = ast.parse(inspect.getsource(CompressorConfig)).body[0]
    assert isinstance(tree, ast.ClassDef)
    found = []
    for field, doc in zip(tree.body, tree.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(doc, ast.Expr):
            assert isinstance(field.target, ast.Name)
            assert isinstance(doc.value, ast.Constant)
            found.append((field.target.id, _default(field.value), _flat(str(doc.value.value))))
    return found


def _default(value: ast.expr | None) -> str:
    if isinstance(value, ast.Call):
        return "none"
    shown = ast.literal_eval(value) if value is not None else None
    return f"`{shown:_}`" if type(shown) is int else f"`{shown!r}`"


def commands_table() -> str:
    """Each command and the first sentence of its help."""
    lines = ["| command | what it does |", "|---|---|"]
    for name, command in commands().items():
        usage = " ".join([name, *_arguments(command)])
        lines.append(f"| `{usage}` | {_first_sentence(command.help)} |")
    return "\n".join(lines)


def exit_codes() -> str:
    """What each exit code means."""
    rows = [f"| {code} | {meaning} |" for code, meaning in EXIT_CODES.items()]
    return "\n".join(["| exit code | meaning |", "|---|---|", *rows])


def reference() -> str:
    """The whole of praison_compressor/docs/cli.md."""
    lines = [
        "# praison-compressor, command by command",
        "",
        "Made from the code by `python -m tests.helpers.readme_tables`; a test compares.",
        "",
        "Every command takes `--json`, and its output is plain when piped. Shell completion:",
        "`praison-compressor --install-completion`.",
        "",
        commands_table(),
        "",
        exit_codes(),
    ]
    for name, command in commands().items():
        lines += ["", f"## {name}", ""]
        lines += [f"`praison-compressor {' '.join([name, '[OPTIONS]', *_arguments(command)])}`", ""]
        lines += [inspect.cleandoc(command.help or ""), "", "| option | meaning |", "|---|---|"]
        lines += [f"| `{names}` | {meaning} |" for names, meaning in _parameters(command)]
    return "\n".join(lines) + "\n"


def _parameters(command: Any) -> list[tuple[str, str]]:
    return [
        (_spelled(parameter), _flat(getattr(parameter, "help", None) or ""))
        for parameter in command.params
        if parameter.name != "help"
    ]


def _spelled(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return str(parameter.metavar)
    takes = "" if parameter.is_flag else f" {parameter.metavar}"
    return ", ".join(parameter.opts) + takes


def _arguments(command: Any) -> list[str]:
    return [str(p.metavar) for p in command.params if p.param_type_name == "argument"]


def _first_sentence(text: str | None) -> str:
    return re.split(r"(?<=[.:])\s", _flat(text or ""))[0].rstrip(":.") + "."


def _flat(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def replaced_table() -> str:
    """What is replaced in the host, or added to it."""
    lines = ["| name | why | without it | needless once |", "|---|---|---|---|"]
    for row in REPLACED:
        name = f"{row.owner.partition(':')[2]}.{row.name}"
        added = " (added)" if row.kind == NEW else ""
        left = f"left out: {row.without}" if row.without else "`HostMoved`"
        lines.append(f"| `{name}`{added} | {row.why} | {left} | {row.needless} |")
    return "\n".join(lines)


def read_table() -> str:
    """What is only read or set."""
    lines = ["| of | names | without one |", "|---|---|---|"]
    for row in READ:
        left = f"left out: {row.without}" if row.without else "`HostMoved`"
        lines.append(f"| `{row.owner.replace(':', '.')}` | `{row.names}` | {left} |")
    return "\n".join(lines)


TABLES = {"options": options_table, "replaced": replaced_table, "read": read_table}


def with_tables(text: str) -> str:
    """The text of a page with its tables as the code has them."""
    for name in re.findall(r"<!-- (\w+) -->", text):
        start, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
        before, _, rest = text.partition(start)
        text = f"{before}{start}{TABLES[name]()}\n{end}{rest.partition(end)[2]}"
    return text


if __name__ == "__main__":
    for page in (OPTIONS, HOST):
        page.write_text(with_tables(page.read_text(encoding="utf-8")), encoding="utf-8")
    REFERENCE.write_text(reference(), encoding="utf-8")
