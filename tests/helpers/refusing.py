"""Sessions of real agents against a server with a smaller window than they believe."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import NamedTuple

from praison_compressor.testing import Asked, Failure, LocalProvider, Reply, SummaryModel
from tests.helpers.hosting import agent, context, of_agent, turn
from tests.helpers.wordings import Wording

WINDOW, BELIEVED = 6_000, 32_000
TURNS = 24


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

    def answer(asked: Asked) -> Reply | Failure:
        tokens = asked.prompt_tokens
        if tokens <= WINDOW:
            return Reply("Noted.")
        words = said.said(asked=tokens, window=WINDOW, chars=len(asked.text))
        return Failure(said.status, words, "invalid_request_error", said.code)

    host.forget()
    host.set_window(10**9)
    host.set_window(128_000, "aux")
    host.route("aux", SummaryModel(r"L-\d+"))
    host.answer_with(answer)
    made = agent(host, path, context(host, context_window=BELIEVED))
    answers = [_chat(made, turn(n, words=36)) for n in range(turns)]
    refused = {json.dumps(r.messages) for r in of_agent(host) if r.status != 200}
    window = made.context_compressor.engine().config.context_window
    return Session(sum(not each for each in answers), len(refused), window or 0)


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

    def answer(asked: Asked) -> Reply:
        sizes.append(asked.prompt_tokens)
        asked.prompt_tokens = report(asked.prompt_tokens, len(sizes) - 1)
        return Reply("Noted.")

    host.forget()
    host.set_window(10**9)
    host.set_window(128_000, "aux")
    host.route("aux", SummaryModel(r"L-\d+"))
    host.answer_with(answer)
    believed = BELIEVED if window == CUT else WINDOW
    made = agent(host, path, context(host, context_window=believed))
    for n in range(turns):
        _chat(made, turn(n, words=36))
    found = made.context_compressor.engine().config.context_window
    return Reported(len(sizes), sum(size > window for size in sizes), found or 0)


def _chat(made: object, prompt: str) -> str:
    try:
        return str(made.chat(prompt) or "")  # type: ignore[attr-defined]
    except Exception:
        return ""
