"""Read a request of the host as messages, and write it back, in each API's shape.

Two keys are added where the provider takes them: cache marks, and the request for a stream's usage.
A provider that refuses one by its name is not sent it again (`provider_rules.refused_in`).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..errors import InvalidMessages
from ..messages import Message, digest, is_system, leading_in, responses, text_of
from ..summaries.litellm_client import provider_of
from .provider_rules import MARKS, TTL, USAGE, marked, takes_marks, without_calls


@dataclass(frozen=True)
class HostRequest:
    """What a request says, whatever its shape."""

    messages: Sequence[Message]
    model: str | None = None
    tools: Sequence[Mapping[str, Any]] = ()
    output_tokens: int = 0
    """How long an answer it asks for; 0 where it does not say."""
    schema: str = ""
    """The JSON of the answer's format, which the provider counts as input; "" without one."""
    back: Sequence[Message] = ()
    """Those of its messages that the host had left out."""
    foreign: Sequence[Message] = ()
    """Those of `back` that another model wrote."""


Params = Mapping[str, Any]
"""A request's parameters, which nobody changes in place."""


class Shape(NamedTuple):
    """How one API carries messages."""

    read: Callable[[Params], HostRequest | None]
    """Returns a request; None if it carries no messages that we can read."""
    write: Callable[[Params, Sequence[Message], Container[str], str | None], dict[str, Any]]
    """Returns the parameters with a view. The others: what the model refuses, the marks' life."""


def _read_chat(params: Params) -> HostRequest | None:
    messages = params.get("messages")
    if not isinstance(messages, (list, tuple)):
        return None
    output = params.get("max_completion_tokens") or params.get("max_tokens")
    return _request(params, messages, output, params.get("response_format"))


def _write_chat(
    params: Params, view: Sequence[Message], refused: Container[str], ttl: str | None = None
) -> dict[str, Any]:
    asks = {} if USAGE in refused else _asking_usage(params)
    return {**params, "messages": list(view), **asks}


def _write_litellm(
    params: Params, view: Sequence[Message], refused: Container[str], ttl: str | None
) -> dict[str, Any]:
    litellm = sys.modules["litellm"]  # the host has imported it, and sends by it
    model = str(params.get("model"))
    provider = provider_of(litellm, params)
    takes = takes_marks(provider, model)
    asks = not takes and _reports_streams(litellm, provider, model)
    # Claude's APIs refuse calls without tools: litellm would add a dummy tool, which gets called.
    if not params.get("tools") and (takes or str(provider).startswith("bedrock")):
        view = without_calls(view)
    written = _write_chat(params, view, refused if asks else (USAGE,))
    if takes and MARKS not in refused:
        life = None if TTL in refused else ttl
        written["messages"] = marked(view, params.get("tools") or None, life)
    return written


def _read_responses(params: Params) -> HostRequest | None:
    items = params.get("input")
    # A request that goes on from a stored response carries only what is new.
    if params.get("previous_response_id") or params.get("conversation"):
        return None
    is_list = isinstance(items, (list, tuple)) and all(isinstance(i, Mapping) for i in items)
    if not is_list and not isinstance(items, str):
        return None
    try:
        messages = responses.to_messages(params.get("instructions"), items)
    except InvalidMessages:
        return None  # an item that is newer than this package
    return _request(params, messages, params.get("max_output_tokens"), params.get("text"))


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


def _asking_usage(params: Params) -> dict[str, Any]:
    """Return the parameters that ask a stream for its usage.

    In the body alone: litellm would else report its own count where the provider is silent.
    """
    body = params.get("extra_body") or {}
    if not params.get("stream") or params.get(USAGE) or USAGE in body:
        return {}
    return {"extra_body": {**body, USAGE: {"include_usage": True}}}


