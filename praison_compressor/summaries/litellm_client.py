"""Ask the auxiliary model through litellm; read answers, costs and errors.

The only module that imports litellm, at the first summary. With an `api_base` nothing is sent
anywhere else: an on-premises transcript stays on its premises.
"""

from __future__ import annotations

import asyncio
import contextvars
import importlib
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import Any, TypeVar

from ..concurrency import begin, undivided
from ..errors import SummarizerUnavailable
from ..ledger.segments import Usage
from ..messages import Message
from ..tokens.models import bare_names, model_limits
from ..tokens.refusals import overflow_of
from .protocol import SummaryReply

T = TypeVar("T")

THINKING_TOKENS = 4_000
"""Added to the cap for models that think before they write: thoughts count against the cap."""

HONOURS_API_BASE = frozenset(
    "anthropic azure azure_ai bedrock cerebras cohere custom_openai deepseek fireworks_ai gemini "
    "groq hosted_vllm litellm_proxy llamafile lm_studio mistral moonshot nvidia_nim ollama "
    "ollama_chat openai openrouter perplexity sambanova together_ai xai xinference".split()
)
"""Providers of litellm's that are tested to send to `api_base`; others may not."""


@dataclass(frozen=True)
class LiteLLMSummarizer:
    """Asks a model for summaries.

    With `api_base` every model is asked there: a bare name, or one whose prefix is no provider of
    litellm's, in OpenAI's protocol; `anthropic/NAME` in Anthropic's.
    """

    model: str
    _: KW_ONLY
    api_base: str | None = None
    api_key: str | None = field(default=None, repr=False)
    extra: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """For litellm: `api_version`, `extra_headers`, ..."""
    context_window: int | None = None
    """Corrects litellm's table."""

    def window_for(self, model: str | None = None) -> int:
        """Return the input tokens that `model`, or the summarizer's own, can take."""
        return model_limits(model or self.model, self.context_window).window

    async def ready(self) -> None:
        """Import litellm in a thread: it takes seconds."""
        await _in_thread(_litellm)

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
        litellm = await _in_thread(_litellm)
        thinks = any(map(_THINKS.match, bare_names(name)))
        request = {
            "messages": messages,
            # litellm drops what a listed model lacks, and names the cap as each provider does.
            **({"reasoning_effort": "low"} if thinks else {"temperature": 0}),
            **self.extra,
            **self._endpoint(litellm, name),
            "max_tokens": max_tokens + THINKING_TOKENS * thinks,
            "timeout": timeout_seconds + 1,  # the caller gives up first and names the remedy
            "stream": False,
            # The compressor retries: it knows the error's kind and the time left.
            "num_retries": 0,
            "max_retries": 0,
            "drop_params": True,
        }
        return await _in_thread(partial(self._ask, litellm, name, request))

    def _ask(self, litellm: Any, model: str, request: dict[str, Any]) -> SummaryReply:
        try:
            return _reply(model, _complete(litellm, request))
        except Exception as error:
            words = f"{type(error).__name__}: {words_of(error)[:400]}"
            if self.api_key:
                words = words.replace(self.api_key, "***")
            raise SummarizerUnavailable(
                f"{model}: {words}", kind=kind_of(error), retry_after=retry_after(error)
            ) from error

    def _endpoint(self, litellm: Any, model: str) -> dict[str, Any]:
        key = {"api_key": self.api_key} if self.api_key else {}
        if not self.api_base:
            return {"model": model, **key}
        prefix, slash, _ = model.partition("/")
        known = {str(getattr(name, "value", name)) for name in litellm.provider_list}
        by_name = prefix if slash and prefix in known else "openai"
        provider = self.extra.get("custom_llm_provider") or by_name
        if provider not in HONOURS_API_BASE:
            raise SummarizerUnavailable(
                f"{model}: litellm's provider {provider!r} is not known to send to api_base; "
                f"nothing was sent; name the model openai/... if {self.api_base} speaks "
                "OpenAI's protocol",
                kind=REFUSED,
            )
        found = self.api_key or litellm.api_key or litellm.openai_key
        if provider == "openai" and not found and "OPENAI_API_KEY" not in os.environ:
            # The client refuses to start without a key; a local server asks for none.
            key = {"api_key": "none"}
        name = model.removeprefix(f"{provider}/")
        return {"model": name, "custom_llm_provider": provider, "api_base": self.api_base, **key}


# -------------------------------------------------------------- the library


async def _in_thread(work: Callable[[], T]) -> T:
    # In an empty context: a wrapper of litellm finds no agent there.
    return await asyncio.wrap_future(begin(work, context=contextvars.Context()))


def _litellm() -> Any:
    """Import litellm without its hints and its fetch of prices."""
    variable = "LITELLM_LOCAL_MODEL_COST_MAP"
    if "litellm" not in sys.modules:
        ours = variable not in os.environ
        os.environ.setdefault(variable, "True")
        try:
            with undivided:  # a child that is forked in mid-import could never import it
                vars(importlib.import_module("litellm"))["telemetry"] = False
        finally:
            if ours:
                os.environ.pop(variable, None)
    litellm: Any = importlib.import_module("litellm")
    # Each failed price look-up would print two lines between the agent's words.
    litellm.suppress_debug_info = True
    return litellm


