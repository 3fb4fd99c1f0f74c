"""Who speaks in a message of the user's role: the user, the host, or a tool whose words it brings.

Agents without native tool calls are answered in the user's role, and hosts put notes of their own
round what was typed. Only what is left over when both are taken out is the user's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["HOST_PREFIXES", "is_answer", "ran_by_the_user", "voices"]

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
