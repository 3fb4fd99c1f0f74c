"""Tokens: exactness, cost per message, and the quiet turn beside the host's own estimate.

Run: python tests/benchmarks/tokens.py
"""

from __future__ import annotations

import os
import random
import string
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

import tiktoken
from tiktoken_ext import openai_public

from praison_compressor import TokenCounter
from praison_compressor.messages.digests import MessageCache
from praison_compressor.tokens.models import litellm_folder

Message = dict[str, Any]


def best(function: Callable[[], Any], runs: int = 9) -> float:
    """The fastest of several runs, in milliseconds: what is left is the work itself."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times) * 1e3


def words(chance: random.Random, count: int) -> str:
    lengths = (chance.randint(2, 9) for _ in range(count))
    return " ".join("".join(chance.choices(string.ascii_lowercase, k=n)) for n in lengths)


def transcript(turns: int, seed: int = 1) -> list[Message]:
    """Four messages a turn: a question, a call, its result, an answer."""
    chance = random.Random(seed)
    messages: list[Message] = []
    for turn in range(turns):
        call = {"id": f"call_{turn}", "type": "function"}
        call["function"] = {"name": "read_file", "arguments": f'{{"path": "src/f{turn}.py"}}'}  # type: ignore[assignment]
        messages += [
            {"role": "user", "content": words(chance, 60)},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": call["id"], "content": words(chance, 130)},
            {"role": "assistant", "content": words(chance, 60)},
        ]
    return messages


TEXTS = {
    "English": "The quick brown fox doesn't jump over the lazy dog; it reads the paper. " * 40,
    "Python": "def plan(messages, *, budget):\n    return [m for m in messages if m['ok']]\n\n"
    * 40,
    "log": "2026-01-02T03:04:05.678Z ERROR [worker-7] id=9f8a7b6c timeout after 3000ms\n" * 40,
    "Chinese": "这是一段用来测试分词器的中文文本，包含标点。" * 60,
    "JSON": '{"id": 17, "path": "/srv/app/main.py", "ok": true, "tags": ["a", "b"]}\n' * 40,
}


def published(name: str) -> tiktoken.Encoding:
    """The encoding as tiktoken itself builds it."""
    folder = litellm_folder()
    assert folder is not None
    os.environ["TIKTOKEN_CACHE_DIR"] = str(folder / "litellm_core_utils" / "tokenizers")
    return tiktoken.Encoding(**getattr(openai_public, name)())


def exactness() -> None:
    import litellm
    from praisonaiagents.context.tokens import estimate_tokens_heuristic

    litellm.disable_hf_tokenizer_download = True
    print("\n## Tokens of a text (error against the model's own vocabulary)\n")
    print("| text | model | exact | ours | litellm | host |\n|---|---|---|---|---|---|")
    for model in ("gpt-4o", "openai/gpt-4o", "gpt-4"):
        encoding = published("cl100k_base" if model == "gpt-4" else "o200k_base")
        for name, text in TEXTS.items():
            exact = len(encoding.encode_ordinary(text))
            ours = TokenCounter(model).text(text)
            theirs = litellm.token_counter(model=model, text=text)
            host = estimate_tokens_heuristic(text)
            errors = " | ".join(f"{100 * (n - exact) / exact:+.0f} %" for n in (ours, theirs, host))
            print(f"| {name} | {model} | {exact} | {errors} |")


def per_message() -> None:
    import litellm
    from praisonaiagents.context.tokens import estimate_messages_tokens

    messages = transcript(100)
    counter = TokenCounter("gpt-4o")

    def first_sight() -> None:
        counter.cache = MessageCache()
        counter.messages(messages)

    rows = {
        "ours, first sight": first_sight,
        "ours, seen": lambda: counter.messages(messages),
        "litellm.token_counter": lambda: litellm.token_counter(model="gpt-4o", messages=messages),
        "host's estimate": lambda: estimate_messages_tokens(messages),
    }
    print("\n## µs a message\n\n| counter | µs |\n|---|---|")
    for name, function in rows.items():
        print(f"| {name} | {1e3 * best(function) / len(messages):.2f} |")


def quiet_turn(turns: int) -> None:
    from praisonaiagents.context.tokens import estimate_messages_tokens

    messages = transcript(turns)
    counter = TokenCounter("gpt-4o")
    encode = published("o200k_base").encode_ordinary
    tokens = counter.messages(messages)
    counter.cache.all(messages)
    for seen in counter.cache.all(messages):
        _ = seen.digest
    new = ({"role": "user", "content": f"one new message {n}"} for n in range(10**6))

    def quiet() -> None:
        """All messages seen, one new: counted, and every digest at hand."""
        seen = counter.cache.all([*messages, next(new)])
        counter.seen(seen)
        _ = [entry.digest for entry in seen]

    def rebuilt() -> None:
        """The same for a host that makes new dictionaries every turn."""
        counter.messages([dict(message) for message in messages])

    def exact_recount() -> None:
        for message in messages:
            for value in message.values():
                encode(value if isinstance(value, str) else str(value or ""))

    ours, host = best(quiet), best(lambda: estimate_messages_tokens(messages))
    recount = best(exact_recount, 3)
    print(f"\n## Quiet turn: {len(messages)} messages, {tokens} tokens, seen before; one new\n")
    print("| what | ms | of ours |\n|---|---|---|")
    for name, value in (
        ("ours: counts and digests", ours),
        ("ours, dictionaries rebuilt", best(rebuilt)),
        ("host's heuristic estimate", host),
        ("exact recount", recount),
    ):
        print(f"| {name} | {value:.2f} | {value / ours:.2f} x |")


def memory() -> None:
    print("\n## Memory beside the transcript\n\n| messages | bytes a message |\n|---|---|")
    for turns in (50, 500):
        messages = transcript(turns)
        counter = TokenCounter("gpt-4o")
        tracemalloc.start()
        counter.messages(messages)
        held, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        print(f"| {len(messages)} | {held / len(messages):.0f} |")


def imports() -> None:
    def fresh(line: str) -> tuple[float, float]:
        """Seconds, the best of three fresh interpreters, and MB that the line added."""
        script = f"""
import time
def held(): return int(open("/proc/self/statm").read().split()[1]) * 4096 / 1e6
before, start = held(), time.perf_counter()
{line}
print(time.perf_counter() - start, held() - before)
"""
        runs = [subprocess.check_output([sys.executable, "-c", script]) for _ in range(3)]
        return min((float(s), float(mb)) for s, mb in map(bytes.split, runs))

    count = "import praison_compressor.tokens.counter as t; t.TokenCounter('gpt-4o').text('x')"
    litellm = fresh("import litellm")
    print("\n## Start\n\n| what | ms | of litellm | MB |\n|---|---|---|---|")
    for name, (seconds, megabytes) in {
        "import praison_compressor.tokens.counter": fresh(
            "import praison_compressor.tokens.counter"
        ),
        "... and the first count": fresh(count),
        "... and the first limit (reads litellm's table)": fresh(
            "import praison_compressor.tokens.models as m; m.model_limits('gpt-4o')"
        ),
        "import litellm": litellm,
    }.items():
        share = seconds / litellm[0]
        print(f"| {name} | {1e3 * seconds:.0f} | {share:.1%} | {megabytes:.0f} |")


def main() -> None:
    exactness()
    per_message()
    quiet_turn(500)
    quiet_turn(5000)
    memory()
    imports()


if __name__ == "__main__":
    main()
