"""`demo`: what was sent before and after each compression of a real agent's conversation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import typer
from rich.columns import Columns
from rich.panel import Panel
from rich.text import Text

from ..demo import WINDOW, Demo, Outcome, Sent
from ..messages import Message, is_result, text_of, tool_calls_of
from ..prompts import is_framed, unframe
from ..tokens import TokenCounter
from .failures import guarded
from .options import AsJson
from .terminal import Screen, clean, excerpt, number

__all__ = ["demo"]

Static = Annotated[
    bool, typer.Option("--static", help="Summaries without a model, from extracted facts.")
]

PANEL_WIDTH = 58
NARROW = 2 * PANEL_WIDTH
MOST_LINES, HEAD_LINES, TAIL_LINES = 24, 6, 8


@guarded
def demo(static: Static = False, as_json: AsJson = False) -> None:
    """Watch a real agent outgrow its window and go on: no key, no network.

    A praisonaiagents Agent reads Python's standard library with its tools. Its model is a local
    server with scripted answers, as strict as a real provider: it refuses a request over its
    window, and answers from nothing but what it is shown.
    """
    screen = Screen()
    show = Demo(static=static)
    outcomes: list[Outcome] = []
    if not as_json:
        screen.say(f"A model that takes {number(WINDOW)} tokens, on this machine. Starting ...")
    for outcome in show.turns():
        outcomes.append(outcome)
        if not as_json:
            _print_turn(screen, outcome)
    sent = [request for outcome in outcomes for request in outcome.sent]
    if as_json:
        screen.json({"window": WINDOW, "turns": [_as_json(outcome) for outcome in outcomes]})
    else:
        for line in _closing(sent, len(show.summaries)):
            screen.say(line)


def _print_turn(screen: Screen, outcome: Outcome) -> None:
    screen.say()
    screen.say(f"You: {outcome.turn.user}", "bold")
    rows = []
    for request in outcome.sent:
        rows.append(
            [
                str(request.number),
                number(len(request.whole)),
                number(request.tokens_whole),
                number(len(request.view)),
                number(request.tokens),
                f"{100 * request.cached // max(1, request.tokens)} %",
                _remark(request),
            ]
        )
    columns = ["request#", "transcript#", "tokens#", "sent#", "tokens#", "cached#", ""]
    styles = ["bold yellow" if request.compressed else "" for request in outcome.sent]
    screen.table(columns, rows, styles=styles)
    for request in outcome.sent:
        if request.compressed:
            _print_before_and_after(screen, request)
    screen.say(f"Agent: {outcome.answer}", "green")


def _remark(request: Sent) -> str:
    over = request.tokens_whole > WINDOW
    if request.refused:
        return f"refused: {excerpt(request.refused, 60)}"
    if request.compressed:
        return "compressed" + ("; would not fit whole" if over else "")
    return "would not fit whole" if over else ""


def _print_before_and_after(screen: Screen, request: Sent) -> None:
    count = TokenCounter("gpt-4").message
    texts = {
        f"request {request.number}, before: {len(request.whole)} messages, "
        f"{number(request.tokens_whole)} tokens": list(_lines(request.whole, count)),
        f"request {request.number}, sent: {len(request.view)} messages, "
        f"{number(request.tokens)} tokens": list(_lines(request.view, count)),
    }
    if not screen.is_terminal:
        for title, lines in texts.items():
            screen.panel(title, "\n".join(lines))
        return
    width = PANEL_WIDTH if screen.console.width >= NARROW else screen.console.width
    panels = [
        Panel(
            Text(clean("\n".join(lines)), no_wrap=True, overflow="ellipsis"),
            title=Text(title),
            title_align="left",
            width=width,
            border_style=style,
        )
        for (title, lines), style in zip(texts.items(), ("red", "green"), strict=True)
    ]
    screen.console.print(Columns(panels, padding=(0, 0)))


def _lines(messages: Sequence[Message], count: Any) -> Iterator[str]:
    """A line for each message, fewer in the middle; the text of a summary beneath its own."""
    left_out = messages[HEAD_LINES:-TAIL_LINES] if len(messages) > MOST_LINES else []
    for index, message in enumerate(messages):
        if left_out and HEAD_LINES <= index < len(messages) - TAIL_LINES:
            if index == HEAD_LINES:
                tokens = number(sum(map(count, left_out)))
                yield f"{'...':<9} {tokens:>6}  {len(left_out)} more messages"
            continue
        tokens = number(count(message))
        yield f"{_name(message):<9} {tokens:>6}  {excerpt(_said(message), 90)}"
        if is_framed(message):
            yield from (f"{'':<9} {'':>6}  | {excerpt(line, 90)}" for line in _summary(message))


def _summary(message: Message) -> list[str]:
    return [line for line in unframe(message).split("\n") if line.strip()]


def _name(message: Message) -> str:
    return "summary" if is_framed(message) else str(message.get("role"))


def _said(message: Message) -> str:
    if is_framed(message):
        return "of the messages that are no longer sent:"
    calls = [f"{call.name}({call.arguments})" for call in tool_calls_of(message)]
    text = text_of(message)
    return " ".join([*calls, text]) if not is_result(message) else text


def _closing(sent: Sequence[Sent], summaries: int) -> Iterator[str]:
    refused = sum(request.refused is not None for request in sent)
    over = sum(request.tokens_whole > WINDOW for request in sent)
    whole = max(request.tokens_whole for request in sent)
    largest = max(request.tokens for request in sent)
    times = sum(request.compressed for request in sent)
    yield ""
    yield (
        f"{len(sent)} requests, {refused} refused; {times} compressions, {summaries} calls to the "
        "summarizer's model."
    )
    yield (
        f"The transcript grew to {number(whole)} tokens; the largest request had {number(largest)} "
        f"of {number(WINDOW)}. Without compression {over} requests would have been refused."
    )
    yield "Next: praison-compressor compress FILE, or Agent(context=CompressorContext())."


def _as_json(outcome: Outcome) -> dict[str, Any]:
    return {
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
                "compressed": request.compressed,
                "refused": request.refused,
                "view": request.view if request.compressed else None,
            }
            for request in outcome.sent
        ],
    }
