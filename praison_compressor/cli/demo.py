"""Show an agent's requests without and with compression: `demo`."""

from __future__ import annotations

import itertools
import re
import shutil
import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ..messages import Message
from ..messages.display import format_dollars, truncate_line
from ..tokens.counter import TokenCounter
from ..tokens.models import prices_of
from ..view.frame import is_framed, unframe
from .compressing import message_line
from .parameters import AS_JSON, command
from .terminal import Block, Line, Table, print_answer, with_title

if TYPE_CHECKING:
    from .demo_agent import RecordedRequest, TurnOutcome

MOST_COLUMNS = 38
"""Each half of a picture has at most this number of columns."""

FIRST_SHOWN, LAST_SHOWN = 4, 2
"""Messages shown at either end of a long list."""

SUMMARY_LINES = 12
"""At most this number of a summary's lines are shown."""

METHOD_STYLES = {"masked": "cyan", "summarized": "yellow"}


@command
@AS_JSON
def demo(as_json: bool) -> None:
    """Watch a real agent outgrow its window and go on.

    The demo needs no key and no network.

    A praisonaiagents Agent reads a harbour's logs with its tools. Its model is a local server with
    scripted answers, as strict as a real provider: it refuses a request over its window, and
    answers the last question only from what it is shown.

    $ praison-compressor demo
    """
    from .demo_agent import run_turns  # the other commands do not wait for the host

    if not as_json:
        print_answer(None, _describe_turns(run_turns()), as_json)
        return
    turns = list(run_turns())
    value = {"turns": turns, "check": turns[-1].check, "totals": _totals(turns)}
    print_answer(value, (), as_json)


def _totals(outcomes: Sequence[TurnOutcome]) -> dict[str, Any]:
    from .demo_agent import MODEL, WINDOW

    sent = [request for outcome in outcomes for request in outcome.requests]
    left_out = sum(request.transcript_tokens - request.sent_tokens for request in sent)
    return {
        "requests": len(sent),
        "refused": sum(request.refused is not None for request in sent),
        "would_be_refused": sum(request.transcript_tokens > WINDOW for request in sent),
        "masked": sum(request.compressed == "masked" for request in sent),
        "summarized": sum(request.compressed == "summarized" for request in sent),
        "summary_requests": sum(outcome.summary_requests for outcome in outcomes),
        "window": WINDOW,
        "largest_tokens": max(request.sent_tokens for request in sent),
        "seconds": sum(request.seconds for request in sent),
        "sent_tokens": sum(request.sent_tokens for request in sent),
        "cached_tokens": sum(request.cached_tokens for request in sent),
        "model": MODEL,
        "cost": sum(request.cost for request in sent),
        "cost_saved": left_out * (prices_of(MODEL).input or 0.0),
    }


# ---------------------------------------------------------------- for a person


def _describe_turns(turns: Iterator[TurnOutcome]) -> Iterator[Block]:
    from .demo_agent import MODEL, WINDOW

    yield f"A model that takes {WINDOW:,} tokens, on this machine. Starting ..."
    outcomes: list[TurnOutcome] = []
    for outcome in turns:
        first = 1 + sum(len(before.requests) for before in outcomes)
        outcomes.append(outcome)
        yield ""
        yield Line(f"You: {outcome.user}", "bold")
        yield _requests_table(outcome.requests, first)
        yield Line(f"Agent: {truncate_line(outcome.answer, 100)}", "green")
    yield ""
    yield Line(f"The last question was asked with request {first}:", "bold")
    yield from _describe_request(outcome.requests[0], TokenCounter(MODEL))
    yield from _closing_lines(outcomes)


