"""Make the two recall tools, and their schemas for each API."""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Hashable, Iterable
from typing import Any

from ..errors import CompressorError, ConfigError
from ..ledger.segments import Session
from ..ledger.stores import Store
from ..messages import Message, tool_calls_of
from ..messages.responses import ITEM_FIELDS
from ..messages.shapes import ITEMS
from .answers import READ, SEARCH, SEARCH_TOKENS, TURN_TOKENS, Recall

APIS = ("chat", "messages", "responses")
"""OpenAI's chat completions, Anthropic's Messages, OpenAI's Responses."""

logger = logging.getLogger(__name__)


def recall_tools(
    store: Callable[[], Store],
    session: Callable[[], Session],
    count: Callable[[str], int],
    *,
    turn: Callable[[], Hashable] | None = None,
    turn_tokens: int | None = TURN_TOKENS,
) -> list[Callable[..., str]]:
    """Return the two functions to give to an agent as tools.

    Neither invented or missing arguments nor a failing store raise: a store's error is the answer.
    `turn` and `turn_tokens` as in `Recall`.
    """
    recall = Recall(store, session, count, turn, turn_tokens)

    def search_conversation_archive(
        query: str = "", limit: int = 3, tokens: int = SEARCH_TOKENS, **invented: Any
    ) -> str:
        room = _room_for(tokens, SEARCH_TOKENS)
        return _answer_or_error(lambda: recall.search(str(query), _parse_number(limit, 3), room))

    def read_conversation_archive(
        reference: str = "", about: str = "", tokens: int = 0, **invented: Any
    ) -> str:
        named, sought = str(reference or ""), str(about or "")
        if sought.isdecimal():  # the budget in second place
            sought, tokens = "", int(sought[:9])
        room = _room_for(tokens, 0)
        return _answer_or_error(lambda: recall.read(named, room, sought))

    tools: list[Callable[..., str]] = [search_conversation_archive, read_conversation_archive]
    for tool, schema in zip(tools, SCHEMAS, strict=True):
        tool.__doc__ = _docstring_of(schema["function"])
    return tools


def _docstring_of(function: dict[str, Any]) -> str:
    """Return the schema as a docstring, which hosts parse."""
    described = {k: v["description"] for k, v in function["parameters"]["properties"].items()}
    # Obeyed, but not worth their tokens in a schema.
    if "query" in described:
        described["limit"] = "Passages at most (3)"
    described["tokens"] = f"Another size of the answer, up to {TURN_TOKENS}"
    lines = "\n".join(f"    {name}: {said}" for name, said in described.items())
    return f"{function['description']}\n\nArgs:\n{lines}\n"


# -------------------------------------------------------------- schemas


def _tool_schema(name: str, description: str, **parameters: str) -> dict[str, Any]:
    properties = {key: {"type": "string", "description": said} for key, said in parameters.items()}
    form: dict[str, Any] = {"type": "object", "properties": properties}
    # An agent that has to say what it seeks seldom reads all of a message.
    form["required"] = [*parameters]
    return {
        "type": "function",
        "function": {"name": name, "description": description, "parameters": form},
    }


SCHEMAS = (
    _tool_schema(
        SEARCH,
        "Find a detail (path, id, number, error, wording) of earlier, summarized messages: counts "
        "all matches, quotes the best, names each as s2.14. Each answer stays in the context and "
        "is paid for on every later turn: ask once, and only what the context does not say",
        query="Two to five words or names as in the text, no question; several ids at once",
    ),
    _tool_schema(
        READ,
        "Quote lines of earlier messages word for word, paid for on every later turn too: only "
        "where neither the context nor a search says enough",
        reference="s2.14, s2.14-20, s2.14:900-940 (lines), s2 (outline), or several; empty: list",
        about="Words, as in the text, of what is sought: the lines with them are quoted",
    ),
)
"""The tools as a chat request describes them to the model."""


def schemas_for(api: str) -> list[dict[str, Any]]:
    """Return the tools as a request's `tools` describe them.

    Args:
        api: one of `APIS`.

    Raises:
        ConfigError: no such API.
    """
    if api not in APIS:
        raise ConfigError(f"api={api!r}: expected one of {', '.join(APIS)}")
    return [_schema_for(api, copy.deepcopy(schema)) for schema in SCHEMAS]


def _schema_for(api: str, schema: dict[str, Any]) -> dict[str, Any]:
    function = schema["function"]
    if api == "responses":
        return {"type": "function", **function}
    if api == "messages":
        return {
            "name": function["name"],
            "description": function["description"],
            "input_schema": function["parameters"],
        }
    return schema


def api_of(messages: Iterable[Message]) -> str:
    """Return the API whose form the calls have, "chat" without calls."""
    for message in messages:
        content = message.get("content")
        blocks = content if isinstance(content, list) else []
        if any(isinstance(each, dict) and each.get("type") in _MESSAGES_BLOCKS for each in blocks):
            return "messages"
        calls = message.get("tool_calls") or ()
        if ITEMS in message or ITEM_FIELDS in message or any(ITEM_FIELDS in call for call in calls):
            return "responses"
        if tool_calls_of(message) or message.get("role") == "tool":
            return "chat"
    return "chat"


_MESSAGES_BLOCKS = frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking"})


# -------------------------------------------------------------- arguments as models write them


def _parse_number(value: Any, default: int) -> int:
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        return default


def _room_for(tokens: Any, default: int) -> int:
    return min(_parse_number(tokens, 0), TURN_TOKENS) or default


def _answer_or_error(ask: Callable[[], str]) -> str:
    try:
        return ask()
    except CompressorError as error:
        logger.warning("the archive could not be read: %s", error)
        return f"The archive cannot be read just now: {error}"
