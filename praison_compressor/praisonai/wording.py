"""Put statuses, replies to commands and reports of events into words."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from ..compressor.bills import Bill, short_count
from ..compressor.context_compressor import ContextCompressor
from ..compressor.decision import SKIP_WORDS
from ..compressor.preview import ContextUse, Part, Preview
from ..compressor.result import CompressResult, ContextStatus
from ..errors import CompressorError
from ..events import Event
from ..ledger.segments import Segment
from ..ledger.stores import SessionInfo
from ..messages import Message, digest, is_system, text_of, tool_calls_of
from ..messages.display import one_line, pluralize
from ..tokens.models import model_limits
from .agent_ledger import store_place
from .conversations import Conversation
from .journal import KeptSteps

NO_BILL = Bill()


@dataclass(frozen=True)
class Status:
    """The parts of a conversation's last or next request, in tokens."""

    session_id: str
    context_status: ContextStatus
    window: int
    tokens_before: int
    """Tokens of the whole conversation, with tool schemas."""
    system_tokens: int = 0
    summary_tokens: int = 0
    kept_tokens: int = 0
    tool_tokens: int = 0
    summaries: int = 0
    store: str = "memory"
    earlier: KeptSteps = field(default_factory=KeptSteps)
    is_sent: bool = True
    """False: the sizes belong to the next request."""
    bill: Bill = NO_BILL
    pinned: tuple[str, ...] = ()

    @property
    def tokens(self) -> int:
        """The tokens of the request."""
        return self.system_tokens + self.summary_tokens + self.kept_tokens + self.tool_tokens

    def __str__(self) -> str:
        return f"{self.parts} ({self.context_status}){self.of_earlier}"

    @property
    def parts(self) -> str:
        """The parts, their sum and share of the window, in words."""
        share = round(100 * self.tokens / self.window)
        return (
            f"{short_count(self.tokens)} (system {short_count(self.system_tokens)}, "
            f"summary {short_count(self.summary_tokens)}, kept {short_count(self.kept_tokens)}, "
            f"tools {short_count(self.tool_tokens)}) · {share} % of {short_count(self.window)}"
        )

    @property
    def of_earlier(self) -> str:
        """Words for the kept steps of earlier turns, or ""."""
        return f"; {self.earlier}" if self.earlier.steps else ""


def status_of(
    conversation: Conversation, compressor: ContextCompressor, bill: Bill = NO_BILL
) -> Status:
    """Return the status of the last request, with zeros before the first."""
    config = compressor.config
    request = conversation.current_request
    result = request.result
    messages, segments = (result.messages, result.segments) if result else ((), ())
    system = sum(map(compressor.tokens.message, filter(is_system, messages)))
    summaries = sum(segment.tokens for segment in segments)
    before = result.tokens_before + request.overhead_tokens if result else 0
    return Status(
        session_id=conversation.session_id,
        context_status=result.context_status if result else "full",
        window=model_limits(config.model, config.context_window).window,
        tokens_before=before,
        system_tokens=system,
        summary_tokens=summaries,
        kept_tokens=max(0, result.tokens_after - system - summaries) if result else 0,
        tool_tokens=request.overhead_tokens,
        summaries=len(segments),
        store=store_place(compressor.store),
        earlier=request.kept_steps,
        is_sent=request.is_sent,
        bill=bill,
        pinned=tuple(dict.fromkeys((*config.pinned, *conversation.pinned))),
    )


# ------------------------------------------------------------ reports


def describe_event(event: Event) -> str:
    """Return an event's words for the screen, or ""."""
    data = event.data
    if event.name == "started":
        return f"compressing {short_count(data['tokens'])} tokens"
    if event.name != "skipped":
        return ""
    if data["reason"] == "cooldown":
        return f"{one_line(str(data['model']))} rests after a failure and is not asked"
    sizes = f"{short_count(data['tokens'])} tokens (trigger {short_count(data['trigger'])})"
    return f"not compressed at {sizes}: {SKIP_WORDS[data['reason']]}"


def describe_committed(event: Event) -> str:
    """Return the report of a compression in the background."""
    after, before = (short_count(event.data[f"tokens_{when}"]) for when in ("after", "before"))
    return f"Compressed in the background: the next request has {after} tokens instead of {before}"


def describe_compressed(status: Status) -> str:
    """Return the report of a compression before a request."""
    sizes = f"{short_count(status.tokens_before)} → {status.parts}"
    return f"Compressed the conversation: {sizes}{status.of_earlier}"


