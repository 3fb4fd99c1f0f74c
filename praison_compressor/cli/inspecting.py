"""`inspect`: what a compression would keep, mask and summarize, and why, without doing it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Annotated, Any

import typer

from ..compressor.context_compressor import ContextCompressor
from ..compressor.preview import Preview
from ..facts import Facts, coverage
from ..messages import Message, text_of, tool_calls_of
from ..messages.display import excerpt, kind_in_words
from ..tokens.counter import TokenCounter
from . import transcripts
from .failures import guarded
from .options import AsJson, Reading, reading
from .terminal import Screen, number, show

__all__ = [
    "inspect",
]


Messages = Annotated[
    bool, typer.Option("--messages", help="A line for each message: its fate and its tokens.")
]


@guarded
@reading
def inspect(given: Reading, messages: Messages = False, as_json: AsJson = False) -> None:
    """Show what would be kept, masked and summarized, and why, without doing it.

    Asks no model and writes nothing. Takes the options of `compress`.
    """
    transcript = transcripts.read_one(given.file, given.conversation)
    compressor = ContextCompressor(given.config())
    seen = compressor.preview(transcript, **given.call)
    screen = Screen()
    if as_json:
        screen.json(_as_json(given.file, seen, compressor.tokens))
        return
    is_assumed = given.window is None and given.for_model is None and given.target is None
    _print(screen, seen, compressor.tokens, assumed=is_assumed)
    if messages:
        _print_messages(screen, seen)


def _print(screen: Screen, seen: Preview, tokens: TokenCounter, *, assumed: bool) -> None:
    for line in _budget_lines(seen, tokens, assumed):
        screen.say(line)
    rows = seen.parts
    written = sum(1 if part.segment or part.to_write else part.messages for part in rows)
    what = [part.why for part in rows]
    show(screen, rows, what, view_messages=written, opens=seen.opening)
    screen.say(_verdict(seen))
    counts = _counts(seen.facts)
    if counts is not None:
        said = ", ".join(f"{kind_in_words(kind)} {count:,}" for kind, count in counts.items())
        screen.say(f"Facts found there, for the summary to hold: {said or 'none'}.")


def _budget_lines(seen: Preview, tokens: TokenCounter, assumed: bool) -> Iterator[str]:
    budget = seen.budget
    if budget.limit == budget.trigger:
        yield f"Target {number(budget.target + seen.opening)} tokens, whatever the window."
    else:
        source = (
            "assumed; --for-model or --window says otherwise" if assumed else seen.limits.source
        )
        yield (
            f"Window {number(seen.limits.window)} tokens ({source}), "
            f"{number(budget.limit)} of them usable: compress above {number(budget.trigger)}, "
            f"down to {number(budget.target)}."
        )
    yield f"Tokens: {tokens.source}{', exact' if tokens.exact else ''}."


def _counts(facts: Facts | None) -> dict[str, int] | None:
    """The facts that matter, by kind: as `compress` counts them when it says how many it holds."""
    if facts is None:
        return None
    return {kind: total for kind, (_, total) in coverage(facts, "").by_kind.items()}


def _verdict(seen: Preview) -> str:
    size = seen.tokens - seen.opening
    if not seen.would_compress and size <= seen.budget.trigger:
        left = number(seen.budget.trigger - size)
        return f"Nothing would be done: it fits, {left} tokens below the trigger."
    if not seen.would_compress:
        return "Nothing would be done: a compression would not gain enough to be worth it."
    if seen.new_masks:
        return f"Masking alone is enough: {seen.new_masks} tool outputs, no model call."
    jobs = seen.would_write
    return f"{jobs} {'summary' if jobs == 1 else 'summaries'} would be written."


def _print_messages(screen: Screen, seen: Preview) -> None:
    rows, styles = [], []
    for index, fate in seen.fates():
        message = seen.messages[index]
        said = excerpt(_says(message), 80)
        tokens = number(seen.message_tokens[index])
        rows.append([str(index), str(message.get("role")), fate, tokens, said])
        styles.append({"keep": "", "mask": "cyan"}.get(fate, "yellow"))
    screen.table(["index#", "role", "fate", "tokens#", "begins"], rows, styles=styles)


def _says(message: Message) -> str:
    calls = [f"{call.name}({call.arguments})" for call in tool_calls_of(message)]
    return " ".join([*calls, text_of(message)])


def _as_json(file: str, seen: Preview, tokens: TokenCounter) -> dict[str, Any]:
    return {
        "file": file,
        "window": asdict(seen.limits),
        "budget": asdict(seen.budget),
        "tokenizer": {"source": tokens.source, "exact": tokens.exact},
        "tokens": seen.tokens,
        "would_compress": seen.would_compress,
        "repaired": seen.repaired,
        "parts": [
            {
                "part": part.name,
                "first_index": part.start,
                "messages": part.messages,
                "tokens_before": part.tokens_before,
                "tokens_after": part.tokens_after,
                "masked": part.masked,
                "would_be_written": part.to_write,
                "why": part.why,
            }
            for part in seen.parts
        ],
        "facts": _counts(seen.facts),
        "messages": [
            {
                "index": index,
                "role": seen.messages[index].get("role"),
                "tokens": seen.message_tokens[index],
                "fate": fate,
            }
            for index, fate in seen.fates()
        ],
    }
