"""Render the facts as a text within a budget: what both the audit and the static summary print.

Sections come first (how things stand, the user's words, the trail), each with its share of the
room; details fill what is left.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Mapping
from functools import partial
from typing import NamedTuple

from .corrections import Stale
from .coverage import COMMAND_CHARS, short
from .details import Count, details
from .identifiers import Classifier
from .model import DONE, CommandFact, Facts, FileFact, Said, Todo
from .outcomes import BAD

USER_SHARE = 0.7
NOW_SHARE = 0.06
FAILS_SHARE = 0.5
"""At most, of what still fails, before anything else: an agent that does not know it goes on as if
its work were done."""
FILES_SHARE = 0.2
"""What became of the files has most room: a summary that lost it is what users complain of, and
`tests/benchmarks/rounds.py` loses 15 of 20 files where it shares .06 with files only read."""
FILES_PAY_TOKENS = 400
"""In less room a list of files costs the words that bind what the next steps need."""
SHARE = 0.03
"""Of each other section, and twice that of the files where room is short."""
LEAST_TOKENS = 40
"""A section that a person looks for first gets a line or two even in a small summary."""

READ_WHOLE_TOKENS = 2_000
"""A summary of so many is read whole by a person, and uses its room. In a larger one, and beside a
model's text, room that is left is left: it would be sent with every later request."""


def render(
    facts: Facts,
    *,
    budget_tokens: int,
    count: Count,
    visible: str = "",
    beside_prose: bool = False,
    words_of: int = 0,
    outline: str = "",
) -> str:
    """The facts within the budget: how things stand, the user's words, the trail, details.

    `outline` stands before the details, and is not of the budget.

    `visible` is text that the reader sees anyway; `beside_prose`: a model's text is of it, which a
    person looks at first. `words_of`, where it is more than the budget, is what the whole may take
    where the user's words fill it.
    """
    if max(words_of, budget_tokens) < 20:
        return ""
    stale = Stale(facts.user)
    most = max(int(budget_tokens * FAILS_SHARE), LEAST_TOKENS)
    failing = shortened(failing_section(facts, stale), most, count)
    now = now_section(facts, stale)
    words = user_section(facts, " ".join(visible.split()))

    def least(room: int) -> int:
        return LEAST_TOKENS if room >= 5 * LEAST_TOKENS and not beside_prose else 0

    now_room = max(int(budget_tokens * NOW_SHARE), least(budget_tokens))
    if beside_prose:
        stands = fitted(failing, most, count) + fitted(now, now_room, count)
    else:
        first = [line._replace(group=str(line.order), label=FAILS) for line in failing.lines]
        now_room += sum(count(f"- {FAILS}{line.text}") + 1 for line in first)
        both = (line._replace(order=n) for n, line in enumerate((*first, *now.lines)))
        stands = fitted(now._replace(lines=tuple(both)), now_room, count)
    room = max(0, budget_tokens - count(stands))
    users = int(room * USER_SHARE)
    said = fitted(words, users + max(0, words_of - max(0, budget_tokens)), count)
    extra = max(0, count(said) - users)
    room -= count(said) - extra
    parts = [stands, said]
    files_share = FILES_SHARE if room >= FILES_PAY_TOKENS else 2 * SHARE
    for make in TRAIL:
        share = files_share if make is files_section else SHARE
        section = make(facts, stale, "\n".join(parts))
        parts.append(fitted(section, max(int(room * share), least(room)), count))
    text = "\n".join(parts)
    classifier = Classifier(facts.patterns)
    covered = set(classifier.names(f"{said}\n{visible}"))
    half = set(classifier.names(text)) - covered
    left = budget_tokens + extra - count(text) - 4
    bound = details(facts, left, count, covered, half)
    left -= count(bound)
    if left >= LEAST_TOKENS and budget_tokens <= READ_WHOLE_TOKENS and not beside_prose:
        for at, make in enumerate(TRAIL, 2):
            narrow, section = count(parts[at]), make(facts, stale, "\n".join(parts[:at]))
            parts[at] = fitted(section, narrow + left, count)
            left -= count(parts[at]) - narrow
    return squeeze("\n".join([*parts, outline, bound]))


def squeeze(text: str) -> str:
    """Blank lines and trailing spaces removed: they cost tokens and say nothing."""
    return re.sub(r"\n{2,}", "\n", re.sub(r"[ \t]+\n", "\n", text)).strip()


# -------------------------------------------------------------- lines


class Line(NamedTuple):
    """One piece of a section and where it belongs in it."""

    order: int
    text: str
    group: str = ""
    """Neighbours of one group share a bullet."""
    label: str = ""
    """Printed once, before the first of the group."""


class Section(NamedTuple):
    """A heading with its lines, most valuable first."""

    title: str
    lines: tuple[Line, ...]
    joint: str = "\n"
    """Between neighbours of one group."""


MOST_CHARS_PER_TOKEN = 8


