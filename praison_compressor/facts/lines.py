"""Sections of a summary: headings with bullets, as many as fit, most valuable first."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

Count = Callable[[str], int]
MOST_CHARS_PER_TOKEN = 8


class Line(NamedTuple):
    """One piece of a section and where it belongs in it."""

    order: int
    text: str
    group: str = ""
    """Neighbours of one group share a bullet."""
    label: str = ""
    """Printed once, before the first of the group."""
    brief: str = ""
    """What to print where there is no room for the text."""


class Section(NamedTuple):
    """A heading with its lines, most valuable first."""

    title: str
    lines: tuple[Line, ...]
    joint: str = "\n"
    """Between neighbours of one group."""


def fitted(section: Section, budget_tokens: int, count: Count) -> str:
    """The section with as many of its lines as fit, in order; empty if none does."""
    room = budget_tokens - count(f"## {section.title}\n") - 1
    kept: list[Line] = []
    groups: set[str] = set()
    for line in section.lines:
        opens = not line.group or line.group not in groups
        label = count(f"- {line.label}") if opens else 0
        for text in filter(None, dict.fromkeys((line.text, line.brief))):
            if len(text) > MOST_CHARS_PER_TOKEN * room:
                continue  # counting it costs more than the look
            cost = count(text) + 1 + label
            if cost <= room:
                room -= cost
                kept.append(line._replace(text=text))
                groups.add(line.group)
                break
    if not kept:
        return ""
    return f"## {section.title}\n" + _bullets(kept, section.joint) + "\n"


def _bullets(lines: Iterable[Line], joint: str) -> str:
    out: list[str] = []
    last = ""
    for line in sorted(lines, key=lambda line: line.order):
        if line.group and line.group == last:
            out[-1] += joint + line.text
        else:
            out.append(f"- {line.label}{line.text}")
        last = line.group
    return "\n".join(out)
