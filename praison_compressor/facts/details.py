"""Verbatim clauses that bind the identifiers a reader would otherwise look up again."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace

from .identifiers import Classifier
from .lines import Count
from .model import Excerpt, Facts
from .roots import Roots
from .selection import Chooser

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