def _reports_streams(litellm: Any, provider: str | None, model: str) -> bool:
    """Return whether litellm's provider reports a stream's usage on demand."""
    if provider not in ("openai", "azure", *getattr(litellm, "openai_compatible_providers", ())):
        return False
    return USAGE in (litellm.get_supported_openai_params(model, provider) or ())


def _request(params: Params, messages: Sequence[Message], output: Any, form: Any) -> HostRequest:
    if hasattr(form, "model_json_schema"):  # `parse` takes the class itself
        form = form.model_json_schema()
    model, tools = params.get("model"), params.get("tools")
    return HostRequest(
        messages=_said_once(messages),
        model=model if isinstance(model, str) else None,
        tools=[t for t in tools if isinstance(t, Mapping)] if isinstance(tools, list) else (),
        output_tokens=output if isinstance(output, int) else 0,
        schema=json.dumps(form, default=str) if form else "",
    )


def _said_once(messages: Sequence[Message]) -> list[Message]:
    """Return the messages without a user message said twice.

    On the litellm paths the host appends the current one although its history has it already
    (llm/llm.py:3006), and the next turn sends it once: each request would begin otherwise.
    """
    pairs = zip([None, *messages], messages, strict=False)
    return [new for old, new in pairs if not (new == old and new.get("role") == "user")]


# ------------------------------------------------------------ the conversation


def carries_conversation(agent: Any, messages: Sequence[Message]) -> bool:
    """Return whether a request carries a part of the agent's conversation.

    It starts as the agent's history does, or has two of its messages wherever they stand. Memory
    extraction, guardrails, titles and planners have words of their own.
    """
    history = list(getattr(agent, "chat_history", None) or ())
    known, sent = _first_said(history), _first_said(messages)
    if known is None or sent is None or digest(known) == digest(sent):
        return True
    # In the first turn the host may send more than it records: a template, retrieved text.
    if len(history) <= 2 and text_of(known) in text_of(sent):
        return True
    return len(set(map(digest, history)).intersection(map(digest, messages))) > 1


def without_window(agent: Any, messages: Sequence[Message]) -> Sequence[Message]:
    """Return the messages without the host's copy of the newest ones.

    With `memory={"history": True}` the newest messages of the stored session come first, and the
    agent's history, which has them too, after them (agent/chat_mixin.py:1049). The window moves on
    every turn: each request would begin otherwise, and no summary would match. The host's summary
    of what the window lacks goes with it: the agent's history has all of that.
    """
    history = list(getattr(agent, "chat_history", None) or ())
    users = [i for i, message in enumerate(history) if message.get("role") == "user"]
    finished = history[: users[-1]] if users else []
    start = _last_run(messages, finished)
    if start is None:
        return messages
    before = range(leading_in(messages), start)
    for first in before:
        # The window may begin amid a turn; what it shares with the history begins with one.
        is_turn = first == before.start or messages[first].get("role") == "user"
        if is_turn and _last_run(finished, list(messages[first:start])) is not None:
            leading = (m for m in messages[:first] if not is_host_summary(m))
            return [*leading, *messages[start:]]
    return messages


def is_host_summary(message: Message) -> bool:
    """Return whether the message is the host's summary of cut turns."""
    return is_system(message) and text_of(message).startswith("[Session Summary]\n")


def _last_run(messages: Sequence[Message], run: Sequence[Message]) -> int | None:
    """Return the last place of a run of messages, or None."""
    size = len(run)
    places = range(len(messages) - size, -1, -1) if size else ()
    return next(
        (i for i in places if messages[i] == run[0] and list(messages[i : i + size]) == run), None
    )


def same_model(one: str | None, other: str | None) -> bool:
    """Return whether two names mean one model: the host changes provider prefixes."""
    if one is None or other is None:
        return True
    return one.rsplit("/", 1)[-1] == other.rsplit("/", 1)[-1]


def _first_said(messages: Sequence[Message]) -> Message | None:
    return next((message for message in messages if not is_system(message)), None)
