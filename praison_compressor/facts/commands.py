"""Commands, searches and fetches with what came of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import unescape
from typing import Any

from ..messages import ToolCall
from .domain import GENERAL, Domain, Rule
from .files import command_texts
from .model import CommandFact
from .outcomes import Outcome
from .reading import arguments_of

_SEARCH = re.compile(r"grep|search|find|glob|query|list", re.I)
_FETCH = re.compile(r"fetch|browse|url|http|go(?:to)?$|navigate|crawl", re.I)
_RUN = re.compile(r"bash|shell|terminal|exec|run|command|python|console", re.I)
_TITLE = re.compile(r"<title[^>]*>([^<]*\w[^<]*)</title>", re.I)
TITLE_WITHIN = 20_000  # characters of a page: scripts may stand before its title
COMMAND_CHARS = 240


def command_fact(
    call: ToolCall, result: str, outcome: Outcome, index: int, domain: Domain = GENERAL
) -> CommandFact | None:
    """The call as a command with its outcome, or None if it is neither command nor search."""
    arguments = arguments_of(call)
    rule = domain.rule(call.name)
    kind = _kind(call.name, arguments) if rule is None else _ruled(rule)
    if kind is None:
        return None
    text = _spoken(call, arguments, kind, rule)
    if not text:
        return None
    if kind != "command":
        return CommandFact(text, *_found(result, kind), index, kind=kind)
    return CommandFact(text, outcome.status, outcome.detail, index, kind=kind)


def _kind(name: str, arguments: Any) -> str | None:
    if _FETCH.search(name) and isinstance(arguments, Mapping) and "url" in arguments:
        return "fetch"
    if isinstance(arguments, Mapping) and _RUN.search(name):
        return "command" if command_texts(arguments) else None
    return "search" if _SEARCH.search(name) and isinstance(arguments, Mapping) else None


def _ruled(rule: Rule) -> str | None:
    return rule.action if rule.action in ("command", "search", "fetch") else None


def _spoken(call: ToolCall, arguments: Any, kind: str, rule: Rule | None) -> str:
    text = " && ".join(command_texts(arguments, rule)) if kind == "command" else ""
    if not text:
        text = f"{call.name} {' '.join(_values(arguments, rule))}"
    flat = " ".join(text.split())
    return flat if len(flat) <= COMMAND_CHARS else flat[: COMMAND_CHARS - 1] + "…"


def _values(arguments: Any, rule: Rule | None) -> list[str]:
    if not isinstance(arguments, Mapping):
        return [str(arguments)]
    if rule is not None and rule.argument:
        return [str(arguments.get(rule.argument, ""))]
    return [str(value) for value in arguments.values() if isinstance(value, (str, int))]


def _found(result: str, kind: str) -> Outcome:
    page = _TITLE.search(result[:TITLE_WITHIN]) if kind == "fetch" else None
    if page:
        return Outcome("ok", " ".join(unescape(page[1]).split())[:120])
    lines = [line for line in result.splitlines() if line.strip()]
    if not lines:
        return Outcome("ok", "nothing found")
    first = " ".join(lines[0].split())[:120]
    more = f" (+{len(lines) - 1} lines)" if len(lines) > 1 else ""
    return Outcome("ok", first + more)
