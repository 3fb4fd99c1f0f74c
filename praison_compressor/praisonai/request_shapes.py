"""Read the host's request as messages; write its view, per API.

Two keys are added if the provider takes them: cache marks, and `stream_options` for the usage of a
stream. A model that refuses a key does not get that key again (`provider_rules.refused_key`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..errors import InvalidMessages
from ..messages import Message, responses
from ..summaries.litellm_client import route_of
from .provider_rules import MARKS, TTL, USAGE, add_cache_marks, takes_marks, without_calls


@dataclass(frozen=True)
class HostRequest:
    """One request, the same for all APIs."""

    messages: Sequence[Message]
    model: str | None = None
    tools: Sequence[Mapping[str, Any]] = ()
    output_tokens: int = 0
    """Tokens of the longest answer that it allows; 0 if it names none."""
    schema: str = ""
    """The JSON of the answer's format, which the provider counts as input; "" without one."""
    restored: Sequence[Message] = ()
    """Messages that the host had dropped and the journal restored."""
    foreign: Sequence[Message] = ()
    """Restored messages that another model wrote."""


class SentRequest(NamedTuple):
    """A request of the host, and the view sent for it."""

    request: HostRequest
    view: Sequence[Message]


Params = Mapping[str, Any]
"""A request's parameters; never changed in place."""


class Shape(NamedTuple):
    """One API's form of a request."""

    read: Callable[[Params], HostRequest | None]
    """Returns the request; None if its messages cannot be read."""
    write: Callable[[Params, Sequence[Message], Container[str], str | None], dict[str, Any]]
    """(parameters, view, keys that the model refuses, cache marks' TTL) -> parameters with the
    view."""


def _read_chat(params: Params) -> HostRequest | None:
    messages = params.get("messages")
    if not isinstance(messages, (list, tuple)):
        return None
    output = params.get("max_completion_tokens") or params.get("max_tokens")
    return _host_request(params, messages, output, params.get("response_format"))


def _write_chat(
    params: Params, view: Sequence[Message], refused: Container[str], ttl: str | None = None
) -> dict[str, Any]:
    written = {**params, "messages": list(view)}
    body = params.get("extra_body") or {}
    if params.get("stream") and not (params.get(USAGE) or USAGE in body or USAGE in refused):
        # In `extra_body`, which litellm does not read: given `stream_options`, litellm makes up a
        # usage if the provider sends none.
        written["extra_body"] = {**body, USAGE: {"include_usage": True}}
    return written


def _write_litellm(
    params: Params, view: Sequence[Message], refused: Container[str], ttl: str | None
) -> dict[str, Any]:
    route = route_of(params)
    has_marks = takes_marks(route.provider, str(params.get("model")))
    has_usage = not has_marks and route.reports_streams
    # Claude's APIs refuse calls in a request without tools. litellm adds a dummy tool, which the
    # model then calls.
    if not params.get("tools") and (has_marks or str(route.provider).startswith("bedrock")):
        view = without_calls(view)
    written = _write_chat(params, view, refused if has_usage else (USAGE,))
    if has_marks and MARKS not in refused:
        mark_ttl = None if TTL in refused else ttl
        written["messages"] = add_cache_marks(view, params.get("tools") or None, mark_ttl)
    return written


def _read_responses(params: Params) -> HostRequest | None:
    items = params.get("input")
    # With either key the provider holds the earlier messages; the request has only new ones.
    if params.get("previous_response_id") or params.get("conversation"):
        return None
    is_list = isinstance(items, (list, tuple)) and all(isinstance(i, Mapping) for i in items)
    if not is_list and not isinstance(items, str):
        return None
    try:
        messages = responses.to_messages(params.get("instructions"), items)
    except InvalidMessages:
        return None  # an item that is newer than this package
    return _host_request(params, messages, params.get("max_output_tokens"), params.get("text"))


def _write_responses(
    params: Params, view: Sequence[Message], refused: Container[str], ttl: str | None
) -> dict[str, Any]:
    instructions, items = responses.to_items(view)
    written = {**params, "input": items}
    written.pop("instructions", None)
    return {**written, "instructions": instructions} if instructions else written


CHAT = Shape(_read_chat, _write_chat)
LITELLM_CHAT = Shape(_read_chat, _write_litellm)
RESPONSES = Shape(_read_responses, _write_responses)


def _host_request(
    params: Params, messages: Sequence[Message], output: Any, answer_format: Any
) -> HostRequest:
    if hasattr(answer_format, "model_json_schema"):  # `parse` takes the class itself
        answer_format = answer_format.model_json_schema()
    model, tools = params.get("model"), params.get("tools")
    return HostRequest(
        messages=_without_repeats(messages),
        model=model if isinstance(model, str) else None,
        tools=[t for t in tools if isinstance(t, Mapping)] if isinstance(tools, list) else (),
        output_tokens=output if isinstance(output, int) else 0,
        schema=json.dumps(answer_format, default=str) if answer_format else "",
    )


def _without_repeats(messages: Sequence[Message]) -> list[Message]:
    """Return the messages without a user message repeated in a row.

    On the litellm paths the host appends the current message although its history has that message
    (llm/llm.py:3006). The next turn sends it once, so the requests' beginnings would differ.
    """
    pairs = zip([None, *messages], messages, strict=False)
    return [new for old, new in pairs if not (new == old and new.get("role") == "user")]
