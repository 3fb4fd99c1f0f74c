"""Let an agent read a harbour's logs, against a strict local provider.

Agent, tools and HTTP are real. The models of agent and summarizer are scripted, and answer only
from the request.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from unittest import mock

from ..events import Event
from ..messages import Message, text_of, tool_calls_of
from ..recall.answers import SEARCH
from ..summaries.prompts import SUMMARY_INSTRUCTIONS
from ..testing import Asked, Call, LocalProvider, Recorded, Reply
from ..testing.server import Answers
from .terminal import mute_log

MODEL = "gpt-4"
"""Only the tokenizer and the prices of this model are used."""

WINDOW = 8_192

# ---------------------------------------------------------------- the harbour's logs

SHIPS = ("Otter", "Heron", "Juno", "Swan", "Kestrel", "Ann", "Dolphin", "Iris", "Pilot", "Wren")
GOODS = ("tea", "salt", "timber", "wool", "slate", "oranges", "iron")
MONTHS = "January February March April May June July August September October".split()
MONTH_LINES = 56
"""A log has this number of lines for a month, two for a day."""

FACT = "01-23 Marigold, 14 crates of tea: mast broken, towed in by the Otter"
"""Line of a log that the last question asks for."""


def read_month(pier: int, month: int) -> str:
    """Read a month in the log of a pier.

    Args:
        pier: 1 to 3
        month: 1 to 10
    """
    lines = []
    for n in range(MONTH_LINES * (month - 1), MONTH_LINES * month):
        ship, goods = SHIPS[(n * pier + n // 7) % len(SHIPS)], GOODS[(n + pier) % len(GOODS)]
        day = f"{month:02}-{n // 2 % 28 + 1:02}"
        lines.append(f"{day} {ship}, {(n * 11 + pier) % 60 + 3} crates of {goods}")
    if (pier, month) == (3, 1):
        lines[44] = FACT
    return "\n".join(lines)


# ---------------------------------------------------------------- the two models


def script() -> Iterator[tuple[str, Answers]]:
    """Yield each message of the user with the model's answers."""
    reads = [_read(pier, month) for pier in (1, 2) for month in range(1, 7)]
    yield FIRST_QUESTION, [*reads, Reply("Both piers: most ships bring tea, salt or timber.")]
    for month, name in enumerate(MONTHS, 1):
        listed = read_month(3, month).replace("\n", "\n- ")
        answer = Reply(f"Pier-3 in {name}: {MONTH_LINES} ships.\n- {listed}")
        yield f"What came to pier-3 in {name}?", [_read(3, month), answer]
    yield LAST_QUESTION, answer_last


def _read(pier: int, month: int) -> Reply:
    return Reply(calls=(Call("read_month", {"pier": pier, "month": month}),))


FIRST_QUESTION = (
    "I write the harbour's yearly report in notes/harbour.md: read the logs of pier-1 and "
    "pier-2, then I ask you about pier-3. Rule QX-417: no captain's name goes into it."
)

LAST_QUESTION = (
    "Before you write: one ship came to pier-3 with a broken mast. Which, and who towed her?"
)


def answer_last(asked: Asked) -> Reply:
    """Answer the last question from the request, after at most one search."""
    match = re.search(r"\d\d-\d\d [^\n\\]*mast broken, towed in by the \w+", asked.text)
    if match is not None:
        return Reply(f"The log says: {match.group(0)}.")
    if asked.messages[-1].get("role") == "tool":
        return Reply("I no longer know.")
    return Reply(calls=(Call(SEARCH, {"query": "mast broken, towed in"}),))


def take_notes(request: Asked) -> Reply:
    """Answer as the summarizer's model: list what was asked, answered and called."""
    text = request.last_user
    goals = re.findall(r"^\[user\]\n(.+)$", text, re.MULTILINE)
    done = re.findall(r"^\[assistant\]\n(.+)$", text, re.MULTILINE)
    calls = re.findall(r"^(?:\[calls )?(read_month)\]? (\{.+\})$", text, re.MULTILINE)
    done += [" ".join(call) for call in calls]
    notes = (["## Goal", *goals], ["## Done", *done])
    return Reply("\n".join(line for section in notes if section[1:] for line in section))


# ---------------------------------------------------------------- what happens


