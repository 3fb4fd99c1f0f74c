"""Answer slash commands without a request to the agent's model."""

from __future__ import annotations

import asyncio
import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from ..compressor.bills import short_count
from ..compressor.preview import ContextUse, Part, Preview
from ..compressor.result import CompressResult
from ..config import nearest_name
from ..errors import CompressorError, ConfigError
from ..ledger.segments import Segment
from ..ledger.stores import SessionInfo
from ..messages import digest, text_of, tool_calls_of
from ..messages.display import one_line, pluralize
from .agent_compressor import AgentCompressor
from .conversations import Status
from .journal import KeptSteps

MOST_SHOWN = 30
"""Messages of one part that a preview lists."""

MOST_LISTED = 10
"""Sessions that a bare `/resume` shows."""

MISSPELLED, PREVIEW = "no command", "compact preview"
"""Internal names. Each has a space, and a typed command's name ends at the first space."""

HELP = {
    "/status": "what the last request carried, and what the conversation has cost",
    "/context": "what fills the window, by part, and the largest messages",
    "/compact preview": "what /compact would keep, mask and summarize, with references",
    "/compact keep s2.14": "keep a message word for word; also several",
    "/compact from s2.10 [to s2.20]": "compress only this range; `/compact from` alone clears it",
    "/compact focus WORDS": "what the summary must keep",
    "/compact [WORDS]": "compress now, as shown; WORDS are a focus",
    "/pin TEXT": "keep a text word for word in every compressed view",
    "/undo": "take the last compression back",
    "/new": "begin a session with an empty archive",
    "/resume [ID]": "list the stored sessions, or go on with one",
    "/help": "this list",
}
"""Command -> what it does, as `/help` prints it."""

AT_ONCE: dict[str, Callable[[AgentCompressor, str], str]] = {
    "status": lambda ours, said: stated(ours.status()),
    "context": lambda ours, said: filled(ours.context_use(), ours.kept()),
    "undo": lambda ours, said: undone(ours.undo(), ours),
    "pin": lambda ours, said: pinned(ours.pin(said) if said else ours.conversation.pinned),
    "new": lambda ours, said: f"New session {ours.new_session()}",
    "resume": lambda ours, said: (
        f"Session {ours.resume(said)}" if said else listed(ours.sessions())
    ),
    "help": lambda ours, said: "\n".join(f"{command:<31} {does}" for command, does in HELP.items()),
    PREVIEW: lambda ours, said: previewed(chosen(ours, said), ours),
    MISSPELLED: lambda ours, said: said,
}
"""Command -> function of compressor and argument that returns the answer.

`compact` is not here: it awaits a model."""

CHOICES = ("preview", "keep", "from", "focus")
"""First words of `/compact` that compress nothing yet."""

COMMANDS = (*(name for name in AT_ONCE if name not in (MISSPELLED, PREVIEW)), "compact")
WORDLESS = ("status", "context", "undo", "new")
"""Commands that words behind them would not change; `/help me` is for the model."""
SHORT = 5
"""Letters. Shorter commands resemble many words, so a word longer than the command is not taken for
a misspelling."""


def read(agent: Any, prompt: Any) -> tuple[str, str] | None:
    """Return a prompt's command and argument, or None for other words."""
    if not isinstance(prompt, str) or not prompt.startswith("/"):
        return None
    name, _, argument = prompt[1:].strip().partition(" ")
    skill = getattr(getattr(agent, "skill_manager", None), "get_skill", lambda name: None)
    if skill(name) is not None:
        return None
    if name in WORDLESS and argument:
        return MISSPELLED, f"/{name} takes no words. Nothing was done, or sent to the model."
    if name in COMMANDS and (name, bool(argument)) != ("help", True):
        return name, argument.strip()
    meant = _meant(name) if name.isalpha() and not argument else None
    if meant is None:
        return None
    return MISSPELLED, f"No command /{name}; did you mean /{meant}? Nothing was sent to the model."


def _meant(name: str) -> str | None:
    """Return the command that a word misspells, or None for another word."""
    found = "compact" if nearest_name(name, ["compress"]) else nearest_name(name, COMMANDS)
    is_other = found is not None and len(name) > len(found) < SHORT
    return None if is_other else found


