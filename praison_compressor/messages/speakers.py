"""Find who wrote each text: user, host, or tool.

The user's words may be in a message of the user's role, in the result of a call that the user
refused or approved, and in the result of a tool that asks the user.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from .calls import members_of
from .shapes import ORPHAN_OPENS, Message, has_tool_part, is_result_block, parse_json, text_of
from .shortening import MACHINE_LINE


class SpokenPart(NamedTuple):
    """A text in the user's role."""

    source: str
    """`user`, `host` or `result`."""
    text: str
    origin: str = ""
    """Where the words were, if not in the message's own text."""
    block: Mapping[str, Any] | None = None
    """A result's block, in Anthropic's shape."""


HOST_PREFIXES = (
    *("<system-reminder", "<command-", "<local-command", "<bash-std", "<task-notification"),
    *("<environment", "<conversation-summary", "<user_instructions", "# AGENTS.md instructions"),
    *("Caveat: The messages below", "Base directory for this skill", "[Request interrupted"),
    *("[loop-guard]", "I have *added these files to the chat*"),
)
"""First words of texts that hosts write in the user's role: echoes, reminders, notices."""
# A host's notes with an end mark.
_NOTE = re.compile(
    r"^[ \t]*<(system-reminder|command-[a-z]+|local-command-[a-z]+|bash-std[a-z]+|ide_[a-z_]+|"
    r"task-notification|environment_?[a-z]*|additional_data|attached_files|attachments|user_info|"
    r"git_status|project_layout|workspace_info|repository_info|runtime_information|"
    r"reminderInstructions|open_and_recently_viewed_files|user_instructions)\b[^>\n]*>",
    re.M | re.I,
)
_WRAPPER_TAGS = (
    "(?:task|user_query|userRequest|user_request|user_message|feedback|answer|bash-input)"
)
_WRAPPING = re.compile(
    rf"^[ \t]*</?{_WRAPPER_TAGS}>[ \t]*$|^\s*<{_WRAPPER_TAGS}>|</{_WRAPPER_TAGS}>\s*$", re.M
)
# Tool outputs of agents without native calls.
_TOOL_OUTPUT = re.compile(
    r"\s*(?:(?P<heading>\[\w+(?: for .{0,2000}?)?\] Result:|OBSERVATION:?|Observation:\s|"
    r"EXECUTION RESULT of \[\w+\]:)|I ran this command:\n|# \d+ SEARCH/REPLACE block|"
    r"<(?:returncode|output|tool_response|tool_result|function_results?|observation)>)",
    re.S,
)
# The user's words inside a host's note.
_IN_NOTE = re.compile(
    r"\A(?:<system-reminder>\s*The user sent (?:the following|a new) message[^\n:]*:\s*"
    r"(?P<sent>.+?)(?:\n\n(?:Please address|IMPORTANT:)[^\n]*)?\s*</system-reminder>"
    r"|<command-args>\s*(?P<args>.+?)\s*</command-args>)\s*\Z",
    re.S,
)
IN_USER_ROLE = "in the user's role"
TYPED_COMMAND = "typed as a command"
_SILENT_NOTES = ("<local-command-caveat", "<command-message", "Caveat: The messages below")
"""Beginnings of notes without content."""
_LEAST_MACHINE_LINES = 8  # shorter texts need `_MACHINE_OPENS`
_MACHINE_OPENS = re.compile(
    r"\s*(?:\[(?:Current|Active) (?:page|URL)|(?:Current |Page )+URL:|- Page URL:|RootWebArea|"
    r"Tab \d+|\[\d+\]\s*<|<html|<!DOCTYPE|<\?xml|Traceback \(most recent|Accessibility tree|"
    r"### Page state|(?:Clickable|Interactive) elements|\(Open file: )",
    re.I,
)


def spoken_parts(message: Message) -> Iterator[SpokenPart]:
    """Yield the texts of a user message by writer."""
    content, text = message.get("content"), text_of(message)
    if message.get("name"):
        yield SpokenPart("host", text, f"{message['name']}, {IN_USER_ROLE}")
    elif not has_tool_part(message):
        yield from parts_by_writer(text)
    elif not isinstance(content, list):
        yield SpokenPart("result", text)
    else:
        for part in content:
            words = text_of({"content": [part]})
            if is_result_block(part):
                yield SpokenPart("result", words, block=part)
            elif words.startswith(ORPHAN_OPENS):
                yield SpokenPart("result", words)
            elif words:
                yield from parts_by_writer(words)


def parts_by_writer(text: str) -> Iterator[SpokenPart]:
    """Yield the parts of a text by user, tool and host."""
    own, notes = _split_notes(text)
    if result := _TOOL_OUTPUT.match(own):
        output = own[result.end("heading") :].strip() if result["heading"] else own
        yield SpokenPart("result", output)
    elif own.lstrip().startswith(HOST_PREFIXES) or is_machine_text(own):
        yield SpokenPart("host", own, IN_USER_ROLE)
    elif own.strip():
        origin = TYPED_COMMAND if own.lstrip().startswith("<bash-input>") else ""
        yield SpokenPart("user", _WRAPPING.sub("", own).strip() if "<" in own else own, origin)
    for note in notes:
        if inner := _IN_NOTE.match(note):
            origin = "sent while the agent worked" if inner["sent"] else "with a command"
            yield SpokenPart("user", inner["sent"] or inner["args"], origin)
        elif not note.startswith(_SILENT_NOTES):
            yield SpokenPart("host", note, IN_USER_ROLE)


