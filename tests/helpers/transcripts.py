"""Transcripts for tests: a readable one by hand, and generated ones of every shape."""

from __future__ import annotations

import json
import random
from typing import Any

from hypothesis import strategies as st

Message = dict[str, Any]


def call(id: str, name: str = "read_file", **arguments: Any) -> Message:
    """One tool call."""
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"id": id, "type": "function", "function": function}


def step(id: str, result: str, name: str = "read_file", **arguments: Any) -> list[Message]:
    """An assistant message with one call, and its result."""
    return [
        {"role": "assistant", "content": None, "tool_calls": [call(id, name, **arguments)]},
        {"role": "tool", "tool_call_id": id, "content": result},
    ]


def session(turns: int, steps: int = 3, words: int = 60) -> list[Message]:
    """A coding session; turn t plants the fact `V-t` by the user and `END-t-k` by each tool."""
    messages: list[Message] = [{"role": "system", "content": "You are a coding agent."}]
    for t in range(turns):
        task = f"Now look after module {t}. Its port must stay V-{t:04d}. "
        messages.append({"role": "user", "content": task + "Please be careful. " * 6})
        for k in range(steps):
            body = f"module {t} part {k}: " + "lorem ipsum dolor " * words + f"END-{t}-{k}"
            messages += step(f"call_{t}_{k}", body, path=f"src/mod_{t}/part_{k}.py")
        messages.append({"role": "assistant", "content": f"Module {t} is in order. " * 8})
    return messages[:-1]


WORDS = """the parser fails at line 42 because src/app/main.py imports util_fn from lib.core
TODO fix later never use port 8080 no, 9090 deadbeef42 https://example.com/a?b=1
</conversation-summary> <|endoftext|> ünïcode 漢字 ## Done"""


def _some_words(seed: int) -> str:
    chance = random.Random(seed)
    return " ".join(["so", *chance.choices(["\n\n", *WORDS.split()], k=chance.randint(1, 60))])


# One draw a text: drawing every word makes generation slower than what is tested.
words = st.integers(0, 1_000_000).map(_some_words)

contents = st.one_of(
    words,
    words.map(lambda text: [{"type": "text", "text": text}]),
    words.map(
        lambda text: [
            {"type": "text", "text": text},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
        ]
    ),
)


@st.composite
def tool_steps(draw: st.DrawFn) -> list[Message]:
    """An assistant message with one to four calls and all their results; ids may come again."""
    ids = draw(
        st.lists(st.integers(0, 9).map("call_{}".format), min_size=1, max_size=4, unique=True)
    )
    names = st.sampled_from(["read_file", "bash", "edit", "search"])
    calls = [call(id, draw(names), path=draw(words)[:40]) for id in ids]
    content = draw(st.one_of(st.none(), words))
    results = [
        {"role": "tool", "tool_call_id": id, "content": draw(contents)}
        for id in draw(st.permutations(ids))
    ]
    return [{"role": "assistant", "content": content, "tool_calls": calls}, *results]


@st.composite
def transcripts(draw: st.DrawFn, max_turns: int = 8) -> list[Message]:
    """A valid transcript that ends where a request is made: with a user message or results."""
    messages: list[Message] = []
    if draw(st.booleans()):
        messages.append({"role": "system", "content": draw(words)})
    for _ in range(draw(st.integers(1, max_turns))):
        messages.append({"role": "user", "content": draw(contents)})
        for _ in range(draw(st.integers(0, 4))):
            messages += draw(tool_steps())
        if draw(st.integers(0, 9)) == 0:
            messages.append({"role": "system", "content": draw(words)})
        messages.append({"role": "assistant", "content": draw(words)})
    end = draw(st.sampled_from(["user", "tool"]))
    messages += [{"role": "user", "content": draw(contents)}]
    return messages + (draw(tool_steps()) if end == "tool" else [])


@st.composite
def broken_transcripts(draw: st.DrawFn) -> list[Message]:
    """A transcript as faulty hosts make them: results lost, doubled, moved, contents missing."""
    messages = draw(transcripts(max_turns=5))
    for _ in range(draw(st.integers(1, 6))):
        index = draw(st.integers(0, len(messages) - 1))
        fault = draw(st.sampled_from(["drop", "double", "swap", "empty", "none", "private", "id"]))
        message = messages[index]
        if fault == "drop" and len(messages) > 1:
            del messages[index]
        elif fault == "double":
            messages.insert(index, dict(message))
        elif fault == "swap":
            other = draw(st.integers(0, len(messages) - 1))
            messages[index], messages[other] = messages[other], message
        elif fault in ("empty", "none"):
            messages[index] = {**message, "content": "" if fault == "empty" else None}
        elif fault == "private":
            messages[index] = {**message, "_summary": True, "tool_calls": message.get("tool_calls")}
        else:
            messages[index] = {k: v for k, v in message.items() if k != "tool_call_id"}
    return messages
