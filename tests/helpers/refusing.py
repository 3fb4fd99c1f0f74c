"""Refusals in servers' own words, and sessions of agents that meet them.

`wordings.tsv` has what is too long, `others.tsv` what a smaller request does not mend: server,
status, code, words; "-" for nothing. The words are of public reports. In them, `{asked}` is the
prompt's tokens, `{window}` the server's window, `{over}` the excess, `{chars}` the prompt's
characters, `{total}` the prompt with an answer of `{answer}` tokens.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import httpx
import openai
from praisonaiagents import Agent

from praison_compressor.testing import (
    Answerer,
    Failure,
    LocalProvider,
    Recorded,
    Reply,
    SummaryModel,
)
from tests.helpers.hosting import agent, context, of_agent, turn

WINDOW, BELIEVED, ANSWER = 6_000, 32_000, 512
TURNS = 24


class Wording(NamedTuple):
    """One server's refusal."""

    server: str
    status: int
    code: str | None
    words: str

    @property
    def names_window(self) -> bool:
        """Whether the refusal names the window, or the excess over it."""
        return any(name in self.words for name in ("{window}", "{window:", "{over}"))

    def said(self, *, asked: int, window: int, chars: int) -> str:
        """Return the words for one request."""
        numbers = {"over": asked - window, "total": asked + ANSWER, "answer": ANSWER}
        return self.words.format(asked=asked, window=window, chars=chars, **numbers)

    def error(self, words: str) -> openai.APIStatusError:
        """Return what OpenAI's client raises for this refusal."""
        body = {"message": words, "type": "invalid_request_error", "code": self.code}
        url = httpx.Request("POST", "http://127.0.0.1/v1")
        response = httpx.Response(self.status, json={"error": body}, request=url)
        return openai.OpenAI(api_key="any")._make_status_error_from_response(response)


def _table(name: str) -> tuple[Wording, ...]:
    lines = (Path(__file__).with_name(name)).read_text(encoding="utf-8").splitlines()
    rows = (["" if cell == "-" else cell for cell in line.split("\t")] for line in lines)
    return tuple(
        Wording(server, int(status), code or None, said) for server, status, code, said in rows
    )


TOO_LONG = _table("wordings.tsv")
OTHERS = _table("others.tsv")


class Session(NamedTuple):
    """How one session went."""

    unanswered: int
    """Turns without an answer."""
    refused: int
    """Different requests that were refused."""
    window: int
    """The window that the agent believes in the end."""

    @property
    def is_well(self) -> bool:
        """Whether it has no stuck turn, at most 2 refusals and a window within 10 %."""
        near = abs(self.window - WINDOW) <= WINDOW / 10
        return not self.unanswered and self.refused <= 2 and near


def session(host: LocalProvider, path: str, said: Wording, *, turns: int = TURNS) -> Session:
    """Run one conversation that outgrows the server's window."""

    def answer(asked: Recorded) -> Reply | Failure:
        tokens = asked.prompt_tokens
        if tokens <= WINDOW:
            return Reply("Noted.")
        words = said.said(asked=tokens, window=WINDOW, chars=len(asked.text))
        return Failure(said.status, words, "invalid_request_error", said.code)

    answers, window = _talk(host, path, answer, BELIEVED, turns)
    refused = {json.dumps(r.messages) for r in of_agent(host) if r.status != 200}
    return Session(answers.count(""), len(refused), window)


CUT = 4_096
REPORTS: dict[str, tuple[Callable[[int, int], int], int]] = {
    "min(count, 4,096)": (lambda tokens, nth: min(tokens, CUT), CUT),
    "30 % after the first": (lambda tokens, nth: tokens if nth == 0 else tokens * 3 // 10, WINDOW),
    "half": (lambda tokens, nth: tokens // 2, WINDOW),
}
"""What a server reports of a request's tokens, and the window that it has."""


class Reported(NamedTuple):
    """How a session with low reports went."""

    requests: int
    over: int
    """Requests of more tokens than the server reads."""
    window: int


def reported(host: LocalProvider, path: str, name: str, *, turns: int = TURNS) -> Reported:
    """Run one conversation with a server that takes everything and reports too little."""
    report, window = REPORTS[name]
    sizes: list[int] = []

    def answer(asked: Recorded) -> Reply:
        sizes.append(asked.prompt_tokens)
        asked.prompt_tokens = report(asked.prompt_tokens, len(sizes) - 1)
        return Reply("Noted.")

    _, found = _talk(host, path, answer, BELIEVED if window == CUT else WINDOW, turns)
    return Reported(len(sizes), sum(size > window for size in sizes), found)


def _talk(
    host: LocalProvider, path: str, answer: Answerer, believed: int, turns: int
) -> tuple[list[str], int]:
    """Return the answers of a new agent's turns, and the window that it believes in the end."""
    host.forget()
    host.set_window(10**9)
    host.set_window(128_000, "aux")
    host.route("aux", SummaryModel(r"L-\d+"))
    host.answer_with(answer)
    made = agent(host, path, context(host, context_window=believed))
    answers = [_chat(made, turn(n, words=36)) for n in range(turns)]
    return answers, made.context_compressor.for_model().config.context_window or 0


def _chat(made: Agent, prompt: str) -> str:
    try:
        return str(made.chat(prompt) or "")
    except Exception:
        return ""
