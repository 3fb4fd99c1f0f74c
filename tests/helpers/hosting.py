"""Real agents of the host against the strict local provider, on each of its two client paths."""

import asyncio
import gc
import itertools
import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import pytest
from praisonaiagents import Agent, ExecutionConfig

from praison_compressor import install, uninstall
from praison_compressor.messages import text_of
from praison_compressor.praisonai import CompressorContext
from praison_compressor.recall.answers import READ, SEARCH
from praison_compressor.testing import LocalProvider, SummaryModel, Worker
from tests.helpers.provider import strict_provider

WINDOW = 6_000
WIDE = 14_000
OPENAI, LITELLM = "openai client", "litellm"
RESPONSES, ANTHROPIC = "litellm responses", "litellm anthropic"
PATHS = (OPENAI, LITELLM)
EVERY_PATH = (*PATHS, RESPONSES, ANTHROPIC)
LEDGERS = r"L-\d+"
"""Facts in the words of `turn`."""
WORDS = "the parser reads each line and the writer keeps its order "


class Served(Protocol):
    """Where a provider is reached."""

    @property
    def base_url(self) -> str:
        """Return the URL of OpenAI's API."""

    @property
    def url(self) -> str:
        """Return the URL of Anthropic's API."""


@contextmanager
def at_home(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, provider: LocalProvider
) -> Iterator[LocalProvider]:
    """Give the host the provider in its environment, and nothing of this machine."""
    monkeypatch.setenv("HOME", str(tmp_path))
    # Each would lead to this machine's user; the host remembers the first home that it saw.
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setenv("PRAISONAI_HOME", str(tmp_path / "praisonai"))
    monkeypatch.chdir(tmp_path)
    for name in ("OPENAI_BASE_URL", "OPENAI_API_BASE"):
        monkeypatch.setenv(name, provider.base_url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-agent")
    monkeypatch.setenv("PRAISONAI_AUTO_APPROVE", "true")
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    # Every client would read all certificates of this machine, for a provider without any.
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))
    # Hosts before 1.7.17 use a client on many event loops: each request fails once, and waits.
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0.01)
    provider.set_window(WINDOW)
    provider.set_window(128_000, "aux")
    install()
    # The host leaves streams unread, whose finalizers take httpcore's lock: if the collector runs
    # them while a request holds it, that thread waits for itself for ever.
    gc.disable()
    gc.freeze()  # what is there already: half of a short test went by in looking through litellm
    try:
        yield provider
    finally:
        uninstall()
        gc.enable()
        gc.collect()


@contextmanager
def by_itself(
    answer: Any = None, window: int | None = None, facts: Any = None, **options: Any
) -> Iterator[LocalProvider]:
    """Run the host in its own folder, with its own provider of these `options`.

    With `window` host and provider give the agents' models that window. The summarizer repeats
    `facts`.
    """
    import litellm

    for name in ("gpt-4o-mini", "gpt-local", "claude-sonnet-4-5") if window else ():
        for model in (name, f"openai/{name}", f"anthropic/{name}"):
            known = litellm.model_cost.get(model, {})
            litellm.model_cost[model] = {**known, "max_input_tokens": window}
    with (
        tempfile.TemporaryDirectory() as folder,
        pytest.MonkeyPatch.context() as patch,
        strict_provider(answer, **options) as provider,
        at_home(patch, Path(folder), provider),
    ):
        provider.set_window(window or WINDOW)
        provider.route("aux", SummaryModel(facts))
        yield provider


def agent(provider: Served, path: str, context: Any = None, **more: Any) -> Agent:
    """Return an agent on one of the host's client paths."""
    local = {"base_url": provider.base_url, "api_key": "sk-litellm"}
    where: dict[str, Any] = {
        OPENAI: {"llm": "gpt-4o-mini"},
        # A name that the host does not send to /v1/responses.
        LITELLM: {"llm": "openai/gpt-local", **local},
        RESPONSES: {"llm": "openai/gpt-4o-mini", **local},
        ANTHROPIC: {"llm": "anthropic/claude-sonnet-4-5", **local, "base_url": provider.url},
    }[path]
    settings = {"name": "Ada", "instructions": "You keep the books.", "output": "silent"}
    return Agent(**{**settings, **where, "context": context, **more})


def context(provider: Served, **options: Any) -> CompressorContext:
    """Return our options: the provider's window, its model `aux` as the summarizer."""
    given = {
        "context_window": WINDOW,
        "auxiliary_model": "aux",
        "auxiliary_api_base": provider.base_url,
        "auxiliary_api_key": "sk-aux",
    }
    return CompressorContext(**{**given, **options})


def turn(number: int, words: int = 28) -> str:
    """Return a user's words, each turn's own."""
    return f"Turn {number}: look after ledger L-{number:03d}. " + WORDS * words


