"""Count the tokens of messages, images and tools for a model.

If a model has no public vocabulary, its tokens are estimated. The delimiters are counted by
OpenAI's published rules: 3 tokens delimit a message, 3 tokens open the reply, a name costs one
token more than its text.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, pairwise
from math import ceil, sqrt
from typing import Any

from ..errors import ConfigError
from ..messages import Message, shapes
from ..messages.digests import CachedMessage, MessageCache
from .learned import Calibration
from .models import Vocabulary, bare_names, vocabulary_for

MESSAGE_TOKENS, NAME_TOKENS = 3, 1
REPLY_TOKENS = 3
"""Tokens that open the reply; only `messages()` counts these tokens."""
CALL_TOKENS = 5
"""Tokens that delimit a call. The number is not published."""
TOOLS_TOKENS = 12
"""Tokens that are counted once for all tools of a request."""
MEDIA_CHARS_PER_TOKEN = 40
"""Base64 characters a token, for audio or a document. Not all providers publish this number."""
SEALED_CHARS_PER_TOKEN = 5
"""Base64 characters a token, for encrypted reasoning: four bytes a token."""


class TokenCounter:
    """Count tokens for one model; thread-safe; each message is counted once.

    A subclass with other rules overrides `count`.

    Args:
        model: the model whose vocabulary counts. None: o200k_base.
        cache: messages with their counts, shared by counters. None: a new one.
        vocabulary: counts texts. None: the model's own, else an estimate.
    """

    def __init__(
        self,
        model: str | None = None,
        *,
        cache: MessageCache | None = None,
        vocabulary: Vocabulary | None = None,
    ) -> None:
        """Create a counter.

        Raises:
            ConfigError: `model` is neither a text nor None.
        """
        if model is not None and not isinstance(model, str):
            raise ConfigError(f"model={model!r:.60}: expected the name of a model, or None")
        self.model = model
        self.cache = MessageCache() if cache is None else cache
        self.vocabulary = vocabulary_for(model) if vocabulary is None else vocabulary
        self._image_rule = image_rule(model)
        self._rules = f"{type(self).__name__} {self.vocabulary.source} {self._image_rule}"
        self._tool_tokens = 7 if self.vocabulary.source.endswith("o200k_base") else 10
        # Roles and names repeat in every message.
        self._count_word = lru_cache(REMEMBERED_WORDS)(self.vocabulary.count)
        self._count_section = lru_cache(REMEMBERED_SECTIONS)(self.vocabulary.count)
        self._count_dumped = lru_cache(REMEMBERED_TOOLS)(self._count_tool)
        self._calibration = Calibration(self.vocabulary.exact)

    @property
    def source(self) -> str:
        """The vocabulary's name, and the correction."""
        learned = f", corrected by {self.ratio:.2f}" if self.ratio != 1.0 else ""
        return self.vocabulary.source + learned

    @property
    def ratio(self) -> float:
        """Factor from the provider's reports; 1.0: no correction."""
        return self._calibration.factor

    @property
    def exact(self) -> bool:
        """Whether the vocabulary is the model's own."""
        return self.vocabulary.exact

    # ------------------------------------------------------------ what is counted

    def text(self, text: str) -> int:
        """Return the tokens of a text alone."""
        return self._scale(self._count_text(text))

    def message(self, message: Mapping[str, Any]) -> int:
        """Return the tokens of a message with its delimiters."""
        return self._scale(self._count_cached(self.cache(message)))

    def messages(self, messages: Iterable[Mapping[str, Any]]) -> int:
        """Return the tokens of a request's messages, with `REPLY_TOKENS`."""
        return REPLY_TOKENS + sum(self.each(self.cache.all(messages)))

    def each(self, messages: Iterable[CachedMessage]) -> list[int]:
        """Return the tokens of each cached message with its delimiters."""
        return self.begin_count(messages)()

    def begin_count(self, messages: Iterable[CachedMessage]) -> Callable[[], list[int]]:
        """Begin to count in threads; return a function that gives the counts."""
        rules, entries = self._rules, list(messages)
        new = [entry for entry in entries if rules not in entry.tokens]
        if len(new) < COUNTED_TOGETHER or type(self).count is not TokenCounter.count:
            new = []
        parts = [self._split(entry.plain) for entry in new]
        sizes = self.vocabulary.begin_count([text for _, texts in parts for text in texts])

        def finish_count() -> list[int]:
            counted = iter(sizes())
            for entry, (beside, texts) in zip(new, parts, strict=True):
                entry.tokens[rules] = beside + sum(islice(counted, len(texts)))
            counts = [entry.tokens.get(rules) or self._count_cached(entry) for entry in entries]
            return counts if self.ratio == 1.0 else list(map(self._scale, counts))

        return finish_count

    def tools(self, tools: Sequence[Mapping[str, Any]] | None) -> int:
        """Return the tokens of a request's tool schemas."""
        return self._scale(self._count_tools(tools))

    # ------------------------------------------------------------ learning

    def calibrate(
        self,
        messages: Iterable[Mapping[str, Any]],
        prompt_tokens: int,
        tools: Sequence[Mapping[str, Any]] | None = None,
    ) -> int | None:
        """Correct later counts by a provider's `prompt_tokens` for a request.

        Return the size to which the server silently cuts its requests, else None.
        """
        counts = sum(map(self._count_cached, self.cache.all(messages)))
        counted = counts + REPLY_TOKENS + self._count_tools(tools)
        return self._calibration.learn(counted, prompt_tokens)

    def _scale(self, tokens: int) -> int:
        factor = self._calibration.factor
        return tokens if factor == 1.0 else round(tokens * factor)

    # ------------------------------------------------------------ messages

    def _count_cached(self, entry: CachedMessage) -> int:
        tokens = entry.tokens.get(self._rules)
        if tokens is None:
            tokens = entry.tokens[self._rules] = self.count(entry.plain)
        return tokens

    def count(self, message: Message) -> int:
        """Count a plain message without correction and cache."""
        tokens, texts = self._split(message)
        return tokens + sum(map(self._count_text, texts))

    def _count_text(self, text: str) -> int:
        if not SECTIONED_CHARS[0] <= len(text) <= SECTIONED_CHARS[1]:
            return self.vocabulary.count(text)
        cuts = [0, *(match.end() for match in _SECTION.finditer(text)), len(text)]
        return sum(self._count_section(text[start:end]) for start, end in pairwise(cuts))

    def _split(self, message: Message) -> tuple[int, list[str]]:
        """Return the tokens of roles and names, and the other texts."""
        tokens = MESSAGE_TOKENS + self._count_word(str(message.get("role") or ""))
        name, content = message.get("name"), message.get("content")
        if isinstance(name, str) and name:
            tokens += NAME_TOKENS + self._count_word(name)
        texts = []
        for call in shapes.calls_beside(message):
            tokens += CALL_TOKENS + self._count_word(call.name)
            texts.append(call.arguments)
        if isinstance(content, str):
            texts.append(content)
        else:
            tokens += self._count_content(content)
        if not message.keys() <= _PLAIN_KEYS:
            tokens += self._count_beside(message)
        return tokens, texts

    def _count_beside(self, message: Message) -> int:
        """Return the tokens beside the content: words, Responses items, thinking."""
        blocks = message.get("thinking_blocks") or message.get("reasoning_details")
        text = message.get("reasoning_content") or message.get("reasoning")
        items = [*shapes.items_of(message)]
        return self._count_content([shapes.text_beside(message), blocks or text, *items])

    def _count_content(self, content: Any) -> int:
        if content is None:
            return 0
        if isinstance(content, str):
            return self.vocabulary.count(content)
        if isinstance(content, list):
            return sum(map(self._count_content, content))
        return self._count_part(content) if isinstance(content, dict) else self._count_json(content)

    def _count_part(self, part: Mapping[str, Any]) -> int:
        kind = str(part.get("type"))
        if kind in _IMAGES:
            return self._image_rule.count(*size_and_detail(part))
        if kind.startswith(_THINKING):
            return self._count_thinking(part)
        if kind == "tool_use":
            call = shapes.read_call(part)
            return CALL_TOKENS + self._count_word(call.name) + self.vocabulary.count(call.arguments)
        if kind == "tool_result":
            return MESSAGE_TOKENS + self._count_content(part.get("content") or part.get("output"))
        text = part.get("text")
        if isinstance(text, str) and part.keys() <= _TEXT_KEYS:
            return self.vocabulary.count(text)
        return self._count_words(part)

    def _count_words(self, part: Mapping[str, Any]) -> int:
        bare, bodies = shapes.without_bodies(part)
        words = shapes.part_text(bare)
        tokens = self.vocabulary.count(words) if words else self._count_json(bare)
        tokens += ceil(bodies.files / MEDIA_CHARS_PER_TOKEN)
        return tokens + ceil(bodies.sealed / SEALED_CHARS_PER_TOKEN)

    def _count_thinking(self, part: Mapping[str, Any]) -> int:
        # The model does not read a signature.
        if part.get("thinking"):
            return self._count_content(part["thinking"])
        sealed = part.get("encrypted_content") or part.get("data") or ""
        readable = [part.get("summary") or part.get("text"), part.get("content")]
        return self._count_content(readable) + ceil(len(str(sealed)) / SEALED_CHARS_PER_TOKEN)

    def _count_json(self, value: Any) -> int:
        return self.vocabulary.count(_dumps(value))

    # ------------------------------------------------------------ tools

    def _count_tools(self, tools: Sequence[Mapping[str, Any]] | None) -> int:
        if not tools:
            return 0
        # The counts of schemas are cached: every request has the same schemas, and 40 schemas take
        # 10 ms.
        return TOOLS_TOKENS + sum(self._count_dumped(_dumps(tool)) for tool in tools)

    def _count_tool(self, dumped: str) -> int:
        tool = json.loads(dumped)
        function = tool.get("function", tool)
        if not isinstance(function, Mapping) or not function.get("name"):
            return self._tool_tokens + self._count_json(tool)
        line = f"{function['name']}:{_strip_period(function.get('description'))}"
        schema = function.get("parameters") or function.get("input_schema") or {}
        return self._tool_tokens + self.vocabulary.count(line) + self._count_properties(schema)

    def _count_properties(self, schema: Any) -> int:
        if not isinstance(schema, Mapping):
            return 0
        properties, tokens = schema.get("properties"), 0
        if isinstance(properties, Mapping) and properties:
            tokens = 3 + sum(self._count_property(str(k), v) for k, v in properties.items())
        branches = [schema.get("items")]
        for name in ("anyOf", "oneOf", "allOf"):
            branches += schema.get(name) or ()
        for name in ("$defs", "definitions"):
            branches += (schema.get(name) or {}).values()
        return tokens + sum(map(self._count_properties, branches))

    def _count_property(self, name: str, schema: Any) -> int:
        if not isinstance(schema, Mapping):
            return 3 + self.vocabulary.count(name)
        kind = schema.get("type", "")
        line = f"{name}:{kind}:{_strip_period(schema.get('description'))}"
        choices = schema.get("enum") or ()
        listed = sum(3 + self.vocabulary.count(str(choice)) for choice in choices)
        first = 0 if choices else 3
        return first + listed + self.vocabulary.count(line) + self._count_properties(schema)


