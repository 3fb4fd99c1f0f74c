"""The sections of a summary: how things stand, the user's words, the trail."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from .coverage import short
from .model import DONE, CommandFact, ErrorFact, Facts, FileFact, Said, Todo
from .shell import Run, run_of, runs_of, tail_of

# -------------------------------------------------------------- lines


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


# -------------------------------------------------------------- sections


RECENT_NOTES = 1
STILL_FAILING = 2
ERROR_CHARS = 40
"""By which an error's line is known again."""
_AMONG_FILES = re.compile(r"grep|glob|file|list|dir|code|symbol|workspace|by_name", re.I)
TASK_SPACES = 3
"""A sentence of four words and more: a greeting has fewer."""
BRIEF = 52
"""Characters of a command, and of what came of it, where there is no room for the whole."""


def now_section(facts: Facts, failing: Sequence[CommandFact] | None = None) -> Section:
    """How things stand: what is being done, what is next, what still fails, what is done.

    `failing`: the commands to tell as such, whatever else there is no room for.

    >>> from .model import Todo
    >>> now_section(Facts(todos=(Todo("Fix it", "in_progress", 1),))).lines[0].text
    'Fix it'
    """
    old = facts.stale.marked
    lines = [*_todos(facts, "doing"), *_todos(facts, "next")]
    lines += [
        Line(
            0,
            old(_fails(item), item.index),
            f"fails {item.index}",
            "still fails: ",
            brief=old(_fails(item, BRIEF), item.index),
        )
        for item in (still_failing(facts) if failing is None else failing)
    ]
    told = max((item.index for item in facts.todos), default=0)
    current = facts.stale.without([*facts.last_words, *reversed(facts.open_work[-RECENT_NOTES:])])
    # What was said before the list took its present state is not how things stand.
    notes = dict.fromkeys(note for note in current if note.index >= told)
    lines += [Line(0, f"{note.text} [{note.index}]", note.text, "said: ") for note in notes]
    lines += _todos(facts, "done")
    ordered = [line._replace(order=n) for n, line in enumerate(lines)]
    if failing:
        ordered.sort(key=lambda line: not line.label.startswith("still"))
    return Section("Now", tuple(ordered), "; ")


def _fails(item: CommandFact, most: int = 0) -> str:
    text = _cut(tail_of(item.text), most) if most else item.text
    return f"{text}: {_cut(item.detail, most) if most else item.detail} [{item.index}]"


def _todos(facts: Facts, state: str) -> Iterator[Line]:
    # A list that nobody touched since the user spoke does not know of what was said.
    spoke = max((item.index for item in facts.user), default=0)
    for item in facts.todos:
        if _state(item) == state:
            was = "was " if item.index < spoke and state != "done" else ""
            text = facts.stale.marked(item.text, item.index)
            yield Line(0, text, state, f"{was}{state}: ")


def _state(item: Todo) -> str:
    if item.status in DONE:
        return "done"
    return "doing" if item.status in ("in_progress", "active", "doing", "current") else "next"


def still_failing(facts: Facts) -> list[CommandFact]:
    """Commands that failed when they last ran, newest first, if none like it worked since."""
    out: list[CommandFact] = []
    worked: list[Run] = []
    failed: set[tuple[str, ...]] = set()
    for item in reversed(facts.commands):
        if item.kind != "command":
            continue
        run = run_of(item.text)
        if item.outcome != "failed":
            worked += runs_of(item.text)
        elif item.detail and run.program not in failed and not any(map(run.is_within, worked)):
            failed.add(run.program)
            out.append(item)
    return out[:STILL_FAILING]


def user_section(facts: Facts, hidden: str = "") -> Section:
    """The user's words verbatim, rules of the session first; what is visible elsewhere is not.

    `hidden` is text with whitespace flattened that the view shows anyway.
    """
    kept: dict[str, tuple[int, Said]] = {}
    for position, item in enumerate(facts.user):
        if item.superseded_by or not (hidden and item.text in hidden):
            kept[item.text] = (position, item)
    replacing = {item.superseded_by for item in facts.user}
    task = _task(facts)
    ranked = sorted(
        kept.values(),
        key=lambda pair: (
            pair[1] is not task,
            _rank(pair[1], replacing),
            -pair[1].index,
            pair[0],
        ),
    )
    lines = (Line(at, _said(item), f"[{item.index}]") for at, item in ranked)
    return Section("The user said", tuple(lines))


def _task(facts: Facts) -> Said | None:
    """What the session began with, a greeting left out: it says what all the rest is about."""
    typed = (item for item in facts.user if not item.pasted)
    return next((item for item in typed if item.text.count(" ") >= TASK_SPACES), None)


