"""`demo`: what a real agent sent before and after each compression, as tables in a terminal.

`agent` holds the conversation; this module is the command and how it is shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from ...messages import Message, text_of, tool_calls_of
from ...messages.display import excerpt
from ...tokens.counter import TokenCounter
from ...view.frame import is_framed, unframe
from ..options import command, flag
from ..terminal import Answer, Line, Panel, Piece, Table, number

if TYPE_CHECKING:
    from .agent import Demo, Outcome, Sent

COLUMNS = 120
"""Of a message's or a summary's text."""

ENDS = 6
"""Messages shown at either end of a long list."""

STYLES = {"masked": "bold cyan", "summarized": "bold yellow"}


@command
def demo(static: Annotated[bool, flag("--static", "Summaries without a model.")] = False) -> Answer:
    """Watch a real agent outgrow its window and go on: no key, no network.

    A praisonaiagents Agent reads Python's standard library with its tools. Its model is a local
    server with scripted answers, as strict as a real provider: it refuses a request over its
    window, and answers from nothing but what it is shown.

    $ praison-compressor demo --static
    """
    # It needs the host and a server: the other commands do not wait for them.
    from .agent import Demo

    playing = Demo(static=static)
    return Answer(lambda: _value(playing), _shown(playing))


def _shown(playing: Demo) -> Iterator[Piece]:
    yield f"A model that takes {number(playing.window)} tokens, on this machine. Starting ..."
    tokens = TokenCounter(playing.model)
    sent: list[Sent] = []
    for outcome in playing.turns():
        yield ""
        yield Line(f"You: {outcome.user}", "bold")
        yield _requests(outcome, playing.window)
        for one in outcome.sent:
            if one.done:
                title = f"request {one.number}, before: {number(one.tokens_before)} tokens"
                yield Panel(title, _listed(one.before, tokens), "red")
                title = f"request {one.number}, sent: {number(one.tokens)} tokens"
                yield Panel(title, _listed(one.view, tokens), "green")
        yield Line(f"Agent: {outcome.answer}", "green")
        sent += outcome.sent
    yield from _closing(sent, playing)


def _requests(outcome: Outcome, window: int) -> Table:
    rows: list[tuple[str | int, ...]] = []
    for one in outcome.sent:
        remarks = [one.done, "would not fit whole" if one.tokens_whole > window else None]
        if one.refused:
            remarks = [f"refused: {excerpt(one.refused, 60)}"]
        rows.append((*one.numbers.values(), "; ".join(filter(None, remarks))))
    columns = ("request#", "transcript#", "tokens#", "sent#", "tokens#", "cached#", "")
    return Table(columns, rows, [STYLES.get(one.done or "", "") for one in outcome.sent])


def _listed(messages: Sequence[Message], tokens: TokenCounter) -> str:
    """A line for each message near an end; the text of a summary below its own."""
    lines, skipped = [f"{len(messages)} messages"], 0
    for index, message in enumerate(messages):
        if ENDS <= index < len(messages) - ENDS and not is_framed(message):
            skipped += 1
            continue
        if skipped:
            lines.append(f"... {skipped} more messages")
            skipped = 0
        calls = [f"{call.name}({call.arguments})" for call in tool_calls_of(message)]
        said = excerpt(" ".join([*calls, text_of(message)]), COLUMNS)
        name = "summary" if is_framed(message) else str(message.get("role"))
        lines.append(f"{name:<9} {number(tokens.message(message)):>6}  {said}")
        if is_framed(message):
            told = filter(str.strip, unframe(message).split("\n"))
            lines += [f"{'':<17} | {excerpt(line, COLUMNS)}" for line in told]
    return "\n".join(lines)


def _closing(sent: Sequence[Sent], playing: Demo) -> Iterator[str]:
    done = [one.done for one in sent]
    refused = sum(one.refused is not None for one in sent)
    over = sum(one.tokens_whole > playing.window for one in sent)
    whole, largest = max(one.tokens_whole for one in sent), max(one.tokens for one in sent)
    calls = playing.summary_requests
    by = f"{calls} calls to the summarizer's model" if calls else "static: no model was asked"
    yield ""
    yield (
        f"{len(sent)} requests, {refused} refused. Compressed {len(done) - done.count(None)} times:"
        f" {done.count('masked')} by masking old tool outputs, {done.count('summarized')} by a "
        f"summary ({by})."
    )
    yield (
        f"The transcript grew to {number(whole)} tokens; the largest request had {number(largest)} "
        f"of {number(playing.window)}. Without compression {over} requests would have been refused."
    )
    yield "Next: praison-compressor compress FILE, or Agent(context=CompressorContext())."


def _value(playing: Demo) -> dict[str, Any]:
    turns = []
    for outcome in playing.turns():
        requests = [
            {**one.numbers, "compressed": one.done, "refused": one.refused, "view": one.view}
            for one in outcome.sent
        ]
        turns.append({"user": outcome.user, "answer": outcome.answer, "requests": requests})
    summaries = playing.summary_requests
    return {"window": playing.window, "summary_requests": summaries, "turns": turns}
