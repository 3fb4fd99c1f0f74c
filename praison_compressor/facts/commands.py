"""Commands, searches and fetches with what came of them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from html import unescape
from typing import Any

from ..messages import ToolCall
from .domain import GENERAL, Domain, Rule
from .files import action_of, command_texts, names_a_file
from .model import CommandFact
from .outcomes import Outcome
from .passages import arguments_of, key_of

_SEARCH = re.compile(r"grep|search|find|glob|query|list(?!ing)", re.I)
_FETCH = re.compile(r"fetch|browse|url|http|go(?:to)?$|navigate|crawl", re.I)
_RUN = re.compile(
    r"bash|shell|terminal|exec|run|command|python|console|sql|repl(?!ac)|interpreter", re.I
)
_QUERIES = re.compile(r"sql|repl(?!ac)|database|warehouse", re.I)
"""Tools whose `query` is run, not looked for."""
_CODE_KEYS = ("code", "sql", "statement")
_URL_KEYS = ("url", "urls", "uri", "link", "href", "pageurl")
_LIST_OF_WORK = re.compile(r"todo|task|^(?:update_)?plan$", re.I)
# What an agent of a service does: it changes something that is no file.
_ACTS = re.compile(
    r"(?:add|approve|assign|book|buy|cancel|change|close|comment|create|delete|deploy|disable|"
    r"enable|exchange|issue|merge|modify|order|pay|place|post|publish|refund|register|reject|"
    r"remove|reschedule|reset|return|schedule|send|set|submit|transfer|update)(?:_|[A-Z]|$)"
)
_TITLE = re.compile(r"<title[^>]*>([^<]*\w[^<]*)</title>|^\W*(?:page )?title: (.+)$", re.I | re.M)
_TITLES = re.compile(r"^Title: +(\S.*)$", re.M)
_PIPED = re.compile(r"\||;\s*(?:echo|true)\b")
TITLE_WITHIN = 20_000  # characters of a page: scripts may stand before its title
COMMAND_CHARS = 240
TITLES = 4


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
        return CommandFact(text, *_found(result, outcome, kind), index, kind=kind)
    return CommandFact(text, outcome.status, outcome.detail, index, kind=kind)


def is_piped(call: ToolCall) -> bool:
    """Whether an exit code may be that of another program: `pytest | tail`."""
    if not _PIPED.search(call.arguments) or not _RUN.search(call.name):
        return False
    return any(_PIPED.search(text) for text in command_texts(arguments_of(call)))


def _kind(name: str, arguments: Any) -> str | None:
    if not isinstance(arguments, Mapping):
        return None
    if _url(arguments) and (_FETCH.search(name) or not _RUN.search(name)):
        return "fetch"
    if _RUN.search(name) and _run_texts(name, arguments):
        return "command"
    if _RUN.search(name) and not _QUERIES.search(name):
        return None
    writes = action_of(name, arguments) in ("created", "edited", "deleted", "moved")
    searches = _SEARCH.search(name) and not writes and not _LIST_OF_WORK.search(name)
    if searches:
        return "search"
    acts = _ACTS.match(name.rpartition("__")[2]) and not _LIST_OF_WORK.search(name)
    return "command" if acts and arguments and not names_a_file(arguments) else None


def _url(arguments: Mapping[str, Any]) -> str:
    """The page that a call asks for."""
    for key, value in arguments.items():
        if key_of(key) in _URL_KEYS:
            first = value[0] if isinstance(value, list) and value else value
            if isinstance(first, str) and first:
                return first
    return ""


def _run_texts(name: str, arguments: Any) -> list[str]:
    """What is run: a shell's lines, code or a query."""
    found = command_texts(arguments)
    if not found and isinstance(arguments, Mapping):
        keys = (*_CODE_KEYS, "query") if _QUERIES.search(name) else _CODE_KEYS
        values = (value for key, value in arguments.items() if key_of(key) in keys)
        found = [value for value in values if isinstance(value, str)][:1]
    return found


def _ruled(rule: Rule) -> str | None:
    return rule.action if rule.action in ("command", "search", "fetch") else None


def _spoken(call: ToolCall, arguments: Any, kind: str, rule: Rule | None) -> str:
    text = ""
    if kind == "command":
        found = _run_texts(call.name, arguments) if rule is None else []
        text = " && ".join(found or command_texts(arguments, rule))
    elif kind == "fetch" and rule is None:
        text = f"{call.name} {_url(arguments)}"
    if not text:
        text = f"{call.name} {' '.join(_values(arguments, rule))}"
    flat = " ".join(text.split())
    return flat if len(flat) <= COMMAND_CHARS else flat[: COMMAND_CHARS - 1] + "…"


def _values(arguments: Any, rule: Rule | None) -> list[str]:
    if not isinstance(arguments, Mapping):
        return [str(arguments)]
    if rule is not None and rule.argument:
        return [str(arguments.get(rule.argument, ""))]
    told = (value for value in arguments.values() if not isinstance(value, bool))
    return [str(value) for value in told if isinstance(value, (str, int, float))]


def _found(result: str, outcome: Outcome, kind: str) -> Outcome:
    if kind == "fetch" and outcome.status == "failed":
        return outcome
    title = _page(result) if kind == "fetch" else _titles(result)
    if title:
        return Outcome("ok", title)
    lines = [line for line in result.splitlines() if line.strip()]
    if not lines:
        return Outcome("ok", "nothing found")
    first = " ".join(lines[0].split())[:120]
    more = f" (+{len(lines) - 1} lines)" if len(lines) > 1 else ""
    return Outcome("ok", first + more)


def _page(result: str) -> str:
    found = _TITLE.search(result[:TITLE_WITHIN])
    return " ".join(unescape(found[1] or found[2]).split())[:120] if found else ""


def _titles(result: str) -> str:
    """The titles of what a search service found, out of its JSON or its lines."""
    return _listed(_json_titles(result) or _TITLES.findall(result[:TITLE_WITHIN]))


def _listed(titles: list[str]) -> str:
    more = f" (+{len(titles) - TITLES})" if len(titles) > TITLES else ""
    return "; ".join(" ".join(title.split())[:80] for title in titles[:TITLES]) + more


def _json_titles(result: str) -> list[str]:
    if not result.lstrip().startswith(("{", "[")) or len(result) > TITLE_WITHIN * 5:
        return []
    try:
        value = json.loads(result)
    except (ValueError, RecursionError):
        return []
    lists = [value, *value.values()] if isinstance(value, dict) else [value]
    items = (item for items in lists if isinstance(items, list) for item in items)
    return [
        item["title"]
        for item in items
        if isinstance(item, dict) and isinstance(item.get("title"), str)
    ]
