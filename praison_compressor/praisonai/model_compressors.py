"""Make an agent's compressor for each model; apply the learned windows.

A refusal and its remedies are noted here; `tokens.learned` decides about a model's window.

The agent's own model writes the summaries, at its own endpoint: an on-premises transcript must not
reach a public provider.
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
from ..concurrency import renew_after_fork
from ..config import CompressorConfig
from ..ledger.stores import Store
from ..messages import Message, text_of
from ..messages.shapes import signatures, without_thinking
from ..summaries.protocol import Summarizer
from ..tokens.counter import TokenCounter
from ..tokens.learned import WindowLearner
from ..tokens.models import model_limits
from ..tokens.refusals import Overflow, overflow_of
from ..view.budget import usual_reserve
from .agent_ledger import agent_title, open_agent_ledger
from .notices import Notices
from .request_shapes import (
    ROLE_ORDER,
    HostRequest,
    SentRequest,
    alternate_roles,
    is_thinking_refused,
    refused_feature,
    without_model_keys,
)

logger = logging.getLogger(__name__)

# Parameters of the agent's answers, which summaries do not have.
_ANSWER_PARAMETERS = frozenset(
    "frequency_penalty function_call functions logit_bias logprobs max_completion_tokens "
    "max_tokens messages n presence_penalty response_format seed stop stream stream_options "
    "temperature timeout tool_choice tools top_logprobs top_p web_search_options".split()
)


def _own_summarizer(agent: Any, window: int | None) -> Summarizer | None:
    """Return the agent's own model, or None if it cannot be called."""
    from ..summaries.litellm_client import LiteLLMSummarizer

    if getattr(agent, "_using_custom_llm", False):
        build = getattr(getattr(agent, "llm_instance", None), "_build_completion_params", None)
        if not callable(build):
            return None
        extra = {key: value for key, value in build().items() if key not in _ANSWER_PARAMETERS}
        model, key = extra.pop("model"), extra.pop("api_key", None)
        base_url, api_base = extra.pop("base_url", None), extra.pop("api_base", None)
        base = api_base or base_url
    else:
        client, model = getattr(agent, "_openai_client", None), getattr(agent, "llm", None)
        if client is None or not isinstance(model, str):
            return None
        model = model if model.startswith("openai/") else f"openai/{model}"
        # The client knows the environment's base_url, too.
        base, key, extra = str(client.sync_client.base_url), client.api_key, {}
    return LiteLLMSummarizer(model, api_base=base, api_key=key, extra=extra, context_window=window)


def _is_same_model(name: str | None, other: str | None) -> bool:
    if name is None or other is None:
        return True
    return name.rsplit("/", 1)[-1] == other.rsplit("/", 1)[-1]


@dataclass(frozen=True)
class _RefusedRequest:
    reserve: int | None
    """The output reserve at the first refusal."""
    sent: SentRequest
    """The request that was refused first."""
    words: str
    """The newest refusal's words, without numbers."""


class _Model:
    def __init__(self, compressor: ContextCompressor) -> None:
        self.compressor = compressor
        self.learner = WindowLearner(_window_of(compressor.config))
        self.refused: _RefusedRequest | None = None
        """The request for which a smaller window is tried now."""
        self.refusals_not_of_length: set[str] = set()
        """Words of uncertain refusals that a smaller request got again."""

    def remember_refusal(self, sent: SentRequest, words: str) -> None:
        first = self.refused or _RefusedRequest(self.compressor.config.output_reserve, sent, words)
        self.refused = replace(first, words=words)

    @property
    def is_trial_uncertain(self) -> bool:
        return self.learner.trial is not None and not self.learner.trial.refusal.certain