def fitted(section: Section, budget_tokens: int, count: Count) -> str:
    """The section with as many of its lines as fit, in order; empty if none does."""
    room = budget_tokens - count(f"## {section.title}\n") - 1
    kept: list[Line] = []
    groups: set[str] = set()
    for line in section.lines:
        if len(line.text) > MOST_CHARS_PER_TOKEN * room:
            continue  # counting it costs more than the look
        opens = not line.group or line.group not in groups
        cost = count(line.text) + 1 + (count(f"- {line.label}") if opens else 0)
        if cost <= room:
            room -= cost
            kept.append(line)
            groups.add(line.group)
    out: list[str] = []
    last = ""
    for line in sorted(kept, key=lambda line: line.order):
        if line.group and line.group == last:
            out[-1] += section.joint + line.text
        else:
            out.append(f"- {line.label}{line.text}")
        last = line.group
    return f"## {section.title}\n" + "\n".join(out) + "\n" if out else ""


LEAST_LINE_TOKENS = 16
"""A line cut to fewer says nothing."""


def shortened(section: Section, budget_tokens: int, count: Count) -> Section:
    """The section with the lines for which there is room, a long one cut in its middle."""
    room = budget_tokens - count(f"## {section.title}\n") - 1
    kept: list[Line] = []
    for line in section.lines:
        text = _cut_in_the_middle(line.text, room - count(f"- {FAILS}") - 1, count)
        if not text:
            break
        room -= count(f"- {FAILS}{text}") + 1
        kept.append(line._replace(text=text))
    return section._replace(lines=tuple(kept))