def is_machine_text(text: str) -> bool:
    """Return whether a machine wrote the text, by its lines.

    >>> is_machine_text("Why?\\n" + "2026-01-01 10:00:00 GET /\\n" * 20)
    False
    """
    if _MACHINE_OPENS.match(text):
        return True
    lines = [line for line in text.splitlines() if line.strip()]
    is_long = len(lines) >= _LEAST_MACHINE_LINES
    return is_long and all(map(MACHINE_LINE.match, (*lines[:40], lines[-1])))


def is_tool_output(text: str) -> bool:
    """Return whether a user message is a tool's output."""
    return _TOOL_OUTPUT.match(_split_notes(text)[0]) is not None


def _split_notes(text: str) -> tuple[str, list[str]]:
    """Return the text without the host's notes, and the notes."""
    own, notes, at = list[str](), list[str](), 0
    while found := _NOTE.search(text, at) if "<" in text else None:
        closing = f"</{found[1]}>"
        end = text.find(closing, found.end()) + len(closing)
        if end < len(closing):
            break
        own.append(text[at : found.start()])
        notes.append(text[found.start() : end].strip())
        at = end
    own.append(text[at:])
    return "\n".join(part.strip() for part in own if part.strip()) if notes else text, notes


SHELL_PROMPT = re.compile(r"\n\S{0,40}[$#]\s*\Z")
"""Ends an environment's output."""
ASKING_TOOLS = frozenset(
    "ask askclarification askfollowupquestion askhuman askquestion askquestions asktheuser askuser "
    "askuserquestion askuserquestions clarify getuserinput humanassistance humaninput question "
    "requestuserinput userinput vscodeaskquestions".split()
)
"""Normalized names (`normalize_key`) of tools whose result is the user's answer."""
# A host's sentence: what the user did with the call.
_REFUSAL_VERBS = r"(?:reject|den[iy]|declin|refus|cancel|interrupt|abort|skip|block|disallow)\w*"
_DECISION_VERBS = rf"(?:approv\w*|{_REFUSAL_VERBS})"
_DECIDED = re.compile(
    r"\A[^\n<{]{0,40}?(?:(?:\bthe |\A\W*|\berror\W+)user\W+"
    r"(?:(?:has|have|had|just|also|then|explicitly|feedback|on|the)\W+){0,4}"
    rf"(?:{_DECISION_VERBS}|chose|wants?|(?:doesn|does|did|didn)\W(?:no)?t\b)"
    rf"|{_DECISION_VERBS}(?: \w+){{0,3}}? by (?:the )?user\b(?! \w+:)|"
    rf"{_DECISION_VERBS}\W+(?:the )?user\W?s\b)",
    re.I,
)
# An approval must have such a word. Otherwise the agent's own plan follows the approval.
_FEEDBACK = re.compile(
    rf"(?:\b(?:{_REFUSAL_VERBS}|by (?:the )?user|said|says|wrote|replied|answered|feedback|reason|"
    r"comment|message|guidance|note|context|instructions?|correction)(?: \w+){0,4}\"?:\s*|<(?P<tag>"
    r"feedback|user_feedback|user_message|answer|reason|comment)>)(?P<words>.+)\Z",
    re.S | re.I,
)
_BEHIND = re.compile(r"\n\s*\n(?:Note: The user's next message|<system-reminder>).*\Z", re.S)
_DECISION_KEYS = ("approved", "denied", "approvaldenied", "rejected")
_WORDS_KEYS = ("feedback", "userfeedback", "usermessage", "guidance", "comment", "reason")
_STATE_KEYS = ("status", "decision", "action", "type", "result", "outcome")
_ENVELOPE = frozenset("error message ok permissiondenied success tool toolname".split()).union(
    _DECISION_KEYS, _WORDS_KEYS, _STATE_KEYS
)


def user_words_in(text: str) -> str:
    """Return the user's words inside a tool's result, or "".

    The result must begin with a host's paragraph that introduces the words.

    >>> user_words_in("The user denied this operation.\\n<feedback>Use bun.</feedback>")
    'Use bun.'
    """
    head = text[:400].lstrip()
    if head.startswith("{"):
        return _words_in_json(text) if len(text) < 20_000 else ""
    # The pattern runs only if the word occurs: looking for the word takes a tenth of the time.
    opens = "user" in head.lower() and _DECIDED.match(head)
    found = _FEEDBACK.search(text) if opens else None
    if found is None or "\n\n" in text.lstrip()[: found.start()]:
        return ""
    words = _BEHIND.sub("", found["words"])
    return (words.partition(f"</{found['tag']}>")[0] if found["tag"] else words).strip()


def _words_in_json(text: str) -> str:
    members = members_of(parse_json(text))
    if not members.keys() <= _ENVELOPE:
        return ""
    texts = [item for item in members.values() if isinstance(item, str)]
    states = (str(members.get(key, "")).replace("user_", "") for key in _STATE_KEYS)
    is_decided = not members.keys().isdisjoint(_DECISION_KEYS)
    is_decided |= any(map(_DECIDED.match, (*texts, *(f"user {state}" for state in states))))
    inner = next(filter(None, map(user_words_in, texts)), "")
    words = (members.get(key) for key in _WORDS_KEYS if is_decided)
    return inner or next((text.strip() for text in words if isinstance(text, str)), "")


def without_notes(result: str) -> str:
    """Return a tool's output without the host's notes below it."""
    own, _, last = result.rstrip().rpartition("\n\n")
    while own and last.lstrip().startswith(HOST_PREFIXES):
        result = own
        own, _, last = own.rstrip().rpartition("\n\n")
    return result