@dataclass(frozen=True)
class RecordedRequest:
    """One request of the agent, beside the transcript without compression."""

    whole: list[Message]
    """The transcript at this request."""
    view: list[Message]
    transcript_tokens: int
    sent_tokens: int
    """Tokens with the tool schemas, as the provider counted."""
    cached_tokens: int
    """Tokens of the prefix that an earlier request had too."""
    refused: str | None = None
    compressed: str | None = None
    """How the view was compressed for this request: "masked", "summarized" or None."""
    seconds: float = 0.0
    cost: float = 0.0
    """US dollars for the summary."""


@dataclass(frozen=True)
class TurnOutcome:
    """A turn: the user's words, the answer, the requests."""

    user: str
    answer: str
    requests: list[RecordedRequest]
    summary_requests: int
    """Requests to the summarizer's model."""

    @property
    def check(self) -> dict[str, Any]:
        """Whether FACT was in view, transcript and answer."""
        calls = {call.name for message in self.requests[-1].view for call in tool_calls_of(message)}
        return {
            "fact": FACT,
            "in_view": any(FACT in text_of(message) for message in self.requests[0].view),
            "in_transcript": any(FACT in text_of(message) for message in self.requests[0].whole),
            "found_by": SEARCH if SEARCH in calls else None,
            "right": FACT in self.answer,
        }


def run_turns() -> Iterator[TurnOutcome]:
    """Yield the conversation's turns; only the local provider is reachable."""
    with LocalProvider(window=WINDOW) as provider:
        provider.route(lambda asked: _asks_for_summary(asked.messages), take_notes)
        address = dict.fromkeys(("OPENAI_BASE_URL", "OPENAI_API_BASE"), provider.base_url)
        with mock.patch.dict(os.environ, {**OFFLINE, **address}), mute_log():
            # Imported here: the host reads the environment when it is first imported.
            from ..praisonai import install, uninstall

            install()
            try:
                yield from _hold_turns(_agent(), provider)
            finally:
                uninstall()


def _hold_turns(agent: Any, provider: LocalProvider) -> Iterator[TurnOutcome]:
    commits: dict[int, Mapping[str, Any]] = {}
    """Index of a request -> event of the compression before it."""

    def note_commit(event: Event) -> None:
        if event.name == "committed":
            commits[len(provider.requests)] = event.data

    agent.context_compressor.subscribe(note_commit)
    for question, answers in script():
        provider.answer_with(answers)
        before = len(provider.requests)
        answer = str(agent.chat(question))
        records = dict(enumerate(provider.requests[before:], before))
        sent = [
            _recorded_request(agent.context_compressor, record, commits.get(index, {}))
            for index, record in records.items()
            if not _asks_for_summary(record.messages)
        ]
        yield TurnOutcome(question, answer, sent, len(records) - len(sent))


def _recorded_request(
    agent_compressor: Any, record: Recorded, commit: Mapping[str, Any]
) -> RecordedRequest:
    compressor = agent_compressor.for_model()
    whole = compressor.verbatim(record.messages, session_id=agent_compressor.session_id)
    left_out = compressor.tokens.messages(whole) - compressor.tokens.messages(record.messages)
    method = "summarized" if commit.get("method") else "masked"
    return RecordedRequest(
        whole=whole,
        view=record.messages,
        transcript_tokens=record.prompt_tokens + left_out,
        sent_tokens=record.prompt_tokens,
        cached_tokens=record.cached_tokens,
        refused=record.error if record.refused else None,
        compressed=method if commit else None,
        seconds=commit.get("seconds", 0.0),
        cost=commit.get("cost") or 0.0,
    )


def _agent() -> Any:
    from praisonaiagents import Agent, ExecutionConfig

    return Agent(
        name="harbour",
        instructions="You keep a harbour's books. Look things up with your tools before you "
        "answer, and be brief.",
        llm=MODEL,
        tools=[read_month],
        context={
            "strategy": "summarize",
            "context_window": WINDOW,
            "protect_last_n_tokens": 1_500,
            "llm_summarize": True,
        },
        execution=ExecutionConfig(max_iter=60, max_tool_calls_per_turn=60),
        output="silent",
    )


def _asks_for_summary(messages: Sequence[Message]) -> bool:
    return text_of(messages[0]).startswith(SUMMARY_INSTRUCTIONS[:60])


OFFLINE = {
    # The host and litellm would otherwise ask the network for prices and send telemetry.
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "PRAISONAI_TELEMETRY_DISABLED": "true",
    "DO_NOT_TRACK": "1",
    # The user's proxy must not be asked for this machine.
    "NO_PROXY": "127.0.0.1,localhost",
    "no_proxy": "127.0.0.1,localhost",
    "OPENAI_API_KEY": "none-needed",
}