COUNTED_TOGETHER = 64
"""Fewer new messages are counted without a thread (tests/benchmarks/latency.py)."""

REMEMBERED_WORDS, REMEMBERED_TOOLS, REMEMBERED_SECTIONS = 1_024, 256, 16

SECTIONED_CHARS = 4_096, 524_288
"""A text whose length is in this range is counted by sections, which are cached."""

# No token crosses these places.
_SECTION = re.compile(r"\n(?=## |</)")

_PLAIN_KEYS = frozenset({"role", "content", "name", "tool_calls", "tool_call_id"})
"""Keys without thinking; every other key may have thinking."""

_IMAGES = ("image_url", "input_image", "image")

_TEXT_KEYS = frozenset({"type", "text", "cache_control", "prompt_cache_breakpoint"})

_THINKING = ("thinking", "redacted_thinking", "reasoning")


def _strip_period(description: Any) -> str:
    return str(description or "").removesuffix(".")


def _dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


# ---------------------------------------------------------------- images, by providers' formulas

Size = tuple[int, int]

UNKNOWN_SIZE: Size = (1024, 1024)
"""Assumed for a linked image and for an unreadable format."""

_DECODED_CHARS = 400_000
"""Base64 characters to decode. The number is large, because a JPEG's preview comes before its
size."""


