"""Answer an agent's searches and reads verbatim, within a budget of tokens.

The answers of a turn share a budget: an agent that reads the whole archive undoes the compression.
"""

from __future__ import annotations

import copy
import logging
import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from ..errors import CompressorError, ConfigError
from ..ledger.segments import Session
from ..ledger.stores import Store
from ..ledger.words import distinct_words
from ..messages import Message, tool_calls_of
from ..messages.display import message_as_text, truncate_line
from ..messages.responses import ITEM_FIELDS
from ..messages.shapes import ITEMS
from .archive import SessionArchive
from .fitting import QUOTE_NOTICE, Fitting
from .matches import FoundMessage, snippet
from .passages import query_terms, terms_in
from .reading import LEAST_TOKENS, Reading, occurring_words, quote_query
from .references import parse_reference
from .search import find_messages, search_answer

SEARCH, READ = "search_conversation_archive", "read_conversation_archive"
SEARCH_TOKENS, READ_TOKENS, RANGE_TOKENS = 500, 400, 600
"""Default tokens of the answer to a search, to a read, to a read of lines or several messages."""
UNCUT_SHARE = 1.25
"""A text up to this ratio of the default size is not cut."""
TEXT_TOKENS, TABLE_TOKENS = 300, 400
"""Tokens of a search's answer without a table or a whole block; with a table or a whole block."""
TURN_TOKENS = 4_000
FOOTER_TOKENS = 14

IN_VIEW = 3
"""If no archived message matches, at most this number of messages in view are shown."""

APIS = ("chat", "messages", "responses")

_CUT = re.compile(r"^(?:\[… |\((?:go on|cut at|more|the rest)\b)", re.M)
_QUOTE_MARKS = "\"'`“”"
_BETWEEN_REFERENCES = re.compile(r"\s*(?:[,;]|\band\b)\s*(?=\W*s\d)|\s+(?=\W?s\d)")

logger = logging.getLogger(__name__)