def _describe_request(request: RecordedRequest, tokens: TokenCounter) -> Iterator[Block]:
    width = min(MOST_COLUMNS, shutil.get_terminal_size().columns // 2 - 1)
    yield from picture(request, tokens, width)
    for summary in filter(is_framed, request.view):
        lines = unframe(summary).splitlines()
        more = [f"({len(lines) - SUMMARY_LINES} more lines)"] if len(lines) > SUMMARY_LINES else []
        yield from with_title("its summary begins", "\n".join(lines[:SUMMARY_LINES] + more))


def _requests_table(sent: Sequence[RecordedRequest], first: int) -> Table:
    rows: list[tuple[str | int, ...]] = []
    for index, request in enumerate(sent, first):
        remark = f"refused: {truncate_line(request.refused, 60)}" if request.refused else ""
        if request.compressed:
            remark = f"{request.compressed} in {request.seconds:.2f} s"
        counts = (request.transcript_tokens, request.sent_tokens, request.cached_tokens)
        rows.append((index, *counts, remark))
    styles = [METHOD_STYLES.get(request.compressed or "", "") for request in sent]
    return Table(("request#", "transcript#", "sent#", "cached#", ""), rows, styles)


def picture(
    request: RecordedRequest, tokens: TokenCounter, width: int = MOST_COLUMNS
) -> Iterator[str]:
    """Draw transcript and request side by side, each `width` columns wide."""
    halves = (
        ("whole", request.whole, request.transcript_tokens),
        ("sent", request.view, request.sent_tokens),
    )
    left, right = (
        [
            truncate_line(f"{name}: {size:,} tokens, {len(messages)} messages", width),
            "\u2500" * width,
            *_list_messages(messages, tokens, width - 16),
        ]
        for name, messages, size in halves
    )
    for left_line, right_line in itertools.zip_longest(left, right, fillvalue=""):
        yield f"{left_line:<{width}}  {right_line}".rstrip()


def _list_messages(messages: Sequence[Message], tokens: TokenCounter, width: int) -> Iterator[str]:
    """Yield lines for outer messages and summaries; count the other messages."""
    skipped = 0
    for index, message in enumerate(messages):
        is_summary = is_framed(message)
        if FIRST_SHOWN <= index < len(messages) - LAST_SHOWN and not is_summary:
            skipped += 1
            continue
        if skipped:
            yield f"{'...':<16}{truncate_line(f'{skipped} more messages', width)}"
            skipped = 0
        lines = [message_line(message, width)]
        if is_summary:
            headings = re.findall(r"^## ([^:(\n]+)", unframe(message), re.MULTILINE)
            lines = textwrap.wrap(", ".join(headings), width) or ["one paragraph"]
        name = "summary" if is_summary else str(message.get("role"))
        yield f"{name:<9}{tokens.message(message):>6,} {lines[0]}"
        yield from (f"{'':<16}{line}" for line in lines[1:])


CLOSING = """\
{requests} requests, {refused} refused; without compression {would_be_refused} would be. \
Compressed {masked} times by masking old tool outputs, {summarized} times by a summary \
({summary_requests} calls to the summarizer's model). The largest request had \
{largest_tokens:,} of {window:,} tokens.
Wait: {seconds:.2f} s for all compressions. Prefix kept: {cached_tokens:,} of {sent_tokens:,} \
sent tokens repeat the start of an earlier request, so a provider's cache serves them.
Cost: nothing here. At the listed price of {model} the summaries cost {cost}, and the tokens \
not sent would have cost {cost_saved}. The demonstration takes this model's window and \
tokenizer; newer models cost a tenth or less.
Next: praison-compressor compress FILE, or Agent(context=CompressorContext())."""


def _closing_lines(outcomes: Sequence[TurnOutcome]) -> Iterator[Block]:
    check = outcomes[-1].check
    totals = _totals(outcomes)
    where = "The fact was still in the request."
    if not check["in_view"]:
        where = f"The fact was no longer in the request; {check['found_by']} found it."
    right = "matches" if check["right"] else "differs from"
    text = f"The answer {right} the log that the tool returned. {where}"
    yield Line(text, "green" if check["right"] else "red")
    yield ""
    dollars = {name: format_dollars(totals[name]) for name in ("cost", "cost_saved")}
    yield CLOSING.format(**{**totals, **dollars})
