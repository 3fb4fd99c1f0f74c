"""The demonstration: a real agent, a local scripted provider, no key, no network.

The agent and its tools are real (they read Python's own standard library), the HTTP is real, the
provider refuses what real ones refuse. Only the two models are scripted: the agent's follows its
lines and answers from nothing but what it is shown, the summarizer's takes notes.
"""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...messages import Message, text_of
from ...summaries.prompts import INSTRUCTIONS
from ...testing import Asked, Call, LocalProvider, Recorded, Reply
from ...view.frame import is_framed

__all__ = [
    "MODEL",
    "SCRIPT",
    "WINDOW",
    "Demo",
    "DemoOutcome",
    "Sent",
    "Turn",
]


MODEL = "gpt-4"
"""A name whose tokenizer is known exactly; nothing is sent to whoever sells it."""


WINDOW = 8_192


KEEP_TOKENS = 1_500


LINES = 60
"""Of a module, in one read."""


READER = "You review Python code. Look things up with your tools before you answer, and be brief."


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


class Reader:
    """The agent's model: finds its place in the script from the newest messages alone."""

    def __init__(self, script: Sequence[Turn]) -> None:
        self._script = script

    def __call__(self, asked: Asked) -> Reply:
        number = self._turn(asked)
        turn = self._script[number]
        done = _calls_made(asked, number)
        if done < len(turn.calls):
            tool, arguments = turn.calls[done]
            return Reply(calls=(Call(tool, arguments, id=f"call_{number}_{done}"),))
        return Reply(turn.answer + _recalled(turn, asked))

    def _turn(self, asked: Asked) -> int:
        """Which turn it is: a summary quotes the user too, so it does not count."""
        said = [text_of(m) for m in asked.messages if m.get("role") == "user" and not is_framed(m)]
        known = [turn.user for turn in self._script]
        return next(known.index(text) for text in reversed(said) if text in known)


def _calls_made(asked: Asked, turn: int) -> int:
    made = [
        int(found.group(1))
        for message in asked.messages
        if (found := re.fullmatch(rf"call_{turn}_(\d+)", str(message.get("tool_call_id"))))
    ]
    return max(made) + 1 if made else 0


def _recalled(turn: Turn, asked: Asked) -> str:
    shown = asked.text.replace(turn.user, "")
    found = [re.search(pattern, shown) for pattern in turn.recalls]
    return "; ".join("I no longer know" if match is None else match.group(0) for match in found)


def take_notes(asked: Asked) -> Reply:
    """The summarizer's model: what was said, which calls were made, what went wrong.

    It carries on what an earlier summary noted, as it is asked to.
    """
    shown = asked.last_user
    said = re.findall(r"^\[user\]\n(.+)$", shown, re.MULTILINE)
    calls = re.findall(r"^(?:\[calls )?(search|read_lines)\]? (\{.+\})$", shown, re.MULTILINE)
    errors = dict.fromkeys(re.findall(r"\w+Error: [\w ']+", shown))
    lines = ["## Goal and constraints", *said, "## Done", *(" ".join(call) for call in calls)]
    return Reply("\n".join([*lines, "## Errors and fixes", *errors]))


def _asks_for_summary(asked: Asked) -> bool:
    return text_of(asked.messages[0]).startswith(INSTRUCTIONS[:60])


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


# ---------------------------------------------------------------- what happened
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
    done: str | None
    """ "masked" or "summarized": what this request is the first to show; None: nothing new."""
    refused: str | None

    @property
    def changed(self) -> frozenset[int]:
        """The messages that a mask changed, by index in `before` and `view` alike."""
        if self.done != "masked":
            return frozenset()
        pairs = zip(self.before, self.view, strict=True)
        return frozenset(index for index, (old, new) in enumerate(pairs) if old != new)


@dataclass(frozen=True)
class DemoOutcome:
    """A turn: what was said, what the agent answered, and the requests it took."""

    turn: Turn
    answer: str
    sent: list[Sent]


class Demo:
    """The agent at work; `turns` yields each turn when it is over."""

    def __init__(self, *, static: bool = False, script: Sequence[Turn] = SCRIPT) -> None:
        self._static = static
        self._script = script
        self._count = 0
        self.summaries: list[Recorded] = []
        """The requests to the summarizer's model."""

    def turns(self) -> Iterator[DemoOutcome]:
        """Hold the conversation."""
        with LocalProvider(Reader(self._script), window=WINDOW) as provider, _alone_with(provider):
            provider.route(_asks_for_summary, take_notes)
            agent = self._agent()
            for turn in self._script:
                provider.forget()
                answer = str(agent.chat(turn.user))
                yield DemoOutcome(turn, answer, list(self._sent(agent, provider.requests)))

    def _agent(self) -> Any:
        from praisonaiagents import Agent, ExecutionConfig

        from ...praisonai import install

        install()
        context = {
            "strategy": "summarize",
            "context_window": WINDOW,
            "protect_last_n_tokens": KEEP_TOKENS,
            # Without a model's summary the static one stands in.
            "llm_summarize": not self._static,
        }
        return Agent(
            name="reader",
            instructions=READER,
            llm=MODEL,
            tools=[search, read_lines],
            context=context,
            execution=ExecutionConfig(max_iter=60, max_tool_calls_per_turn=60),
            output="silent",
        )

    def _sent(self, agent: Any, records: Sequence[Recorded]) -> Iterator[Sent]:
        compressor = agent.context_compressor
        engine = compressor.engine()
        count = engine.tokens.messages
        earlier: Sent | None = None
        for record in records:
            if text_of(record.messages[0]).startswith(INSTRUCTIONS[:60]):
                self.summaries.append(record)
                continue
            self._count += 1
            view = record.messages
            whole = engine.verbatim(view, session_id=compressor.session_id)
            before = whole if earlier is None else _extended(earlier, whole)
            earlier = Sent(
                number=self._count,
                whole=whole,
                before=before,
                view=view,
                tokens_whole=record.prompt_tokens + count(whole) - count(view),
                tokens_before=record.prompt_tokens + count(before) - count(view),
                tokens=record.prompt_tokens,
                cached=record.cached_tokens,
                done=_done(before, view),
                refused=record.error if record.refused else None,
            )
            yield earlier


def _extended(earlier: Sent, whole: list[Message]) -> list[Message]:
    return [*earlier.view, *whole[len(earlier.whole) :]]


def _done(before: list[Message], view: list[Message]) -> str | None:
    if before == view:
        return None
    return "masked" if len(before) == len(view) else "summarized"


# ---------------------------------------------------------------- surroundings
_OFFLINE = {
    # The host and litellm would otherwise ask the network for prices and send telemetry.
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "PRAISONAI_TELEMETRY_DISABLED": "true",
    "DO_NOT_TRACK": "1",
    # A proxy of the user's must not be asked for this machine.
    "NO_PROXY": "127.0.0.1,localhost",
    "no_proxy": "127.0.0.1,localhost",
    "OPENAI_API_KEY": "none-needed",
}


@contextlib.contextmanager
def _alone_with(provider: LocalProvider) -> Iterator[None]:
    """An environment that knows no other provider, and a host that keeps its log to itself."""
    ours = {
        **_OFFLINE,
        "OPENAI_BASE_URL": provider.base_url,
        "OPENAI_API_BASE": provider.base_url,
    }
    before = {name: os.environ.get(name) for name in ours}
    level = logging.root.manager.disable
    os.environ.update(ours)
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(level)
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        _uninstall()


def _uninstall() -> None:
    if "praison_compressor.praisonai" in sys.modules:
        from ...praisonai import uninstall

        uninstall()
