"""Tool calls that an assistant writes into its text, by the shapes that agents are taught."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

from ..messages import ToolCall

__all__ = ["WrittenCalls", "written_calls"]

_ELEMENT = re.compile(r"<([a-z]+(?:_[a-z]+)+)>\s*(?=<[a-z_]+>)")
_ARGUMENT = re.compile(r"<([a-z_]+)>")
_HOLDERS = frozenset(("args", "file"))  # elements that only group the arguments
_FUNCTION = re.compile(r"<(?:function=|invoke name=\")([\w.-]+)\"?>")
_PARAMETER = re.compile(r"<parameter(?:=| name=\")([\w.-]+)\"?>(.*?)</parameter>", re.S)
_JSON = re.compile(r"<tool_call>\s*(\{.*?\})\s*</tool_call>", re.S)
_FENCED = re.compile(
    r"^```(?:\w*bash\w*|sh|shell|zsh|console|powershell|)[ \t]*\n(.*?)^```", re.S | re.M
)
_REPLACED = re.compile(
    r"^(?P<path>[^\s`#*<>](?:[^\n`*<>]*[^\s`*<>:])?):?[ \t]*\n"
    r"(?:```\w*[ \t]*\n)?<{5,9} SEARCH[ \t]*\n(?P<old>.*?)^={5,9}[ \t]*\n(?P<new>.*?)"
    r"^>{5,9} REPLACE[ \t]*\n?(?:```)?",
    re.S | re.M,
)
NEW_FILE, REPLACED = "new_file", "SEARCH/REPLACE"
SHELL = "shell"


class WrittenCalls(NamedTuple):
    """The calls in a text, and what the assistant said beside them."""

    calls: tuple[ToolCall, ...]
    prose: str


def written_calls(text: str, *, answered: bool = False) -> WrittenCalls:
    """The calls that a text makes; none in most texts.

    `answered`: a tool's answer comes next, so that a fenced command was run, not only shown.

    >>> written_calls("Look.\\n<read_file>\\n<path>a.py</path>\\n</read_file>")[0][0].arguments
    '{"path": "a.py"}'
    """
    if "<" not in text and not (answered and "```" in text):
        return WrittenCalls((), text)
    found = sorted({*_elements(text), *_functions(text), *_jsons(text), *_replacements(text)})
    if answered and not found:
        found = [
            (block.start(), block.end(), SHELL, json.dumps({"command": block[1].strip()}))
            for block in _FENCED.finditer(text)
        ]
    if not found:
        return WrittenCalls((), text)
    prose, at = "", 0
    calls: list[ToolCall] = []
    for start, end, name, arguments in found:
        if start < at:
            continue  # inside the one before
        prose += text[at:start]
        at = end
        calls.append(ToolCall("", name, arguments))
    return WrittenCalls(tuple(calls), prose + text[at:])


Place = tuple[int, int, str, str]


def _elements(text: str) -> Iterator[Place]:
    """`<read_file><path>a.py</path></read_file>`."""
    for found in _ELEMENT.finditer(text):
        end = text.find(f"</{found[1]}>", found.end())
        if end >= 0:
            arguments = _arguments(text[found.end() : end])
            yield found.start(), end + len(found[1]) + 3, found[1], json.dumps(arguments)


def _arguments(body: str) -> dict[str, str]:
    out: dict[str, str] = {}
    at = 0
    while found := _ARGUMENT.search(body, at):
        end = body.find(f"</{found[1]}>", found.end())
        if end < 0 or found[1] in _HOLDERS:
            at = found.end()
            continue
        out.setdefault(found[1], body[found.end() : end].strip("\n"))
        at = end
    return out


def _functions(text: str) -> Iterator[Place]:
    """`<function=NAME><parameter=KEY>VALUE</parameter></function>`, and with `invoke name=`."""
    for found in _FUNCTION.finditer(text):
        closing = "</function>" if text.startswith("<function", found.start()) else "</invoke>"
        end = text.find(closing, found.end())
        if end >= 0:
            given = {
                key: value.strip("\n") for key, value in _PARAMETER.findall(text, found.end(), end)
            }
            yield found.start(), end + len(closing), found[1], json.dumps(given)


def _jsons(text: str) -> Iterator[Place]:
    """`<tool_call>{"name": ..., "arguments": {...}}</tool_call>`."""
    for found in _JSON.finditer(text) if "<tool_call>" in text else ():
        try:
            value = json.loads(found[1])
        except ValueError:
            continue
        if isinstance(value, dict) and isinstance(value.get("name"), str):
            given = value.get("arguments", value.get("parameters", {}))
            arguments = given if isinstance(given, str) else json.dumps(given)
            yield found.start(), found.end(), value["name"], arguments


def _replacements(text: str) -> Iterator[Place]:
    """A path, and below it what to look for and what to put there instead."""
    if " SEARCH\n" not in text:
        return
    for found in _REPLACED.finditer(text):
        name = REPLACED if found["old"].strip() else NEW_FILE
        given = {"path": found["path"].strip(), "old": found["old"], "new": found["new"]}
        yield found.start(), found.end(), name, json.dumps(given)
