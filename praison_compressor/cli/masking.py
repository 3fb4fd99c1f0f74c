"""`mask`: old tool outputs become one line each; nothing else, and no model."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from ..masks import mask as masked_message
from ..masks import maskable
from ..messages import Transcript, read, text_of
from ..tokens import TokenCounter
from . import transcripts
from .failures import guarded
from .options import AsJson, Conversation, File, ForModel, KeepTokens, config_of
from .terminal import Screen, excerpt, number

__all__ = ["mask"]

Above = Annotated[
    int | None,
    typer.Option("--above", metavar="TOKENS", help="Outputs up to this size stay (200)."),
]
Keep = Annotated[
    list[str] | None,
    typer.Option("--keep", metavar="TOOL", help="Never mask this tool's outputs; may be repeated."),
]
Out = Annotated[
    str | None,
    typer.Option("--out", metavar="FILE", help="Write the view there; - is standard output."),
]


@guarded
def mask(
    file: File,
    for_model: ForModel = None,
    keep_tokens: KeepTokens = None,
    above: Above = None,
    keep: Keep = None,
    out: Out = None,
    conversation: Conversation = None,
    as_json: AsJson = False,
) -> None:
    """Replace old tool outputs by one line each: what was called, its outcome, its size.

    The newest tokens stay as they are. Asks no model; the file itself is never changed.
    """
    transcript = read(transcripts.read_one(file, conversation))
    config = config_of(
        model=for_model,
        protect_last_n_tokens=keep_tokens,
        mask_above_tokens=above,
        tool_policies=dict.fromkeys(keep or (), "keep"),
    )
    tokens = TokenCounter(config.model)
    counts = [tokens.message(message) for message in transcript.messages]
    end = _tail_start(transcript, counts, config.protect_last_n_tokens)
    calls = maskable(transcript.messages, counts, config)
    chosen = {index: found for index, found in calls.items() if index < end}
    view = [
        masked_message(chosen[index], message) if index in chosen else message
        for index, message in enumerate(transcript.messages)
    ]
    if out is not None:
        transcripts.write(out, view, source=file)
    screen = Screen(sys.stderr if out == "-" else None)
    rows = [
        [
            str(index),
            ", ".join(call.name for call in found.values()),
            number(counts[index]),
            number(tokens.message(view[index])),
        ]
        for index, found in chosen.items()
    ]
    before, after = tokens.messages(transcript.messages), tokens.messages(view)
    if as_json:
        screen.json(
            {
                "file": file,
                "masked": sorted(chosen),
                "tokens_before": before,
                "tokens_after": after,
                **({"messages": view} if out is None else {}),
            }
        )
        return
    says = [excerpt(text_of(view[index]), 60) for index in chosen]
    total = ["all", "", number(before), number(after), f"{len(chosen)} outputs masked"]
    screen.table(
        ["index#", "tool", "tokens before#", "tokens after#", "now"],
        [*([*row, said] for row, said in zip(rows, says, strict=True)), total],
        last_is_total=True,
    )


def _tail_start(transcript: Transcript, counts: Sequence[int], keep_tokens: int) -> int:
    """Where the newest steps begin that fit into `keep_tokens`; the newest one always stays."""
    start, room = len(counts), keep_tokens
    for step in reversed(transcript.steps):
        room -= sum(counts[index] for index in step)
        if room < 0 and start < len(counts):
            break
        start = step.start
    return start
