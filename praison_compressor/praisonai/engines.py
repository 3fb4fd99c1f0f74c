"""Make the compressors of one agent: one for each model that its requests go to.

The agent's own model is the summarizer, at its own endpoint.
An on-premises transcript must not reach a public provider because a summary was due.
"""

from __future__ import annotations

import logging
import re
import threading
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..compressor.context_compressor import ContextCompressor
from ..compressor.session_state import Sessions
from ..concurrency import renewed
from ..config import CompressorConfig
from ..ledger.segments import Usage
from ..ledger.stores import Store
from ..messages import Message
from ..summaries.protocol import Summarizer
from ..tokens.counter import TokenCounter
from ..tokens.models import model_limits
from ..tokens.refusals import Overflow
from ..tokens.windows import LearnedWindow
from .ledgers import ledger_of
from .notices import Notices
from .requests import HostRequest, same_model

log = logging.getLogger(__name__)

# What shapes an answer of the agent; a summary has its own.
_OF_THE_ANSWER = frozenset(
    "frequency_penalty function_call functions logit_bias logprobs max_completion_tokens "
    "max_tokens messages n presence_penalty response_format seed stop stream stream_options "
    "temperature timeout tool_choice tools top_logprobs top_p web_search_options".split()
)


def own_summarizer(agent: Any, window: int | None) -> Summarizer | None:
    """Return the agent's own model at its own endpoint, with its key.

    None for a model object of the caller's own, which we cannot call.
    """
    from ..summaries.litellm_client import LiteLLMSummarizer

    if getattr(agent, "_using_custom_llm", False):
        build = getattr(getattr(agent, "llm_instance", None), "_build_completion_params", None)
        if not callable(build):
            return None
        extra = {key: value for key, value in build().items() if key not in _OF_THE_ANSWER}
        model, key = extra.pop("model"), extra.pop("api_key", None)
        base = extra.pop("base_url", None)
        base = extra.pop("api_base", None) or base
    else:
        client, model = getattr(agent, "_openai_client", None), getattr(agent, "llm", None)
        if client is None or not isinstance(model, str):
            return None
        model = model if model.startswith("openai/") else f"openai/{model}"
        # The SDK's client knows what the environment adds to an unset base_url.
        base, key, extra = str(client.sync_client.base_url), client.api_key, {}
    return LiteLLMSummarizer(model, api_base=base, api_key=key, extra=extra, context_window=window)