@dataclass(frozen=True)
class ImageRule:
    """Count the tokens of an image, by tiles, patches or area."""

    base: int = 85
    tile: int = 170
    per_patch: float = 0.0
    pixels_per_token: int = 0

    def count(self, size: Size | None, detail: str | None) -> int:
        """Return the tokens of an image; `size` None: `UNKNOWN_SIZE`."""
        width, height = size or UNKNOWN_SIZE
        if self.per_patch:
            return ceil(_patches(width, height) * self.per_patch)
        if self.pixels_per_token:
            width, height = _shrink(width, height, 1568, max(width, height))
            return min(1600, ceil(width * height / self.pixels_per_token))
        if detail == "low":
            return self.base
        return self.base + self.tile * _tiles(width, height)


_IMAGE_RULES = (
    (re.compile(r"gpt-4o-mini"), ImageRule(2833, 5667)),
    (re.compile(r"gpt-4\.1-mini|gpt-5-mini"), ImageRule(per_patch=1.62)),
    (re.compile(r"gpt-4\.1-nano|gpt-5-nano"), ImageRule(per_patch=2.46)),
    (re.compile(r"o4-mini"), ImageRule(per_patch=1.72)),
    (re.compile(r"gpt-5"), ImageRule(70, 140)),
    (re.compile(r"o[13](?![a-z0-9])"), ImageRule(75, 150)),
    (re.compile(r".*claude"), ImageRule(pixels_per_token=750)),
)


