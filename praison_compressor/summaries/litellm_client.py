"""Ask the auxiliary model through litellm; find where the host's requests go.

litellm is imported at the first summary. With an `api_base` every request goes there: a transcript
must not leave its premises.
"""

from __future__ import annotations

import asyncio
import contextvars
import importlib
import os
import re
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import Any, NamedTuple, TypeVar

from ..concurrency import fork_guard, start_thread
from ..errors import FailureKind, SummarizerUnavailable
from ..ledger.segments import Usage
from ..messages import Message
from ..tokens.models import bare_names, model_limits
from ..tokens.refusals import error_chain, error_text, overflow_of
from .protocol import SummaryReply

T = TypeVar("T")

THINKING_TOKENS = 4_000
"""Added to `max_tokens` for reasoning models: their reasoning counts as part of the answer."""

HONOURS_API_BASE = frozenset(
    "anthropic azure azure_ai bedrock cerebras cohere custom_openai deepseek fireworks_ai gemini "
    "groq hosted_vllm litellm_proxy llamafile lm_studio mistral moonshot nvidia_nim ollama "
    "ollama_chat openai openrouter perplexity sambanova together_ai xai xinference".split()
)
"""litellm's providers that are tested to send to `api_base`; other providers may send elsewhere."""


@dataclass(frozen=True)
class LiteLLMSummarizer:
    """Ask a model for summaries through litellm.

    With `api_base`, a prefix of the model names the protocol, as in `anthropic/NAME`; otherwise the
    protocol is OpenAI's.
    """

    model: str
    _: KW_ONLY
    api_base: str | None = None
    api_key: str | None = field(default=None, repr=False)
    extra: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """More arguments for litellm: `api_version`, `extra_headers`, ..."""
    context_window: int | None = None
    """Window in tokens; None: by litellm's table."""

    def window_for(self, model: str | None = None) -> int:
        """Return a model's window in tokens."""
        return model_limits(model or self.model, self.context_window).window

    async def ready(self) -> None:
        """Import litellm in a thread: it takes seconds."""
        await _in_thread(_import_litellm)

    async def summarize(
        self,
        messages: list[Message],
        *,
        max_tokens: int,
        model: str | None = None,
        timeout_seconds: float = 60.0,
    ) -> SummaryReply:
        """Return the model's answer to a request for a summary.

        Raises:
            SummarizerUnavailable: no answer came.
        """
        name = model or self.model
        litellm = await _in_thread(_import_litellm)
        thinks = any(map(_REASONERS.match, bare_names(name)))
        request = {
            "messages": messages,
            # litellm drops options that a listed model lacks.
            **({"reasoning_effort": "low"} if thinks else {"temperature": 0}),
            **self.extra,
            **self._endpoint(litellm, name),
            "max_tokens": max_tokens + THINKING_TOKENS * thinks,
            "timeout": timeout_seconds + 1,  # the caller's error comes first: it names a remedy
            "stream": False,
            # The caller retries, by the kind of the error.
            "num_retries": 0,
            "max_retries": 0,
            "drop_params": True,
        }
        return await _in_thread(partial(self._ask, litellm, name, request))

    def _ask(self, litellm: Any, model: str, request: dict[str, Any]) -> SummaryReply:
        try:
            return _read_reply(model, _call_litellm(litellm, request))
        except Exception as error:
            text = f"{model}: {type(error).__name__}: {error_text(error)[:400]}"
            if self.api_key:
                # Only the whole word is replaced: a local server's key may be "x".
                text = re.sub(rf"(?<!\w){re.escape(self.api_key)}(?!\w)", "***", text)
            kind, wait = failure_of(error), retry_after(error)
            raise SummarizerUnavailable(text, kind=kind, retry_after=wait) from error

    def _endpoint(self, litellm: Any, model: str) -> dict[str, Any]:
        key = {"api_key": self.api_key} if self.api_key else {}
        if not self.api_base:
            return {"model": model, **key}
        prefix, slash, _ = model.partition("/")
        providers = {str(getattr(name, "value", name)) for name in litellm.provider_list}
        by_name = prefix if slash and prefix in providers else "openai"
        provider = self.extra.get("custom_llm_provider") or by_name
        if provider not in HONOURS_API_BASE:
            raise SummarizerUnavailable(
                f"{model}: litellm's provider {provider!r} may not send to api_base, so nothing "
                f"was sent; name the model openai/... if {self.api_base} speaks OpenAI's protocol",
                kind="refused",
            )
        has_key = self.api_key or litellm.api_key or litellm.openai_key
        if provider == "openai" and not has_key and "OPENAI_API_KEY" not in os.environ:
            # OpenAI's client requires a key; local servers ignore keys.
            key = {"api_key": "none"}
        name = model.removeprefix(f"{provider}/")
        return {"model": name, "custom_llm_provider": provider, "api_base": self.api_base, **key}


# -------------------------------------------------------------- the library


async def _in_thread(work: Callable[[], T]) -> T:
    # In an empty context our wrappers of litellm (`praisonai/wire`) compress nothing.
    return await asyncio.wrap_future(start_thread(work, context=contextvars.Context()))


