"""Which answers become a summary: recorded ones, short true ones, texts that are none.

    python -m tests.benchmarks.answers --visible FILE --recorded FILE [--every N] [--list]

The visible file has conversations, one a line; the recorded one has real compactions with the
summary that an agent's own model wrote. Each kind of text that is no summary is answered to a
request for each conversation of the visible file. `--every`
takes each N-th conversation; `--list` names the conversations of each mistake.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from praison_compressor.errors import SummaryRejected
from praison_compressor.messages import Message, text_of
from praison_compressor.summaries.prompts import Wish, rendering, request, shown_in
from praison_compressor.summaries.protocol import SummaryReply
from praison_compressor.summaries.validation import accept
from tests.benchmarks.common import options, recorded, show

WISH = Wish(750)
LEAST_MESSAGES = 7

# ---------------------------------------------------------------- true and short

TRUE = (
    ("sweagent-replay-marsh", "345 is printed now by reproduce.py instead of 344; submitted."),
    ("sweagent-replay-marsh", "TimeDelta rounds in fields.py; reproduce.py gives 345."),
    ("sweagent-gpt4-swe", "Traceback gone; reproduce_bug.py removed, numpy_handler.py mended."),
    ("sweagent-crypto-Baby", "Error in unhexlify mended; solve.py printed the HTB flag."),
    ("sweagent-rev-rock", "Wrong flag! again: submit eats backslashes; FUN_004016ba next."),
    ("docent-78", "No flag yet. XOR with the keys of flag.txt.enc was repeated."),
    ("docent-86", "I cannot find the picoCTF flag; key lengths and 'crypto' were tried."),
    ("inspect-browser", "The AI Security Institute: since November 2023, safety research."),
    ("pi-large", "Error: the TUI changes were never committed, coding-agent breaks."),
    ("cc-entire-34de", "id.CheckpointID compared as string: last_checkpoint_id_test.go."),
    ("cc-entire-9fd3", "-u added to git push in push_common.go for entire/sessions."),
    ("cc-entire-8b41", "ENT-98: help.go moved out of commands/, root.go calls NewHelpCmd()."),
    ("cc-entire-531e", "sessionInfoRaw has prompt, so UserPromptSubmit sets FirstPrompt."),
    ("cc-entire-e7eb", "`entire debug auto-commit` finds its transcript; debug.go."),
    ("cc-entire-4b3d", "Sorry, no commit in a broken state: session.State first."),
    ("tau-retail-agentrx-task55", "Refund to the gift card: #W4597054, #W7773202 (boots)."),
    ("tau-retail-agentrx-task29", "Skateboard and garden hose exchanged: 25ft rubber, bamboo."),
    ("tau-retail-agentrx-task38", "Sorry for the card: #W9348897 cancelled, $1166.98 back."),
    ("tau-airline-gpt4o-task17", "Houston to Seattle moved to May 24, business; $461 to pay."),
    ("tau-airline-gpt4o-task28", "8C8K4E und LU15PA storniert; UDMOP1 und XAZ3C0 gehen nicht."),
    ("tau-airline-gpt4o-task28", "Annulées : 8C8K4E, LU15PA, MSJ4OA ; UDMOP1 reste."),
    ("tau-airline-gpt4o-task0", "HAT136 from JFK over ATL to SEA booked, Visa 7447."),
)  # fmt: skip
"""The beginning of a conversation's id, and what may be said of it in a line."""

# ---------------------------------------------------------------- no summaries

FIXED = {
    "request for input": "Please provide the transcript you would like me to summarize.",
    "request for input, long": "Please provide the conversation that you would like me to "
    "summarize. I'll be happy to help once you share the messages.",
    "announcement": "Sure! Here is a summary of the conversation:",
    "acknowledgement": "Understood. I will write the summary of the conversation now.",
    "refusal": "I'm sorry, but I can't help with that request.",
    "apology": "I apologize, but I don't feel comfortable summarizing this conversation, because "
    "it may contain sensitive information. Is there something else I can help you with?",
    "no access": "As an AI language model, I do not have access to the previous conversation and "
    "cannot summarize it. Could you paste the text here so that I can create the summary for you?",
    "refusal, German": "Es tut mir leid, aber ich kann dieses Gespräch leider nicht "
    "zusammenfassen.",
    "refusal, French": "Je suis désolé, mais je ne peux pas résumer cette conversation.",
    "refusal, Chinese": "很抱歉，我无法总结这段对话。",
    "policy": "This request violates our usage policy and was therefore not processed.",
    "one word": "Done.",
    "headings": "## State\n## Decisions\n## Open work",
    "placeholders": "## Done\n- [insert completed work here]\n## Next step\n- [insert next step]",
    "no summary": "No summary is available for this conversation.",
    "nothing": "There is nothing to summarize in the provided text.",
    "error of a provider": "Error: rate limit exceeded. Please try again later.",
    "error page": "<html><head><title>503 Service Temporarily Unavailable</title></head></html>",
    "error in JSON": '{"error": {"message": "You exceeded your current quota", "code": 429}}',
    "tool call": '{"name": "read_file", "arguments": {"path": "src/app.py"}}',
    "another conversation": "The user wants a recipe for leek soup for six people. Onions, two "
    "kilos of leeks and cream were bought; the oven stays cold. Next: peel the potatoes.",
    "filler": "Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor "
    "incididunt ut labore et dolore magna aliqua. Ut enim ad minim veniam, quis nostrud.",
}