# ------------------------------------------------------------ replies to commands


NOTHING = "Nothing to compress yet."

MOST_MESSAGES_SHOWN = 30

MOST_SESSIONS_SHOWN = 10


def describe_context(use: ContextUse, kept_steps: KeptSteps) -> str:
    """Return the answer to `/context`: the window's parts, then its largest messages."""
    notes = {name: pluralize(n, "message") for name, n in use.messages.items()}
    notes |= {"free": f"compressed above {short_count(use.trigger)}", "reserve": "for the answer"}
    share = round(100 * use.used / use.window)
    lines = [f"{short_count(use.used)} of {short_count(use.window)} ({share} %), {use.model}"]
    for name, tokens in use.parts.items():
        lines.append(f"{name:<14} {short_count(tokens):>6}  {notes.get(name, '')}".rstrip())
    if kept_steps.steps:
        lines.append(f"{kept_steps}, before compression")
    if use.largest:
        lines.append("largest messages sent word for word:")
    for message in use.largest:
        index = "-" if message.index is None else message.index
        sizes = f"{f'[{index}]':<6} {short_count(message.tokens):>6}"
        lines.append(f"{sizes}  {message.role} {message.tool}".rstrip())
    return "\n".join(lines)


def describe_preview(preview: Preview, use: ContextUse, tools: int, kept_steps: KeptSteps) -> str:
    """Return the answer to `/compact preview`; `tools`: the tokens of tool schemas."""
    lines = [NOTHING]
    if preview.would_compress:
        sizes = f"{short_count(preview.tokens_after + tools)} instead of {short_count(use.used)}"
        lines = [f"With /compact the next request has {sizes}; it commits what is shown here:"]
        tokens = sum(part.tokens_after for part in preview.parts)
        # After an undo `use.trigger` is the limit.
        trigger = min(use.trigger, preview.trigger)
        lines += describe_excess(tokens, trigger, "keep less, or clear a range by /compact from")
    for part in preview.parts:
        lines += _describe_part(preview, part)
    if kept_steps.steps:
        lines.append(str(kept_steps))
    if preview.balance is not None:
        lines.append(str(preview.balance))
    if preview.would_compress:
        lines.append("/compact keep, /compact from, /compact focus and /pin change it.")
    return "\n".join(lines)


def describe_excess(tokens: int, trigger: int, remedy: str) -> list[str]:
    """Return a sentence if a request's messages exceed the trigger."""
    if tokens <= trigger:
        return []
    sizes = f"its messages have {short_count(tokens)}, the trigger is {short_count(trigger)}"
    return [f"That does not fit: {sizes}; {remedy}."]


def _describe_part(preview: Preview, part: Part) -> list[str]:
    sizes = f"{short_count(part.tokens_before)} → {short_count(part.tokens_after)}"
    name = part.reference or part.name
    lines = [f"{name:<8} {pluralize(part.messages, 'message'):>14}  {sizes:<14} {part.why}"]
    inside = range(part.start, part.start + part.messages)
    results = preview.replaced_results
    named = [n for n in inside if preview.references[n] and (part.reference or n in results)]
    for n in named[:MOST_MESSAGES_SHOWN]:
        message = preview.messages[n]
        tokens = short_count(preview.message_tokens[n])
        calls = ", ".join(call.name for call in tool_calls_of(message))
        words = text_of(results[n].rendered if n in results else message) or calls
        role = str(message.get("role"))
        lines.append(f"  {preview.references[n]:<7} {tokens:>6}  {role:<9} {one_line(words)[:60]}")
    if len(named) > MOST_MESSAGES_SHOWN:
        lines.append(f"  and {len(named) - MOST_MESSAGES_SHOWN} more")
    return [*lines, *(f"  | {line}" for line in part.text.splitlines())]


def describe_no_compression(result: CompressResult) -> str:
    """Return why `/compact` compressed nothing."""
    if result.vetoed:
        return "Not compressed: a hook refused it."
    return NOTHING


def describe_compression(
    result: CompressResult, messages: int, focus: str, before: ContextUse, after: ContextUse
) -> str:
    """Return a compression's counts and the next request's sizes, in words."""
    outcomes = ", ".join(_describe_outcomes(result))
    kept = messages - sum(len(segment.run) for segment in result.segments) - result.masked
    text = f"{outcomes}; {pluralize(kept, 'message')} kept verbatim. /undo undoes it."
    if focus and not result.summarized_by_model:
        text += f" No model wrote a summary, so the focus ({one_line(focus)[:40]}) was not used."
    sizes = f"{short_count(after.used)} instead of {short_count(before.used)}"
    return f"{text}\nThe next request has {sizes}."


