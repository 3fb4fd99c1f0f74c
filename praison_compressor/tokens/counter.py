"""`TokenCounter`: tokens of messages for the model at hand; exact where its vocabulary is known,
offline always.

Counted by OpenAI's published rules: 3 tokens frame a message and 3 open the reply, a name costs
one more than its text. What has no published rule has a constant here that says so.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from math import ceil
from typing import Any

from ..errors import ConfigError
from ..messages import Message, calls_beside
from ..messages.digests import MessageCache, Seen
from .encodings import Vocabulary, vocabulary_for
from .images import image_rule, size_and_detail

logger = logging.getLogger(__name__)

MESSAGE_TOKENS = 3

NAME_TOKENS = 1

REPLY_TOKENS = 3
"""Opens the reply, once in a request: `messages()` includes it, `message()` does not."""

CALL_TOKENS = 5
"""Frames one tool call. Not published: the cost of a message and of the words `functions.`."""

MEDIA_CHARS_PER_TOKEN = 40
"""Base64 of audio or a document per token. Not published for all: minutes of speech, pages."""

SEALED_CHARS_PER_TOKEN = 5
"""Base64 of encrypted reasoning per token: three bytes in four characters, four bytes a token."""


class TokenCounter:
    """Counts for one model; thread-safe; every message is counted once while the cache holds it.

    `cache` may be shared with whatever else is worked out about the same messages. `vocabulary` is
    the model's where none is given. A subclass with rules of its own overrides `count`.
    """

    def __init__(
        self,
        model: str | None = None,
        *,
        cache: MessageCache | None = None,
        vocabulary: Vocabulary | None = None,
    ) -> None:
        if model is not None and not isinstance(model, str):
            raise ConfigError(f"model={model!r:.60}: expected the name of a model, or None")
        self.model = model
        self.cache = MessageCache() if cache is None else cache
        self.vocabulary = vocabulary_for(model) if vocabulary is None else vocabulary
        self._image_rule = image_rule(model)
        self._rules = f"{type(self).__name__} {self.vocabulary.source} {self._image_rule}"
        self._tool_tokens = 7 if self.vocabulary.source.endswith("o200k_base") else 10
        # Roles and names: a few of them come in every message.
        self._word = lru_cache(REMEMBERED_WORDS)(self.vocabulary.count)
        self._observed = (0.0, 0.0)
        self._doubted = False
        self._ratio = 1.0

    @property
    def source(self) -> str:
        """Which vocabulary counts, for a person."""
        learned = f", corrected by {self._ratio:.2f}" if self._ratio != 1.0 else ""
        return self.vocabulary.source + learned

    @property
    def ratio(self) -> float:
        """By what counts are corrected after the provider's reports; 1.0: not at all."""
        return self._ratio

    @property
    def exact(self) -> bool:
        """Whether texts are counted by the model's own vocabulary."""
        return self.vocabulary.exact

    # ------------------------------------------------------------ what is counted

    def text(self, text: str) -> int:
        """Tokens of a text alone."""
        return self._scaled(self.vocabulary.count(text))

    def texts(self, texts: Sequence[str]) -> list[int]:
        """`text` of each of them."""
        return list(map(self.text, texts))

    def message(self, message: Mapping[str, Any]) -> int:
        """Tokens of one message with its frame."""
        return self._scaled(self._raw(self.cache(message)))

    def messages(self, messages: Iterable[Mapping[str, Any]]) -> int:
        """Tokens of a request's messages: their sum, and REPLY_TOKENS."""
        return self.seen(self.cache.all(messages))

    def seen(self, messages: Iterable[Seen]) -> int:
        """The same for messages that the cache has already looked up."""
        return REPLY_TOKENS + sum(self.each(messages))

    def each(self, messages: Iterable[Seen]) -> list[int]:
        """`message` for each of them."""
        rules = self._rules
        counts = [entry.tokens.get(rules) or self._raw(entry) for entry in messages]
        return counts if self._ratio == 1.0 else list(map(self._scaled, counts))

    def tools(self, tools: Sequence[Mapping[str, Any]] | None) -> int:
        """Tokens of the tool schemas sent with a request."""
        return self._scaled(self._raw_tools(tools))

    # ------------------------------------------------------------ learning

    def calibrate(
        self,
        messages: Iterable[Mapping[str, Any]],
        prompt_tokens: int,
        tools: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        """Learn from a request and the `prompt_tokens` that the provider reported for it.

        Corrects every later count by one ratio, the newest request weighing most. A report that
        is off by more than four times is not believed: a proxy's zero, another request's. More
        than four times the count is, once the next report is too.
        """
        counts = sum(map(self._raw, self.cache.all(messages)))
        counted = counts + REPLY_TOKENS + self._raw_tools(tools)
        doubted, self._doubted = self._doubted, prompt_tokens > counted * 4
        if prompt_tokens < counted / 4 or (self._doubted and not doubted):
            logger.debug("%d counted, %d reported: not learned", counted, prompt_tokens)
            return
        if prompt_tokens > counted * 4 * self._ratio:  # what was observed so far was no measure
            self._observed = (0.0, 0.0)
        before = self._observed
        self._observed = (before[0] / 2 + counted, before[1] / 2 + prompt_tokens)
        ratio = self._observed[1] / self._observed[0]
        # An exact counter is off by what the provider adds; a ratio near 1 would only add noise.
        self._ratio = 1.0 if self.exact and abs(ratio - 1) < EXACT_TOLERANCE else ratio

    def _scaled(self, tokens: int) -> int:
        return tokens if self._ratio == 1.0 else round(tokens * self._ratio)

    # ------------------------------------------------------------ messages

    def _raw(self, seen: Seen) -> int:
        known = seen.tokens.get(self._rules)
        if known is None:
            known = seen.tokens[self._rules] = self.count(seen.plain)
        return known

    def count(self, message: Message) -> int:
        """Tokens of a plain message by the rules of the model, uncorrected and not remembered."""
        tokens = MESSAGE_TOKENS + self._word(str(message.get("role") or ""))
        name = message.get("name")
        if isinstance(name, str) and name:
            tokens += NAME_TOKENS + self._word(name)
        for call in calls_beside(message):
            tokens += CALL_TOKENS + self._word(call.name) + self.vocabulary.count(call.arguments)
        tokens += self._content(message.get("content"))
        return tokens if message.keys() <= _PLAIN_KEYS else tokens + self._reasoning(message)

    def _reasoning(self, message: Message) -> int:
        """Thinking that is sent back: blocks, or else the same as one text."""
        tokens = self._content(message.get("refusal"))
        blocks = message.get("thinking_blocks") or message.get("reasoning_details")
        text = message.get("reasoning_content") or message.get("reasoning")
        return tokens + self._content(blocks or text)

    def _content(self, content: Any) -> int:
        if content is None:
            return 0
        if isinstance(content, str):
            return self.vocabulary.count(content)
        if isinstance(content, list):
            return sum(map(self._content, content))
        return self._part(content) if isinstance(content, dict) else self._json(content)

    def _part(self, part: Mapping[str, Any]) -> int:
        kind = str(part.get("type"))
        if kind in _IMAGES:
            return self._image_rule.count(*size_and_detail(part))
        if kind in _MEDIA:
            return ceil(_longest_text(part) / MEDIA_CHARS_PER_TOKEN)
        if kind.startswith(_THINKING):
            return self._thinking(part)
        if kind == "tool_use":
            return self._tool_use(part)
        if kind == "tool_result":
            return MESSAGE_TOKENS + self._content(part.get("content") or part.get("output"))
        text = part.get("text")
        return self.vocabulary.count(text) if isinstance(text, str) else self._json(part)

    def _thinking(self, part: Mapping[str, Any]) -> int:
        # A signature proves where the thinking came from; the model does not read it.
        if part.get("thinking"):
            return self._content(part["thinking"])
        sealed = part.get("encrypted_content") or part.get("data") or ""
        told = self._content(part.get("summary") or part.get("text"))
        return told + ceil(len(str(sealed)) / SEALED_CHARS_PER_TOKEN)

    def _tool_use(self, part: Mapping[str, Any]) -> int:
        arguments = part.get("input") or part.get("arguments") or {}
        given = arguments if isinstance(arguments, str) else _dumps(arguments)
        name = str(part.get("name") or "")
        return CALL_TOKENS + self.vocabulary.count(name) + self.vocabulary.count(given)

    def _json(self, value: Any) -> int:
        return self.vocabulary.count(_dumps(value))

    # ------------------------------------------------------------ tools

    def _raw_tools(self, tools: Sequence[Mapping[str, Any]] | None) -> int:
        if not tools:
            return 0
        return TOOLS_TOKENS + sum(map(self._tool, tools))

    def _tool(self, tool: Mapping[str, Any]) -> int:
        function = tool.get("function", tool)
        if not isinstance(function, Mapping) or not function.get("name"):
            return self._tool_tokens + self._json(tool)
        line = f"{function['name']}:{_stripped(function.get('description'))}"
        schema = function.get("parameters") or function.get("input_schema") or {}
        return self._tool_tokens + self.vocabulary.count(line) + self._properties(schema)

    def _properties(self, schema: Any) -> int:
        """The schema's properties at any depth; the published rule knows only the first."""
        if not isinstance(schema, Mapping):
            return 0
        properties = schema.get("properties")
        tokens = 0
        if isinstance(properties, Mapping) and properties:
            tokens = 3 + sum(self._property(str(k), v) for k, v in properties.items())
        branches = [schema.get("items")]
        for name in ("anyOf", "oneOf", "allOf"):
            branches += schema.get(name) or ()
        for name in ("$defs", "definitions"):
            branches += (schema.get(name) or {}).values()
        return tokens + sum(map(self._properties, branches))

    def _property(self, name: str, schema: Any) -> int:
        if not isinstance(schema, Mapping):
            return 3 + self.vocabulary.count(name)
        kind = schema.get("type", "")
        line = f"{name}:{kind}:{_stripped(schema.get('description'))}"
        choices = schema.get("enum") or ()
        listed = sum(3 + self.vocabulary.count(str(choice)) for choice in choices)
        first = 3 - 3 * bool(choices)
        return first + listed + self.vocabulary.count(line) + self._properties(schema)


EXACT_TOLERANCE = 0.02

REMEMBERED_WORDS = 1_024

_PLAIN_KEYS = frozenset({"role", "content", "name", "tool_calls", "tool_call_id"})
"""A message with no other keys sends no thinking back."""

TOOLS_TOKENS = 12
"""Once for all tools of a request."""

_IMAGES = ("image_url", "input_image", "image")

_MEDIA = ("input_audio", "audio", "file", "input_file", "document")

_THINKING = ("thinking", "redacted_thinking", "reasoning")


def _stripped(description: Any) -> str:
    return str(description or "").removesuffix(".")


def _dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _longest_text(value: Any) -> int:
    """The length of the longest string inside: the payload, not its labels."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, Mapping):
        return max(map(_longest_text, value.values()), default=0)
    return max(map(_longest_text, value), default=0) if isinstance(value, list) else 0
