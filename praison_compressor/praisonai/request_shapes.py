"""Read requests as messages; write views as API and provider take them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..errors import InvalidMessages
from ..messages import Message, is_result, leading_count, responses, text_of, tool_calls_of
from ..messages.display import message_as_text
from ..messages.shapes import ITEMS, MASK_OPENS, is_thinking
from ..summaries.litellm_client import route_of
from ..tokens.counter import TokenCounter
from ..view.frame import is_framed

# A provider caches everything up to a mark. Digests omit marks.
MARKS, USAGE = "cache_control", "stream_options"
TTL = "ttl of cache_control"
ROLE_ORDER = "roles that do not alternate"
_ROLES_REFUSED = re.compile(
    r"(?:must|should) alternate|unexpected role\W+(?:\w+\.)?(?:user|assistant)", re.IGNORECASE
)


@dataclass(frozen=True)
class HostRequest:
    """One request, the same for all APIs."""

    messages: Sequence[Message]
    model: str | None = None
    tools: Sequence[Mapping[str, Any]] = ()
    output_tokens: int = 0
    """Tokens of the longest answer that the request allows; 0: not named."""
    schema: str = ""
    """The JSON of the answer's format, which counts as input; "" without a format."""
    restored: Sequence[Message] = ()
    """Messages that the host had dropped and the journal restored."""
    foreign: Sequence[Message] = ()
    """Restored messages that another model wrote."""

    def schema_tokens(self, counter: TokenCounter) -> int:
        """Return the tokens of the tools and of the answer's format."""
        tools = counter.tools(self.tools) if self.tools else 0
        return tools + (counter.text(self.schema) if self.schema else 0)


class SentRequest(NamedTuple):
    """A request of the host, and the view sent for it."""

    request: HostRequest
    view: Sequence[Message]


Params = Mapping[str, Any]
"""A request's parameters; never changed in place."""


class WrittenRequest(NamedTuple):
    """A request's parameters with its view."""

    params: dict[str, Any]
    asks_usage: bool = False
    """Whether we added `stream_options`."""


class Shape(NamedTuple):
    """One API's form of a request."""

    read: Callable[[Params], HostRequest | None]
    """Returns the request; None if its messages cannot be read."""
    write: Callable[[Params, Sequence[Message], Container[str], str | None], WrittenRequest]
    """(parameters, view, refused features, TTL of cache marks) -> the request to send."""


def _read_chat(params: Params) -> HostRequest | None:
    messages = params.get("messages")
    if not isinstance(messages, (list, tuple)):
        return None
    output = params.get("max_completion_tokens") or params.get("max_tokens")
    return _host_request(params, messages, output, params.get("response_format"))


def _write_chat(
    params: Params, view: Sequence[Message], refused: Container[str], ttl: str | None = None
) -> WrittenRequest:
    written = {**params, "messages": list(view)}
    body = params.get("extra_body") or {}
    asks_usage = bool(params.get("stream")) and not (
        params.get(USAGE) or USAGE in body or USAGE in refused
    )
    if asks_usage:
        # Ask for usage in `extra_body`, which litellm does not read. Asked in `stream_options`,
        # litellm makes up a usage if the provider sends no usage.
        written["extra_body"] = {**body, USAGE: {"include_usage": True}}
    return WrittenRequest(written, asks_usage)


def _write_litellm(
    params: Params, view: Sequence[Message], refused: Container[str], ttl: str | None
) -> WrittenRequest:
    route = route_of(params)
    has_marks = takes_marks(route.provider, str(params.get("model")))
    has_usage = not has_marks and route.reports_streams
    # Claude's APIs refuse calls without tools, and litellm would add a dummy tool.
    if not params.get("tools") and (has_marks or str(route.provider).startswith("bedrock")):
        view = _without_calls(view)
    written = _write_chat(params, view, refused if has_usage else (USAGE,))
    if has_marks and MARKS not in refused:
        mark_ttl = None if TTL in refused else ttl
        written.params["messages"] = add_cache_marks(view, params.get("tools") or None, mark_ttl)
    return written