def _describe_outcomes(result: CompressResult) -> Iterator[str]:
    models = [text.model or "a model" for text in result.written if text.method == "model"]
    if by_model := result.summarized_by_model:
        yield f"{pluralize(by_model, 'message')} summarized by {models[0]}"
    if static := result.newly_summarized - by_model:
        yield f"{pluralize(static, 'message')} summarized without a model"
    if result.newly_masked:
        yield f"{pluralize(result.newly_masked, 'output')} masked"


def describe_pins(texts: Sequence[str]) -> str:
    """Return the answer to `/pin`: the texts that every view keeps."""
    if not texts:
        return "Nothing is pinned. /pin TEXT keeps a text word for word."
    return "\n".join(["Pinned, and kept word for word by each compression:", *texts])


def describe_sessions(sessions: Sequence[SessionInfo]) -> str:
    """Return the answer to a bare `/resume`: the newest stored sessions."""
    if not sessions:
        return (
            "No stored session. A store on disk keeps them: store_url or PRAISON_COMPRESSOR_STORE."
        )
    lines = ["/resume ID goes on with one of these, the newest first:"]
    for session in sessions[:MOST_SESSIONS_SHOWN]:
        changed = time.strftime("%Y-%m-%d %H:%M", time.localtime(session.updated))
        lines.append(f"{session.id}  {changed}, {pluralize(session.compressions, 'compression')}")
    if len(sessions) > MOST_SESSIONS_SHOWN:
        lines.append(
            f"and {len(sessions) - MOST_SESSIONS_SHOWN} more: `praison-compressor sessions`"
        )
    return "\n".join(lines)


def describe_undo(
    segments: Sequence[Segment],
    messages: Sequence[Message],
    replaced: Sequence[Message],
    use: ContextUse,
    count: Callable[[Message], int],
) -> str:
    """Return the answer to `/undo`: restored messages and the next request's size.

    `replaced` has the messages that an earlier compression replaces again.
    """
    runs = Counter(name for segment in segments for name in segment.run)
    sizes = {digest(message): count(message) for message in messages}
    present = runs & Counter(map(digest, messages))
    still = present & Counter(map(digest, replaced))
    restored = present - still
    tokens = sum(sizes[name] * times for name, times in restored.items())
    dropped = (runs - present).total()
    after = short_count(sum(segment.tokens for segment in segments))
    text = (
        f"Undone: restored {pluralize(restored.total(), 'message')} ({short_count(tokens)} tokens) "
        f"in place of {after} tokens."
    )
    if still:
        text += (
            f" {still.total()} more stay as an earlier compression left them; a second /undo "
            "restores them."
        )
    if dropped:
        text += f" {dropped} more are no longer in the conversation."
    used = short_count(use.used)
    if use.parts["free"] < 0:
        return f"{text} All of it has {used}, more than fits: the next request is compressed again."
    return (
        f"{text} The next request has {used}. Nothing is compressed until the window is full; "
        "/compact does it at once."
    )


def describe_status(status: Status) -> str:
    """Return the answer to `/status`: the request, the bill, the pinned texts."""
    request = "Last request" if status.is_sent else "Next request"
    lines = [f"{request}: {status}"]
    if not status.tokens:
        lines = [f"No request by this process yet in session {status.session_id}."]
    if status.bill.requests:
        lines.append(str(status.bill))
    return "\n".join([*lines, *(f"Pinned: {one_line(text)}" for text in status.pinned)])


_CHAT_WORDS = {"keep": "keep", "since": "from", "until": "from ... to"}
"""Option of the library -> its words in the chat."""
_OPTION_ERROR = re.compile(r"^(keep|since|until)='?([^':]*)'?:")
_MISSING_REFERENCE = re.compile(r"^(?:keep|since|until)='([^']*)': no message has .*")


def describe_error(error: CompressorError) -> str:
    """Return an error's text, with the chat's words for options."""
    if missing := _MISSING_REFERENCE.match(str(error)):
        return f"No message {missing[1]}. `/compact preview` lists the references."
    return _OPTION_ERROR.sub(lambda m: f"/compact {_CHAT_WORDS[m[1]]} {m[2]}:", str(error))
