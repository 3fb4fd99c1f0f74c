"""Read slash commands, and answer them without the agent's model."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from ..compressor.preview import Preview
from ..config import nearest_name
from ..errors import CompressorError, ConfigError
from . import wording
from .agent_compressor import AgentCompressor


@dataclass(frozen=True)
class Command:
    """A slash command of the chat."""

    name: str
    argument: str
    """The argument as `/help` prints it; "" for a command without argument."""
    help: str
    answer: Callable[[AgentCompressor, str], str | Awaitable[str]]
    """Returns the reply to an argument. Runs in a thread; an awaitable reply is awaited."""

    def __str__(self) -> str:
        return f"{f'/{self.name} {self.argument}':<31} {self.help}"


ParsedCommand = Callable[[AgentCompressor], str | Awaitable[str]]


# ------------------------------------------------------------ what each command does


def _describe_preview(preview: Preview, agent_compressor: AgentCompressor) -> str:
    use = agent_compressor.context_use()
    tools = agent_compressor.conversation.current_request.tool_tokens
    return wording.describe_preview(preview, use, tools, agent_compressor.kept_steps())


def _keep(agent_compressor: AgentCompressor, argument: str) -> str:
    if not argument:
        raise ConfigError("/compact keep: expected references, such as s2.14")
    references = re.split(r"[\s,;]+", argument.strip(" ,;"))
    return _describe_preview(agent_compressor.keep(references), agent_compressor)


def _choose_range(agent_compressor: AgentCompressor, argument: str) -> str:
    match = _RANGE.fullmatch(argument)
    if match is None:
        raise ConfigError("/compact from: expected s2.10, or s2.10 to s2.20")
    since, until = match.groups()
    preview = agent_compressor.choose_range(since or None, until)
    return _describe_preview(preview, agent_compressor)


_RANGE = re.compile(r"(\S*)(?:\s+to\s+(\S+))?")


async def _compact(agent_compressor: AgentCompressor, argument: str) -> str:
    choices = agent_compressor.conversation.choices
    focus = argument or choices.focus or ""
    before = await asyncio.to_thread(agent_compressor.context_use)
    messages = await asyncio.to_thread(agent_compressor.next_messages)
    result = await agent_compressor.acompress(focus or None)
    is_compressed = bool(result.written or result.newly_masked)
    if result.vetoed or not (is_compressed or choices.has_range):
        return wording.describe_no_compression(result)
    after = await asyncio.to_thread(agent_compressor.context_use)
    lines = [wording.describe_no_compression(result)]
    if is_compressed:
        outcome = wording.describe_compression(result, len(messages), focus, before, after)
        lines = [f"{agent_compressor.notice}", outcome]
    if choices.has_range:
        remedy = "a second /compact has no range"
        lines += wording.describe_excess(after.message_tokens, after.trigger, remedy)
    return "\n".join(lines)


def _pin(agent_compressor: AgentCompressor, argument: str) -> str:
    pins = agent_compressor.pin(argument) if argument else agent_compressor.conversation.pinned
    return wording.describe_pins(pins)


def _undo(agent_compressor: AgentCompressor, argument: str) -> str:
    segments = agent_compressor.undo()
    if not segments:
        return "Nothing to undo."
    use = agent_compressor.context_use()
    compressor = agent_compressor.for_model()
    messages = agent_compressor.next_messages()
    # An empty range previews the view as it is now, with earlier compressions in force again.
    now = compressor.preview(messages, until=0, **agent_compressor.conversation.options)
    replaced = [now.messages[index] for index, fate in now.fates() if fate != "keep"]
    return wording.describe_undo(segments, messages, replaced, use, compressor.tokens.message)


def _resume(agent_compressor: AgentCompressor, argument: str) -> str:
    if argument:
        return f"Session {agent_compressor.resume(argument)}"
    return wording.describe_sessions(agent_compressor.sessions())


_TABLE: tuple[Command, ...] = (
    Command(
        "status",
        "",
        "what the last request carried, and what the conversation has cost",
        lambda c, _: wording.describe_status(c.status()),
    ),
    Command(
        "context",
        "",
        "what fills the window, by part, and the largest messages",
        lambda c, _: wording.describe_context(c.context_use(), c.kept_steps()),
    ),
    Command(
        "compact preview",
        "",
        "what /compact would keep, mask and summarize, with references",
        lambda c, _: _describe_preview(c.preview(write=True), c),
    ),
    Command("compact keep", "s2.14", "keep a message word for word; also several", _keep),
    Command(
        "compact from",
        "s2.10 [to s2.20]",
        "compress only this range; `/compact from` alone clears it",
        _choose_range,
    ),
    Command(
        "compact focus",
        "WORDS",
        "what the summary must keep",
        lambda c, focus: _describe_preview(c.set_focus(focus), c),
    ),
    Command("compact", "[WORDS]", "compress now, as shown; WORDS are a focus", _compact),
    Command("pin", "TEXT", "keep a text word for word in every compressed view", _pin),
    Command("undo", "", "undo the last compression", _undo),
    Command(
        "new",
        "",
        "begin a session with an empty archive",
        lambda c, _: f"New session {c.new_session()}",
    ),
    Command("resume", "[ID]", "list the stored sessions, or go on with one", _resume),
    Command("help", "", "this list", lambda *_: "\n".join(map(str, _TABLE))),
)
CHAT_COMMANDS = {command.name: command for command in _TABLE}
"""Names with a space, such as "compact keep", are found by `_find_choice`."""


# ------------------------------------------------------------ reading what was typed


def parse_prompt(agent: Any, prompt: Any) -> ParsedCommand | None:
    """Return a prompt's command, or None if the model shall answer."""
    if not isinstance(prompt, str) or not prompt.startswith("/"):
        return None
    name, _, argument = prompt[1:].strip().partition(" ")
    skill = getattr(getattr(agent, "skill_manager", None), "get_skill", lambda name: None)
    return None if skill(name) is not None else find_command(name, argument.strip())