LONG = ExecutionConfig(max_iter=500, max_tool_calls_per_turn=5_000)
"""For turns of many calls."""
OUTGROWING = tuple(turn(number, words=73) for number in range(7))
"""Prompts of a conversation that is compressed at its fifth and no longer fits at its seventh."""


def look_up(topic: str, part: int) -> str:
    """Look a topic up.

    Args:
        topic: what to look up
        part: which part of it
    """
    return f"{topic} part {part}: " + WORDS * 12 + f"END-{part}"


def numbered(tool: str, nth: int) -> dict[str, Any]:
    """Return arguments of the nth call: the host stops an agent that repeats itself."""
    if tool == SEARCH:
        return {"query": f"END-{nth}"}
    if tool == READ:
        return {"reference": f"s1.{nth}"}
    return {"topic": f"topic-{nth}", "part": nth}


Mode = Callable[[Agent, Sequence[str]], list[Any]]


def chat(made: Agent, prompts: Sequence[str]) -> list[Any]:
    """Send all prompts through `chat`."""
    return [made.chat(prompt) for prompt in prompts]


def achat(made: Agent, prompts: Sequence[str], name: str = "achat") -> list[Any]:
    """Send all prompts through a coroutine of the agent, on one loop."""

    async def run() -> list[Any]:
        return [await getattr(made, name)(prompt) for prompt in prompts]

    return asyncio.run(run())


def stream(made: Agent, prompts: Sequence[str]) -> list[Any]:
    """Send all prompts through `start(stream=True)`; read every chunk."""
    return ["".join(made.start(prompt, stream=True)) for prompt in prompts]


def iter_stream(made: Agent, prompts: Sequence[str]) -> list[Any]:
    """Send all prompts through `iter_stream`."""
    return ["".join(made.iter_stream(prompt)) for prompt in prompts]


def chat_in_a_loop(made: Agent, prompts: Sequence[str]) -> list[Any]:
    """Send all prompts through `chat`, called on a running event loop."""

    async def run() -> list[Any]:
        return chat(made, prompts)

    return asyncio.run(run())


MODES: dict[str, Mode] = {
    "chat": chat,
    "start": lambda made, prompts: [made.start(prompt) for prompt in prompts],
    "achat": achat,
    "astart": lambda made, prompts: achat(made, prompts, "astart"),
    "stream": stream,
    "iter_stream": iter_stream,
    "chat in a loop": chat_in_a_loop,
}


def cells(paths: Sequence[str]) -> list[tuple[str, str]]:
    """Return every path with every mode."""
    return [(path, mode) for path in paths for mode in MODES]


def talked(host: LocalProvider, path: str = OPENAI, **options: Any) -> Any:
    """Return an agent of eight turns with tools, far below the trigger."""
    host.answer_with(Worker(1, parallel=2, arguments=numbered, answer="Noted. " * 12))
    host.set_window(WIDE)
    made = agent(host, path, context(host, context_window=WIDE, **options), tools=[look_up])
    chat(made, [turn(n) for n in range(8)])
    return made


def of_agent(provider: LocalProvider) -> list[Any]:
    """Return the agent's own requests, without the summarizer's."""
    return [record for record in provider.requests if record.model != "aux"]


def texts_in(record: Any, role: str) -> list[str]:
    """Return the texts of a request's messages of that role."""
    return [text_of(message) for message in record.messages if message["role"] == role]


def without_system(messages: Sequence[Any]) -> bytes:
    """Return the messages' bytes without system prompts: the host rewrites those."""
    said = [m for m in messages if m.get("role") not in ("system", "developer")]
    return b"\n".join(json.dumps(m, sort_keys=True).encode() for m in said)


def reused(before: Any, after: Any) -> float:
    """Return the share of a request's bytes with which the next one begins."""
    one, two = without_system(before.messages), without_system(after.messages)
    same = next((i for i, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), len(one))
    return min(same, len(two)) / max(1, len(one))


def is_dropped(before: Any, after: Any) -> bool:
    """Return whether a tool loop ended between two requests: the host drops it."""
    if before.messages[-1]["role"] != "tool" or after.messages[-1]["role"] != "user":
        return False
    return before.messages[-1] not in after.messages


def prefix_shares(requests: Sequence[Any]) -> list[float]:
    """Return for each request, but after a compression, the share of the one before it.

    A turn's first request is compared with the first of the turn before where that had a tool
    loop and the host leaves its steps out.
    """
    shares, first = [], None
    for before, after in itertools.pairwise(r for r in requests if r.model != "aux"):
        first = before if before.messages[-1]["role"] == "user" else first
        one = first if is_dropped(before, after) else before
        if one is not None and summaries_in(one) == summaries_in(after):
            shares.append(reused(one, after))
    return shares


def summaries_in(record: Any) -> list[str]:
    """Return the summaries and masks of a request: they change with a compression alone."""
    texts = (str(message.get("content")) for message in record.messages)
    return [text for text in texts if "<conversation-summary>" in text or "[masked] " in text]
