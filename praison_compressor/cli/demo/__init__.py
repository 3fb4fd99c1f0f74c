"""`demo`: what a real agent sent before and after each compression, as tables in a terminal.

`agent` holds the conversation; this module is the command and how it is shown.
"""

from __future__ import annotations

import itertools
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from ...messages import Message, text_of, tool_calls_of
from ...messages.display import excerpt
from ...tokens.counter import TokenCounter
from ...tokens.models import input_price
from ...view.frame import is_framed, unframe
from ..options import command, flag
from ..terminal import Answer, Line, Panel, Piece, Table, money, number

if TYPE_CHECKING:
    from .agent import Demo, Outcome, Sent

WIDTH = 38
"""Of each half of a picture."""

STYLES = {"masked": "bold cyan", "summarized": "bold yellow"}


@command
def demo(static: Annotated[bool, flag("--static", "Summaries without a model.")] = False) -> Answer:
    """Watch a real agent outgrow its window and go on: no key, no network.

    A praisonaiagents Agent reads a harbour's logs with its tools. Its model is a local server with
    scripted answers, as strict as a real provider: it refuses a request over its window, and tells
    of what it is asked last only what it is shown.

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
    pictured: set[str | None] = {None}
    for outcome in playing.turns():
        yield ""
        yield Line(f"You: {outcome.user}", "bold")
        yield _requests(outcome, playing.window)
        for one in outcome.sent:
            if one.done not in pictured:
                pictured.add(one.done)
                yield Line(f"Request {one.number}, the first that is {one.done}:", "bold")
                yield from picture(one, tokens)
        yield Line(f"Agent: {excerpt(outcome.answer, 100)}", "green")
        sent += outcome.sent
    yield ""
    yield Line(f"The last question was asked with request {outcome.sent[0].number}:", "bold")
    yield from picture(outcome.sent[0], tokens)
    yield from (
        Panel("its summary", unframe(message), "yellow")
        for message in outcome.sent[0].view
        if is_framed(message)
    )
    yield _checked(outcome.check)
    yield from _closing(sent, playing)


def _requests(outcome: Outcome, window: int) -> Table:
    rows: list[tuple[str | int, ...]] = []
    for one in outcome.sent:
        waited = f"{one.done} in {one.compression['seconds']:.2f} s" if one.compression else None
        remarks = [waited, "would not fit whole" if one.tokens_whole > window else None]
        if one.refused:
            remarks = [f"refused: {excerpt(one.refused, 60)}"]
        rows.append((*one.numbers.values(), "; ".join(filter(None, remarks))))
    columns = ("request#", "transcript#", "tokens#", "sent#", "tokens#", "cached#", "")
    return Table(columns, rows, [STYLES.get(one.done or "", "") for one in outcome.sent])


# ---------------------------------------------------------------- a request as a picture


def picture(one: Sent, tokens: TokenCounter) -> Iterator[str]:
    """The whole transcript beside what was sent of it, line by line."""
    halves = (("whole", one.whole, one.tokens_whole), ("sent", one.view, one.tokens))
    left, right = (
        [
            f"{name}: {len(messages)} messages, {number(size)} tokens",
            "\u2500" * WIDTH,
            *_listed(messages, tokens),
        ]
        for name, messages, size in halves
    )
    for a, b in itertools.zip_longest(left, right, fillvalue=""):
        yield f"{a:<{WIDTH}}  {b}".rstrip()


def _listed(messages: Sequence[Message], tokens: TokenCounter) -> Iterator[str]:
    """A line for each message near an end, and for each heading of a summary."""
    skipped = 0
    for index, message in enumerate(messages):
        framed = is_framed(message)
        if FIRST <= index < len(messages) - LAST and not framed:
            skipped += 1
            continue
        if skipped:
            yield f"...{'':<13}{skipped} more messages"
            skipped = 0
        calls = [f"{call.name}({call.arguments})" for call in tool_calls_of(message)]
        said = [excerpt(" ".join([*calls, text_of(message)]), WIDTH - 16)]
        if framed:
            headings = re.findall(r"^## (.+)", unframe(message), re.MULTILINE)
            said = textwrap.wrap(", ".join(headings), WIDTH - 16) or ["one paragraph"]
        name = "summary" if framed else str(message.get("role"))
        yield f"{name:<9}{number(tokens.message(message)):>6} {said[0]}"
        yield from (f"{'':<16}{line}" for line in said[1:])


FIRST, LAST = 4, 2
"""Messages shown at either end of a long list."""


# ---------------------------------------------------------------- what it came to


def _checked(found: Mapping[str, Any]) -> Line:
    """What the last question shows: where the answer was, and whether it is the log's."""
    where = "what was sent still held it"
    if not found["in_view"]:
        where = f"what was sent no longer held it, the agent found it with {found['found_by']}"
    right = "that is what the log says" if found["right"] else "the log says otherwise"
    return Line(f"The answer: {where}; {right}.", "green" if found["right"] else "red")


def _closing(sent: Sequence[Sent], playing: Demo) -> Iterator[str]:
    done = [one.done for one in sent]
    refused = sum(one.refused is not None for one in sent)
    over = sum(one.tokens_whole > playing.window for one in sent)
    whole, largest = max(one.tokens_whole for one in sent), max(one.tokens for one in sent)
    calls = playing.summary_requests
    asked = f"{calls} calls to the summarizer's model" if calls else "static: no model was asked"
    yield ""
    yield (
        f"{len(sent)} requests, {refused} refused. Compressed {len(done) - done.count(None)} times:"
        f" {done.count('masked')} by masking old tool outputs, {done.count('summarized')} by a "
        f"summary ({asked})."
    )
    yield (
        f"The transcript grew to {number(whole)} tokens; the largest request had {number(largest)} "
        f"of {number(playing.window)}. Without compression {over} requests would have been refused."
    )
    totals = _totals(sent, playing)
    yield (
        f"Wait: {totals['seconds']:.2f} s for all compressions. Prefix kept: "
        f"{number(totals['cached_tokens'])} of the {number(totals['sent_tokens'])} tokens sent "
        "began an earlier request too: a provider's cache serves them."
    )
    yield (
        f"Cost: the summaries {money(totals['cost'])} at the listed price of {playing.model}; what "
        f"was not sent would have been {money(totals['cost_saved'])}."
    )
    yield "Next: praison-compressor compress FILE, or Agent(context=CompressorContext())."


def _totals(sent: Sequence[Sent], playing: Demo) -> dict[str, Any]:
    """The wait in seconds, the tokens, and the cost in dollars of all requests."""
    paid = [one.compression for one in sent if one.compression]
    left_out = sum(one.tokens_whole - one.tokens for one in sent)
    return {
        "seconds": sum(each["seconds"] for each in paid),
        "sent_tokens": sum(one.tokens for one in sent),
        "cached_tokens": sum(one.cached for one in sent),
        "cost": sum(each["cost"] or 0.0 for each in paid),
        "cost_saved": left_out * (input_price(playing.model) or 0.0),
    }


def _value(playing: Demo) -> dict[str, Any]:
    turns, sent = [], list[Any]()
    for outcome in playing.turns():
        requests = [
            {**one.numbers, "compressed": one.done, "refused": one.refused, "view": one.view}
            for one in outcome.sent
        ]
        sent += outcome.sent
        turns.append({"user": outcome.user, "answer": outcome.answer, "requests": requests})
    return {
        "window": playing.window,
        "summary_requests": playing.summary_requests,
        "turns": turns,
        "check": outcome.check,
        "totals": _totals(sent, playing),
    }