def find_command(name: str, argument: str) -> ParsedCommand | None:
    """Return the command, a reply to a mistake, or None."""
    command = CHAT_COMMANDS.get(name)
    if command is None:
        meant = _nearest_command(name) if name.isalpha() and not argument else None
        if meant is None:
            return None
        words = f"No command /{name}; did you mean /{meant}?"
        return _mistake(f"{words} Nothing was sent to the model.")
    if argument and name == "help":
        return None  # "/help me" is for the model
    if argument and not command.argument:
        return _mistake(f"/{name} takes no words. Nothing was done, or sent to the model.")
    if argument and name == "compact":
        return _find_choice(argument)
    return _with_argument(name, argument)


def _with_argument(name: str, argument: str) -> ParsedCommand:
    return lambda agent_compressor: CHAT_COMMANDS[name].answer(agent_compressor, argument)


def _find_choice(typed: str) -> ParsedCommand:
    choice, _, argument = typed.partition(" ")
    choices = [name.removeprefix("compact ") for name in CHAT_COMMANDS if " " in name]
    meant = nearest_name(choice, choices)
    if meant is None:
        return _with_argument("compact", typed)
    if meant != choice:
        wrong = f"No /compact {choice}; did you mean /compact {meant}? Nothing was compressed."
        return _mistake(wrong)
    name = f"compact {choice}"
    if argument.strip() and not CHAT_COMMANDS[name].argument:
        return _mistake(f"/{name} takes no words. Nothing was compressed.")
    return _with_argument(name, argument.strip())


def _mistake(reply: str) -> ParsedCommand:
    return lambda agent_compressor: reply


SHORT_NAME_LETTERS = 5
"""If a command has fewer letters than this, a longer word is no misspelling of the command."""


def _nearest_command(word: str) -> str | None:
    names = [name for name in CHAT_COMMANDS if " " not in name]
    meant = "compact" if nearest_name(word, ["compress"]) else nearest_name(word, names)
    is_other = meant is not None and len(word) > len(meant) < SHORT_NAME_LETTERS
    return None if is_other else meant


async def answer_command(agent_compressor: AgentCompressor, command: ParsedCommand) -> str:
    """Return a command's answer, or the words of its error."""
    try:
        reply = await asyncio.to_thread(command, agent_compressor)
        return reply if isinstance(reply, str) else await reply
    except CompressorError as error:
        return wording.describe_error(error)