def _read_responses(params: Params) -> HostRequest | None:
    items = params.get("input")
    # With either key the provider has the earlier messages.
    if params.get("previous_response_id") or params.get("conversation"):
        return None
    is_list = isinstance(items, (list, tuple)) and all(isinstance(i, Mapping) for i in items)
    if not is_list and not isinstance(items, str):
        return None
    try:
        messages = responses.to_messages(params.get("instructions"), items)
    except InvalidMessages:
        return None  # an item that this package does not know
    return _host_request(params, messages, params.get("max_output_tokens"), params.get("text"))


def _write_responses(
    params: Params, view: Sequence[Message], refused: Container[str], ttl: str | None
) -> WrittenRequest:
    instructions, items = responses.to_items(view)
    written = {**params, "input": items}
    written.pop("instructions", None)
    return WrittenRequest({**written, "instructions": instructions} if instructions else written)


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
    # The host appends the current message although the history has it (`LLM._build_messages`). The
    # next turn sends the message once, so the requests would begin differently.
    pairs = zip([None, *messages], messages, strict=False)
    return [new for old, new in pairs if not (new == old and new.get("role") == "user")]


# ------------------------------------------------------------ refusals


def refused_feature(error: BaseException) -> str | None:
    """Return the refused feature: MARKS, USAGE, TTL, ROLE_ORDER or None."""
    if _ROLES_REFUSED.search(str(error)):
        return ROLE_ORDER
    if MARKS in str(error) and "ttl" in str(error):
        return TTL
    return next((key for key in (MARKS, USAGE) if key in str(error)), None)


def is_thinking_refused(error: BaseException) -> bool:
    """Return whether a provider refuses thinking after a changed prefix or model."""
    return _INVALID_THINKING.search(str(error)) is not None


_INVALID_THINKING = re.compile(
    r"bound to a different conversation|prefix_mismatch_behavior|"
    r"invalid `?signature`? in `?thinking",
    re.IGNORECASE,
)


# ------------------------------------------------------------ cache marks


MOST_MARKS = 4
"""A request has at most this number of marks, including marks on its tools."""

_CLAUDE = re.compile(r"(^|[/.@:_-])(claude|anthropic)([/.@:_-]|$)", re.IGNORECASE)

_SERVE_CLAUDE = frozenset({"azure_ai", "bedrock", "databricks", "openrouter", "vertex_ai"})
"""Providers, by litellm's names, that serve Claude and pass marks on."""

_MARKABLE = frozenset({"text", "image_url", "image", "document", "file"})
"""Types of parts that may have a mark."""


def takes_marks(provider: str | None, model: str) -> bool:
    """Return whether the API of litellm's `provider` takes marks."""
    # Not by name alone: a local endpoint may serve a `claude-local` and refuse marks.
    served = provider in _SERVE_CLAUDE and _CLAUDE.search(model) is not None
    return served or provider == "anthropic"


def add_cache_marks(
    messages: Sequence[Message],
    tools: Sequence[Mapping[str, Any]] | None = None,
    ttl: str | None = None,
) -> list[Message]:
    """Return the messages with cache marks; a marked message is a copy."""
    host_marks = _marks_in([*messages, *(tools or ())])
    free = max(0, MOST_MARKS - host_marks)
    # An API refuses a mark of an hour after a mark of minutes.
    mark = {"type": "ephemeral", **({"ttl": ttl} if ttl and not host_marks else {})}
    marked = [n for n in _indices_to_mark(messages) if not _marks_in(messages[n])][:free]
    return [_with_mark(m, mark) if index in marked else m for index, m in enumerate(messages)]


def _indices_to_mark(messages: Sequence[Message]) -> list[int]:
    markable = [index for index, message in enumerate(messages) if _is_markable(message)]
    # Mark the end first, because the next request begins with all these messages. The other three
    # marks move only at a compression.
    leading = leading_count(messages)  # later system messages come and go
    kinds = (
        markable,
        [index for index in markable if index < leading],
        [index for index in markable if is_framed(messages[index])],
        [index for index in markable if _is_mask(messages[index])],
    )
    return list(dict.fromkeys(indices[-1] for indices in kinds if indices))


def _is_mask(message: Message) -> bool:
    return is_result(message) and text_of(message).startswith(MASK_OPENS)


