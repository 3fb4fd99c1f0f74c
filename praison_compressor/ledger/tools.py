"""The two recall tools as functions for an agent, and as a request describes them to its model."""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable
from typing import Any

from ..errors import CompressorError
from .recall import ANSWER_TOKENS, READ, SEARCH, TURN_TOKENS, Recall
from .segments import Session, Store

__all__ = ["SCHEMAS", "recall_tools"]

MOST_TOKENS = 1_000
"""Most tokens of one answer: readers who asked for 2,000 needed few of these lines."""

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
        query: str = "", limit: int = 3, tokens: int = 800, **invented: Any
    ) -> str:
        return _answered(lambda: recall.search(str(query), _number(limit, 3), _room(tokens)))

    def read_conversation_archive(
        reference: str = "", about: str = "", tokens: int = 800, **invented: Any
    ) -> str:
        named, sought = str(reference or ""), str(about or "")
        if sought.isdecimal():  # the budget in second place
            sought, tokens = "", int(sought[:9])
        return _answered(lambda: recall.read(named, _room(tokens), sought))

    tools: list[Callable[..., str]] = [search_conversation_archive, read_conversation_archive]
    for tool, schema in zip(tools, SCHEMAS, strict=True):
        tool.__doc__ = _documented(schema["function"])
    return tools


def _documented(function: dict[str, Any]) -> str:
    """Return the schema as a docstring, which hosts parse."""
    parameters = function["parameters"]["properties"].items()
    lines = "\n".join(f"    {name}: {each['description']}" for name, each in parameters)
    return f"{function['description']}\n\nArgs:\n{lines}\n"


def _schema(name: str, description: str, **parameters: tuple[str, str]) -> dict[str, Any]:
    properties = {
        key: {"type": kind, "description": said} for key, (kind, said) in parameters.items()
    }
    required = ["query"] if "query" in parameters else []
    form = {"type": "object", "properties": properties, "required": required}
    return {
        "type": "function",
        "function": {"name": name, "description": description, "parameters": form},
    }


_LENGTH = "How long the answer may be (800, at most 1000); each later request carries it too."
SCHEMAS = (
    _schema(
        SEARCH,
        "Search earlier messages of this conversation that were summarized away. Use it before "
        "repeating work, or when an exact detail (path, id, number, error, wording) is not in "
        "view. Returns passages with references such as s2.14:900-904.",
        query=("string", "An exact identifier or phrase finds best; of words, what has most."),
        limit=("integer", "How many passages to list at most (3)."),
        tokens=("integer", _LENGTH),
    ),
    _schema(
        READ,
        "Read earlier messages of this conversation word for word: the lines that a search names, "
        "or of messages what they say about something.",
        reference=(
            "string",
            "s2.14 for a message, s2.14-20 for messages, s2.14:900-940 for lines of one, s2.14:922 "
            "for the lines around one, s2 for a segment's outline; empty for all.",
        ),
        about=(
            "string",
            "What you look for in these messages, in words they may have: only those passages are "
            "returned, at a third of the cost. Leave it out only where you need every line.",
        ),
        tokens=("integer", _LENGTH),
    ),
)
"""The tools as a chat request describes them to the model."""


def _number(given: Any, otherwise: int) -> int:
    """Return the number that a model wrote, else the default."""
    try:
        return int(given)
    except (TypeError, ValueError, OverflowError):
        return otherwise


def _room(tokens: Any) -> int:
    return min(_number(tokens, ANSWER_TOKENS), MOST_TOKENS)


def _answered(ask: Callable[[], str]) -> str:
    try:
        return ask()
    except CompressorError as error:
        logger.warning("the archive could not be read: %s", error)
        return f"The archive cannot be read just now: {error}"
