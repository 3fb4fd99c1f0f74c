"""The demonstration's agent: real, with real tools and HTTP, before a strict local provider.

Only the two models are scripted: the agent's follows its lines and answers from nothing but what
it is shown, the summarizer's takes notes. No key, no network.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from unittest import mock

from ...config import Event
from ...ledger.recall import SEARCH
from ...messages import Message, text_of, tool_calls_of
from ...summaries.prompts import INSTRUCTIONS
from ...testing import Asked, Call, LocalProvider, Recorded, Reply
from ...view.frame import is_framed
from ..terminal import unlogged

MODEL = "gpt-4"
"""A name whose tokenizer is known exactly; nothing is sent to whoever sells it."""

WINDOW = 8_192

# ---------------------------------------------------------------- the harbour's logs

SHIPS = ("Otter", "Heron", "Juno", "Swan", "Kestrel", "Ann", "Dolphin", "Iris", "Pilot", "Wren")
GOODS = ("tea", "salt", "timber", "wool", "slate", "oranges", "iron")
MONTHS = "January February March April May June July August September October".split()
LINES = 56
"""Of a log in a month, two a day."""
FACT = "01-23 Marigold, 14 crates of tea: mast broken, towed in by the Otter"
"""A line of one log; what the last question asks for."""


def log_of(name: str) -> list[str]:
    """The lines of a log: the same everywhere, so that the demonstration's figures are too."""
    if name not in ("pier-1", "pier-2", "pier-3"):
        return [f"FileNotFoundError: no log {name!r}"]
    pier = int(name[-1])
    lines = []
    for n in range(LINES * len(MONTHS)):
        late = f", {n % 5 + 1} h late" if n % 29 == 0 else ""
        ship, goods = SHIPS[(n * pier + n // 7) % len(SHIPS)], GOODS[(n + pier) % len(GOODS)]
        day = f"{n // LINES + 1:02}-{n // 2 % 28 + 1:02}"
        lines.append(f"{day} {ship}, {(n * 11 + pier) % 60 + 3} crates of {goods}{late}")
    if pier == 3:
        lines[44] = FACT
    return lines


# ---------------------------------------------------------------- the conversation


@dataclass(frozen=True)
class Turn:
    """What the user says, the tool calls it takes, and what the scripted model answers."""

    user: str
    calls: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    answer: str = ""
    wanted: str = ""
    """Words of a line: the model tells it, where it is shown it, else looks into the archive."""


def _reading(log: str, months: int) -> tuple[tuple[str, Mapping[str, Any]], ...]:
    """A search and some reads, as an agent goes about it."""
    reads = (("read_month", {"log": log, "month": month}) for month in range(1, months + 1))
    return (("search", {"log": log, "word": "late"}), *reads)


def _question(number: int, month: str) -> Turn:
    """A question that is answered with what one read gives."""
    entries = log_of("pier-3")[LINES * (number - 1) : LINES * number]
    return Turn(
        f"What came to pier-3 in {month}?",
        (("read_month", {"log": "pier-3", "month": number}),),
        "\n- ".join([f"Pier-3 in {month}: {len(entries)} ships.", *entries]),
    )


SCRIPT = (
    Turn(
        "I write the harbour's yearly report in notes/harbour.md: read the logs of pier-1 and "
        "pier-2, then I ask you about pier-3. Rule QX-417: no captain's name goes into it.",
        (
            *_reading("pier-1", 4),
            ("read_month", {"log": "peer-2", "month": 1}),
            *_reading("pier-2", 4),
        ),
        "Both piers: most ships bring tea, salt or timber, and every 29th entry is late.",
    ),
    *(_question(number, month) for number, month in enumerate(MONTHS, 1)),
    Turn(
        "Before you write: one ship came to pier-3 with a broken mast. Which, and who towed her?",
        wanted="mast broken, towed in",
    ),
)


def answer(asked: Asked) -> Reply:
    """The agent's model: finds its place in the script from what it is shown."""
    # A summary quotes the user too, so it does not count.
    said = [text_of(m) for m in asked.messages if m.get("role") == "user" and not is_framed(m)]
    known = [turn.user for turn in SCRIPT]
    place = next(known.index(text) for text in reversed(said) if text in known)
    turn = SCRIPT[place]
    ids = (str(message.get("tool_call_id")) for message in asked.messages)
    made = [int(found[1]) for id in ids if (found := re.fullmatch(rf"call_{place}_(\d+)", id))]
    done = max(made, default=-1) + 1
    calls = turn.calls
    told = re.search(rf"\d\d-\d\d [^\n\\]*{turn.wanted or '$^'} by the \w+", asked.text)
    if turn.wanted and told is None:
        calls = ((SEARCH, {"query": turn.wanted}),)
    if done < len(calls):
        tool, arguments = calls[done]
        return Reply(calls=(Call(tool, arguments, id=f"call_{place}_{done}"),))
    if turn.wanted:
        return Reply("I no longer know." if told is None else f"The log says: {told.group(0)}.")
    return Reply(turn.answer)


def take_notes(asked: Asked) -> Reply:
    """The summarizer's model: what was said, what was answered or called, what went wrong."""
    shown = asked.last_user
    calls = re.findall(r"^(?:\[calls )?(search|read_month)\]? (\{.+\})$", shown, re.MULTILINE)
    notes = {
        "Goal": re.findall(r"^\[user\]\n(.+)$", shown, re.MULTILINE),
        "Done": [
            *re.findall(r"^\[assistant\]\n(.+)$", shown, re.MULTILINE),
            *(" ".join(call) for call in calls),
        ],
        "Errors": [*dict.fromkeys(re.findall(r"\w+Error: [\w ']+", shown))],
    }
    return Reply(
        "\n".join("\n".join([f"## {name}", *said]) for name, said in notes.items() if said)
    )


# ---------------------------------------------------------------- the tools


def search(log: str, word: str) -> str:
    """Search the log of a pier for a word.

    Args:
        log: the log's name
        word: what to look for
    """
    return "\n".join(line for line in log_of(log) if word in line)


def read_month(log: str, month: int) -> str:
    """Read a month in the log of a pier.

    Args:
        log: the log's name
        month: 1 to 10
    """
    lines = log_of(log)
    return "\n".join(lines[LINES * (month - 1) : LINES * month] or lines[:1])


# ---------------------------------------------------------------- what happens


@dataclass(frozen=True)
class Sent:
    """One request of the agent, and what it would have been."""

    number: int
    whole: list[Message]
    """The transcript at that point, as the host has it."""
    view: list[Message]
    """What was sent."""
    tokens_whole: int
    tokens: int
    """With the tool schemas, as the provider counted."""
    cached: int
    """Of them, tokens of messages that begin the request before too."""
    refused: str | None
    compression: Mapping[str, Any] | None
    """What was done for this request, as the event of its commit tells; None for nothing."""

    @property
    def numbers(self) -> dict[str, Any]:
        """What a table or a program is told of it."""
        return {
            "number": self.number,
            "transcript_messages": len(self.whole),
            "transcript_tokens": self.tokens_whole,
            "sent_messages": len(self.view),
            "sent_tokens": self.tokens,
            "cached_tokens": self.cached,
        }

    @property
    def done(self) -> str | None:
        """What this request is the first to show: "masked", "summarized", or None for nothing."""
        if self.compression is None:
            return None
        return "summarized" if self.compression["method"] else "masked"


@dataclass(frozen=True)
class Outcome:
    """A turn: what the user said, what the agent answered, and the requests it took."""

    user: str
    answer: str
    sent: list[Sent]

    @property
    def check(self) -> dict[str, Any]:
        """Of the last turn: whether the line asked for was in the view, and in the answer."""
        calls = {call.name for message in self.sent[-1].view for call in tool_calls_of(message)}
        return {
            "fact": FACT,
            "in_view": any(FACT in text_of(message) for message in self.sent[0].view),
            "in_transcript": any(FACT in text_of(message) for message in self.sent[0].whole),
            "found_by": SEARCH if SEARCH in calls else None,
            "right": FACT in self.answer,
        }


class Demo:
    """The agent at work; `turns` yields each turn when it is over."""

    model, window = MODEL, WINDOW

    def __init__(self, *, static: bool = False) -> None:
        self._static = static
        self._requests = 0
        self._compressions: dict[int, Mapping[str, Any]] = {}
        """By how many requests the provider had when it was committed."""
        self.summary_requests = 0
        """Sent to the summarizer's model so far."""

    def turns(self) -> Iterator[Outcome]:
        """Hold the conversation, in an environment that knows no other provider."""
        with LocalProvider(answer, window=WINDOW) as provider:
            provider.route(lambda asked: _asks_for_summary(asked.messages), take_notes)
            address = dict.fromkeys(("OPENAI_BASE_URL", "OPENAI_API_BASE"), provider.base_url)
            with mock.patch.dict(os.environ, {**OFFLINE, **address}), unlogged():
                # Imported here: the host reads the environment when it is first imported.
                from ...praisonai import install, uninstall

                def hear(event: Event) -> None:
                    if event.name == "committed":
                        self._compressions[len(provider.requests)] = event.data

                install()
                try:
                    agent = self._agent()
                    agent.context_compressor.subscribe(hear)
                    for turn in SCRIPT:
                        first = len(provider.requests)
                        said = str(agent.chat(turn.user))
                        sent = [*self._sent(agent, first, provider.requests[first:])]
                        yield Outcome(turn.user, said, sent)
                finally:
                    uninstall()

    def _agent(self) -> Any:
        from praisonaiagents import Agent, ExecutionConfig

        return Agent(
            name="harbour",
            instructions="You keep a harbour's books. Look things up with your tools before you "
            "answer, and be brief.",
            llm=MODEL,
            tools=[search, read_month],
            context={
                "strategy": "summarize",
                "context_window": WINDOW,
                "protect_last_n_tokens": 1_500,
                # False: the static summary stands in for the model's.
                "llm_summarize": not self._static,
            },
            execution=ExecutionConfig(max_iter=60, max_tool_calls_per_turn=60),
            output="silent",
        )

    def _sent(self, agent: Any, first: int, records: Sequence[Recorded]) -> Iterator[Sent]:
        compressor = agent.context_compressor
        engine = compressor.engine()
        count = engine.tokens.messages
        for place, record in enumerate(records, first):
            view = record.messages
            if _asks_for_summary(view):
                self.summary_requests += 1
                continue
            self._requests += 1
            whole = engine.verbatim(view, session_id=compressor.session_id)
            yield Sent(
                number=self._requests,
                whole=whole,
                view=view,
                tokens_whole=record.prompt_tokens + count(whole) - count(view),
                tokens=record.prompt_tokens,
                cached=record.cached_tokens,
                refused=record.error if record.refused else None,
                compression=self._compressions.get(place),
            )


def _asks_for_summary(messages: Sequence[Message]) -> bool:
    return text_of(messages[0]).startswith(INSTRUCTIONS[:60])


OFFLINE = {
    # The host and litellm would otherwise ask the network for prices and send telemetry.
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "PRAISONAI_TELEMETRY_DISABLED": "true",
    "DO_NOT_TRACK": "1",
    # A proxy of the user's must not be asked for this machine.
    "NO_PROXY": "127.0.0.1,localhost",
    "no_proxy": "127.0.0.1,localhost",
    "OPENAI_API_KEY": "none-needed",
}
