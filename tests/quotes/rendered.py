"""Quotes of messages as a reader sees them, with a count that any machine has."""

from collections.abc import Sequence
from typing import Any

from praison_compressor.messages import Message
from praison_compressor.quotes import read_quotes


def words(text: str) -> int:
    """Return about the tokens of a text."""
    return len(text) // 4 + 1


def quoted(messages: Sequence[Message], budget: int = 4_000, **given: Any) -> str:
    """Return the quotes of messages with their references in segment 1."""
    rule_sources = given.pop("rule_sources", ())
    references = given.pop("references", [f"s1.{n}" for n in range(1, len(messages) + 1)])
    return read_quotes(messages, rule_sources).render(budget, words, references, **given)


def section(text: str, title: str) -> str:
    """Return the section whose heading begins with a title, or ""."""
    parts = text.split("\n## ")
    found = [part for part in parts if part.removeprefix("## ").startswith(title)]
    return found[0] if found else ""
