"""The rooms of the package: a stranger finds a module by the maps, and no module is a book."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import praison_compressor

ROOT = Path(praison_compressor.__file__).parent


def test_a_rooms_docstring_is_its_map() -> None:
    """Every module and package of the room is named in it, and no other at the head of a line."""
    for room in (path for path in ROOT.rglob("__init__.py") if path.parent != ROOT):
        told = ast.get_docstring(ast.parse(room.read_text("utf-8"))) or ""
        inside = {path.stem for path in room.parent.glob("*.py")} - {"__init__", "__main__"}
        inside |= {path.parent.name for path in room.parent.glob("*/__init__.py")}
        assert [n for n in inside if not re.search(rf"\b{n}\b", told)] == [], room
        lines = re.findall(r"^- ((?:`\w+`(?:, )?)+)", told, re.M)
        assert set(re.findall(r"\w+", " ".join(lines))) <= inside, room


def test_a_module_is_a_chapter_and_says_what_it_is_about() -> None:
    """At most 450 lines, and a docstring."""
    texts = {path: path.read_text("utf-8") for path in ROOT.rglob("*.py")}
    assert [path for path, text in texts.items() if not ast.get_docstring(ast.parse(text))] == []
    assert [path for path, text in texts.items() if text.count("\n") > 450] == []


def test_the_house_has_few_doors() -> None:
    """At most 130 modules, and 16 entries at the top."""
    assert len(list(ROOT.rglob("*.py"))) <= 130
    assert len([path for path in ROOT.iterdir() if path.name != "__pycache__"]) <= 16
