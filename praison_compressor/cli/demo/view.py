"""How a demonstration looks in a terminal: requests as a table, compressions side by side."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import groupby
from typing import Any

from rich.columns import Columns
from rich.panel import Panel
from rich.text import Text

from ...messages import Message, text_of, tool_calls_of
from ...messages.display import clean, excerpt
from ...tokens.counter import TokenCounter
from ...view.frame import is_framed, unframe
from ..terminal import Screen, number
from .agent import MODEL, WINDOW, Demo, DemoOutcome, Sent

__all__ = [
    "play",
]


NARROW = 110
"""Columns below which before and after stand one above the other."""


WIDEST = 150


HEAD_LINES, TAIL_LINES = 4, 4


STYLES = {"masked": "bold cyan", "summarized": "bold yellow"}


def play(screen: Screen, *, static: bool, as_json: bool) -> None:
    """Hold the conversation and show it, turn by turn; as JSON when it is over."""
    demo = Demo(static=static)
    if as_json:
        turns = [_as_json(outcome) for outcome in demo.turns()]
        screen.json({"window": WINDOW, "summary_requests": len(demo.summaries), "turns": turns})
        return
    screen.say(f"A model that takes {number(WINDOW)} tokens, on this machine. Starting ...")
    sent: list[Sent] = []
    for outcome in demo.turns():
        _print_turn(screen, outcome)
        sent += outcome.sent
    for line in _closing(sent, len(demo.summaries)):
        screen.say(line)


def _print_turn(screen: Screen, outcome: DemoOutcome) -> None:
    screen.say()
    screen.say(f"You: {outcome.turn.user}", "bold")
    rows = [
        [
            str(request.number),
            number(len(request.whole)),
            number(request.tokens_whole),
            number(len(request.view)),
            number(request.tokens),
            f"{100 * request.cached // max(1, request.tokens)} %",
            _remark(request),
        ]
        for request in outcome.sent
    ]
    columns = ["request#", "transcript#", "tokens#", "sent#", "tokens#", "cached#", ""]
    styles = [STYLES.get(request.done or "", "") for request in outcome.sent]
    screen.table(columns, rows, styles=styles)
    for request in outcome.sent:
        if request.done:
            _print_before_and_after(screen, request)
    screen.say(f"Agent: {outcome.answer}", "green")


def _remark(request: Sent) -> str:
    if request.refused:
        return f"refused: {excerpt(request.refused, 60)}"
    over = ["would not fit whole"] if request.tokens_whole > WINDOW else []
    return "; ".join([word for word in (request.done,) if word] + over)


def _print_before_and_after(screen: Screen, request: Sent) -> None:
    texts = {
        f"request {request.number}, before: {len(request.before)} messages, "
        f"{number(request.tokens_before)} tokens": list(_lines(request.before, request.changed)),
        f"request {request.number}, sent: {len(request.view)} messages, "
        f"{number(request.tokens)} tokens": list(_lines(request.view, request.changed)),
    }
    if not screen.is_terminal:
        for title, lines in texts.items():
            screen.panel(title, "\n".join(lines))
        return
    width = screen.console.width if screen.console.width < NARROW else screen.console.width // 2
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


def _lines(messages: Sequence[Message], changed: Collection[int]) -> Iterator[str]:
    """A line for each message that tells something; the text of a summary beneath its own."""
    count = TokenCounter(MODEL).message
    for told, group in groupby(
        enumerate(messages), lambda pair: _tells(pair[0], messages, changed)
    ):
        run = [message for _, message in group]
        if not told and len(run) > 1:
            tokens = number(sum(map(count, run)))
            yield f"{'...':<9} {tokens:>6}  {len(run)} more messages"
            continue
        for message in run:
            yield f"{_name(message):<9} {number(count(message)):>6}  {_said(message)}"
            if is_framed(message):
                yield from (f"{'':<9} {'':>6}  | {line}" for line in _summary(message))


def _tells(index: int, messages: Sequence[Message], changed: Collection[int]) -> bool:
    near_an_end = index < HEAD_LINES or index >= len(messages) - TAIL_LINES
    return near_an_end or index in changed or is_framed(messages[index])


def _summary(message: Message) -> list[str]:
    return [excerpt(line, WIDEST) for line in unframe(message).split("\n") if line.strip()]


def _name(message: Message) -> str:
    return "summary" if is_framed(message) else str(message.get("role"))


def _said(message: Message) -> str:
    if is_framed(message):
        return "of the messages that are no longer sent:"
    calls = [f"{call.name}({call.arguments})" for call in tool_calls_of(message)]
    return excerpt(" ".join([*calls, text_of(message)]), WIDEST)


def _closing(sent: Sequence[Sent], summaries: int) -> Iterator[str]:
    refused = sum(request.refused is not None for request in sent)
    over = sum(request.tokens_whole > WINDOW for request in sent)
    whole = max(request.tokens_whole for request in sent)
    largest = max(request.tokens for request in sent)
    masked = sum(request.done == "masked" for request in sent)
    summarized = sum(request.done == "summarized" for request in sent)
    by = f"{summaries} calls to the summarizer's model: a long run is read in parts"
    by = by if summaries else "static: no model was asked"
    yield ""
    yield (
        f"{len(sent)} requests, {refused} refused. Compressed {masked + summarized} times: "
        f"{masked} by masking old tool outputs, {summarized} by a summary ({by})."
    )
    yield (
        f"The transcript grew to {number(whole)} tokens; the largest request had {number(largest)} "
        f"of {number(WINDOW)}. Without compression {over} requests would have been refused."
    )
    yield "Next: praison-compressor compress FILE, or Agent(context=CompressorContext())."


def _as_json(outcome: DemoOutcome) -> dict[str, Any]:
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
                "compressed": request.done,
                "refused": request.refused,
                "view": request.view if request.done else None,
            }
            for request in outcome.sent
        ],
    }
