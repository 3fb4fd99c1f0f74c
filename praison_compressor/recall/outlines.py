"""Outline a segment: a row with references for each run of steps."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest

from ..ledger.segments import Entry
from ..messages import (
    Message,
    ToolCall,
    is_result,
    result_text,
    split_steps,
    text_of,
    tool_calls_of,
)
from ..messages.calls import (
    ACTS,
    LISTS,
    argument_values,
    arguments_of,
    command_of,
    kind_of,
    paths_changed,
    paths_in,
)
from ..messages.display import truncate_line
from ..messages.shapes import MASK_OPENS
from ..quotes import deciding_line
from ..quotes.output_lines import is_failure
from .layout import is_noise

STEPS_PER_LINE = 8
QUOTE_CHARS = 110
COMMON_LINE_MESSAGES = 3
"""A line that this number of messages or more have is common: it describes none of the messages."""
HEAD_LINES, HEAD_CHARS = 12, 2_000
"""A line that is not common is sought in this number of a message's first lines and characters."""
NAMES_PER_ROW = 4
NAME_CHARS = 50
SCANNED_CHARS = 300
MOST_MASKS = 5
_NUMBER = re.compile(r"\d+")
_FILE = re.compile(r"(?<!\S)[\w./~@-]*[\w-]\.[a-z]\w{0,4}(?!\S)")


def outline_rows(
    messages: Sequence[Message], references: Sequence[str], *, most: int = STEPS_PER_LINE
) -> list[str]:
    """Return a row per user message and per run of steps.

    Args:
        references: each message's reference, or "".
        most: upper limit of a row's steps.
    """
    common = _common_lines(messages)
    rows: dict[str, list[list[str]]] = {}
    last = ""
    for run in _split_runs(messages, most):
        named = [references[index] for index in run if references[index]]
        if not named:
            continue
        line = _run_row([messages[i] for i in run], common)
        if line == last:
            rows[line][-1] += named
        else:
            rows.setdefault(line, []).append(named)
        last = line
    return list(_group_rows(rows, references))


def _group_rows(
    rows: Mapping[str, Sequence[Sequence[str]]], references: Sequence[str]
) -> Iterator[str]:
    """Yield the rows in order; equal rows are joined."""
    place = {reference: number for number, reference in enumerate(references)}
    joined = []
    for line, runs in rows.items():
        groups = [runs] if len(runs) >= COMMON_LINE_MESSAGES else [[run] for run in runs]
        for group in groups:
            where = ",".join(
                run[0] + (f"-{run[-1].rpartition('.')[2]}" if len(run) > 1 else "")
                for run in group[:COMMON_LINE_MESSAGES]
            )
            times = len(runs) if len(groups) == 1 and len(runs) > 1 else 1
            joined.append((place[group[0][0]], f"{where} {line}" + (f" ×{times}" * (times > 1))))
    yield from (row for _, row in sorted(joined))


def join_in_pairs(rows: Sequence[str]) -> list[str]:
    """Join rows in pairs; keep the user's words, else the longer words."""
    joined = []
    for first, second in zip_longest(rows[::2], rows[1::2], fillvalue=""):
        from_, to = first.partition(" ")[0].split(",")[0], second.partition(" ")[0].split(",")[-1]
        texts = [row.partition(" ")[2] for row in (first, second)]
        words = max(texts, key=lambda each: (each.startswith("user"), len(each)))
        last = to.rpartition("-")[2].rpartition(".")[2]
        joined.append(f"{from_.partition('-')[0]}-{last} {words}" if second else first)
    return joined


def references_in_order(segment: int, messages: Sequence[Message]) -> list[str]:
    """Return the references of a segment's messages."""
    return [f"s{segment}.{number}" for number in range(1, len(messages) + 1)]


def _split_runs(messages: Sequence[Message], most: int) -> Iterator[range]:
    start, steps = 0, 0
    for step in split_steps(messages):
        is_user = messages[step.start].get("role") == "user"
        if steps and (is_user or steps == most):
            yield range(start, step.start)
            start, steps = step.start, 0
        if is_user:
            yield range(step.start, step.stop)
            start = step.stop
        else:
            steps += 1
    if steps:
        yield range(start, len(messages))


def _common_lines(messages: Sequence[Message]) -> frozenset[str]:
    shapes = Counter(
        shape
        for message in messages
        if not is_result(message)
        for shape in {_shape(line) for line in _first_lines(text_of(message))}
    )
    return frozenset(shape for shape, times in shapes.items() if times >= COMMON_LINE_MESSAGES)


