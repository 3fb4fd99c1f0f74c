"""The rooms of the package: a stranger finds a module by the maps, and no module is a book."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import praison_compressor

ROOT = Path(praison_compressor.__file__).parent
ROOMS = sorted(path for path in ROOT.rglob("__init__.py") if path.parent != ROOT)
MODULES = sorted(path for path in ROOT.rglob("*.py") if path.name not in ("__init__.py",))


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("room", ROOMS, ids=name_of)
def test_a_rooms_docstring_is_its_map(room: Path) -> None:
    """Every module and package of the room is named in it, and no other at the head of a line."""
    told = ast.get_docstring(ast.parse(room.read_text("utf-8"))) or ""
    inside = {path.stem for path in room.parent.glob("*.py")} - {"__init__", "__main__"}
    inside |= {path.parent.name for path in room.parent.glob("*/__init__.py")}
    assert [name for name in sorted(inside) if not re.search(rf"\b{name}\b", told)] == []
    lines = re.findall(r"^- ((?:`\w+`(?:, )?)+)", told, re.M)
    assert set(re.findall(r"\w+", " ".join(lines))) <= inside


@pytest.mark.parametrize("module", MODULES, ids=name_of)
def test_a_module_is_a_chapter_and_says_what_it_is_about(module: Path) -> None:
    """At most 450 lines, and a docstring."""
    text = module.read_text("utf-8")
    assert ast.get_docstring(ast.parse(text))
    assert text.count("\n") <= 450


def test_the_house_has_few_doors() -> None:
    """At most 130 modules, and 16 entries at the top."""
    assert len(list(ROOT.rglob("*.py"))) <= 130
    assert len([path for path in ROOT.iterdir() if path.name != "__pycache__"]) <= 16
