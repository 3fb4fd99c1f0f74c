"""What the agent said to the user at the ends of turns, the outline, and counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from .rendering import TITLES, Entry, Section
from .user import is_visible

TOOLS_NAMED = 12


def section(found: Sequence[tuple[int, str]], texts: Sequence[int], visible: str) -> Section:
    """Return the reports, the newest first in rank; the agent's other texts are counted."""
    lines = [Entry(at, (-at,), text.strip()) for at, text in found if not is_visible(text, visible)]
    others = sorted(set(texts).difference(at for at, _ in found))
    return Section(TITLES["reports"], lines, 0.2, 60, "texts of the assistant", others)


def outlined(outline: Sequence[str]) -> Section:
    """Return the outline's section; its newest lines rank first."""
    lines = [Entry(-1, (-n,), line) for n, line in enumerate(outline)]
    return Section(TITLES["outline"], lines, 0.08, least=60, noun="lines of the outline")


def counted(roles: Mapping[str, int], tools: Counter[str]) -> Section:
    """Return the number of messages by role and of calls by tool."""
    said = ", ".join(f"{n:,} {role}" for role, n in roles.items())
    used = ", ".join(f"{name} {n:,}" for name, n in tools.most_common(TOOLS_NAMED))
    more = f", {len(tools) - TOOLS_NAMED} more tools" if len(tools) > TOOLS_NAMED else ""
    text = f"{sum(roles.values()):,} messages: {said}" + (f"; calls: {used}{more}" if used else "")
    lines = [Entry(-1, (0,), text)] if roles else []
    return Section(TITLES["counts"], lines, 0.04, least=100, noun="")
