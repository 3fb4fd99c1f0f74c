"""The outline of a segment: a line for each turn or stretch of work, with references. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from ..messages import Message, ToolCall, is_result, result_text, steps, text_of, tool_calls_of
from ..messages.calls import (
    ACTS,
    LISTS,
    argument_values,
    arguments_of,
    changed_by,
    command_of,
    kind_of,
    paths_in,
)
from ..messages.display import excerpt
from ..quotes import telling_line
from ..quotes.telling import is_bad

__all__ = ["in_order", "outline"]

STEPS_A_LINE = 8
"""Steps of one line at most: an agent may work for hundreds without a word from the user."""
SAID_CHARS = 110
NAMED = 4
"""Files or arguments that a line names at most."""
NAME_CHARS = 50
COMMAND_CHARS = 300
"""Characters of a command line in which files are looked for."""
_FILE = re.compile(r"(?<!\S)[\w./~@-]*[\w-]\.[a-z]\w{0,4}(?!\S)")


def outline(
    messages: Sequence[Message], references: Sequence[str], *, users: bool = True
) -> list[str]:
    """Return a line for each user's message and each stretch of work, with its reference.

    `references` are those of the messages, "" for one that leads nowhere; without `users` their
    words are left out.
    """
    rows: list[tuple[list[str], str, int]] = []
    for stretch in _stretches(messages):
        named = [references[index] for index in stretch if references[index]]
        if not named or (not users and messages[stretch.start].get("role") == "user"):
            continue
        line, times = _line([messages[i] for i in stretch]), 1
        if rows and rows[-1][1] == line:
            before, _, times = rows.pop()
            named, times = before + named, times + 1
        rows.append((named, line, times))
    return [_where(named) + f" {line}" + (f" ×{n}" if n > 1 else "") for named, line, n in rows]


def _where(named: Sequence[str]) -> str:
    return named[0] + (f"-{named[-1].rpartition('.')[2]}" if len(named) > 1 else "")


def in_order(segment: int, messages: Sequence[Message]) -> list[str]:
    """Return the references of a segment's originals."""
    return [f"s{segment}.{number}" for number in range(1, len(messages) + 1)]


def _stretches(messages: Sequence[Message]) -> Iterator[range]:
    """Yield runs of steps: each user's message alone, then the work behind it."""
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


def _line(messages: Sequence[Message]) -> str:
    """Return a stretch on one line: its tools, what they name, and its most telling words."""
    calls = [call for message in messages for call in tool_calls_of(message)]
    if not calls:
        said = messages[-1]
        return f"{said.get('role')}: {excerpt(text_of(said), SAID_CHARS)}"
    used = Counter(call.name for call in calls)
    tools = ", ".join(name + (f" ×{n}" if n > 1 else "") for name, n in used.items())
    about, quoted = _named(calls), _quoted(messages, calls)
    text = f"{messages[0].get('role')}: {tools}" + (f" ({about})" if about else "")
    return f"{text}; {quoted}" if quoted else text


def _named(calls: Sequence[ToolCall]) -> str:
    """Return the files that calls name, else the beginnings of their arguments.

    Those of changing calls come first; a file's folder is named where two files look alike.
    """
    ordered = sorted(calls, key=lambda call: kind_of(call) != ACTS)
    values = [command_of(call) or next(_values(call), "") for call in ordered]
    found = [path for call in ordered for path in (paths_in(call) or changed_by(call))]
    found += [path for call in ordered for path in _FILE.findall(command_of(call)[:COMMAND_CHARS])]
    paths = list(dict.fromkeys(found))
    names = Counter(path.rpartition("/")[2] for path in paths)
    shown = [path if names[last := path.rpartition("/")[2]] > 1 else last for path in paths]
    shown = shown or list(dict.fromkeys(excerpt(v, NAME_CHARS) for v in values if v.strip()))
    more = f", {len(shown) - NAMED} more" if len(shown) > NAMED else ""
    return ", ".join(shown[:NAMED]) + more


def _values(call: ToolCall) -> Iterator[str]:
    return (value for value in argument_values(arguments_of(call)) if value.strip())


def _quoted(messages: Sequence[Message], calls: Sequence[ToolCall]) -> str:
    """Return the newest run's words, else an error's, else the assistant's last words."""
    made = {call.id: call for call in calls}
    bad = ""
    for message in filter(is_result, reversed(messages)):
        call = made.get(str(message.get("tool_call_id") or ""), calls[-1])
        line = telling_line(call, result_text(message))
        words = f'{call.name} -> "{excerpt(line, SAID_CHARS)}"' if line else ""
        if words and command_of(call) and kind_of(call) == ACTS:
            return words
        bad = bad or (words if is_bad(line) and kind_of(call) != LISTS else "")
    if bad:
        return bad
    spoken = (m for m in reversed(messages) if m.get("role") == "assistant" and text_of(m).strip())
    last = next(spoken, None)
    return f'said: "{excerpt(text_of(last), SAID_CHARS)}"' if last is not None else ""