def _is_markable(message: Message) -> bool:
    # A mark on an assistant's thinking or call is refused.
    content = message.get("content")
    is_spoken = isinstance(content, (str, list)) and message.get("role") != "assistant"
    if not content or not is_spoken:
        return False
    last = content[-1] if isinstance(content, list) else {"type": "text", "text": content}
    if not isinstance(last, dict) or last.get("type") not in _MARKABLE:
        return False
    return last["type"] != "text" or bool(str(last.get("text") or "").strip())


def _with_mark(message: Message, mark: Mapping[str, Any]) -> Message:
    content = message["content"]
    if isinstance(content, str) or is_result(message):
        return {**message, "cache_control": mark}
    return {**message, "content": [*content[:-1], {**content[-1], "cache_control": mark}]}


def _marks_in(value: Any) -> int:
    if isinstance(value, Mapping):
        inner = [item for key, item in value.items() if key != "cache_control"]
        return (value.get("cache_control") is not None) + _marks_in(inner)
    return sum(map(_marks_in, value)) if isinstance(value, (list, tuple)) else 0


# ------------------------------------------------------------ another model's steps


def _without_calls(messages: Sequence[Message]) -> list[Message]:
    return [_calls_as_text(message) for message in messages]


def _calls_as_text(message: Message) -> Message:
    if is_result(message):
        name = message.get("name")
        tool = f" of {name}" if isinstance(name, str) and name else ""
        return {"role": "user", "content": f"[tool result{tool}]\n{message_as_text(message)}"}
    if tool_calls_of(message):
        return {"role": "assistant", "content": message_as_text(message)}
    return message


_MODEL_KEYS = ("thinking_blocks", "reasoning_content", "reasoning", "provider_specific_fields")
"""Keys whose values are valid only for the model that wrote them."""


def without_model_keys(message: Message) -> Message:
    """Return a message without thinking, which only its own model takes."""
    plain = {key: value for key, value in message.items() if key not in (*_MODEL_KEYS, ITEMS)}
    content, calls = plain.get("content"), plain.get("tool_calls")
    if isinstance(content, list):
        plain["content"] = [part for part in content if not is_thinking(part)]
    if isinstance(calls, list):
        # The API refuses an item's id without the item's reasoning.
        plain["tool_calls"] = list(map(_without_item_id, calls))
    return plain


def _without_item_id(call: Mapping[str, Any]) -> Message:
    whole_item = call.get(responses.ITEM_FIELDS) or {}
    item = {key: value for key, value in whole_item.items() if key != "id"}
    rest = {key: value for key, value in call.items() if key != responses.ITEM_FIELDS}
    # Only the item of a built-in tool has a type.
    return {**rest, responses.ITEM_FIELDS: item} if "type" in item else rest


# ------------------------------------------------------------ alternating roles


FILLER_ASSISTANT: Message = {"role": "assistant", "content": "Understood."}
FILLER_USER: Message = {"role": "user", "content": "Go on."}


def alternate_roles(messages: Sequence[Message]) -> list[Message]:
    """Return the messages with alternating users and assistants."""
    alternating: list[Message] = []
    last = ""
    for message in _merge_neighbours(messages):
        role = "" if tool_calls_of(message) else message.get("role")
        # Mistral refuses a user after a tool. Chat templates ignore assistants with calls.
        if role == "user" and (last == "user" or (alternating and is_result(alternating[-1]))):
            alternating.append(FILLER_ASSISTANT)
        elif role == "assistant" and last != "user":
            alternating.append(FILLER_USER)
        alternating.append(message)
        last = role if role in ("user", "assistant") else last
    return alternating


def _merge_neighbours(messages: Sequence[Message]) -> list[Message]:
    merged: list[Message] = []
    for message in messages:
        if merged and _may_join(merged[-1], message):
            merged[-1] = {**message, "content": _join_contents(merged[-1], message)}
        else:
            merged.append(message)
    return merged


def _may_join(first: Message, second: Message) -> bool:
    if first.get("role") != second.get("role") or first.get("role") not in ("user", "assistant"):
        return False
    return not tool_calls_of(first)


def _join_contents(message: Message, next_message: Message) -> Any:
    first, second = message.get("content"), next_message.get("content")
    if not first or not second:
        return first or second
    if isinstance(first, str) and isinstance(second, str):
        return f"{first}\n\n{second}"
    return [*_parts_of(first), *_parts_of(second)]


def _parts_of(content: Any) -> list[Any]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
