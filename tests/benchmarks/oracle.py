"""Count the planted facts that reach a view whose summarizer echoes each fact it is shown.

    python -m tests.benchmarks.oracle

154 messages of about 29,500 tokens, window 8,000, 2,000 newest tokens kept: the setting in which
the published figures of other systems (first seven rows) were measured.
"""

import re
from typing import Any

from praison_compressor import CompressorConfig, ContextCompressor, SummarizerUnavailable
from praison_compressor.messages import Message, text_of
from tests.benchmarks.common import options, show
from tests.helpers.transcripts import call, find_repairs

FACT = re.compile(r"FACT-[A-Z]+-\d+-\d+")

PEERS = (
    # system, first exchange, user facts, tool-result ends, valid, model down; as published.
    ("Hermes 0.19.0", "2/2", "30/30", "4/30", "yes", "user 5/30"),
    ("LangChain 1.4 default", "0/2", "5/30", "5/30", "yes", "raises"),
    ("langmem", "0/2", "15/30", "15/30", "orphan", "raises"),
    ("OpenHands SDK", "2/2", "30/30", "5/30", "yes", "raises"),
    ("agent-framework default", "0/2", "6/30", "6/30", "yes", "same as without"),
    ("Google ADK", "2/2", "30/30", "2/30", "yes", "raises"),
    ("pydantic-ai summarization", "0/2", "14/30", "2/30", "yes", "unchanged"),
)


def conversation(number: int, turns: int = 38) -> list[Message]:
    """Plant 30 facts by the user, 30 at ends of tool results, two in the first exchange."""
    messages: list[Message] = []
    for t in range(turns):
        planted = f" Remember FACT-USER-{number}-{t}." if t < 30 else ""
        ended = f" FACT-TOOL-{number}-{t}" if t < 30 else ""
        first = f" FACT-FIRST-{number}-0" if t == 0 else ""
        again = f" FACT-FIRST-{number}-1" if t == 0 else ""
        asked = call(f"c{t}", "search", query=f"topic {number} {t}")
        messages += [
            {"role": "user", "content": f"Look into topic {t}.{planted}{first}"},
            {"role": "assistant", "content": f"I look into it.{again}", "tool_calls": [asked]},
            {"role": "tool", "tool_call_id": f"c{t}", "content": _filler(t) + ended},
            {"role": "assistant", "content": f"Topic {t} is looked into; nothing more to it."},
        ]
    return messages


def _filler(seed: int) -> str:
    words = ("report", "market", "figure", "region", "quarter", "analysis", "source", "growth")
    return " ".join(f"{words[(seed + n) % 8]} {words[(seed * n) % 8]}" for n in range(340))


def transcript() -> list[Message]:
    """Return the transcript of the published figures."""
    system = {"role": "system", "content": "You are a research agent."}
    return [system, *conversation(1), {"role": "user", "content": "Go on."}]


async def oracle(messages: list[Message]) -> str:
    """Echo every planted fact of the request."""
    shown = "\n".join(text_of(message) for message in messages)
    return "## Done\n" + "\n".join(sorted(set(FACT.findall(shown))))


async def down(messages: list[Message]) -> str:
    """Fail as a model that is down."""
    raise SummarizerUnavailable("down", kind="network")


def compressor(summarizer: Any) -> ContextCompressor:
    """Return our compressor in that setting."""
    config = CompressorConfig(model="gpt-4o", context_window=8_000, protect_last_n_tokens=2_000)
    return ContextCompressor(config, summarizer=summarizer)


def facts_in(messages: list[Message], kind: str, number: int = 1) -> int:
    """Count the planted facts of a kind that the messages hold."""
    text = "\n".join(text_of(message) for message in messages)
    return len({f for f in FACT.findall(text) if f.startswith(f"FACT-{kind}-{number}-")})


def count_kept(messages: list[Message], number: int = 1) -> tuple[str, str, str]:
    """Return the kept facts of first exchange, user and tool-result ends."""
    counts = [(kind, of) for kind, of in (("FIRST", 2), ("USER", 30), ("TOOL", 30))]
    first, user, tool = (f"{facts_in(messages, kind, number)}/{of}" for kind, of in counts)
    return first, user, tool


def rounds(summarizer: Any) -> tuple[list[Message], list[Message]]:
    """Return the views after a first and a second round of one session."""
    ours = compressor(summarizer)
    once = transcript()
    first = ours.compress_sync(once).messages
    twice = [*once, {"role": "assistant", "content": "Yes."}, *conversation(2)]
    twice.append({"role": "user", "content": "Go on."})
    return first, ours.compress_sync(twice).messages


def main() -> None:
    options(__doc__)
    first, second = rounds(oracle)
    down_first, down_second = rounds(down)
    ours = []
    for name, view, static, number in (
        ("praison-compressor", first, down_first, 1),
        (".. round 1 after round 2", second, down_second, 1),
        (".. round 2 after round 2", second, down_second, 2),
    ):
        lost = "user {1}, tool {2}".format(*count_kept(static, number))
        ours.append((name, *count_kept(view, number), find_repairs(view) == [], lost))
    columns = ("system", "first exchange", "user", "tool ends", "valid", "model down")
    show("planted facts that are left", columns, [*PEERS, *ours])


if __name__ == "__main__":
    main()