def provider_of(litellm: Any, request: Mapping[str, Any]) -> str | None:
    """Return the provider to which litellm would send a request, or None."""
    where = {key: request.get(key) for key in ("model", "custom_llm_provider", "api_key")}
    base = request.get("api_base") or request.get("base_url")
    try:
        return str(litellm.get_llm_provider(**where, api_base=base)[1])
    except litellm.BadRequestError:
        return None


_THINKS = re.compile(r"o[134](?![a-z0-9])|gpt-5|gpt-oss|gemini-(2\.5|[3-9])|.*(reasoner|-r1|qwq)")
"""Names of models that think before they write."""


def _complete(litellm: Any, request: dict[str, Any]) -> Any:
    """Ask; repeat without each option that the deployment refuses."""
    while True:
        try:
            return litellm.completion(**request)
        except (litellm.BadRequestError, litellm.UnprocessableEntityError) as error:
            adapted = _adapted(request, str(error)) if kind_of(error) == REFUSED else None
            if adapted is None:
                raise
            request = adapted


def _adapted(request: dict[str, Any], refusal: str) -> dict[str, Any] | None:
    """Return the request without the option that the refusal names, or None."""
    for name in ("max_tokens", "temperature", "reasoning_effort", "max_retries"):
        other = "max_completion_tokens" if name == "max_tokens" else ""
        if name in request and (other or name) in refusal:
            rest = {key: value for key, value in request.items() if key != name}
            return {**rest, other: request[name]} if other else rest
    return None


# -------------------------------------------------------------- the answer


def _reply(model: str, response: Any) -> SummaryReply:
    usage = _usage(response)
    choices = getattr(response, "choices", None)
    if not choices:  # refused as empty, but paid for
        return SummaryReply("", usage, model)
    message = choices[0].message
    text = message.content if isinstance(message.content, str) else ""
    # OpenAI's answers have refusals in another field, with the finish reason `stop`.
    fields = getattr(message, "provider_specific_fields", None) or {}
    is_refused = not text and bool(fields.get("refusal"))
    return SummaryReply(text, usage, model, "refusal" if is_refused else choices[0].finish_reason)


def _usage(response: Any) -> Usage:
    usage = getattr(response, "usage", None)
    details = getattr(usage, "prompt_tokens_details", None)
    return Usage(
        prompt_tokens=_number(usage, "prompt_tokens"),
        completion_tokens=_number(usage, "completion_tokens"),
        cache_read_tokens=_number(details, "cached_tokens"),
        cache_write_tokens=_number(usage, "cache_creation_input_tokens"),
        # US dollars by litellm's table; None where it has no price.
        cost=(getattr(response, "_hidden_params", None) or {}).get("response_cost"),
    )


def _number(usage: Any, name: str) -> int:
    value = getattr(usage, name, None)
    return value if isinstance(value, int) else 0


# -------------------------------------------------------------- what went wrong

_KINDS = (
    # By class name, the most special first.
    ("timeout", {"Timeout", "APITimeoutError", "TimeoutException", "TimeoutError"}),
    ("context", {"ContextWindowExceededError"}),
    ("auth", {"AuthenticationError", "PermissionDeniedError"}),
    ("quota", {"RateLimitError", "BudgetExceededError"}),
    # Not APIConnectionError: litellm's name for anything unexpected.
    ("network", {"TransportError", "ConnectionError", "gaierror"}),
)
REFUSED = "refused"
"""The kind of a request that would be refused again: an unknown model, an invalid request."""
_REFUSALS = {"NotFoundError", "BadRequestError", "UnprocessableEntityError"}


def kind_of(error: BaseException) -> str:
    """Return a kind of SummarizerUnavailable, from the error or its causes."""
    names = {base.__name__ for cause in _causes(error) for base in type(cause).__mro__}
    kinds = (kind for kind, classes in _KINDS if names & classes)
    fallback = REFUSED if names & _REFUSALS else "provider"
    return next(kinds, None) or ("context" if overflow_of(error) is not None else fallback)


def words_of(error: BaseException) -> str:
    """Return an error's text, even if its `__str__` fails."""
    try:
        return str(error)
    except Exception:
        return "without a text"


def retry_after(error: BaseException) -> float | None:
    """Return the wait in seconds that the provider asked for, or None."""
    for cause in _causes(error):
        headers = getattr(getattr(cause, "response", None), "headers", None) or {}
        with suppress(KeyError, ValueError):
            return max(0.0, float(headers["retry-after"]))
    return None


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        yield cause
        hidden = cause.__suppress_context__  # by `from None`
        cause = cause.__cause__ or (None if hidden else cause.__context__)
