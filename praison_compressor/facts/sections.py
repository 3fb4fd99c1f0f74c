"""The facts as lines of text, most valuable first: what both the audit and the fallback print."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import NamedTuple

from .audit import short
from .identifiers import Classifier
from .importance import worth
from .model import Excerpt, Facts, FileFact, Said
from .roots import Roots
from .selection import Chooser

Count = Callable[[str], int]
LISTED = 0.5
AGAIN = 0.15
ROOT_SAMPLE = 1_500
ROOTS_PAY_TOKENS = 600
"""Below it the note on what is left out of paths costs more than it saves."""
FILLINGS = 3
LEFT_OVER = 0.01
"""Share of the room that is not worth another round."""
MARKS = {"call": "> ", "result": "= ", "assistant": "", "user": "user: ", "host": "host: "}


class Line(NamedTuple):
    """One line of a section and where it belongs in it."""

    order: int
    text: str
    group: str = ""
    """Neighbours of one group share a bullet."""


class Section(NamedTuple):
    """A heading with its lines, most valuable first."""

    title: str
    lines: tuple[Line, ...]


def user_section(facts: Facts, hidden: str = "") -> Section:
    """The user's words verbatim, rules of the session first; what is visible elsewhere is not.

    `hidden` is text with whitespace flattened that the view shows anyway.
    """
    kept: dict[str, tuple[int, Said]] = {}
    for position, item in enumerate(facts.user):
        if item.superseded_by or not (hidden and item.text in hidden):
            kept[item.text] = (position, item)
    ranked = sorted(kept.values(), key=lambda pair: (_rank(pair[1]), -pair[1].index, pair[0]))
    lines = (Line(at, _said(item), str(item.index)) for at, item in ranked)
    return Section("The user said", tuple(lines))


def _rank(item: Said) -> int:
    return 0 if item.standing or item.superseded_by else 1 + item.pasted


def _said(item: Said) -> str:
    if not item.superseded_by:
        return item.text
    values = ", ".join(item.old_values)
    return f"{item.text} (superseded later: {values} no longer holds)"


def state_section(facts: Facts) -> Section:
    """Todo list and the newest sentences about open work."""
    lines = [Line(n, f"[{_box(item.status)}] {item.text}") for n, item in enumerate(facts.todos)]
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
    return f"{short(item.path)}: {done}{target} [{item.index}]{failed}"


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
    groups: set[str] = set()
    for line in section.lines:
        cost = count(line.text) + 1
        if not line.group or line.group not in groups:
            cost += count("- ")
        if cost <= room:
            room -= cost
            kept.append(line)
            groups.add(line.group)
    if not kept:
        return ""
    return f"## {section.title}\n" + "\n".join(_bullets(kept)) + "\n"


def _bullets(lines: Iterable[Line]) -> Iterable[str]:
    last = ""
    for line in sorted(lines, key=lambda line: line.order):
        if line.group and line.group == last:
            yield line.text
        else:
            yield f"- {line.text}"
        last = line.group


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
    facts: Facts,
    budget_tokens: int,
    count: Count,
    covered: set[str] | None = None,
    half: set[str] | None = None,
) -> str:
    """The excerpts that bind the most valuable identifiers, within the budget.

    `covered` identifiers are bound elsewhere in the view, `half` ones only listed there.
    """
    pool = [item for item in facts.excerpts if item.source != "user"]
    sample = [item.text for item in pool if "/" in item.text][-ROOT_SAMPLE:]
    roots = Roots(sample if budget_tokens >= ROOTS_PAY_TOKENS else ())
    heading = f"## Details (> call, = result) {roots.note()}".strip() + "\n"
    room = budget_tokens - count(heading)
    if room < 20:
        return ""
    pool = [
        replace(item, text=roots.strip(item.text)) if "/" in item.text else item for item in pool
    ]
    weights = worth(facts)
    for key in half or ():
        weights[key] = weights.get(key, 0.0) * LISTED
    left = {key: weight for key, weight in weights.items() if key not in (covered or ())}
    chooser = Chooser(pool, left, count, Classifier(facts.patterns))
    body = _filled(chooser, room, count)
    return heading + body + "\n" if body else ""


def _filled(chooser: Chooser, room: int, count: Count) -> str:
    """The clauses that fill the room: what each costs is known only when all are printed."""
    body, left = "", room
    for _ in range(FILLINGS):
        chooser.spend(left, AGAIN)
        body = excerpts_text(chooser.chosen())
        left = room - count(body)
        if left <= LEFT_OVER * room:
            break
    while body and left < 0:
        chooser.give_back(-left)
        body = excerpts_text(chooser.chosen())
        left = room - count(body)
    return body


def squeeze(text: str) -> str:
    """Blank lines and trailing spaces removed: they cost tokens and say nothing."""
    return re.sub(r"\n{2,}", "\n", re.sub(r"[ \t]+\n", "\n", text)).strip()
