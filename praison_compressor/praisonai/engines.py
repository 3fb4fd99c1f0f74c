"""The compressors of one agent, one per model it is sent to; the agent's own model as summarizer at
its own endpoint.

An on-premises transcript must not reach a public provider because a summary was due.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..compressor.context_compressor import ContextCompressor
from ..compressor.sessions import Sessions
from ..config import CompressorConfig
from ..events import Listener
from ..ledger.segments import Store
from ..messages import Message
from ..messages.forks import renewed
from ..summaries.protocol import Summarizer
from ..tokens.counter import TokenCounter
from ..tokens.models import model_limits
from ..tokens.overflow import Overflow
from .requests import HostRequest, same_model
from .sessions import ledger_of

__all__ = [
    "Endpoint",
    "Engines",
    "endpoint_of",
]


# -------------------------------------------------------------- endpoint


# What shapes an answer of the agent; a summary has its own.
_OF_THE_ANSWER = frozenset(
    {
        "frequency_penalty",
        "logit_bias",
        "logprobs",
        "max_completion_tokens",
        "max_tokens",
        "messages",
        "presence_penalty",
        "response_format",
        "seed",
        "stop",
        "stream",
        "stream_options",
        "temperature",
        "timeout",
        "tool_choice",
        "tools",
        "top_logprobs",
        "top_p",
        "web_search_options",
    }
)


@dataclass(frozen=True)
class Endpoint:
    """Where an agent's requests go, in litellm's words."""

    model: str
    api_base: str | None
    api_key: str | None = field(repr=False)
    extra: dict[str, Any] = field(default_factory=dict, repr=False)
    """What else the provider needs: api_version, headers, region, num_ctx …"""


def endpoint_of(agent: Any) -> Endpoint | None:
    """The agent's endpoint; None for a model object of the caller's own that we cannot call."""
    if getattr(agent, "_using_custom_llm", False):
        return _of_llm(getattr(agent, "llm_instance", None))
    return _of_client(getattr(agent, "_openai_client", None), getattr(agent, "llm", None))


def _of_client(client: Any, model: Any) -> Endpoint | None:
    if client is None or not isinstance(model, str):
        return None
    sdk = client.sync_client  # knows what the environment adds to an unset base_url
    name = model if model.startswith("openai/") else f"openai/{model}"
    return Endpoint(name, str(sdk.base_url), client.api_key)


def _of_llm(llm: Any) -> Endpoint | None:
    build = getattr(llm, "_build_completion_params", None)
    if not callable(build):
        return None
    params = {key: value for key, value in build().items() if key not in _OF_THE_ANSWER}
    model = params.pop("model")
    base = params.pop("base_url", None)
    base = params.pop("api_base", None) or base
    return Endpoint(model, base, params.pop("api_key", None), params)


# -------------------------------------------------------------- engines


SHRINK = 0.5  # of the window, where a refusal explains itself no further


class Engines:
    """A window and a tokenizer per model: fallbacks and reflection go to models of their own."""

    def __init__(
        self,
        config: CompressorConfig,
        agent: weakref.ref[Any],
        own_model: bool,
        listener: Listener,
    ) -> None:
        self.config = config
        self._agent = agent
        self._own_model = own_model
        self._listener = listener
        self._lock = renewed(threading.RLock())
        self._made: dict[str | None, ContextCompressor] = {}
        self._learned: dict[str | None, int] = {}
        self._store: Store | None = None
        self._sessions = Sessions()

    def of(self, model: str | None) -> ContextCompressor:
        """The compressor for a model; None is the agent's own."""
        name = self._name(model)
        with self._lock:
            found = self._made.get(name)
            if found is None:
                found = self._made[name] = self._make(self._config_for(name))
            return found

    def focused(self, focus: str | None) -> ContextCompressor:
        """The agent's own, with more words for the summarizer."""
        if not focus:
            return self.of(None)
        config = self._config_for(self.config.model)
        words = f"Keep most of all what concerns this: {focus}"
        given = config.summary_instructions
        with self._lock:
            return self._make(
                replace(config, summary_instructions=f"{given}\n{words}" if given else words)
            )

    def _name(self, model: str | None) -> str | None:
        own = self.config.model
        return own if same_model(model, own) else model

    def _config_for(self, name: str | None) -> CompressorConfig:
        window = self._learned.get(name)
        if window is None and name == self.config.model:
            window = self.config.context_window
        return replace(self.config, model=name, context_window=window)

    def _make(self, config: CompressorConfig) -> ContextCompressor:
        before = self._made.get(config.model)
        made = ContextCompressor(
            config,
            summarizer=self._summarizer(),
            store=self.ledger,
            tokens=before.tokens if before is not None else TokenCounter(config.model),
            on_event=self._listener,
        )
        # What was paid in the background is owed to the agent's next result, whichever gives it.
        made.sessions = self._sessions
        return made

    @property
    def ledger(self) -> Store:
        """Opened when it is first needed."""
        with self._lock:
            if self._store is None:
                self._store = ledger_of(self.config, self._agent())
            return self._store

    def _summarizer(self) -> Summarizer | None:
        """The agent's own model where no auxiliary one is named."""
        agent = self._agent()
        if self.config.auxiliary_model or not self._own_model or agent is None:
            return None  # the compressor makes its own from the configuration, or goes without
        where = endpoint_of(agent)
        if where is None:
            return None
        from ..summaries.litellm_client import LiteLLMSummarizer

        own = self.config.model
        return LiteLLMSummarizer(
            where.model,
            api_base=where.api_base,
            api_key=where.api_key,
            extra=where.extra,
            context_window=self._learned.get(own, self.config.context_window),
        )

    # ------------------------------------------------------------ measures

    def window(self, model: str | None) -> int:
        """Tokens that the model takes, as far as we know."""
        engine = self.of(model)
        return model_limits(engine.config.model, engine.config.context_window).window

    def overhead(self, request: HostRequest) -> int:
        """Tokens that the request needs beside its messages and the usual answer."""
        return self._overhead(request, self.window(request.model))

    def _overhead(self, request: HostRequest, window: int) -> int:
        return self.measured(request) + max(0, request.output_tokens - self._reserve(window))

    def measured(self, request: HostRequest) -> int:
        """Tokens of the request's tools and its answer's format: what is sent beside messages."""
        counter = self.of(request.model).tokens
        tools = counter.tools(request.tools) if request.tools else 0
        return tools + (counter.text(request.schema) if request.schema else 0)

    def room(self, request: HostRequest) -> int:
        """Tokens that the request's messages may take before it is refused."""
        window = self.window(request.model)
        return max(1, window - self._reserve(window) - self.overhead(request))

    def _reserve(self, window: int) -> int:
        if self.config.output_reserve is not None:
            return self.config.output_reserve
        return min(8_000, window // 4)

    # ------------------------------------------------------------ learning

    def shrink(self, request: HostRequest, sent: Sequence[Message], refused: Overflow) -> int:
        """Take a smaller window for the model from a refusal of `sent`; returns it."""
        with self._lock:
            engine, name = self.of(request.model), self._name(request.model)
            window = self.window(request.model)
            if refused.asked is not None:
                # The provider counts otherwise than we do: every later count is corrected.
                engine.tokens.calibrate(sent, refused.asked, request.tools)
            if refused.window is not None:
                window = min(window, refused.window)
            room = window
            if refused.answer is not None:
                window = self._beside(refused.answer, window, request)
                room = window - self._reserve(window)
            needed = engine.tokens.messages(sent) + self._overhead(request, window)
            if needed <= room:  # by what we know now it would have fit, and it did not
                window = self._below(needed, window)
            self._learned[name] = window
            self._made[name] = self._make(self._config_for(name))
            return window

    def _beside(self, answer: int, window: int, request: HostRequest) -> int:
        """The window that leaves a prompt what is left beside a longer answer than we reckon with.

        litellm asks Claude for as long an answer as the model can write, where nobody said.
        """
        if answer <= max(self._reserve(window), request.output_tokens):
            return window
        room = max(1, window - answer)
        reserve = self.config.output_reserve
        return room + (min(8_000, room // 3) if reserve is None else reserve)

    def _below(self, needed: int, window: int) -> int:
        """The window, halved until so many tokens have no room in it."""
        smaller = int(window * SHRINK)
        fits = needed <= smaller - self._reserve(smaller)
        return self._below(needed, smaller) if fits else smaller
