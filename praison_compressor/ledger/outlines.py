"""The outline of a segment: a line for each turn or stretch of work, with references. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from ..messages import Message, ToolCall, is_result, result_text, steps, text_of, tool_calls_of
from ..messages.display import excerpt
from ..quotes import telling_line
from ..quotes.passages import argument_values, arguments_of

__all__ = ["in_order", "outline"]

STEPS_A_LINE = 8
"""Steps that one line tells of: an agent may work for hundreds without a word from the user."""
SAID_CHARS = 110
NAMED = 4
"""Files or arguments that a line names at most."""
NAME_CHARS = 50
_FILE = re.compile(r"[\w./~@-]*[\w-]\.[a-zA-Z]\w{0,4}\b")


def outline(
    messages: Sequence[Message], references: Sequence[str], *, users: bool = True
) -> list[str]:
    """What the user asked, what was done and how it ended, a line each with its reference.

    `references` are those of the messages, "" for one that leads nowhere; without `users` their
    words are left out.
    """
    lines = []
    for stretch in _stretches(messages):
        named = [references[index] for index in stretch if references[index]]
        if named and (users or messages[stretch.start].get("role") != "user"):
            where = named[0]
            if len(named) > 1:
                where += "-" + named[-1].rpartition(".")[2]
            lines.append(f"{where} {_told([messages[i] for i in stretch])}")
    return lines


def in_order(segment: int, messages: Sequence[Message]) -> list[str]:
    """The references of a segment's originals."""
    return [f"s{segment}.{number}" for number in range(1, len(messages) + 1)]


def _stretches(messages: Sequence[Message]) -> Iterator[range]:
    """Runs of steps that one line tells of: each user's message alone, then the work after it."""
    start, held = 0, 0
    for step in steps(messages):
        is_user = messages[step.start].get("role") == "user"
        if held and (is_user or held == STEPS_A_LINE):
            yield range(start, step.start)
            start, held = step.start, 0
        if is_user:
            yield range(step.start, step.stop)
            start = step.stop
        else:
            held += 1
    if held:
        yield range(start, len(messages))


def _told(messages: Sequence[Message]) -> str:
    first = messages[0]
    calls = [call for message in messages for call in tool_calls_of(message)]
    if not calls:
        said = messages[-1]
        return f"{said.get('role')}: {excerpt(text_of(said), SAID_CHARS)}"
    used = Counter(call.name for call in calls)
    tools = ", ".join(name + (f" ×{n}" if n > 1 else "") for name, n in used.items())
    about = _named(calls)
    text = f"{first.get('role')}: {tools}" + (f" ({about})" if about else "")
    ended = _ended(messages)
    return f"{text}; {ended}" if ended else text


def _named(calls: Sequence[ToolCall]) -> str:
    """The files that the calls name, else the beginnings of what they ask for."""
    values = [value for call in calls for value in argument_values(arguments_of(call))]
    found = (path for value in values if len(value) < 300 for path in _FILE.findall(value))
    named = list(dict.fromkeys(found)) or [
        excerpt(value, NAME_CHARS) for value in values if value.strip()
    ]
    shown = list(dict.fromkeys(name.rpartition("/")[2] or name for name in named))
    more = f", {len(shown) - NAMED} more" if len(shown) > NAMED else ""
    return ", ".join(shown[-NAMED:]) + more


def _ended(messages: Sequence[Message]) -> str:
    """Return the assistant's last words, else what the newest result says."""
    spoken = (m for m in reversed(messages) if m.get("role") == "assistant" and text_of(m).strip())
    last = next(spoken, None)
    if last is not None:
        return f'said: "{excerpt(text_of(last), SAID_CHARS)}"'
    results = (result_text(m) for m in reversed(messages) if is_result(m))
    told = telling_line(None, next(results, ""))
    return f'result: "{excerpt(told, SAID_CHARS)}"' if told else ""