def _rank(item: Said, replacing: Container[str | None]) -> int:
    """What replaced something comes with what it replaced: else only the old value is told."""
    corrected = item.superseded_by or item.text in replacing
    return 0 if item.standing or corrected else 1 + item.pasted


def _said(item: Said) -> str:
    if not item.superseded_by:
        return item.text
    values = ", ".join(item.old_values)
    return f"{item.text} (superseded later: {values} no longer holds)"


def decisions_section(facts: Facts, told: str = "") -> Section:
    """Decisions with the words that justify them, newest first; not those `told` above."""
    current = facts.stale.without(reversed(facts.decisions))
    lines = [
        Line(item.index, f"[{item.index}] {item.text}") for item in current if item.text not in told
    ]
    return Section("Decisions", tuple(lines))


def changed_section(facts: Facts) -> Section:
    """What became of the files, newest first: the last thing done to each and the call that did it.

    Files that were only read are not of it: in a long session they are the many.
    """
    return _files(facts, "Files", read=False)


def read_section(facts: Facts) -> Section:
    """The files that were read and left as they were, newest first."""
    return _files(facts, "Files read", read=True)


def _files(facts: Facts, title: str, *, read: bool) -> Section:
    moves = {(item.index, item.target) for item in facts.files if item.action == "moved"}
    chosen = [
        item
        for item in facts.files
        if (item.action == "read") == read and (item.index, item.path) not in moves
    ]
    ordered = sorted(chosen, key=lambda item: -item.index)
    groups = list(dict.fromkeys(map(_done, ordered)))
    lines = (
        Line(groups.index(_done(item)), _file(item), _done(item), f"{_done(item)}: ")
        for item in ordered
    )
    return Section(title, tuple(lines), ", ")


def _done(item: FileFact) -> str:
    return f"{item.action} ({item.via})" + ("" if item.ok else ", failed")


def _file(item: FileFact) -> str:
    times = item.counts.get(item.action, 1)
    target = f" to {item.target}" if item.target else ""
    return short(item.path) + (f" ×{times}" if times > 1 else "") + target


def commands_section(facts: Facts, told: str = "") -> Section:
    """Commands with their newest outcome, newest first, and after them pages and searches.

    Looking for a name among files is none of them: it can be done again for less than it costs.
    What is `told` above as still failing is not told again, nor is an error's line.
    """
    ran = [
        item
        for item in reversed(facts.commands)
        if item.kind == "command" and not (told and _is_told(item, told))
    ]
    looked = [item for item in reversed(facts.commands) if _is_worth_telling(item)]
    lines = _outcomes(facts, [_told_above(item, told) for item in (*ran, *looked)])
    return Section("Commands and searches" if looked else "Commands", lines)


def looked_section(facts: Facts) -> Section:
    """Searches among the files with what they found, newest first: for room that is left over."""
    local = (item for item in reversed(facts.commands) if item.kind == "search")
    lines = _outcomes(facts, [item for item in local if not _is_worth_telling(item)])
    return Section("Local searches", lines)


def _outcomes(facts: Facts, items: Iterable[CommandFact]) -> tuple[Line, ...]:
    old = facts.stale.marked
    return tuple(
        Line(item.index, old(_ran(item), item.index), brief=old(_ran(item, BRIEF), item.index))
        for item in items
    )


def _is_told(item: CommandFact, told: str) -> bool:
    failed = item.outcome == "failed"
    return failed and (_fails(item) in told or _fails(item, BRIEF) in told)


def _told_above(item: CommandFact, told: str) -> CommandFact:
    """The command without the line of its error where that stands in a line of its own."""
    error = item.detail[:ERROR_CHARS]
    above = item.outcome == "failed" and error and f"[{item.index}] {error}" in told
    return replace(item, detail="") if above else item


def _is_worth_telling(item: CommandFact) -> bool:
    name = item.text.partition(" ")[0]
    return item.kind == "fetch" or (item.kind == "search" and not _AMONG_FILES.search(name))


def _ran(item: CommandFact, most: int = 0) -> str:
    text, detail = item.text, item.detail
    if most:
        text, detail = _cut(tail_of(text), most), _cut(detail, most)
    came = f"{item.outcome}: {detail}" if detail else item.outcome
    return f"[{item.index}] {text} -> {came}"


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def errors_section(facts: Facts, told: str = "") -> Section:
    """Errors that tools reported and what followed, newest first; not those `told` above."""
    lines = [
        Line(item.index, facts.stale.marked(_error(item), item.index))
        for item in reversed(facts.errors)
        if item.text not in told
    ]
    return Section("Errors reported by tools", tuple(lines))


def _error(item: ErrorFact) -> str:
    followed = f" (then: {item.followed_by})" if item.followed_by else ""
    return f"[{item.index}] {item.text}{followed}"
