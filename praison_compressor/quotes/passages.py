"""Who wrote which text of a message: the user, a host in the user's role, the agent, a tool.

Protocols put the user's words in three places: a message of the user's role, the result of a call
that the user refused or approved with a comment, and the result of a tool that asks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from ..config import CompressorConfig
from ..messages import (
    ORPHAN_OPENS,
    Message,
    ToolCall,
    is_answer_block,
    is_tools_text,
    text_of,
)


@dataclass(frozen=True)
class QuoteOptions:
    """What an application says of its own texts."""

    rule_sources: tuple[str, ...] = ()
    """Paths, file names, patterns or tool names; see `CompressorConfig.rule_sources`."""
    host_prefixes: tuple[str, ...] = ()
    """How the application's own texts begin; see `CompressorConfig.host_prefixes`."""

    @classmethod
    def of(cls, config: CompressorConfig) -> QuoteOptions:
        """Return the options that a configuration gives."""
        return cls(tuple(config.rule_sources), tuple(config.host_prefixes))


class Spoken(NamedTuple):
    """One text of a message in the user's role."""

    source: str
    """`user`, `host` (anything else in the user's role) or `result`."""
    text: str
    block: Mapping[str, Any] | None = None
    """The block of a result, in Anthropic's shape."""


# -------------------------------------------------------------- the user's role


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
    "<user_instructions",
    "I have *added these files to the chat*",
)
"""How hosts begin texts of their own in the user's role: echoes, reminders, notices."""
# Notes that end: the text before and behind a note is another speaker's.
_NOTE = re.compile(
    r"^[ \t]*<(system-reminder|command-[a-z]+|local-command-[a-z]+|task-notification|"
    r"environment_?[a-z]*|additional_data|attached_files|attachments|user_info|git_status|"
    r"project_layout|workspace_info|repository_info|runtime_information|reminderInstructions|"
    r"open_and_recently_viewed_files|user_instructions)\b[^>\n]*>",
    re.M | re.I,
)
_WRAPPING = re.compile(
    r"^[ \t]*</?(?:task|user_query|userRequest|user_request|user_message|feedback|answer)>[ \t]*$"
    r"|^\s*<(?:task|user_query|userRequest|user_request|user_message|feedback|answer)>"
    r"|</(?:task|user_query|userRequest|user_request|user_message|feedback|answer)>\s*$",
    re.M,
)
# How agents without native calls return a tool's output.
_ANSWER = re.compile(
    r"\s*(?:(?P<heading>\[\w+(?: for .{0,2000}?)?\] Result:|OBSERVATION:?|Observation:\s|"
    r"EXECUTION RESULT of \[\w+\]:)|I ran this command:\n|# \d+ SEARCH/REPLACE block|"
    r"<(?:returncode|output|tool_response|tool_result|function_results?|observation)>)",
    re.S,
)
# Words that a user typed while the agent worked; a host passes them on in a note.
_QUEUED = re.compile(
    r"\A<system-reminder>\s*The user sent (?:the following|a new) message[^\n:]*:\s*(.+?)"
    r"(?:\n\n(?:Please address|IMPORTANT:)[^\n]*)?\s*</system-reminder>\s*\Z",
    re.S,
)


def spoken(message: Message, options: QuoteOptions) -> Iterator[Spoken]:
    """Yield the texts of a message in the user's role, each with who wrote it."""
    content = message.get("content")
    text = text_of(message)
    if message.get("name"):
        yield Spoken("host", text)
    elif not is_tools_text(message):
        yield from speakers(text, options.host_prefixes)
    elif not isinstance(content, list):
        yield Spoken("result", text)
    else:
        for part in content:
            said = text_of({"content": [part]})
            typed = isinstance(part, Mapping) and part.get("type") == "text"
            if is_answer_block(part):
                yield Spoken("result", said, part)
            elif typed and not said.startswith(ORPHAN_OPENS):
                yield from speakers(said, options.host_prefixes)
            elif said:
                yield Spoken("result", said)


