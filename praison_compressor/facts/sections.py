"""The facts as lines of text, most valuable first: what both the audit and the fallback print."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from .audit import short
from .importance import importance
from .model import Excerpt, Facts, FileFact, Said
from .selection import choose

Count = Callable[[str], int]
MARKS = {"call": "> ", "result": "= ", "assistant": "", "user": "user: ", "host": "host: "}


class Line(NamedTuple):
    """One line of a section and where it belongs in it."""

    order: int
    text: str


class Section(NamedTuple):
    """A heading with its lines, most valuable first."""

    title: str
    lines: tuple[Line, ...]


def user_section(facts: Facts, hidden: str = "") -> Section:
    """The user's words verbatim; what is visible elsewhere is left out."""
    grouped: dict[int, list[Said]] = {}
    seen: set[str] = set()
    for item in facts.user:
        if item.text in seen or (hidden and item.text in hidden and not item.superseded_by):
            continue
        seen.add(item.text)
        grouped.setdefault(item.index, []).append(item)
    ranked = sorted(grouped.items(), key=lambda pair: (not _ruling(pair[1]), -pair[0]))
    return Section("The user said", tuple(Line(at, _said(at, items)) for at, items in ranked))


def _ruling(items: Sequence[Said]) -> bool:
    return any(item.standing or item.superseded_by for item in items)


def _said(index: int, items: Sequence[Said]) -> str:
    parts = []
    for item in items:
        note = ""
        if item.superseded_by:
            values = ", ".join(item.old_values)
            note = f" (superseded at [{item.superseded_at}]: {values} no longer holds)"
        parts.append(item.text + note)
    return f"[{index}] " + "\n".join(parts)


def state_section(facts: Facts) -> Section:
    """Todo list and the newest sentences about open work."""
    lines = [
        Line(n, f"[{_box(item.status)}] {item.text}") for n, item in enumerate(facts.todos)
    ]
    lines.sort(key=lambda line: line.text.startswith("[x]"))
    after = len(lines)
    lines += [
        Line(after + note.index, f"[{note.index}] {note.text}")
        for note in reversed(facts.open_work[-3:])
    ]
    return Section("Open work", tuple(lines))


def _box(status: str) -> str:
    return {"completed": "x", "done": "x", "in_progress": "~"}.get(status, " ")


def files_section(facts: Facts) -> Section:
    """Files by the last thing done to them, changed ones first, newest first."""
    rank = {"edited": 0, "created": 0, "moved": 0, "deleted": 0, "read": 1}
    ordered = sorted(facts.files, key=lambda item: (rank.get(item.action, 1), -item.index))
    return Section("Files", tuple(Line(n, _file(item)) for n, item in enumerate(ordered)))


def _file(item: FileFact) -> str:
    times = item.counts.get(item.action, 1)
    done = f"{item.action} ×{times}" if times > 1 else item.action
    target = f" to {item.target}" if item.target else ""
    failed = "" if item.ok else ", failed"
    return f"{short(item.path)}: {done}{target} by {item.via} [{item.index}]{failed}"


def commands_section(facts: Facts) -> Section:
    """Commands with their newest outcome, newest first."""
    lines = [
        Line(item.index, f"[{item.index}] {item.text} -> {item.outcome}: {item.detail}")
        for item in reversed(facts.commands)
        if item.kind == "command"
    ]
    return Section("Commands", tuple(lines))


def errors_section(facts: Facts) -> Section:
    """Errors that tools reported and what followed, newest first."""
    lines = [
        Line(item.index, f"[{item.index}] {item.text}" + _followed(item.followed_by))
        for item in reversed(facts.errors)
    ]
    return Section("Errors reported by tools", tuple(lines))


def _followed(text: str) -> str:
    return f" (then: {text})" if text else ""


def decisions_section(facts: Facts) -> Section:
    """Decisions with the words that justify them, newest first."""
    lines = [Line(item.index, f"[{item.index}] {item.text}") for item in reversed(facts.decisions)]
    return Section("Decisions", tuple(lines))


def fitted(section: Section, budget_tokens: int, count: Count) -> str:
    """The section with as many of its lines as fit, in order; empty if none does."""
    room = budget_tokens - count(f"## {section.title}\n") - 1
    kept: list[Line] = []
    for line in section.lines:
        cost = count(line.text) + 2
        if cost <= room:
            room -= cost
            kept.append(line)
    if not kept:
        return ""
    body = "\n".join(f"- {line.text}" for line in sorted(kept, key=lambda line: line.order))
    return f"## {section.title}\n{body}\n"


def excerpts_text(chosen: Iterable[Excerpt]) -> str:
    """Chosen excerpts in order, those of one message together."""
    out: list[str] = []
    last: tuple[int, str] | None = None
    for item in chosen:
        here = (item.index, item.source)
        if here == last:
            out[-1] += f" … {item.text}"
        else:
            out.append(f"{MARKS.get(item.source, '')}{item.text}")
        last = here
    return "\n".join(out)


def details(
    facts: Facts, budget_tokens: int, count: Count, covered: set[str] | None = None
) -> str:
    """The excerpts that bind the most valuable identifiers, within the budget."""
    heading = "## Details, verbatim, in order (> call, = its result)\n"
    room = budget_tokens - count(heading)
    if room < 20:
        return ""
    weights = weights_of(facts)
    pool = [item for item in facts.excerpts if item.source != "user"]
    chosen = choose(pool, weights, room, count, covered)
    body = excerpts_text(chosen)
    while chosen and count(body) > room:
        chosen = chosen[: max(0, len(chosen) - 1 - len(chosen) // 20)]
        body = excerpts_text(chosen)
    return heading + body + "\n" if body else ""


def weights_of(facts: Facts) -> Mapping[str, float]:
    """The worth of each identifier."""
    return {item.text: importance(item, facts.messages) for item in facts.identifiers}


def squeeze(text: str) -> str:
    """Blank lines and trailing spaces removed: they cost tokens and say nothing."""
    return re.sub(r"\n{2,}", "\n", re.sub(r"[ \t]+\n", "\n", text)).strip()