def _import_litellm() -> Any:
    """Import litellm without its hints and its fetch of prices."""
    variable = "LITELLM_LOCAL_MODEL_COST_MAP"
    if "litellm" not in sys.modules:
        was_unset = variable not in os.environ
        os.environ.setdefault(variable, "True")
        try:
            with fork_guard:  # a child forked during the import could never import litellm
                vars(importlib.import_module("litellm"))["telemetry"] = False
        finally:
            if was_unset:
                os.environ.pop(variable, None)
    litellm: Any = importlib.import_module("litellm")
    # This keeps litellm from printing two lines for each unknown price.
    litellm.suppress_debug_info = True
    return litellm


class Route(NamedTuple):
    """A request's provider."""

    provider: str | None
    reports_streams: bool
    """Whether the provider takes `stream_options`."""


def route_of(request: Mapping[str, Any]) -> Route:
    """Return where litellm would send a request of the host."""
    litellm: Any = importlib.import_module("litellm")  # the host has imported it
    where = {key: request.get(key) for key in ("model", "custom_llm_provider", "api_key")}
    base = request.get("api_base") or request.get("base_url")
    try:
        provider = str(litellm.get_llm_provider(**where, api_base=base)[1])
    except litellm.BadRequestError:
        return Route(None, False)
    if provider not in ("openai", "azure", *getattr(litellm, "openai_compatible_providers", ())):
        return Route(provider, False)
    params = litellm.get_supported_openai_params(str(request.get("model")), provider) or ()
    return Route(provider, "stream_options" in params)


_REASONERS = re.compile(
    r"o[134](?![a-z0-9])|gpt-5|gpt-oss|gemini-(2\.5|[3-9])|.*(reasoner|-r1|qwq)"
)


def _call_litellm(litellm: Any, request: dict[str, Any]) -> Any:
    """Ask litellm; repeat without options that the deployment refuses."""
    while True:
        try:
            return litellm.completion(**request)
        except (litellm.BadRequestError, litellm.UnprocessableEntityError) as error:
            is_refused = failure_of(error) == "refused"
            adapted = _without_refused_option(request, str(error)) if is_refused else None
            if adapted is None:
                raise
            request = adapted


def _without_refused_option(request: dict[str, Any], refusal: str) -> dict[str, Any] | None:
    for name in ("max_tokens", "temperature", "reasoning_effort", "max_retries"):
        other = "max_completion_tokens" if name == "max_tokens" else ""
        if name in request and (other or name) in refusal:
            reduced = {key: value for key, value in request.items() if key != name}
            return {**reduced, other: request[name]} if other else reduced
    return None


# -------------------------------------------------------------- the answer


def _read_reply(model: str, response: Any) -> SummaryReply:
    usage = _read_usage(response)
    choices = getattr(response, "choices", None)
    if not choices:  # an empty answer costs money too
        return SummaryReply("", usage, model)
    message = choices[0].message
    text = message.content if isinstance(message.content, str) else ""
    # OpenAI's refusals stand in another field, with the finish reason `stop`.
    fields = getattr(message, "provider_specific_fields", None) or {}
    is_refused = not text and bool(fields.get("refusal"))
    return SummaryReply(text, usage, model, "refusal" if is_refused else choices[0].finish_reason)


def _read_usage(response: Any) -> Usage:
    usage = getattr(response, "usage", None)
    details = getattr(usage, "prompt_tokens_details", None)
    return Usage(
        prompt_tokens=_field_count(usage, "prompt_tokens"),
        completion_tokens=_field_count(usage, "completion_tokens"),
        cache_read_tokens=_field_count(details, "cached_tokens"),
        cache_write_tokens=_field_count(usage, "cache_creation_input_tokens"),
        # US dollars; None: unknown price
        cost=(getattr(response, "_hidden_params", None) or {}).get("response_cost"),
    )


def _field_count(usage: Any, name: str) -> int:
    value = getattr(usage, name, None)
    return value if isinstance(value, int) else 0


# -------------------------------------------------------------- errors

_FAILURE_KINDS: tuple[tuple[FailureKind, set[str]], ...] = (
    # Kind, names of error classes; the first row that fits is used.
    ("timeout", {"Timeout", "APITimeoutError", "TimeoutException", "TimeoutError"}),
    ("context", {"ContextWindowExceededError"}),
    ("auth", {"AuthenticationError", "PermissionDeniedError"}),
    ("quota", {"RateLimitError", "BudgetExceededError"}),
    # litellm raises APIConnectionError for anything unexpected.
    ("network", {"TransportError", "ConnectionError", "gaierror"}),
)
_REFUSAL_CLASSES = {"NotFoundError", "BadRequestError", "UnprocessableEntityError"}


def failure_of(error: BaseException) -> FailureKind:
    """Return the kind of failure, by the error and its causes."""
    names = {
        base.__name__ for cause in error_chain(error, contexts=True) for base in type(cause).__mro__
    }
    kinds = (kind for kind, classes in _FAILURE_KINDS if names & classes)
    fallback: FailureKind = "refused" if names & _REFUSAL_CLASSES else "provider"
    return next(kinds, None) or ("context" if overflow_of(error) is not None else fallback)


def retry_after(error: BaseException) -> float | None:
    """Return the seconds that the provider asks to wait, or None."""
    for cause in error_chain(error, contexts=True):
        headers = getattr(getattr(cause, "response", None), "headers", None) or {}
        with suppress(KeyError, ValueError):
            return max(0.0, float(headers["retry-after"]))
    return None