async def answer(compressor: AgentCompressor, name: str, argument: str) -> str:
    """Return the agent's answer to a command."""
    try:
        if name == "compact" and argument:
            choice = argument.partition(" ")[0]
            meant = nearest_name(choice, CHOICES)
            if meant not in (None, choice):
                return (
                    f"No /compact {choice}; did you mean /compact {meant}? Nothing was compressed."
                )
            name = PREVIEW if meant else name
        if name in AT_ONCE:  # it reads the store
            return await asyncio.to_thread(AT_ONCE[name], compressor, argument)
        return await _compact(compressor, argument)
    except CompressorError as error:
        return _CHOICE.sub(lambda found: f"/compact {TYPED[found[1]]} {found[2]}:", str(error))


TYPED = {"keep": "keep", "since": "from", "until": "from ... to"}
"""Option of the library -> its words in the chat."""
_CHOICE = re.compile(r"^(keep|since|until)='?([^':]*)'?:")


async def _compact(compressor: AgentCompressor, focus: str) -> str:
    """Return the answer to `/compact`; sizes are of the next request."""
    focus = focus or compressor.conversation.choices.focus or ""
    before, carried = await asyncio.to_thread(_sizes, compressor)
    result = await compressor.acompress(focus or None)
    if not result.written and not result.newly_masked:
        return "Not compressed: a hook refused it." if result.vetoed else "Nothing to compress yet."
    after, _ = await asyncio.to_thread(_sizes, compressor)
    sizes = f"The next request has {short_count(after)} instead of {short_count(before)}."
    return f"{compressor.notice}\n{compacted(result, carried, focus)}\n{sizes}"


def _sizes(compressor: AgentCompressor) -> tuple[int, int]:
    """Return tokens of the next request, and the conversation's messages."""
    return compressor.context_use().used, len(compressor.carried())


# ------------------------------------------------------------ answers in words


def filled(use: ContextUse, earlier: KeptSteps) -> str:
    """Return the answer to `/context`: the window's parts, then its largest messages."""
    notes = {name: pluralize(n, "message") for name, n in use.messages.items()}
    notes |= {"free": f"compressed above {short_count(use.trigger)}", "reserve": "for the answer"}
    share = round(100 * use.used / use.window)
    lines = [f"{short_count(use.used)} of {short_count(use.window)} ({share} %), {use.model}"]
    for name, tokens in use.parts.items():
        lines.append(f"{name:<14} {short_count(tokens):>6}  {notes.get(name, '')}".rstrip())
    if earlier.steps:
        lines.append(f"{earlier}, before compression")
    if use.largest:
        lines.append("largest messages sent word for word:")
    for one in use.largest:
        index = "-" if one.index is None else one.index
        lines.append(
            f"{f'[{index}]':<6} {short_count(one.tokens):>6}  {one.role} {one.tool}".rstrip()
        )
    return "\n".join(lines)


def chosen(ours: AgentCompressor, said: str) -> Preview:
    """Return the preview after the choice that `/compact` names.

    Raises:
        CompressorError: a reference is missing, or names no message.
    """
    choice, _, words = said.partition(" ")
    if choice == "keep":
        if not words:
            raise ConfigError("/compact keep: expected references, such as s2.14")
        return ours.choose(keep=words.split())
    if choice == "from":
        since, _, until = words.partition(" to ")
        return ours.choose(since=since.strip() or None, until=until.strip() or None)
    if choice == "focus":
        return ours.choose(focus=words.strip())
    return ours.preview(write=choice == "preview")


def previewed(preview: Preview, ours: AgentCompressor) -> str:
    """Return the answer to `/compact preview`: the parts, their messages and texts."""
    lines, earlier = ["Nothing to compress yet."], ours.kept()
    if preview.would_compress:
        after = preview.tokens_after + ours.conversation.tool_tokens
        sizes = f"{short_count(after)} instead of {short_count(ours.context_use().used)}"
        lines = [f"With /compact the next request has {sizes}; it commits what is shown here:"]
    for part in preview.parts:
        lines += _part_of(preview, part)
    lines += [str(earlier)] if earlier.steps else []
    lines += [f"{preview.balance}"] if preview.balance is not None else []
    if preview.would_compress:
        lines.append("/compact keep, /compact from, /compact focus and /pin change it.")
    return "\n".join(lines)


