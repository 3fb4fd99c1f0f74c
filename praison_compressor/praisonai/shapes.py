"""The two shapes of a request, read into messages and written back from a view.

Two keys are added where the provider takes them: cache marks, and the wish to be told the usage of
a stream. A provider that refuses one by its name is not sent it again (`refused_key`).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ..cachemarks import marked, takes_marks
from ..messages import Message, responses
from ..summarizer import provider_of

__all__ = ["CHAT", "LITELLM_CHAT", "RESPONSES", "Request", "Shape", "refused_key"]

MARKS, USAGE = "cache_control", "stream_options"


@dataclass(frozen=True)
class Request:
    """What a request says, whatever its shape."""

    messages: Sequence[Message]
    model: str | None
    tools: Sequence[Mapping[str, Any]]
    output_tokens: int
    """How long an answer it asks for; 0 where it does not say."""
    schema: str
    """The JSON of the answer's format, which the provider counts as input; "" without one."""

    @property
    def chat_tools(self) -> Sequence[Mapping[str, Any]] | None:
        """The tools as a chat request carries them; None where it is of another shape."""
        return self.tools if all("function" in tool for tool in self.tools) else None


class Shape(Protocol):
    """How one API carries messages."""

    def read(self, params: Mapping[str, Any]) -> Request | None:
        """The request; None where it carries no messages that we know how to read."""

    def write(
        self, params: Mapping[str, Any], view: Sequence[Message], refused: Container[str] = ()
    ) -> dict[str, Any]:
        """The parameters with the view in the place of their messages; `params` is not touched.

        `refused`: which of the keys that we add this model's provider does not take.
        """


class _Chat:
    def read(self, params: Mapping[str, Any]) -> Request | None:
        messages = params.get("messages")
        if not isinstance(messages, (list, tuple)):
            return None
        output = params.get("max_completion_tokens") or params.get("max_tokens")
        return _request(params, messages, output, params.get("response_format"))

    def write(
        self, params: Mapping[str, Any], view: Sequence[Message], refused: Container[str] = ()
    ) -> dict[str, Any]:
        asks = {} if USAGE in refused else _asking_usage(params)
        return {**params, "messages": list(view), **asks}


class _LiteLLMChat(_Chat):
    def write(
        self, params: Mapping[str, Any], view: Sequence[Message], refused: Container[str] = ()
    ) -> dict[str, Any]:
        model = str(params.get("model"))
        # Not imported for it: who sends by litellm has imported it.
        litellm = sys.modules.get("litellm")
        provider = provider_of(litellm, params) if litellm is not None else None
        takes = takes_marks(provider, model)
        asks = not takes and _tells_streams(litellm, provider, model)
        written = super().write(params, view, refused if asks else (USAGE,))
        if takes and MARKS not in refused:
            written["messages"] = marked(view, params.get("tools") or None)
        return written


class _Responses:
    def read(self, params: Mapping[str, Any]) -> Request | None:
        items = params.get("input")
        # A request that goes on from a stored response carries only what is new.
        if params.get("previous_response_id") or params.get("conversation"):
            return None
        if not isinstance(items, str) and not _all_mappings(items):
            return None
        messages = responses.to_messages(params.get("instructions"), items)
        return _request(params, messages, params.get("max_output_tokens"), params.get("text"))

    def write(
        self, params: Mapping[str, Any], view: Sequence[Message], refused: Container[str] = ()
    ) -> dict[str, Any]:
        instructions, items = responses.to_items(view)
        written = {**params, "input": items}
        written.pop("instructions", None)
        return {**written, "instructions": instructions} if instructions else written


CHAT: Shape = _Chat()
LITELLM_CHAT: Shape = _LiteLLMChat()
RESPONSES: Shape = _Responses()


def refused_key(error: BaseException) -> str | None:
    """Which of the keys that we add a provider refuses, by its name in the refusal."""
    return next((key for key in (MARKS, USAGE) if key in str(error)), None)


def _asking_usage(params: Mapping[str, Any]) -> dict[str, Any]:
    """What makes a stream end with its usage, where nobody has said whether it should.

    In the body alone: litellm, told of it, would report its own count where the provider is silent.
    """
    body = params.get("extra_body") or {}
    if not params.get("stream") or params.get(USAGE) or USAGE in body:
        return {}
    return {"extra_body": {**body, USAGE: {"include_usage": True}}}


def _tells_streams(litellm: Any, provider: str | None, model: str) -> bool:
    """Whether litellm's provider speaks OpenAI's protocol and takes that wish."""
    if provider not in ("openai", "azure", *getattr(litellm, "openai_compatible_providers", ())):
        return False
    return USAGE in (litellm.get_supported_openai_params(model, provider) or ())


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _all_mappings(items: Any) -> bool:
    return isinstance(items, (list, tuple)) and all(isinstance(item, Mapping) for item in items)


def _request(
    params: Mapping[str, Any], messages: Sequence[Message], output: Any, form: Any
) -> Request:
    tools = params.get("tools")
    return Request(
        messages=_said_once(messages),
        model=_text(params.get("model")),
        tools=[tool for tool in tools if isinstance(tool, Mapping)]
        if isinstance(tools, (list, tuple))
        else (),
        output_tokens=output if isinstance(output, int) else 0,
        schema=_schema(form),
    )


def _said_once(messages: Sequence[Message]) -> list[Message]:
    """The messages without a user message that repeats the one just before it.

    On the litellm paths the host appends the current one although its history has it already
    (llm/llm.py:3006), and the next turn sends it once: each request would begin otherwise.
    """
    pairs = zip([None, *messages], messages, strict=False)
    return [new for old, new in pairs if not (new == old and new.get("role") == "user")]


def _schema(form: Any) -> str:
    if form is None:
        return ""
    if hasattr(form, "model_json_schema"):  # `parse` takes the class itself
        form = form.model_json_schema()
    try:
        return json.dumps(form)
    except (TypeError, ValueError):
        return ""
