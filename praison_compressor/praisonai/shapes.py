"""The two shapes of a request, read into messages and written back from a view."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ..cachemarks import marked
from ..messages import Message, responses

__all__ = ["CHAT", "RESPONSES", "Request", "Shape"]


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

    def write(self, params: Mapping[str, Any], view: Sequence[Message]) -> dict[str, Any]:
        """The parameters with the view in the place of their messages; `params` is not touched."""


class _Chat:
    def read(self, params: Mapping[str, Any]) -> Request | None:
        messages = params.get("messages")
        if not isinstance(messages, (list, tuple)):
            return None
        output = params.get("max_completion_tokens") or params.get("max_tokens")
        return _request(params, messages, output, params.get("response_format"))

    def write(self, params: Mapping[str, Any], view: Sequence[Message]) -> dict[str, Any]:
        sent = marked(view, model=_text(params.get("model")), tools=params.get("tools") or None)
        return {**params, "messages": sent}


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

    def write(self, params: Mapping[str, Any], view: Sequence[Message]) -> dict[str, Any]:
        instructions, items = responses.to_items(view)
        written = {**params, "input": items}
        written.pop("instructions", None)
        return {**written, "instructions": instructions} if instructions else written


CHAT: Shape = _Chat()
RESPONSES: Shape = _Responses()


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