class ModelCompressors:
    """The compressors of one agent, by model; thread-safe."""

    def __init__(
        self, config: CompressorConfig, agent: weakref.ref[Any], own_model: bool, notices: Notices
    ) -> None:
        self.config = config
        self._agent = agent
        self._own_model = own_model
        self._notices = notices
        self._lock = renew_after_fork(threading.RLock())
        self._models: dict[str | None, _Model] = {}
        self._store: Store | None = None
        self._first: ContextCompressor | None = None
        self._refused_features: set[tuple[str | None, str]] = set()
        self._invalid_thinking: frozenset[str] = frozenset()
        """Signatures of thinking that a provider refused after a changed prefix."""

    def for_model(self, model: str | None) -> ContextCompressor:
        """Return the compressor for a model; None is the agent's own."""
        return self._model(model).compressor

    def _model(self, model: str | None) -> _Model:
        own_name = self.config.model
        name = own_name if _is_same_model(model, own_name) else model
        with self._lock:
            if name not in self._models:
                window = self.config.context_window if name == own_name else None
                config = replace(self.config, model=name, context_window=window)
                reserve = _usable_reserve(config.output_reserve, _window_of(config))
                if reserve != config.output_reserve:
                    logger.warning(
                        "output_reserve=%d leaves nothing of the %d tokens that %s takes: the "
                        "usual reserve is kept; lower output_reserve",
                        config.output_reserve,
                        _window_of(config),
                        name or "the model",
                    )
                    config = replace(config, output_reserve=reserve)
                self._models[name] = _Model(self._make(config, TokenCounter(name)))
            return self._models[name]

    def with_focus(self, focus: str | None) -> ContextCompressor:
        """Return the compressor of the agent's own model, with a focus."""
        compressor = self.for_model(None)
        if not focus:
            return compressor
        instructions = compressor.config.summary_instructions or ""
        words = f"{instructions}\nKeep most of all what concerns this: {focus}".strip()
        return self._make(replace(compressor.config, summary_instructions=words), compressor.tokens)

    def _make(self, config: CompressorConfig, tokens: TokenCounter) -> ContextCompressor:
        summarizer = self._summarizer(config)  # may make the first compressor
        made = ContextCompressor(
            config,
            summarizer=summarizer,
            store=self.open_ledger(),
            tokens=tokens,
            on_event=self._notices,
            before_compression=self._notices.before_compression,
            # Shared, so that the agent's next result reports the background's cost for any model.
            shares_sessions_with=self._first,
        )
        self._first = self._first or made
        return made

    def open_ledger(self) -> Store:
        """Return the agent's ledger; open it at the first call."""
        with self._lock:
            if self._store is None:
                self._store = open_agent_ledger(self.config, self._agent())
            return self._store

    def _summarizer(self, config: CompressorConfig) -> Summarizer | None:
        agent = self._agent()
        if config.auxiliary_model or not self._own_model or agent is None:
            return None  # `ContextCompressor` makes the configured one, if any
        own_config = config if config.model == self.config.model else self.for_model(None).config
        try:
            return _own_summarizer(agent, own_config.context_window)
        except Exception:  # a host in an unknown state
            logger.warning("the agent's own model cannot be asked: static summaries", exc_info=True)
            return None

    # ------------------------------------------------------------ sizes

    def overhead(self, request: HostRequest, window: int | None = None) -> int:
        """Return a request's tokens beside messages and usual answer."""
        compressor = self.for_model(request.model)
        usual = _reserve(compressor.config.output_reserve, window or _window_of(compressor.config))
        return request.schema_tokens(compressor.tokens) + max(0, request.output_tokens - usual)

    def room(self, request: HostRequest) -> int:
        """Return the tokens that a request's messages may take."""
        config = self.for_model(request.model).config
        window = _window_of(config)
        return max(1, window - _reserve(config.output_reserve, window) - self.overhead(request))

    def size(self, sent: SentRequest) -> int:
        """Return a sent request's tokens, with the longest answer that it allows."""
        request, view = sent
        counter = self.for_model(request.model).tokens
        return counter.messages(view) + request.schema_tokens(counter) + request.output_tokens

    # ------------------------------------------------------------ refusals

    def refused_features(self, request: HostRequest) -> frozenset[str]:
        """Return the features that the request's model has refused."""
        return frozenset(name for model, name in self._refused_features if model == request.model)

    def adapt_view(self, request: HostRequest, view: Sequence[Message]) -> Sequence[Message]:
        """Return the view without what the request's model has refused."""
        foreign = {id(message) for message in request.foreign}
        view = [without_model_keys(m) if id(m) in foreign else m for m in view]
        if invalid := self._invalid_thinking:
            view = [without_thinking(m) if signatures(m) & invalid else m for m in view]
        return alternate_roles(view) if ROLE_ORDER in self.refused_features(request) else view

    def learn_refusal(self, sent: SentRequest, error: Exception) -> bool:
        """Learn from a refusal; return whether another view may pass."""
        request, view = sent
        if is_thinking_refused(error):
            thinking = frozenset[str]().union(*map(signatures, view)) - self._invalid_thinking
            self._invalid_thinking |= thinking
            return bool(thinking)
        title, feature = agent_title(self._agent()), refused_feature(error)
        if feature is not None and feature not in self.refused_features(request):
            logger.info("agent %s: %s does not take %s", title, request.model, feature)
            self._refused_features.add((request.model, feature))
            return True
        overflow = overflow_of(error, self.size(sent), map(text_of, view))
        if overflow is None or not self._try_smaller_window(sent, overflow, str(error)):
            return False
        logger.info("agent %s: %s refused a request as too long", title, request.model)
        return True

    # ------------------------------------------------------------ learned windows

    def _try_smaller_window(self, sent: SentRequest, overflow: Overflow, text: str) -> bool:
        words = re.sub(r"\d+", "#", text)
        with self._lock:
            model = self._model(sent.request.model)
            if words in model.refusals_not_of_length:
                return False
            learned_window = model.learner.learn_refusal(overflow, self.size(sent))
            if learned_window is None:
                return False
            model.remember_refusal(sent, words)
            reserve_before = model.compressor.config.output_reserve
            reserve = _reserve_after(overflow, learned_window, sent, reserve_before)
            messages = model.compressor.tokens.messages(sent.view)
            needed = messages + self.overhead(sent.request, learned_window)
            model.learner.lower_until(lambda window: needed > window - _reserve(reserve, window))
            self._resize(model, reserve)
            return True

    def learn_pass(self, sent: SentRequest) -> None:
        """Learn from a request that passed; log a changed window."""
        with self._lock:
            model = self._model(sent.request.model)
            refused, model.refused = model.refused, None
            trial = model.learner.trial
            window = model.learner.learn_pass(self.size(sent))
            if refused is not None and trial is not None and trial.prompt_tokens is not None:
                request, view = refused.sent
                model.compressor.tokens.calibrate(view, trial.prompt_tokens, request.tools)
            if window is None:
                return
            self._resize(model, model.compressor.config.output_reserve)
        logger.warning(
            "agent %s: the window of %s is now taken as %d tokens, by what it refused and took",
            agent_title(self._agent()),
            sent.request.model,
            window,
        )

    def cancel_trial(self, request: HostRequest) -> None:
        """Return to the window before a trial that did not pass."""
        with self._lock:
            model = self._model(request.model)
            refused, model.refused = model.refused, None
            if refused is None:
                return
            if model.is_trial_uncertain:
                model.refusals_not_of_length.add(refused.words)
            model.learner.cancel_trial()
            self._resize(model, refused.reserve)

    def is_trial_uncertain(self, model: str | None) -> bool:
        """Return whether a smaller window is tried after an uncertain refusal."""
        return self._model(model).is_trial_uncertain

    def learn_usage(self, sent: SentRequest, reported: int) -> None:
        """Learn from reported prompt tokens; log a truncating server's window."""
        request, view = sent
        with self._lock:
            model = self._model(request.model)
            window = model.compressor.tokens.calibrate(view, reported, request.tools)
            if window is None or window >= _window_of(model.compressor.config):
                return
            model.learner.learn_truncation(window)
            self._resize(model, model.compressor.config.output_reserve)
        logger.warning(
            "agent %s: %s silently reads at most %d tokens of a request: its window is now taken "
            "as that",
            agent_title(self._agent()),
            request.model,
            window,
        )

    def _resize(self, model: _Model, reserve: int | None) -> None:
        window = model.learner.window
        reserve = _usable_reserve(reserve, window)
        config = replace(model.compressor.config, context_window=window, output_reserve=reserve)
        model.compressor = self._make(config, model.compressor.tokens)


def _window_of(config: CompressorConfig) -> int:
    return model_limits(config.model, config.context_window).window


def _usable_reserve(reserve: int | None, window: int) -> int | None:
    return reserve if reserve is not None and reserve < window else None


def _reserve_after(
    overflow: Overflow, window: int, sent: SentRequest, reserve: int | None
) -> int | None:
    answer = overflow.answer_tokens or 0
    # litellm asks Claude for its longest answer by default.
    longest = max(_reserve(reserve, window), sent.request.output_tokens)
    return min(answer, window - 1) if answer > longest else reserve


def _reserve(reserve: int | None, window: int) -> int:
    usable = _usable_reserve(reserve, window)
    return usual_reserve(window) if usable is None else usable