def _first_lines(text: str) -> list[str]:
    return [line for line in text[:HEAD_CHARS].split("\n") if line.strip()][:HEAD_LINES]


def _shape(line: str) -> str:
    return _NUMBER.sub("0", line.strip()[:QUOTE_CHARS])


def _deciding_words(text: str, common: frozenset[str]) -> str:
    """Return a message's first line that is not common."""
    lines = _first_lines(text)
    deciding = [line for line in lines if _shape(line) not in common and not is_noise(line)]
    return truncate_line(
        "\n".join(deciding) if len(deciding) < len(lines) and deciding else text, QUOTE_CHARS
    )


def _run_row(messages: Sequence[Message], common: frozenset[str]) -> str:
    calls = [call for message in messages for call in tool_calls_of(message)]
    if not calls:
        last = messages[-1]
        return f"{last.get('role')}: {_deciding_words(text_of(last), common)}"
    used = Counter(call.name for call in calls)
    tools = ", ".join(name + (f" ×{n}" if n > 1 else "") for name, n in used.items())
    about, quoted = _names_in_calls(calls), _quote_run(messages, calls, common)
    text = f"{messages[0].get('role')}: {tools}" + (f" ({about})" if about else "")
    return f"{text}; {quoted}" if quoted else text


def _names_in_calls(calls: Sequence[ToolCall]) -> str:
    ordered = sorted(calls, key=lambda call: kind_of(call) != ACTS)
    values = [
        command_of(call) or next(filter(str.strip, argument_values(arguments_of(call))), "")
        for call in ordered
    ]
    mentioned = [path for call in ordered for path in (paths_in(call) or paths_changed(call))]
    mentioned += [
        path for call in ordered for path in _FILE.findall(command_of(call)[:SCANNED_CHARS])
    ]
    paths = list(dict.fromkeys(mentioned))
    names = Counter(path.rpartition("/")[2] for path in paths)
    shown = [path if names[last := path.rpartition("/")[2]] > 1 else last for path in paths]
    shown = shown or list(dict.fromkeys(truncate_line(v, NAME_CHARS) for v in values if v.strip()))
    more = f", {len(shown) - NAMES_PER_ROW} more" if len(shown) > NAMES_PER_ROW else ""
    return ", ".join(shown[:NAMES_PER_ROW]) + more


def _quote_run(
    messages: Sequence[Message], calls: Sequence[ToolCall], common: frozenset[str]
) -> str:
    """Quote the newest command's result, else a failure, else the assistant's words."""
    made = {call.id: call for call in calls}
    bad = ""
    for message in filter(is_result, reversed(messages)):
        call = made.get(str(message.get("tool_call_id") or ""), calls[-1])
        line = deciding_line(call, result_text(message))
        is_deciding = line and not is_noise(line)
        words = f'{call.name} -> "{truncate_line(line, QUOTE_CHARS)}"' if is_deciding else ""
        if words and command_of(call) and kind_of(call) == ACTS:
            return words
        bad = bad or (words if is_failure(line) and kind_of(call) != LISTS else "")
    if bad:
        return bad
    spoken = (m for m in reversed(messages) if m.get("role") == "assistant" and text_of(m).strip())
    last = next(spoken, None)
    return f'said: "{_deciding_words(text_of(last), common)}"' if last is not None else ""


# -------------------------------------------------------------- rows of the overview


def runs_of_entries(entries: Sequence[Entry]) -> Iterator[list[tuple[int, Entry]]]:
    """Yield runs of numbered entries, newest first; consecutive masks form one run."""
    run: list[tuple[int, Entry]] = []
    for number, entry in reversed([*enumerate(entries, 1)]):
        if entry.segment.is_choice:
            continue
        if run and not (entry.segment.kind == run[0][1].segment.kind == "mask"):
            yield run[::-1]
            run = []
        run.append((number, entry))
    if run:
        yield run[::-1]


def masks_row(run: Sequence[tuple[int, Entry]]) -> str:
    """Return the row of consecutive masks."""
    first, last = run[0][0], run[-1][0]
    where = f"s{first}" if first == last else f"s{first} to s{last}"
    lines = [text_of(entry.segment.rendered) for _, entry in reversed(run[-MOST_MASKS:])]
    shown = [truncate_line(line.removeprefix(f"{MASK_OPENS} "), 70) for line in lines]
    return "\n  ".join([f"{where}: {len(run)} masked outputs, whole at s{last}.1 …", *shown])
