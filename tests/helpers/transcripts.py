"""Transcripts for tests: a readable one by hand, and generated ones of every shape."""

import json
import random
from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as st

from praison_compressor.messages import Message, read_transcript
from tests.hostile.generating import broken, valid


def find_repairs(messages: Sequence[Message]) -> list[str]:
    """Return the messages that a provider would refuse: those that are repaired."""
    sound = read_transcript(messages)
    placed = enumerate(zip(sound.origins, sound.messages, strict=True))
    return [f"messages[{at}]" for at, (old, new) in placed if old != at or new != messages[at]]


def prose(words: int, seed: int = 1) -> str:
    """Return lines of words, code, numbers, paths and Chinese."""
    chance = random.Random(seed)
    kinds = (
        lambda: "".join(chance.choices("abcdefghijklmnop", k=chance.randint(1, 9))),
        lambda: chance.choice(["don't", "I'll", "x = {'a': 1}", "//", "src/app.py:42", "e.g.,"]),
        lambda: str(chance.randint(0, 10**6)),
        lambda: chance.choice(["你好，世界。", "naïve", "Ωmega", "—", "😀"]),
        lambda: chance.choice(["\n", "\n\n    ", ".\n", "}\n/", "\t", "  "]),
    )
    return " ".join(chance.choices(kinds, weights=(12, 3, 2, 1, 2))[0]() for _ in range(words))


def rambling(words: int) -> str:
    """Return that many words of a session."""
    lines = (f"Now look after module {n}, whose port must stay V-{n:04d}." for n in range(words))
    return " ".join(" ".join(lines).split()[:words])


def user(content: Any, **more: Any) -> Message:
    """Return a user's message."""
    return {"role": "user", "content": content, **more}


def said(text: str) -> Message:
    """Return words of the assistant."""
    return {"role": "assistant", "content": text}


def call(id: str, name: str = "read_file", **arguments: Any) -> Message:
    """Return a tool call."""
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"id": id, "type": "function", "function": function}


def calling(*calls: Any, **more: Any) -> Message:
    """Return an assistant message with these calls."""
    return {"role": "assistant", "content": None, "tool_calls": list(calls), **more}


def step(id: str, result: str, name: str = "read_file", **arguments: Any) -> list[Message]:
    """Return an assistant message with one call, and its result."""
    answer = {"role": "tool", "tool_call_id": id, "content": result}
    return [calling(call(id, name, **arguments)), answer]


def coding_turns(turns: int, steps: int = 3, words: int = 60) -> list[Message]:
    """Return a transcript of coding; turn t has `V-t` by the user, `END-t-k` by each tool."""
    messages: list[Message] = [{"role": "system", "content": "You are a coding agent."}]
    for t in range(turns):
        task = f"Now look after module {t}. Its port must stay V-{t:04d}. "
        messages.append({"role": "user", "content": task + "Please be careful. " * 6})
        for k in range(steps):
            body = f"module {t} part {k}: " + "lorem ipsum dolor " * words + f"END-{t}-{k}"
            messages += step(f"call_{t}_{k}", body, path=f"src/mod_{t}/part_{k}.py")
        messages.append({"role": "assistant", "content": f"Module {t} is in order. " * 8})
    return messages[:-1]


def outputs(turns: int, words: int = 100, name: str = "read_file") -> list[Message]:
    """Return a session of little talk and large outputs, one step a turn; turn t has `END-t`."""
    messages: list[Message] = [{"role": "system", "content": "You are a coding agent."}]
    for t in range(turns):
        body = f"part {t}: " + "lorem ipsum dolor " * words + f"END-{t}"
        messages.append({"role": "user", "content": f"Look at part {t}."})
        messages += step(f"call_{t}", body, name, path=f"src/part_{t}.py")
        messages.append({"role": "assistant", "content": f"Part {t} is in order."})
    return messages[:-1]


def audit(turns: int = 30) -> list[Message]:
    """Return a task and many turns with a fact in each."""
    messages: list[Message] = [
        {"role": "system", "content": "You keep the books."},
        {"role": "user", "content": "Audit the ledgers; never change LEDGER-7."},
    ]
    for number in range(turns):
        rows = "\n".join(f"row {row}: {number * row} cents" for row in range(30))
        messages += [
            *step(f"call_{number}", f"FACT-{number}\n{rows}", "read_ledger", ledger=number),
            {"role": "assistant", "content": f"Ledger {number} balances."},
            {"role": "user", "content": f"Good. Go on with ledger {number + 1}."},
        ]
    return messages[:-1]


WORDS = """the parser fails at line 42 because src/app/main.py imports util_fn from lib.core
TODO fix later never use port 8080 no, 9090 deadbeef42 https://example.com/a?b=1
</conversation-summary> <|endoftext|> ünïcode 漢字 ## Done"""


def _plain(chance: random.Random) -> str:
    # One draw a text: drawing every word makes generation slower than what is tested.
    own = random.Random(chance.randint(0, 1_000_000))
    return " ".join(["so", *own.choices(["\n\n", *WORDS.split()], k=own.randint(1, 60))])


def _by_chance(make: Callable[..., list[Message]], turns: int) -> st.SearchStrategy[list[Message]]:
    return st.randoms(use_true_random=False).map(lambda chance: make(chance, turns, _plain))


def transcripts(max_turns: int = 8) -> st.SearchStrategy[list[Message]]:
    """Generate a valid transcript that ends with a user message or results."""
    return _by_chance(valid, max_turns)


def broken_transcripts() -> st.SearchStrategy[list[Message]]:
    """Generate a faulty transcript: results lost, doubled, moved, contents missing."""
    return _by_chance(broken, 5)