def image_rule(model: str | None) -> ImageRule:
    """Return the rule of the model's family, else that of gpt-4o."""
    names = bare_names(model)
    for pattern, rule in _IMAGE_RULES:
        if any(pattern.match(name) for name in names):
            return rule
    return ImageRule()


def _shrink(width: int, height: int, limit: int, side: int) -> Size:
    scale = min(1.0, limit / max(side, 1))
    return max(1, int(width * scale)), max(1, int(height * scale))


def _tiles(width: int, height: int) -> int:
    width, height = _shrink(width, height, 2048, max(width, height))
    width, height = _shrink(width, height, 768, min(width, height))
    return ceil(width / 512) * ceil(height / 512)


def _patches(width: int, height: int) -> int:
    patches = ceil(width / 32) * ceil(height / 32)
    if patches <= 1536:
        return patches
    # Shrink to 1536 patches, then to whole patches in one direction.
    scale = sqrt(32 * 32 * 1536 / (width * height))
    wide, high = width * scale / 32, height * scale / 32
    scale *= min(int(wide) / wide, int(high) / high) if wide >= 1 and high >= 1 else 1
    return min(1536, ceil(width * scale / 32) * ceil(height * scale / 32))


# ---------------------------------------------------------------- size of an image's inline data
def image_size(url: Any) -> Size | None:
    """Return width and height of a base64 image, or None."""
    if not isinstance(url, str) or url.startswith(("http:", "https:", "file:")):
        return None
    data = url.partition("base64,")[2] if url.startswith("data:") else url
    start = data[:_DECODED_CHARS]
    try:
        image = base64.b64decode(start[: len(start) // 4 * 4])
        if image.startswith(b"\x89PNG"):
            width, height = struct.unpack_from(">II", image, 16)
            return width, height
        return _jpeg_size(image) if image.startswith(b"\xff\xd8") else None
    except (binascii.Error, ValueError, struct.error, IndexError):
        return None


def _jpeg_size(data: bytes) -> Size | None:
    at = 2
    while at + 9 < len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack_from(">HH", data, at + 5)
            return width, height
        at += 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    return None


def size_and_detail(part: Mapping[str, Any]) -> tuple[Size | None, str | None]:
    """Return size and detail of an image part."""
    image = part.get("image_url") or part.get("source") or part
    if not isinstance(image, Mapping):
        return image_size(image), part.get("detail")
    source = image.get("url") or image.get("data")
    return image_size(source), image.get("detail") or part.get("detail")