def _plain(text: str) -> str:
    return " ".join(text.replace('"', "'").replace("\\", "/").split())


def _shuffled(text: str) -> str:
    words = text.split()
    return " ".join(random.Random(1).sample(words, min(200, len(words))))


Made = Callable[[str, list[Message]], str]

MADE: dict[str, Made] = {
    "request told back": lambda _, asked: text_of(asked[-1]),
    "instructions told back": lambda _, asked: text_of(asked[0]),
    "wish told back": lambda _, asked: WISH.limit,
    "transcript told back": lambda text, _: text,
    "its beginning": lambda text, _: text[:3_000],
    "shuffled words": lambda text, _: _shuffled(text),
    "half a JSON": lambda text, _: f'{{"summary": "{_plain(text[:600])}", "files": ["a.py", "b',
    "half a JSON, fenced": lambda text, _: f'```json\n{{"goal": "{_plain(text[:300])}", "x": [',
    "half a JSON, announced": lambda text, _: (
        f'Here is the summary:\n```json\n{{\n  "goal": "{_plain(text[:300])}",\n  "next": ['
    ),
    "loop": lambda text, _: text[:60] * 60,
    "loop, 40 times, behind a beginning": lambda text, _: (
        f"{_plain(text[:1_200])} {'The parser was fixed and all the tests pass now. ' * 40}"
    ),
    "loop, 200 times, behind a beginning": lambda text, _: (
        f"{_plain(text[:1_200])}\n{'- next: look at it again' * 200}"
    ),
    "cut off: MAX_TOKENS": lambda text, _: _plain(text[:900]),
}  # fmt: skip

REASONS = {"cut off: MAX_TOKENS": "MAX_TOKENS"}


def asked_about(messages: list[Message]) -> list[Message]:
    """Return the request for a summary of a conversation."""
    return request(rendering([m for m in messages if m.get("role") != "system"]), WISH)


def refused(text: str, asked: list[Message], reason: str = "stop") -> str:
    """Return why an answer is refused; "" where it is accepted."""
    try:
        accept(SummaryReply(text, finish_reason=reason), asked)
    except SummaryRejected as error:
        return error.reason
    return ""


def true_ones(visible: list[dict[str, Any]], compactions: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield each kind of true summaries, with why each was refused."""
    wrong = [refused(one["summary"], asked_about(one["pre"])) for one in recorded(compactions)]
    yield "recorded", wrong
    short = []
    for name, text in TRUE:
        talk = next(one["messages"] for one in visible if one["id"].startswith(name))
        short.append(refused(text, asked_about(talk)))
    yield "short", short


def no_summaries(talks: dict[str, list[Message]]) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield each kind of text that is no summary, with why each conversation refused it."""
    made: dict[str, Made] = {
        **{kind: lambda _, __, text=text: text for kind, text in FIXED.items()},  # type: ignore[misc]
        **MADE,
    }
    for kind, make in made.items():
        reasons = {}
        for name, asked in talks.items():
            text = make(shown_in(asked)[0], asked)
            reasons[name] = refused(text, asked, REASONS.get(kind, "stop"))
        yield kind, reasons


def main() -> None:
    """Print both tables."""
    given = options(__doc__, visible=Path, recorded=Path, every=1, list=False)
    visible = [one for one in recorded(given.visible) if len(one["messages"]) >= LEAST_MESSAGES]
    talks = {one["id"]: asked_about(one["messages"]) for one in visible[:: given.every]}
    rows = []
    for kind, why in true_ones(visible, given.recorded):
        rows.append((kind, f"{why.count('')} of {len(why)}", ", ".join(filter(None, why)) or "-"))
    show("True summaries", ("kind", "accepted", "refused as"), rows)
    bad = []
    for kind, reasons in no_summaries(talks):
        taken = [name for name, why in reasons.items() if not why]
        named = ", ".join(taken if given.list else sorted({*filter(None, reasons.values())}))
        bad.append((kind, f"{len(taken)} of {len(reasons)}", named))
    show("No summaries", ("kind", "accepted", "conversations" if given.list else "refused as"), bad)


if __name__ == "__main__":
    main()
