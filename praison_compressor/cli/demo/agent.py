"""The demonstration's agent: real, with real tools and HTTP, before a strict local provider.

Only the two models are scripted: the agent's follows its lines and answers from nothing but what
it is shown, the summarizer's takes notes. No key, no network.
"""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from ...messages import Message, text_of
from ...summaries.prompts import INSTRUCTIONS
from ...testing import Asked, Call, LocalProvider, Recorded, Reply
from ...view.frame import is_framed
from ..terminal import unlogged

MODEL = "gpt-4"
"""A name whose tokenizer is known exactly; nothing is sent to whoever sells it."""

WINDOW = 8_192

LINES = 60
"""Of a module, in one read."""


# ---------------------------------------------------------------- the conversation


@dataclass(frozen=True)
class Turn:
    """What the user says, the tool calls it takes, and what the scripted model answers."""

    user: str
    calls: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    answer: str = ""
    recalls: tuple[str, ...] = ()
    """Regular expressions: the model adds what it finds of them in what it is shown."""


def _reading(module: str, blocks: int) -> tuple[tuple[str, Mapping[str, Any]], ...]:
    """A search and some reads, as an agent goes about it."""
    reads = (("read_lines", {"module": module, "start": 1 + LINES * n}) for n in range(blocks))
    return (("search", {"module": module, "word": "def "}), *reads)