def _cut_in_the_middle(text: str, room: int, count: Count) -> str:
    """The text, two thirds of what is left of it from its beginning; empty if too little is."""
    whole, keep = text, len(text)
    while (size := count(text)) > room:
        keep = min(keep * room // size, keep - 1) - 1
        if room < LEAST_LINE_TOKENS or keep < LEAST_LINE_TOKENS:
            return ""
        text = _without_middle(whole, keep - keep // 3, keep // 3)
    return text


CUT_CHARS = 24
"""Of a word that a cut falls into, fewer characters go with the middle: half of a number or an id
reads as another."""


def _without_middle(text: str, first: int, last: int) -> str:
    """The first and the last characters with a gap between, no short word cut in two."""
    begins, ends = text[:first], text[-last:]
    cut = begins.rpartition(" ")
    if text[first] != " " and len(cut[2]) < CUT_CHARS and cut[0]:
        begins = cut[0]
    cut = ends.partition(" ")
    if text[-last - 1] != " " and len(cut[0]) < CUT_CHARS and cut[2]:
        ends = cut[2]
    return f"{begins.rstrip()} … {ends.lstrip()}"


# -------------------------------------------------------------- sections


FAILS = "last run failed: "
RECENT_NOTES = 1


def failing_section(facts: Facts, stale: Stale) -> Section:
    """Commands whose last run failed, newest first."""
    lines = (
        Line(-item.index, stale.marked(_fails(facts, item), item.index))
        for item in reversed(facts.commands)
        if item.still_fails
    )
    return Section("Last run failed", tuple(lines))


def now_section(facts: Facts, stale: Stale) -> Section:
    """How things stand: what is being done, what is next, what was said last, what is done."""
    lines = [*_todos(facts, stale, "doing"), *_todos(facts, stale, "next")]
    told = max((item.index for item in facts.todos), default=0)
    current = stale.without([*facts.last_words, *reversed(facts.open_work[-RECENT_NOTES:])])
    # What was said before the list took its present state is not how things stand.
    notes = dict.fromkeys(note for note in current if note.index >= told)
    lines += [Line(0, f"{facts.at(note.index)}{note.text}", note.text, "said: ") for note in notes]
    lines += _todos(facts, stale, "done")
    return Section("Now", tuple(line._replace(order=n) for n, line in enumerate(lines)), "; ")


def _fails(facts: Facts, item: CommandFact) -> str:
    text = item.text
    if len(text) > COMMAND_CHARS:  # which program it was and on what often stands at its end
        text = _without_middle(text, COMMAND_CHARS // 2, COMMAND_CHARS // 2)
    # Of a refusal the first sentence: hosts say behind it what the agent is to do now.
    why = item.detail if item.outcome == "failed" else item.detail.partition(". ")[0]
    return f"{facts.at(item.index)}{text}: {why}"


def _todos(facts: Facts, stale: Stale, state: str) -> Iterator[Line]:
    # A list that nobody touched since the user spoke does not know of what was said.
    spoke = max((item.index for item in facts.user), default=0)
    for item in facts.todos:
        if _state(item) == state:
            was = "was " if item.index < spoke and state != "done" else ""
            yield Line(0, stale.marked(item.text, item.index), state, f"{was}{state}: ")


def _state(item: Todo) -> str:
    if item.status in DONE:
        return "done"
    return "doing" if item.status in ("in_progress", "active", "doing", "current") else "next"


TASK_SPACES = 3
"""A sentence of four words and more: a greeting has fewer."""


def user_section(facts: Facts, hidden: str = "") -> Section:
    """The user's words verbatim, corrected ones first; what is visible elsewhere is not.

    `hidden` is text with whitespace flattened that the view shows anyway.
    """
    kept: dict[str, tuple[int, Said]] = {}
    for position, item in enumerate(facts.user):
        if item.superseded_by or not (hidden and item.text in hidden):
            kept[item.text] = (position, item)
    replacing = {item.superseded_by for item in facts.user}
    # What the session began with, a greeting left out, says what all the rest is about.
    typed = (item for item in facts.user if not item.pasted)
    task = next((item for item in typed if item.text.count(" ") >= TASK_SPACES), None)
    # Of a long message the first sentence, before another says more.
    long = {item.index for item in facts.user if item.pasted}
    first = {item.index: item.text for item in reversed(facts.user)}
    ranked = sorted(
        kept.values(),
        key=lambda pair: (
            pair[1] is not task,
            _rank(pair[1], replacing, pair[1].index in long, first),
            -pair[1].index,
            pair[0],
        ),
    )
    lines = (Line(at, _said(item), f"[{item.index}]", facts.at(item.index)) for at, item in ranked)
    return Section("The user said", tuple(lines))


def _rank(
    item: Said, replacing: Container[str | None], long: bool, first: Mapping[int, str]
) -> int:
    """What replaced something comes with what it replaced: else only the old value is told.

    What the user states comes before questions: those were answered, and it may bind.
    """
    if item.superseded_by or item.text in replacing:
        return 0
    asks = item.text.endswith(("?", "？"))
    return 1 + max(item.pasted, item.quoted, asks, long and item.text != first[item.index])


def _said(item: Said) -> str:
    if not item.superseded_by:
        return f"quoted: {item.text}" if item.quoted else item.text
    values = ", ".join(item.old_values)
    return f"{item.text} (superseded later: {values} no longer holds)"


def decisions_section(facts: Facts, stale: Stale, told: str = "") -> Section:
    """Decisions with the words that justify them, newest first; not those `told` above."""
    current = stale.without(reversed(facts.decisions))
    lines = (
        Line(item.index, f"{facts.at(item.index)}{item.text}")
        for item in current
        if item.text not in told
    )
    return Section("Decisions", tuple(lines))


def files_section(facts: Facts, stale: Stale, told: str = "", *, read: bool = False) -> Section:
    """What became of the files, newest first: the last thing done to each and the call that did it.

    `read`: those that were only read, which in a long session are the many.
    """
    moves = {(item.index, item.target) for item in facts.files if item.action == "moved"}
    chosen = [
        item
        for item in facts.files
        if (item.action == "read") == read and (item.index, item.path) not in moves
    ]
    ordered = sorted(chosen, key=lambda item: -item.index)
    groups = list(dict.fromkeys(map(_done, ordered)))
    lines = (
        Line(groups.index(_done(item)), _file(facts, item), _done(item), f"{_done(item)}: ")
        for item in ordered
    )
    return Section("Files read" if read else "Files", tuple(lines), ", ")


def _done(item: FileFact) -> str:
    return f"{item.action} ({item.via})" + ("" if item.ok else ", failed")


def _file(facts: Facts, item: FileFact) -> str:
    where = f" {facts.at(item.index)}".rstrip()
    return short(item.path) + (f" to {item.target}" if item.target else "") + where


_AMONG_FILES = re.compile(r"grep|glob|file|list|dir|code|symbol|workspace", re.I)
ERROR_CHARS = 40
"""By which an error's line is known again."""


def commands_section(facts: Facts, stale: Stale, told: str = "") -> Section:
    """Commands with their newest outcome, newest first, and after them pages and searches.

    Looking for a name among files is none of them: it can be done again for less than it costs.
    What is `told` above as still failing is not told again, nor is an error's line.
    """
    ran = [item for item in reversed(facts.commands) if item.kind == "command"]
    ran = [item for item in ran if not (item.still_fails and _fails(facts, item) in told)]
    looked = [item for item in reversed(facts.commands) if item.kind != "command"]
    looked = [item for item in looked if not _AMONG_FILES.search(item.text.partition(" ")[0])]
    lines = tuple(_ran(facts, item, stale, told) for item in (*ran, *looked))
    return Section("Commands and searches" if looked else "Commands", lines)


def _ran(facts: Facts, item: CommandFact, stale: Stale, above: str = "") -> Line:
    error = item.detail[:ERROR_CHARS]
    known = item.outcome in BAD and f"{facts.at(item.index)}{error}" in above
    came = f"{item.outcome}: {item.detail}" if item.detail and not known else item.outcome
    return Line(
        item.index, stale.marked(f"{facts.at(item.index)}{item.text} -> {came}", item.index)
    )


def errors_section(facts: Facts, stale: Stale, told: str = "") -> Section:
    """Errors that tools reported, newest first; not those `told` above."""
    lines = (
        Line(item.index, stale.marked(f"{facts.at(item.index)}{item.text}", item.index))
        for item in reversed(facts.errors)
        if item.text not in told
    )
    return Section("Errors reported by tools", tuple(lines))


_read_section = partial(files_section, read=True)
TRAIL: tuple[Callable[[Facts, Stale, str], Section], ...] = (
    decisions_section,
    files_section,
    _read_section,
    errors_section,
    commands_section,
)
"""Behind how things stand and the user's words, each given what is told above it."""