def speakers(text: str, host_prefixes: tuple[str, ...] = ()) -> Iterator[Spoken]:
    """Yield the user's words, a tool's output and the host's notes of one text.

    >>> [one.text for one in speakers("<system-reminder>be brief</system-reminder>\\nFix it.")]
    ['Fix it.', '<system-reminder>be brief</system-reminder>']
    """
    own, notes = _parted(text)
    if answer := _ANSWER.match(own):
        yield Spoken("result", own[answer.end("heading") :].strip() if answer["heading"] else own)
    elif own.lstrip().startswith((*HOST_PREFIXES, *host_prefixes)) or is_machine_text(own):
        yield Spoken("host", own)
    elif own.strip():
        yield Spoken("user", _WRAPPING.sub("", own).strip() if "<" in own else own)
    for note in notes:
        queued = _QUEUED.match(note)
        yield Spoken("user", queued[1]) if queued else Spoken("host", note)


def is_answer(text: str) -> bool:
    """Return whether a text in the user's role is a tool's output.

    >>> is_answer("[read_file for 'a.py'] Result:\\nport = 1")
    True
    """
    return _ANSWER.match(_parted(text)[0]) is not None


def _parted(text: str) -> tuple[str, list[str]]:
    """Return the text without the host's notes, and those notes."""
    if "<" not in text:
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
    own.append(text[at:])
    return "\n".join(part.strip() for part in own if part.strip()) if notes else text, notes


# -------------------------------------------------------------- machine text


MACHINE_LINES = 8
"""Lines from which on a text may be a machine's."""
_MACHINE_LINE = re.compile(
    r"\s*(?:\[?\d{1,4}[-/:.]\d\d[-/:.]|\[?\d+\]?[:|\s]\s*\S|[<>{}\[\]|+$#@/\\*=~`]|\w+\(|-{2,}|"
    r"(?:INFO|DEBUG|WARN(?:ING)?|ERROR|TRACE|FATAL)\b|at \S+\(|File \"|\w[\w.-]*: |\S+$|\"|"
    r"- (?:\w+ )?(?:\"|\[|\w+:)|(?:\S+\s{2,})+\S)"
)
_MACHINE_OPENS = re.compile(
    r"\s*(?:\[(?:Current|Active) (?:page|URL)|(?:Current|Page) (?:page )?URL:|- Page URL:|"
    r"RootWebArea|Tab \d+|\[\d+\]\s*<|<html|<!DOCTYPE|<\?xml|Traceback \(most recent|"
    r"Accessibility tree|### Page state|Clickable elements|Interactive elements)",
    re.I,
)


def is_machine_text(text: str) -> bool:
    """Return whether a text in the user's role has a machine's form, by its lines.

    >>> is_machine_text("Why?\\n" + "2026-01-01 10:00:00 GET /\\n" * 20)
    False
    """
    if _MACHINE_OPENS.match(text):
        return True
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) < MACHINE_LINES or not _MACHINE_LINE.match(lines[0]):
        return False
    return all(map(_MACHINE_LINE.match, (*lines[:40], lines[-1])))


# -------------------------------------------------------------- the user's words in results


ASKING_TOOLS = frozenset(
    "ask askuserquestion askuser askquestion askquestions askfollowupquestion askuserquestions "
    "requestuserinput userinput getuserinput humaninput askhuman clarify humanassistance question "
    "vscodeaskquestions asktheuser askclarification".split()
)
"""Tools whose result is the user's answer; names without `_` and `-`, in lower case."""

# A host's sentence opens the result; the user's words follow it to the end.
_HANDED_ON = re.compile(
    r"\A\s*(?:Error: |\[?is_error\]?:? )?(?:"
    r"The user (?:doesn['’]t|does not) want to (?:proceed|take)\b.{0,400}?"
    r"(?:the user said|reason for the rejection|following feedback):\s*"
    r"|(?:The )?[Uu]ser (?:has )?(?:rejected|denied|declined|refused|approved)\b[^\n]{0,200}?"
    r"(?:with |the |this |following |provided |additional |reason|feedback|context|comment|said)+:\s*"
    r"|Tool '[^'\n]{1,100}' was denied by the user\. [^\n]{0,80}?User guidance:\s*"
    r"|(?:User rejected the action|Action rejected|Action has been rejected by the user)"
    r"[^\n]{0,60}?(?:[Rr]eason|[Ff]eedback|[Mm]essage)?:\s*"
    r")(?P<words>.+)\Z",
    re.S,
)
_TAGGED = re.compile(
    r"\A\s*(?:Error: )?(?:The )?[Uu]ser (?:has )?(?:denied|rejected|declined|refused|approved)\b"
    r"[^<]{0,300}<(?P<tag>feedback|user_message|answer|user_feedback)>\s*(?P<words>.+?)\s*</(?P=tag)>",
    re.S,
)
_AFTER_WORDS = re.compile(r"\n\s*\n(?:Note: The user's next message|<system-reminder>).*\Z", re.S)
_JSON_WORDS = ("feedback", "user_feedback", "userFeedback", "user_message", "guidance")
_JSON_STATES = ("denied", "approved", "rejected", "declined", "refused")