class Engines:
    """A window and a tokenizer for each model of an agent."""

    def __init__(
        self, config: CompressorConfig, agent: weakref.ref[Any], own_model: bool, notices: Notices
    ) -> None:
        self.config = config
        self._agent = agent
        self._own_model = own_model
        self._notices = notices
        self._lock = renewed(threading.RLock())
        self._made: dict[str | None, ContextCompressor] = {}
        self._store: Store | None = None
        self._sessions = Sessions()
        self._windows: dict[str | None, LearnedWindow] = {}
        self._trials: dict[str | None, _Trial] = {}
        self._vain: set[tuple[str | None, str]] = set()
        """Uncertain refusals that a smaller request met again."""

    def of(self, model: str | None) -> ContextCompressor:
        """Return the compressor for a model; None is the agent's own."""
        own = self.config.model
        name = own if same_model(model, own) else model
        with self._lock:
            if name not in self._made:
                window = self.config.context_window if name == own else None
                config = replace(self.config, model=name, context_window=window)
                known, reserve = model_limits(name, window).window, config.output_reserve
                if _usable(reserve, known) != reserve:
                    log.warning(
                        "output_reserve=%d leaves nothing of the %d tokens that %s takes: the "
                        "usual reserve is kept; lower output_reserve",
                        *(reserve, known, name or "the model"),
                    )
                    config = replace(config, output_reserve=None)
                self._made[name] = self._make(config, TokenCounter(name))
            return self._made[name]

    def focused(self, focus: str | None) -> ContextCompressor:
        """Return the agent's own compressor, with a focus for the summarizer."""
        own = self.of(None)
        if not focus:
            return own
        before = own.config.summary_instructions or ""
        words = f"{before}\nKeep most of all what concerns this: {focus}".strip()
        return self._make(replace(own.config, summary_instructions=words), own.tokens)

    def _make(self, config: CompressorConfig, tokens: TokenCounter) -> ContextCompressor:
        return ContextCompressor(
            config,
            summarizer=self._summarizer(config),
            store=self.open(),
            tokens=tokens,
            on_event=self._notices,
            before_compression=self._notices.before_compression,
            # The agent's next result reports what the background paid, by whichever compressor.
            sessions=self._sessions,
        )

    def open(self) -> Store:
        """Return the agent's ledger; open it at the first call."""
        with self._lock:
            if self._store is None:
                self._store = ledger_of(self.config, self._agent())
            return self._store

    def _summarizer(self, config: CompressorConfig) -> Summarizer | None:
        """Return the agent's own model where no auxiliary one is named."""
        agent = self._agent()
        if config.auxiliary_model or not self._own_model or agent is None:
            return None  # the compressor makes its own from the configuration, or goes without
        own = config if config.model == self.config.model else self.of(None).config
        try:
            return own_summarizer(agent, own.context_window)
        except Exception:  # a host in an unknown state
            log.warning("the agent's own model cannot be asked: static summaries", exc_info=True)
            return None

    def window(self, model: str | None) -> int:
        """Return the tokens that a model takes, as far as we know."""
        engine = self.of(model)
        return model_limits(engine.config.model, engine.config.context_window).window

    def overhead(self, request: HostRequest, window: int | None = None) -> int:
        """Return a request's tokens beside messages and the usual answer."""
        usual = self._reserve(request.model, window or self.window(request.model))
        return self.measured(request) + max(0, request.output_tokens - usual)

    def measured(self, request: HostRequest) -> int:
        """Return the tokens of a request's tools and of its answer's format."""
        counter = self.of(request.model).tokens
        tools = counter.tools(request.tools) if request.tools else 0
        return tools + (counter.text(request.schema) if request.schema else 0)

    def room(self, request: HostRequest) -> int:
        """Return the tokens that a request's messages may take."""
        window = self.window(request.model)
        return max(1, window - self._reserve(request.model, window) - self.overhead(request))

    def _reserve(self, model: str | None, window: int) -> int:
        return _reserved(self.of(model).config.output_reserve, window)

    # ------------------------------------------------------------ learned windows

    def size(self, request: HostRequest, sent: Sequence[Message]) -> int:
        """Return a sent request's tokens, with its cap on the answer."""
        counted = self.of(request.model).tokens.messages(sent)
        return counted + self.measured(request) + request.output_tokens

    def shrink(
        self, request: HostRequest, sent: Sequence[Message], refused: Overflow, words: str
    ) -> bool:
        """Try a smaller window after a refusal; return whether one exists.

        `words` is the refusal's text: an uncertain one is not answered again after a vain try.
        """
        with self._lock:
            engine, size = self.of(request.model), self.size(request, sent)
            learned = self._learned_of(engine)
            kind = (engine.config.model, re.sub(r"\d+", "#", words))
            if kind in self._vain:
                return False
            window = learned.refused(refused, size)
            if window is None:
                return False
            first = self._trials.get(engine.config.model) or _Trial(
                engine, request, sent, refused, kind
            )
            self._trials[engine.config.model] = replace(first, refused=refused, kind=kind)
            reserve = engine.config.output_reserve
            if (refused.answer or 0) > max(
                self._reserve(request.model, window), request.output_tokens
            ):
                # litellm asks Claude for as long an answer as it can write, where nobody said.
                reserve = min(refused.answer or 0, window - 1)
            needed = engine.tokens.messages(sent) + self.overhead(request, window)
            # By our count it may have fit, and it did not.
            while needed <= window - _reserved(reserve, window) and window > learned.floor:
                window = max(window // 2, learned.floor)
            learned.window = window
            self._take(engine, window, _usable(reserve, window))
            return True

    def passed(self, request: HostRequest, sent: Sequence[Message]) -> int | None:
        """Learn from a request that passed; return a changed window."""
        with self._lock:
            engine = self.of(request.model)
            learned, trial = self._learned_of(engine), self._trials.pop(engine.config.model, None)
            asked = None if learned.trial is None else learned.trial.asked
            window = learned.passed(self.size(request, sent))
            if trial is not None and asked is not None:
                engine.tokens.calibrate(trial.sent, asked, trial.request.tools)
            if window is not None:
                self._take(engine, window, _usable(engine.config.output_reserve, window))
            return window

    def gave_up(self, request: HostRequest) -> None:
        """Forget the window that was tried for a request in vain."""
        with self._lock:
            trial = self._trials.pop(self.of(request.model).config.model, None)
            if trial is None:
                return
            window = self._learned_of(trial.engine).gave_up()
            self._take(trial.engine, window, trial.engine.config.output_reserve)
            if not trial.refused.certain:
                self._vain.add(trial.kind)

    def is_unsure(self, model: str | None) -> bool:
        """Return whether an uncertain refusal is being tried."""
        trial = self._trials.get(self.of(model).config.model)
        return trial is not None and not trial.refused.certain

    def used(self, request: HostRequest, sent: Sequence[Message], reported: int) -> int | None:
        """Learn from reported prompt tokens; return a truncating server's window."""
        with self._lock:
            engine = self.of(request.model)
            engine.tokens.calibrate(sent, reported, request.tools)
            window = engine.tokens.truncated_at
            if window is None or window >= self.window(request.model):
                return None
            self._learned_of(engine).truncates(window)
            self._take(engine, window, _usable(engine.config.output_reserve, window))
            return window

    def _learned_of(self, engine: ContextCompressor) -> LearnedWindow:
        name = engine.config.model
        if name not in self._windows:
            self._windows[name] = LearnedWindow(
                model_limits(name, engine.config.context_window).window
            )
        return self._windows[name]

    def _take(self, engine: ContextCompressor, window: int, reserve: int | None) -> None:
        """Replace a model's compressor by one with another window."""
        config = replace(engine.config, context_window=window, output_reserve=reserve)
        self._made[config.model] = self._make(config, engine.tokens)


@dataclass(frozen=True)
class _Trial:
    """A refused request for which a smaller window is tried."""

    engine: ContextCompressor
    """The compressor at the first refusal."""
    request: HostRequest
    sent: Sequence[Message]
    """The messages that were refused first."""
    refused: Overflow
    """The newest refusal."""
    kind: tuple[str | None, str]
    """The model, and the refusal's words without numbers."""


def _usable(reserve: int | None, window: int) -> int | None:
    """Return the output reserve if it is below the window."""
    return reserve if reserve is not None and reserve < window else None


def _reserved(reserve: int | None, window: int) -> int:
    usable = _usable(reserve, window)
    return min(8_000, window // 4) if usable is None else usable


def bill(agent: Any, usage: Usage) -> None:
    """Add what summaries cost to the agent's `cost_summary`, which bounds its budget."""
    sums = ("_cost_lock", "_total_cost", "_total_tokens_in", "_total_tokens_out")
    if usage == Usage() or not all(hasattr(agent, name) for name in sums):
        return
    with agent._cost_lock:
        agent._total_cost += usage.cost or 0.0
        agent._total_tokens_in += usage.prompt_tokens
        agent._total_tokens_out += usage.completion_tokens