def _part_of(preview: Preview, part: Part) -> list[str]:
    """Return a part's lines: its size, replaced messages and text."""
    sizes = f"{short_count(part.tokens_before)} → {short_count(part.tokens_after)}"
    name = part.reference or part.name
    lines = [f"{name:<8} {pluralize(part.messages, 'message'):>14}  {sizes:<14} {part.why}"]
    inside = range(part.start, part.start + part.messages)
    named = [n for n in inside if preview.references[n] and (part.reference or n in preview.masks)]
    for n in named[:MOST_SHOWN]:
        message, tokens = preview.messages[n], short_count(preview.message_tokens[n])
        calls = ", ".join(call.name for call in tool_calls_of(message))
        words = preview.lines.get(n) or text_of(message) or calls
        role = str(message.get("role"))
        lines.append(f"  {preview.references[n]:<7} {tokens:>6}  {role:<9} {one_line(words)[:60]}")
    if len(named) > MOST_SHOWN:
        lines.append(f"  and {len(named) - MOST_SHOWN} more")
    return [*lines, *(f"  | {line}" for line in part.text.splitlines())]


def compacted(result: CompressResult, carried: int, focus: str = "") -> str:
    """Return what became of the conversation's messages, and of the focus."""
    by = [text.model or "a model" for text in result.written if text.method == "model"]
    made, done = result.summarized_by_model, []
    if made:
        done.append(f"{pluralize(made, 'message')} summarized by {by[0]}")
    if quoted := result.newly_summarized - made:
        done.append(f"{pluralize(quoted, 'message')} summarized without a model")
    if result.newly_masked:
        done.append(f"{pluralize(result.newly_masked, 'output')} masked")
    kept = carried - sum(len(segment.run) for segment in result.segments) - result.masked
    said = f"{', '.join(done)}; {pluralize(kept, 'message')} kept verbatim. /undo takes it back."
    if focus and not made:
        said += f" No model wrote a summary, so the focus ({one_line(focus)[:40]}) was not used."
    return said


def pinned(texts: Sequence[str]) -> str:
    """Return the answer to `/pin`: the texts that every view keeps."""
    if not texts:
        return "Nothing is pinned. /pin TEXT keeps a text word for word."
    return "\n".join(["Pinned, and kept word for word by each compression:", *texts])


def listed(sessions: Sequence[SessionInfo]) -> str:
    """Return the answer to a bare `/resume`: the newest stored sessions."""
    if not sessions:
        return (
            "No stored session. A store on disk keeps them: store_url or PRAISON_COMPRESSOR_STORE."
        )
    lines = ["/resume ID goes on with one of these, the newest first:"]
    for each in sessions[:MOST_LISTED]:
        changed = time.strftime("%Y-%m-%d %H:%M", time.localtime(each.updated))
        lines.append(f"{each.id}  {changed}, {pluralize(each.compressions, 'compression')}")
    if len(sessions) > MOST_LISTED:
        lines.append(f"and {len(sessions) - MOST_LISTED} more: `praison-compressor sessions`")
    return "\n".join(lines)


def undone(segments: Sequence[Segment], ours: AgentCompressor) -> str:
    """Return the answer to `/undo`: messages and next request's size."""
    if not segments:
        return "Nothing to take back."
    left = Counter(name for segment in segments for name in segment.run)
    again = []
    for message in ours.carried():
        if left[digest(message)] > 0:
            left[digest(message)] -= 1
            again.append(message)
    tokens, dropped = sum(map(ours.engine().tokens.message, again)), left.total()
    use, after = ours.context_use(), short_count(sum(segment.tokens for segment in segments))
    said = (
        f"Taken back: {pluralize(len(again), 'message')} ({short_count(tokens)}) that stood in "
        f"{after}. The next request has {short_count(use.used)}."
    )
    if dropped:
        said += f" {dropped} more are no longer in the conversation."
    if use.parts["free"] < 0:
        return f"{said} They do not fit the window: the next view is compressed again."
    return f"{said} Nothing is compressed until the window is full; /compact does it at once."


def stated(status: Status) -> str:
    """Return the answer to `/status`: the last or next request, the bill."""
    of = "Last request" if status.is_sent else "Next request"
    last = f"{of}: {status}"
    if not status.tokens:
        last = f"No request by this process yet in session {status.session_id}."
    return "\n".join([last, *([str(status.bill)] if status.bill.requests else [])])
