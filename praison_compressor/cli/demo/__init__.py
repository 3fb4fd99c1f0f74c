"""`demo`: what a real agent sent before and after each compression, as tables in a terminal.

`agent` holds the conversation; this module is the command and how it is shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...messages import Message, text_of, tool_calls_of
from ...messages.display import excerpt
from ...tokens.counter import TokenCounter
from ...view.frame import is_framed, unframe
from ..options import command
from ..terminal import Answer, Line, Panel, Piece, Table, number

if TYPE_CHECKING:
    from .agent import Demo, Outcome, Sent

COLUMNS = 120
"""Of a message's or a summary's text."""

ENDS = 6
"""Messages shown at either end of a long list."""

STYLES = {"masked": "bold cyan", "summarized": "bold yellow"}


@command
def demo(
    static: Annotated[
        bool, typer.Option("--static", help="Summaries without a model, from extracted facts.")
    ] = False,
) -> Answer:
    """Watch a real agent outgrow its window and go on: no key, no network.

    A praisonaiagents Agent reads Python's standard library with its tools. Its model is a local
    server with scripted answers, as strict as a real provider: it refuses a request over its
    window, and answers from nothing but what it is shown.
    """
    # It needs the host and a server: the other commands do not wait for them.
    from .agent import Demo

    playing = Demo(static=static)
    return Answer(lambda: _value(playing), _shown(playing))


def _shown(playing: Demo) -> Iterator[Piece]:
    yield f"A model that takes {number(playing.window)} tokens, on this machine. Starting ..."
    sent: list[Sent] = []
    for outcome in playing.turns():
        yield ""
        yield Line(f"You: {outcome.turn.user}", "bold")
        yield _requests(outcome, playing.window)
        for request in outcome.sent:
            if request.done:
                yield from _before_and_after(request, TokenCounter(playing.model))
        yield Line(f"Agent: {outcome.answer}", "green")
        sent += outcome.sent
    yield from _closing(sent, playing)


def _requests(outcome: Outcome, window: int) -> Table:
    rows: list[tuple[str | int, ...]] = []
    for request in outcome.sent:
        remarks = [request.done, "would not fit whole" if request.tokens_whole > window else None]
        if request.refused:
            remarks = [f"refused: {excerpt(request.refused, 60)}"]
        sizes = (len(request.whole), request.tokens_whole, len(request.view), request.tokens)
        cached = f"{100 * request.cached // max(1, request.tokens)} %"
        rows.append((request.number, *sizes, cached, "; ".join(filter(None, remarks))))
    columns = ("request#", "transcript#", "tokens#", "sent#", "tokens#", "cached#", "")
    return Table(columns, rows, [STYLES.get(r.done or "", "") for r in outcome.sent])


def _before_and_after(request: Sent, tokens: TokenCounter) -> Iterator[Piece]:
    sides = (
        ("before", request.before, request.tokens_before, "red"),
        ("sent", request.view, request.tokens, "green"),
    )
    for name, messages, size, style in sides:
        title = f"request {request.number}, {name}: {len(messages)} messages, {number(size)} tokens"
        yield Panel(title, "\n".join(_lines(messages, tokens)), style)


def _lines(messages: Sequence[Message], tokens: TokenCounter) -> Iterator[str]:
    """A line for each message near an end; the text of a summary below its own."""

    def is_shown(index: int) -> bool:
        near_an_end = index < ENDS or index >= len(messages) - ENDS
        return near_an_end or is_framed(messages[index])

    for shown, group in groupby(range(len(messages)), is_shown):
        run = [messages[index] for index in group]
        if not shown:
            yield f"{'...':<9} {number(sum(map(tokens.message, run))):>6}  {len(run)} more messages"
            continue
        for message in run:
            size = number(tokens.message(message))
            name = "summary" if is_framed(message) else str(message.get("role"))
            yield f"{name:<9} {size:>6}  {_said(message)}"
            if is_framed(message):
                lines = filter(str.strip, unframe(message).split("\n"))
                yield from (f"{'':<9} {'':>6}  | {excerpt(line, COLUMNS)}" for line in lines)


def _said(message: Message) -> str:
    if is_framed(message):
        return "of the messages that are no longer sent:"
    calls = [f"{call.name}({call.arguments})" for call in tool_calls_of(message)]
    return excerpt(" ".join([*calls, text_of(message)]), COLUMNS)


def _closing(sent: Sequence[Sent], playing: Demo) -> Iterator[str]:
    refused = sum(request.refused is not None for request in sent)
    over = sum(request.tokens_whole > playing.window for request in sent)
    whole = max(request.tokens_whole for request in sent)
    largest = max(request.tokens for request in sent)
    masked = sum(request.done == "masked" for request in sent)
    summarized = sum(request.done == "summarized" for request in sent)
    calls = playing.summary_requests
    by = f"{calls} calls to the summarizer's model: a long run is read in parts"
    by = by if calls else "static: no model was asked"
    yield ""
    yield (
        f"{len(sent)} requests, {refused} refused. Compressed {masked + summarized} times: "
        f"{masked} by masking old tool outputs, {summarized} by a summary ({by})."
    )
    yield (
        f"The transcript grew to {number(whole)} tokens; the largest request had {number(largest)} "
        f"of {number(playing.window)}. Without compression {over} requests would have been refused."
    )
    yield "Next: praison-compressor compress FILE, or Agent(context=CompressorContext())."


def _value(playing: Demo) -> dict[str, Any]:
    turns = [
        {
            "user": outcome.turn.user,
            "answer": outcome.answer,
            "requests": [
                {
                    "number": request.number,
                    "transcript_messages": len(request.whole),
                    "transcript_tokens": request.tokens_whole,
                    "sent_messages": len(request.view),
                    "sent_tokens": request.tokens,
                    "cached_tokens": request.cached,
                    "compressed": request.done,
                    "refused": request.refused,
                    "view": request.view if request.done else None,
                }
                for request in outcome.sent
            ],
        }
        for outcome in playing.turns()
    ]
    summaries = playing.summary_requests
    return {"window": playing.window, "summary_requests": summaries, "turns": turns}