@dataclass
class Recall:
    """Search and read one session's archive, within a budget of tokens."""

    store: Callable[[], Store]
    session: Callable[[], Session]
    count: Callable[[str], int]
    turn: Callable[[], Hashable] | None = None
    """Return the agent's turn; a new turn has a new budget."""
    turn_tokens: int | None = TURN_TOKENS
    """Upper limit of the tokens of a turn's answers; None: no limit."""
    read_on: Callable[[str], str] = str
    """Return how the agent reads on at a reference."""
    _spent: tuple[Hashable, int] = field(default=(None, 0), init=False)
    _archive: SessionArchive | None = field(default=None, init=False)
    _answered: str = field(default="", init=False)
    """The turn's answers since the newest compression."""

    def search(self, query: str, limit: int = 3, budget: int = SEARCH_TOKENS) -> str:
        """Return the number of matches, the best passages, and further references.

        `budget`: tokens, at least LEAST_TOKENS.
        """
        return self._answer_within_turn(
            budget,
            lambda archive, free_tokens: self._search(archive, query, max(1, limit), free_tokens),
        )

    def read(self, reference: str = "", budget: int = 0, about: str = "") -> str:
        """Return the text at the references; "" lists the segments.

        Args:
            budget: tokens, at least LEAST_TOKENS; 0 for the default size.
            about: return only the passages of long messages that have these words.
        """
        references = split_references(reference)
        about = about.strip()
        usual = budget or _usual_tokens(references, about)
        most = usual if budget or about else int(usual * UNCUT_SHARE)

        def answer(archive: SessionArchive, free_tokens: int) -> str:
            text = self._read(archive, references, about, free_tokens)
            usual_tokens = usual - FOOTER_TOKENS
            if free_tokens <= usual_tokens or not _CUT.search(text):
                return text
            return self._read(archive, references, about, usual_tokens)

        return self._answer_within_turn(most, answer)

    def _answer_within_turn(self, budget: int, answer: Callable[[SessionArchive, int], str]) -> str:
        """Return the answer with its size, or that the budget is spent."""
        archive = self._newest_archive()
        if not archive.entries:
            return "Nothing of this conversation has been archived."
        turn = self.turn() if self.turn else None
        if self._spent[0] != turn:
            self._spent, self._answered = (turn, 0), ""
        spent = self._spent[1]
        free_tokens = max(LEAST_TOKENS, budget)
        if self.turn_tokens is not None:
            free_tokens = min(free_tokens, self.turn_tokens - spent)
            if free_tokens < LEAST_TOKENS:
                again = " The next turn has it again." if self.turn else ""
                return (
                    f"(The budget for the archive, {self.turn_tokens:,} tokens, is spent: go on "
                    f"with what you have read.{again})"
                )
        text = answer(archive, free_tokens - FOOTER_TOKENS)
        size = self.count(text) + FOOTER_TOKENS
        self._spent = turn, spent + size
        if self.turn_tokens is None:
            return f"{text}\n({size} tokens)"
        self._answered += f"\n{text}"
        left = f"{self.turn_tokens - spent - size:,} left{' this turn' if self.turn else ''}"
        return f"{text}\n({size} tokens, {left})"

    def _newest_archive(self) -> SessionArchive:
        newest = SessionArchive(self.store(), self.session())
        if self._archive is None or self._archive != newest:
            # A compression may have removed earlier answers from the view.
            self._archive, self._answered = newest, ""
        return self._archive

    def _search(self, archive: SessionArchive, query: str, limit: int, free_tokens: int) -> str:
        if not distinct_words(query):
            return f'Nothing was asked: give a query, or {READ}("") for what is archived.'
        query = query.strip().strip(_QUOTE_MARKS)
        found = find_messages(archive, query)
        if not found:
            reason = _explain_no_match(archive, query, free_tokens)
            return f'{reason} {READ}("") lists what is archived.'
        if _lacks_every_name(query, found):
            free_tokens = max(LEAST_TOKENS, free_tokens // 2)
        # Tokens above SEARCH_TOKENS enlarge both limits.
        text_tokens, table_tokens = (
            min(free_tokens, max(size - FOOTER_TOKENS, free_tokens - SEARCH_TOKENS + size))
            for size in (TEXT_TOKENS, TABLE_TOKENS)
        )
        answer = search_answer(
            query,
            found,
            limit,
            archive,
            free_tokens=text_tokens,
            table_tokens=table_tokens,
            most_tokens=free_tokens,
            answered=self._answered,
        )
        return self._fitting.fit_answer(answer, answer.free_tokens)

    def _read(
        self, archive: SessionArchive, references: Sequence[str], about: str, free_tokens: int
    ) -> str:
        asked = [parsed for reference in references if (parsed := parse_reference(reference))]
        reading = Reading(archive, self._fitting, asked, about, self._answered)
        parts: list[str] = []
        for number, reference in enumerate(references):
            part = reading.read(
                reference, max(LEAST_TOKENS, free_tokens // (len(references) - number))
            )
            has_notice = any(QUOTE_NOTICE in each for each in parts)
            parts.append(part.replace(f"{QUOTE_NOTICE}\n", "", 1) if has_notice else part)
            free_tokens -= self.count(part)
            if free_tokens < LEAST_TOKENS and number + 1 < len(references):
                parts.append(f"(more: {self.read_on(', '.join(references[number + 1 :]))})")
                break
        return "\n".join(parts)

    @property
    def _fitting(self) -> Fitting:
        # Each attempt to fit a line counts the line again.
        return Fitting(cache(self.count), self.read_on)


def split_references(text: str) -> list[str]:
    """Return the different references in "s2.4, s2.9"."""
    return list(dict.fromkeys(_BETWEEN_REFERENCES.split(text.strip())))


def _usual_tokens(references: Sequence[str], about: str) -> int:
    asked = [parsed for each in references if (parsed := parse_reference(each))]
    is_one = len(asked) == 1 and (about or (asked[0].message and not asked[0].last_message))
    return READ_TOKENS if is_one and not asked[0].line else RANGE_TOKENS


def _lacks_every_name(query: str, found: Sequence[FoundMessage]) -> bool:
    names = [term for term in query_terms(query) if term.parts]
    texts = (message_as_text(each.hit.message) for each in found)
    return bool(names) and not any(terms_in(text, names) for text in texts)


def _explain_no_match(archive: SessionArchive, query: str, free_tokens: int) -> str:
    """Return that nothing matches, with messages in view or similar words."""
    session = archive.session
    remark = f"Nothing archived of this conversation matches {quote_query(query)}."
    hits = archive.store.search(session.namespace, query, session.id, IN_VIEW)
    if in_view := [hit.message for hit in hits if not hit.entry and hit.is_whole]:
        wanted = query_terms(query)
        shown = "; ".join(
            f"{message.get('role')}: {snippet(message_as_text(message), wanted)}"
            for message in in_view
        )
        return truncate_line(f"{remark} It is still in view: {shown}.", free_tokens * 3)
    return f"{remark}{occurring_words(query, archive)} Newer messages are in view."


# -------------------------------------------------------------- the agent's two tools


def recall_tools(
    store: Callable[[], Store],
    session: Callable[[], Session],
    count: Callable[[str], int],
    *,
    turn: Callable[[], Hashable] | None = None,
    turn_tokens: int | None = TURN_TOKENS,
) -> tuple[Callable[..., str], ...]:
    """Return the two functions to give to an agent as tools.

    The functions ignore unknown arguments and return a store's error as text. See `Recall` for the
    parameters.
    """
    recall = Recall(store, session, count, turn, turn_tokens)

    def search_conversation_archive(
        query: str = "", limit: int = 3, tokens: int = SEARCH_TOKENS, **invented: Any
    ) -> str:
        free_tokens = _tokens_for(tokens, SEARCH_TOKENS)
        return _answer_or_error(
            lambda: recall.search(str(query), _parse_number(limit, 3), free_tokens)
        )

    def read_conversation_archive(
        reference: str = "", about: str = "", tokens: int = 0, **invented: Any
    ) -> str:
        named, sought = str(reference or ""), str(about or "")
        free_tokens = _tokens_for(tokens, 0)
        return _answer_or_error(lambda: recall.read(named, free_tokens, sought))

    tools: tuple[Callable[..., str], ...] = (search_conversation_archive, read_conversation_archive)
    for tool, schema in zip(tools, SCHEMAS, strict=True):
        tool.__doc__ = _docstring_of(schema["function"])
    return tools


def _docstring_of(function: dict[str, Any]) -> str:
    described = {k: v["description"] for k, v in function["parameters"]["properties"].items()}
    # The schemas omit `limit` and `tokens` to save tokens.
    if "query" in described:
        described["limit"] = "Passages at most (3)"
    described["tokens"] = f"Another size of the answer, up to {TURN_TOKENS}"
    lines = "\n".join(f"    {name}: {said}" for name, said in described.items())
    return f"{function['description']}\n\nArgs:\n{lines}\n"


# -------------------------------------------------------------- schemas


def _tool_schema(name: str, description: str, **parameters: str) -> dict[str, Any]:
    properties = {key: {"type": "string", "description": said} for key, said in parameters.items()}
    form: dict[str, Any] = {"type": "object", "properties": properties}
    # An agent that must name what it seeks seldom reads whole messages.
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
    """Return the API of the calls' form; "chat" without calls."""
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


def _tokens_for(tokens: Any, default: int) -> int:
    return min(_parse_number(tokens, 0), TURN_TOKENS) or default


def _answer_or_error(ask: Callable[[], str]) -> str:
    try:
        return ask()
    except CompressorError as error:
        logger.warning("the archive could not be read: %s", error)
        return f"The archive cannot be read just now: {error}"
