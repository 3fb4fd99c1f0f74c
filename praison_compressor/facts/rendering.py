"""Render the facts as a text within a budget: what both the audit and the static summary print."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from .identifiers import Classifier
from .model import CommandFact, Excerpt, Facts
from .sections import (
    Count,
    Section,
    changed_section,
    commands_section,
    decisions_section,
    errors_section,
    fitted,
    looked_section,
    now_section,
    read_section,
    user_section,
)
from .selection import Chooser

# -------------------------------------------------------------- roots


_ABSOLUTE = re.compile(r"(?<![\w./~:])/(?:[\w.@+-]+/){2,}(?=[\w.@+-]+/)")
_RELATIVE = re.compile(r"(?<![\w./~@:-])(?:[\w@+-][\w.@+-]*/){2,}(?=[\w.@+-]+/)")
LEAST_USES = 4


class Roots:
    """At most one absolute and one relative folder that texts of the session keep repeating."""

    def __init__(self, texts: Iterable[str]) -> None:
        texts = list(texts)
        self.absolute = _best(_ABSOLUTE, texts)
        self.relative = _best(_RELATIVE, (self._local(text) for text in texts))
        self._strip = _stripper(self.relative)

    def strip(self, text: str) -> str:
        """The text with the shared folders left out of its paths."""
        text = self._local(text)
        return self._strip.sub("", text) if self._strip else text

    def _local(self, text: str) -> str:
        return text.replace(self.absolute, "") if self.absolute else text

    def note(self) -> str:
        """How to read the shortened paths; empty if none is shortened."""
        shown = [root for root in (self.absolute, self.relative) if root]
        return f"(left out of paths: {' and '.join(shown)})" if shown else ""


def _stripper(root: str) -> re.Pattern[str] | None:
    # Two parts must remain, or nobody could tell which file is meant.
    return re.compile(rf"(?<![\w./~@-]){re.escape(root)}(?=[\w.@+-]+/)") if root else None


def _best(pattern: re.Pattern[str], texts: Iterable[str]) -> str:
    uses: Counter[str] = Counter()
    for text in texts:
        uses.update(pattern.findall(text))
    shared: Counter[str] = Counter()
    for folder, times in uses.items():
        parts = folder.split("/")[:-1]
        for depth in range(2, len(parts) + 1):
            shared["/".join(parts[:depth]) + "/"] += times
    worth = {root: times * len(root) for root, times in shared.items() if times >= LEAST_USES}
    return max(worth, key=lambda root: (worth[root], root)) if worth else ""


# -------------------------------------------------------------- details


LISTED = 0.5
"""Share of its weight that an identifier keeps which a section only lists."""
AGAIN = 0.15
"""Share of its weight that an identifier keeps once it is bound: a second mention says more."""
ROOT_SAMPLE = 1_500
ROOTS_PAY_TOKENS = 600
"""Below it the note on what is left out of paths costs more than it saves."""
FILLINGS = 3
LEFT_OVER = 0.01
"""Share of the room that is not worth another round."""
Marked = Callable[[str, int], str]
"""Words of a message, and what of them no longer holds."""
MARKS = {"call": "> ", "result": "= ", "assistant": "", "user": "user: ", "host": "host: "}
# How a line may not begin that has no mark of its own.
_POSES = re.compile(r"[#>=]|user:|host:|the user said", re.IGNORECASE)


def _as_it_is(text: str, index: int) -> str:
    return text


def excerpts_text(chosen: Iterable[Excerpt], marked: Marked = _as_it_is) -> str:
    """Chosen excerpts in order, those of one message together; none opens as what it is not."""
    out: list[str] = []
    last: tuple[int, str] | None = None
    for item in chosen:
        here = (item.index, item.source)
        text = marked(item.text, item.index)
        if here == last:
            out[-1] += f" … {text}"
        else:
            mark = MARKS.get(item.source, "")
            posing = not mark and _POSES.match(text)
            out.append(f"{'… ' if posing else mark}{text}")
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
    stale = facts.stale
    pool = [
        item
        for item in facts.excerpts
        if item.source != "user"
        and not (item.source == "assistant" and stale.holds(item.text, item.index))
    ]
    sample = [item.text for item in pool if "/" in item.text][-ROOT_SAMPLE:]
    roots = Roots(sample if budget_tokens >= ROOTS_PAY_TOKENS else ())
    heading = f"## Details (> call, = result) {roots.note()}".strip() + "\n"
    room = budget_tokens - count(heading)
    if room < 20:
        return ""
    pool = [
        replace(item, text=roots.strip(item.text)) if "/" in item.text else item for item in pool
    ]
    weights = dict(facts.worth)
    for key in half or ():
        weights[key] = weights.get(key, 0.0) * LISTED
    left = {key: weight for key, weight in weights.items() if key not in (covered or ())}
    chooser = Chooser(pool, left, count, Classifier(facts.patterns))
    body = _filled(chooser, room, lambda items: excerpts_text(items, stale.marked), count)
    return heading + body + "\n" if body else ""


def _filled(
    chooser: Chooser, room: int, shown: Callable[[Iterable[Excerpt]], str], count: Count
) -> str:
    """The clauses that fill the room: what each costs is known only when all are printed."""
    body, left = "", room
    for _ in range(FILLINGS):
        chooser.spend(left, AGAIN)
        body = shown(chooser.chosen())
        left = room - count(body)
        if left <= LEFT_OVER * room:
            break
    while body and left < 0:
        chooser.give_back(-left)
        body = shown(chooser.chosen())
        left = room - count(body)
    return body


# -------------------------------------------------------------- render


USER_SHARE = 0.7
NOW_SHARE = 0.06
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
LEFT_SHARE = 0.02
"""Of the whole, that is worth another look at the sections once the details are chosen."""
SLACK_SHARE = 0.002
"""Of the whole, that stays empty: others count a long text in pieces, and some tokens more."""
Make = Callable[[str], Section]
"""A section, given what is told above it: nothing is told twice."""
SectionPart = tuple[Make, str]
"""And as much of it as fits."""


def render(
    facts: Facts,
    *,
    budget_tokens: int,
    count: Count,
    visible: str = "",
    beside_prose: bool = False,
    failing: Sequence[CommandFact] | None = None,
) -> str:
    """The facts within the budget: how things stand, the user's words, the trail, details.

    `beside_prose`: a model's text stands above, which a person looks at first; `failing` are the
    commands of which it does not say that they still fail.
    """
    if budget_tokens < 20:
        return ""

    def least(room: int) -> int:
        return LEAST_TOKENS if room >= 5 * LEAST_TOKENS and not beside_prose else 0

    flat = " ".join(visible.split())
    standing, words = now_section(facts, failing), user_section(facts, flat)
    enough = LEAST_TOKENS if failing else least(budget_tokens)
    now = fitted(standing, max(int(budget_tokens * NOW_SHARE), enough), count)
    room = budget_tokens - count(now)
    said = fitted(words, int(room * USER_SHARE), count)
    room -= count(said)
    parts: list[SectionPart] = [(lambda told: standing, now), (lambda told: words, said)]
    for make, share in _shares(facts, room):
        most = max(int(room * share), least(room))
        parts.append((make, fitted(make(_joined(parts)), most, count)))
    text = _joined(parts)
    classifier = Classifier(facts.patterns)
    covered = set(classifier.names(f"{said}\n{visible}"))
    half = set(classifier.names(text)) - covered
    room = budget_tokens - count(text) - 4
    bound = details(facts, room, count, covered, half)
    room -= count(bound)
    small = budget_tokens <= READ_WHOLE_TOKENS and not beside_prose
    if small and room >= max(LEAST_TOKENS, LEFT_SHARE * budget_tokens):
        room -= max(1, int(SLACK_SHARE * budget_tokens))
        looked: SectionPart = (lambda told: looked_section(facts), "")
        text = _joined(_widened([*parts, looked], room, count))
    return squeeze(f"{text}\n{bound}")


def _shares(facts: Facts, room: int) -> Iterator[tuple[Make, float]]:
    yield lambda told: decisions_section(facts, told), SHARE
    yield (
        lambda told: changed_section(facts),
        FILES_SHARE if room >= FILES_PAY_TOKENS else 2 * SHARE,
    )
    yield lambda told: read_section(facts), SHARE
    yield lambda told: errors_section(facts, told), SHARE
    yield lambda told: commands_section(facts, told), SHARE


def _joined(parts: Iterable[SectionPart]) -> str:
    return "\n".join(text for _, text in parts if text)


def _widened(parts: Iterable[SectionPart], room: int, count: Count) -> list[SectionPart]:
    """The sections with what room the details have left: all of it is told where it fits."""
    out: list[SectionPart] = []
    for make, text in parts:
        wider = fitted(make(_joined(out)), count(text) + room, count)
        room -= count(wider) - count(text)
        out.append((make, wider))
    return out


def squeeze(text: str) -> str:
    """Blank lines and trailing spaces removed: they cost tokens and say nothing."""
    return re.sub(r"\n{2,}", "\n", re.sub(r"[ \t]+\n", "\n", text)).strip()