def words_in_result(call: ToolCall | None, text: str) -> str:
    """Return the user's words that a host passes on in a result, or "".

    Only the host's own opening sentence counts, at the result's first character: a page that
    quotes such a sentence further down is a tool's output.

    >>> words_in_result(None, "The user denied this operation.\\n<feedback>Use bun.</feedback>")
    'Use bun.'
    """
    head = text[:300]
    if "user" not in head.lower() and "eject" not in head and "feedback" not in text[:2_000]:
        return ""
    if head.lstrip().startswith("{"):
        return _words_in_json(text)
    found = _TAGGED.match(text) or _HANDED_ON.match(text)
    return _AFTER_WORDS.sub("", found["words"]).strip() if found else ""


def _words_in_json(text: str) -> str:
    """Return the user's words in a refusal or approval written as JSON."""
    value = _decoded(text)
    if not isinstance(value, Mapping):
        return ""
    error = value.get("error")
    if value.get("approval_denied") and isinstance(error, str):
        return words_in_result(None, error)
    told = str(value.get("message") or "")
    if str(value.get("status")).lower() not in _JSON_STATES or "user" not in told.lower():
        return ""
    said = (value.get(key) for key in _JSON_WORDS)
    return next((words.strip() for words in said if isinstance(words, str) and words.strip()), "")


def asks_the_user(name: str) -> bool:
    """Return whether a tool asks the user, by its exact name."""
    return key_of(name) in ASKING_TOOLS


# -------------------------------------------------------------- results


def said_by(block: Mapping[str, Any]) -> str:
    """Return a result block's text, with its `is_error` flag where that is set.

    >>> said_by({"content": "No such page.", "is_error": True})
    'is_error: No such page.'
    """
    text = text_of(block)
    return f"is_error: {text}" if block.get("is_error") is True else text


def without_notes(result: str, host_prefixes: tuple[str, ...] = ()) -> str:
    """Return a tool's own output, without paragraphs that the host has added below."""
    opens = (*HOST_PREFIXES, *host_prefixes)
    own, _, last = result.rstrip().rpartition("\n\n")
    while own and last.lstrip().startswith(opens):
        result = own
        own, _, last = own.rstrip().rpartition("\n\n")
    return result


# -------------------------------------------------------------- calls


_UNSPOKEN = frozenset(
    "offset limit timeout headlimit viewrange startline endline line character linenumber "
    "securityrisk".split()
)
"""Arguments that name a place in a text or a duration."""


def call_text(call: ToolCall) -> str:
    """Return the tool's name and the values of its arguments, a value a line."""
    values = "\n".join(argument_values(arguments_of(call)))
    return f"{call.name} {values}".rstrip()


CALL_CHARS = 160


def call_line(call: ToolCall, most: int = CALL_CHARS) -> str:
    """Return a call on one line: the tool and its arguments within `most` characters."""
    return cut(call_text(call), most)


def cut(text: str, most: int) -> str:
    """Return a text on one line, its middle left out beyond `most` characters."""
    flat = " ".join(text[: 4 * most].split() if len(text) <= 8 * most else _edges(text, most))
    if len(flat) <= most:
        return flat
    tail = most // 4
    return f"{flat[: most - tail - 3].rstrip()} … {flat[-tail:].lstrip()}"


def _edges(text: str, most: int) -> list[str]:
    return [*text[: 4 * most].split(), *text[-2 * most :].split()]


def arguments_of(call: ToolCall) -> Any:
    """Return the decoded arguments, not to be changed; a string where they are no JSON."""
    return _decoded(call.arguments or "{}")


@lru_cache(maxsize=64)  # several readers look at one call, one after the other
def _decoded(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


@lru_cache(maxsize=1024)
def key_of(argument: str) -> str:
    """Return an argument's name in one spelling: `AbsolutePath` as `absolutepath`."""
    return argument.replace("_", "").replace("-", "").lower()


def argument_values(value: Any) -> Iterator[str]:
    """Yield every string and number of the arguments, in order."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield str(value)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key_of(key) not in _UNSPOKEN:
                yield from argument_values(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from argument_values(item)
