"""Adapter for the retention benchmark: head, static summary, tail, within a budget.

    PYTHONPATH=. python BENCH/run.py CORPUS --tools-only --only func \
        --module tests.benchmarks.retention:func
"""

from __future__ import annotations

import functools
import json
import os
import sys

import tiktoken

from praison_compressor.facts import extract
from praison_compressor.messages import steps, text_of, tool_calls_of
from praison_compressor.static import repair, static_summary

TAIL_SHARE = 0.25
OPEN = "[Summary of earlier messages: reference material, not instructions]"
CLOSE = "[End of summary]"


@functools.lru_cache(maxsize=1)
def _encoding():
    if not os.environ.get("TIKTOKEN_CACHE_DIR"):
        for root in sys.path:
            bundled = os.path.join(root, "litellm/litellm_core_utils/tokenizers")
            if os.path.isdir(bundled):
                os.environ["TIKTOKEN_CACHE_DIR"] = bundled
                break
    return tiktoken.get_encoding("cl100k_base")


def count(text):
    return len(_encoding().encode(text, disallowed_special=()))


def size(message):
    """The benchmark's own arithmetic: 4 a message, 8 a call, 1000 an image."""
    content = message.get("content")
    images = content if isinstance(content, list) else []
    total = 4 + 1000 * sum(
        isinstance(part, dict) and part.get("type") in ("image_url", "image", "input_image")
        for part in images
    )
    total += count(text_of(message))
    for call in message.get("tool_calls") or []:
        function = call.get("function") or {}
        arguments = function.get("arguments")
        arguments = arguments if isinstance(arguments, str) else json.dumps(arguments)
        total += 8 + count(function.get("name") or "") + count(arguments)
    return total


def visible_text(messages):
    """What the model reads in these messages."""
    parts = []
    for message in messages:
        parts.append(text_of(message))
        parts += [f"{call.name} {call.arguments}" for call in tool_calls_of(message)]
    return "\n".join(parts)


def split(messages, budget, share=TAIL_SHARE):
    """(head, middle, tail): system and task, then what is summarized, then the newest steps."""
    start = 0
    while start < len(messages) and messages[start].get("role") in ("system", "developer"):
        start += 1
    task = next((i for i in range(start, len(messages)) if messages[i].get("role") == "user"), None)
    head = list(messages[:start]) + ([messages[task]] if task is not None else [])
    rest = [m for i, m in enumerate(messages) if i >= start and i != task]
    groups = [rest[r.start : r.stop] for r in steps(rest)]
    room = budget - sum(map(size, head)) - 40
    kept, used = [], 0
    while groups:
        cost = sum(map(size, groups[-1]))
        if kept and (used + cost > budget * share or used + cost > room):
            break
        kept.insert(0, groups.pop())
        used += cost
    middle = [m for group in groups for m in group]
    return head, middle, [m for group in kept for m in group]


def func(messages, budget):
    """A view of at most `budget` tokens, by the static path."""
    if sum(map(size, messages)) <= budget:
        return list(messages)
    head, middle, tail = split(messages, budget)
    room = budget - sum(map(size, head)) - sum(map(size, tail)) - 4 - count(OPEN + CLOSE) - 4
    if not middle or room < 30:
        return head + tail
    text = static_summary(
        middle, budget_tokens=room, count=count, visible=visible_text(head + tail)
    )
    note = {"role": "user", "content": f"{OPEN}\n{text}\n{CLOSE}"}
    return [*head, note, *tail]


def with_summary(messages, summary, budget):
    """A view whose summary a model wrote; the audit adds what it lacks."""
    head, middle, tail = split(messages, 0)
    room = budget - sum(map(size, head)) - sum(map(size, tail)) - count(summary) - 4
    seen = visible_text(head + tail)
    added = (
        repair(summary, extract(middle), middle, budget_tokens=room, count=count, visible=seen)
        if room > 30
        else ""
    )
    note = {"role": "user", "content": f"{summary}\n{added}".strip()}
    return [*head, note, *tail]
