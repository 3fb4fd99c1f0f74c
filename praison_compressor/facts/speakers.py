"""Who speaks: the user, the host or a tool in a message of the user's role, and tool calls written
into an assistant's text.

Agents without native tool calls are answered in the user's role, and hosts put notes of their own
round what was typed. Only what is left over when both are taken out is the user's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

from ..messages import ToolCall

__all__ = [
    "HOST_PREFIXES",
    "WrittenCalls",
    "is_answer",
    "ran_by_the_user",
    "voices",
    "written_calls",
]


# -------------------------------------------------------------- voices


# Hosts speak in the user's role too: command echoes, reminders, notices. Nobody said these.
HOST_PREFIXES = (
    "<system-reminder",
    "<command-",
    "<local-command",
    "<task-notification",
    "<environment",
    "Caveat: The messages below",
    "Base directory for this skill",
    "[Request interrupted",
    "[loop-guard]",
    "<conversation-summary",
    "# AGENTS.md instructions",
    "I have *added these files to the chat*",
)
# Notes with an end of their own: what stands before and behind them is somebody else's.
_NOTE = re.compile(
    r"^[ \t]*<(system-reminder|command-[a-z]+|local-command-[a-z]+|task-notification|"
    r"environment_?[a-z]*|additional_data|attached_files|attachments|user_info|git_status|"
    r"project_layout|workspace_info|repository_info|runtime_information|reminderInstructions|"
    r"open_and_recently_viewed_files|user_instructions)\b[^>\n]*>",
    re.M | re.I,
)
_WRAPPING = re.compile(
    r"^[ \t]*</?(?:task|user_query|userRequest|user_request|user_message|feedback|answer)>[ \t]*$"
    r"|^\s*<(?:task|user_query|userRequest|user_request)>|</(?:task|user_query|userRequest|"
    r"user_request)>\s*$",
    re.M,
)
_ANSWER = re.compile(
    r"\s*(?:(?P<heading>\[\w+(?: for .{0,2000}?)?\] Result:|OBSERVATION:?|Observation:\s|"
    r"EXECUTION RESULT of \[\w+\]:)|I ran this command:\n|# \d+ SEARCH/REPLACE block|"
    r"<(?:returncode|output|tool_response|tool_result|function_results?|observation)>)",
    re.S,
)
# Where an editor stands, told below what the user typed.
_STANDS = re.compile(r"(?:\n\((?:Open file|Current directory): [^\n]*\))+(?:\n\S*[$#>])?\s*$", re.I)
_PROMPT = re.compile(r"\n\S*[$#>]\s*$")
# A question's answer, and what was said with a refusal. Elsewhere such tags are the tool's words.
_ASKED = re.compile(
    r"\s*\[(?:ask\w*|attempt_completion|\w*_respond)\b[^\n]*\] Result:"
    r"|\s*\[\w+(?: for .{0,2000}?)?\] Result:\s*The user (?:denied|provided)\b",
    re.S,
)
_SAID = re.compile(r"<(answer|user_message|feedback)>(.*?)</\1>", re.S)
_RAN = re.compile(r"I ran this command:\n+(.*?)\n+And got this output:\n", re.S)


def voices(
    text: str, host_prefixes: tuple[str, ...] = (), *, after_call: bool = False
) -> Iterator[tuple[str, str]]:
    """(`user`, `result` or `host`, text) for the voices in a message of the user's role.

    `after_call`: the assistant's words before it ran something, whose answer may end in a prompt.

    >>> list(voices("<system-reminder>be brief</system-reminder>\\nFix the parser."))
    [('user', 'Fix the parser.'), ('host', '<system-reminder>be brief</system-reminder>')]
    """
    opens = (*HOST_PREFIXES, *host_prefixes)
    own, notes = _parted(text)
    if not notes and text.lstrip().startswith(opens):
        yield "host", text
    elif answer := _ANSWER.match(own):
        yield "result", own[answer.end("heading") :].strip() if answer["heading"] else own
        for found in _SAID.finditer(own) if _ASKED.match(own) else ():
            yield "user", found[2].strip()
    elif after_call and _PROMPT.search(own):
        yield "result", own
    elif own.lstrip().startswith(opens):
        yield "host", own
    elif own.strip():
        own = _STANDS.sub("", own) if own.rstrip().endswith((")", "$", "#", ">")) else own
        yield "user", _WRAPPING.sub("", own).strip() if "<" in own else own
    for note in notes:
        yield "host", note


def is_answer(text: str) -> bool:
    """Whether a message in the user's role brings a tool's words, and nobody else's.

    >>> is_answer("[read_file for 'a.py'] Result:\\nport = 1")
    True
    """
    own, _ = _parted(text)
    if not _ANSWER.match(own):  # most are none, and need not be read to their end
        return False
    speakers = {speaker for speaker, _ in voices(text)}
    return "result" in speakers and "user" not in speakers


def _parted(text: str) -> tuple[str, list[str]]:
    """The text without the host's notes, and those notes; one that has no end is none."""
    if "</" not in text:
        return text, []
    own: list[str] = []
    notes: list[str] = []
    at = 0
    while found := _NOTE.search(text, at):
        closing = f"</{found[1]}>"
        end = text.find(closing, found.end())
        if end < 0:
            break
        end += len(closing)
        own.append(text[at : found.start()])
        notes.append(text[found.start() : end].strip())
        at = end
    if not notes:
        return text, []
    own.append(text[at:])
    return "\n".join(part.strip() for part in own if part.strip()), notes


def ran_by_the_user(text: str) -> tuple[str, str]:
    """The command that a host says the user ran, and its output; the text itself if none."""
    found = _RAN.match(text)
    return (found[1].strip(), text[found.end() :].strip()) if found else ("", text)


# -------------------------------------------------------------- written calls


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