SCRIPT = (
    Turn(
        "I am porting a small command-line tool and need to know how the standard library splits "
        "and quotes text: read shlex, textwrap, csv and getopt. I collect the answers for a "
        "report in notes/quoting.md, and our linter's rule QX-417 forbids regular expressions.",
        (
            *_reading("shlex", 5),
            ("read_lines", {"module": "textwarp", "start": 1}),
            *_reading("textwrap", 5),
            *_reading("csv", 5),
            *_reading("getopt", 3),
        ),
        "shlex runs a state machine over the characters, textwrap cuts long words where "
        "break_long_words says so, csv.Sniffer guesses a dialect, and getopt stops at the first "
        "argument without a dash. On the way I met: ",
        (r"No module named '\w+'",),
    ),
    Turn(
        "Change of plan: lines of 96 columns, not 80. How does json escape text?",
        (("search", {"module": "json.encoder", "word": "ESCAPE"}),),
        "By the tables ESCAPE_DCT and ESCAPE_ASCII in json.encoder.",
    ),
    Turn(
        "Before you write: which file did I ask for, which rule applies, and how many columns?",
        recalls=(r"notes/quoting\.md", r"QX-\d+", r"\b96\b"),
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
    if done < len(turn.calls):
        tool, arguments = turn.calls[done]
        return Reply(calls=(Call(tool, arguments, id=f"call_{place}_{done}"),))
    shown = asked.text.replace(turn.user, "")
    matches = [re.search(pattern, shown) for pattern in turn.recalls]
    recalled = "; ".join("I no longer know" if m is None else m.group(0) for m in matches)
    return Reply(turn.answer + recalled)


def take_notes(asked: Asked) -> Reply:
    """The summarizer's model: what was said, which calls were made, what went wrong."""
    shown = asked.last_user
    said = re.findall(r"^\[user\]\n(.+)$", shown, re.MULTILINE)
    calls = re.findall(r"^(?:\[calls )?(search|read_lines)\]? (\{.+\})$", shown, re.MULTILINE)
    errors = dict.fromkeys(re.findall(r"\w+Error: [\w ']+", shown))
    lines = ["## Goal and constraints", *said, "## Done", *(" ".join(call) for call in calls)]
    return Reply("\n".join([*lines, "## Errors and fixes", *errors]))


# ---------------------------------------------------------------- the tools


def search(module: str, word: str) -> str:
    """Search a module of the standard library for a word.

    Args:
        module: the module's name
        word: what to look for
    """
    lines = enumerate(_source(module), 1)
    return "\n".join(f"{number}: {line}" for number, line in lines if word in line)


def read_lines(module: str, start: int) -> str:
    """Read sixty lines of a module of the standard library.

    Args:
        module: the module's name
        start: the first line
    """
    lines = _source(module)[start - 1 : start - 1 + LINES]
    return "\n".join(f"{number}: {line}" for number, line in enumerate(lines, start))


def _source(module: str) -> list[str]:
    spec = importlib.util.find_spec(module)
    if spec is None or not spec.origin:
        return [f"ModuleNotFoundError: No module named {module!r}"]
    return Path(spec.origin).read_text(encoding="utf-8").splitlines()


# ---------------------------------------------------------------- what happens


@dataclass(frozen=True)
class Sent:
    """One request of the agent, and what it would have been."""

    number: int
    whole: list[Message]
    """The transcript at that point."""
    before: list[Message]
    """The view of the request before, with what is new: sent, had nothing been compressed now."""
    view: list[Message]
    """What was sent."""
    tokens_whole: int
    tokens_before: int
    tokens: int
    """With the tool schemas, as the provider counted."""
    cached: int
    """Of them, tokens of messages that begin the request before too."""
    refused: str | None

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
        if self.before == self.view:
            return None
        return "masked" if len(self.before) == len(self.view) else "summarized"


@dataclass(frozen=True)
class Outcome:
    """A turn: what the user said, what the agent answered, and the requests it took."""

    user: str
    answer: str
    sent: list[Sent]


class Demo:
    """The agent at work; `turns` yields each turn when it is over."""

    model, window = MODEL, WINDOW

    def __init__(self, *, static: bool = False, by_litellm: bool = False) -> None:
        """`by_litellm`: the host sends by litellm, not by OpenAI's client."""
        self._static = static
        self._by_litellm = by_litellm
        self._last: Sent | None = None
        self.summary_requests = 0
        """Sent to the summarizer's model so far."""

    def turns(self) -> Iterator[Outcome]:
        """Hold the conversation, in an environment that knows no other provider."""
        with LocalProvider(answer, window=WINDOW) as provider:
            provider.route(lambda asked: _asks_for_summary(asked.messages), take_notes)
            address = dict.fromkeys(("OPENAI_BASE_URL", "OPENAI_API_BASE"), provider.base_url)
            with mock.patch.dict(os.environ, {**OFFLINE, **address}), unlogged():
                # Imported here: the host reads the environment when it is first imported.
                from ...praisonai import uninstall

                try:
                    agent = self._agent(provider)
                    for turn in SCRIPT:
                        provider.forget()
                        said = str(agent.chat(turn.user))
                        yield Outcome(turn.user, said, list(self._sent(agent, provider.requests)))
                finally:
                    uninstall()

    def _agent(self, provider: LocalProvider) -> Any:
        from praisonaiagents import Agent, ExecutionConfig

        from ...praisonai import CompressorContext

        where = {"llm": MODEL}
        if self._by_litellm:
            where = {"llm": f"openai/{MODEL}", "base_url": provider.base_url, "api_key": "any"}
        return Agent(
            **where,
            name="reader",
            instructions="You review Python code. Look things up with your tools before you "
            "answer, and be brief.",
            tools=[search, read_lines],
            context=CompressorContext(
                context_window=WINDOW,
                protect_last_n_tokens=1_500,
                # Without a model's summary the static one stands in.
                llm_summarize=not self._static,
            ),
            execution=ExecutionConfig(max_iter=60, max_tool_calls_per_turn=60),
            output="silent",
        )

    def _sent(self, agent: Any, records: Sequence[Recorded]) -> Iterator[Sent]:
        compressor = agent.context_compressor
        engine = compressor.engine()
        count = engine.tokens.messages
        for record in records:
            view = record.messages
            if _asks_for_summary(view):
                self.summary_requests += 1
                continue
            whole = engine.verbatim(view, session_id=compressor.session_id)
            last = self._last
            before = whole if last is None else [*last.view, *whole[len(last.whole) :]]
            beside = record.prompt_tokens - count(view)
            self._last = Sent(
                number=1 if last is None else last.number + 1,
                whole=whole,
                before=before,
                view=view,
                tokens_whole=count(whole) + beside,
                tokens_before=count(before) + beside,
                tokens=record.prompt_tokens,
                cached=record.cached_tokens,
                refused=record.error if record.refused else None,
            )
            yield self._last


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
