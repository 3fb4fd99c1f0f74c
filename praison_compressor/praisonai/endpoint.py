"""The agent's own model as its summarizer: same endpoint, same credentials, never a default.

An on-premises transcript must not reach a public provider because a summary was due.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

__all__ = ["Endpoint", "of"]

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


def of(agent: Any) -> Endpoint | None:
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
