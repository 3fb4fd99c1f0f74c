"""What a plan adds to the ledger: its segments, each with the originals to archive."""

from __future__ import annotations

import time
from collections.abc import Sequence

from .brief import Written
from .cache import Originals
from .call import Call, Look
from .ledger import Segment
from .messages import Message
from .plan import Job, Plan
from .projection import Projector
from .tokens import TokenCounter

__all__ = ["mask_segment", "segments_of"]


def segments_of(
    call: Call,
    look: Look,
    todo: Plan,
    written: Sequence[Written],
    *,
    projector: Projector,
    tokens: TokenCounter,
) -> list[tuple[Segment, Sequence[Message]]]:
    """The plan's summaries and masks, each with the caller's own messages that it stands for."""
    summaries = [
        (_summary(look, job, text, tokens), _archived(look, job.start, job.end))
        for job, text in zip(todo.jobs, written, strict=True)
    ]
    chosen = set(todo.masks)
    masks = projector.masked(call, look.layout) if chosen else []
    return summaries + [
        (
            mask_segment(
                look.layout.digests[index],
                message,
                tokens=tokens.message(message),
                source_tokens=look.layout.tokens[index],
                transcript_length=len(look.raw),
            ),
            _archived(look, index, index + 1),
        )
        for index, message in masks
        if index in chosen
    ]


def _archived(look: Look, start: int, end: int) -> Sequence[Message]:
    """The caller's own messages of a run, as they came and in their order."""
    origins = look.layout.transcript.origins[start:end]
    places = sorted(o for o in origins if o is not None)
    return look.raw.at(places) if isinstance(look.raw, Originals) else [look.raw[i] for i in places]


def _summary(look: Look, job: Job, text: Written, tokens: TokenCounter) -> Segment:
    return Segment(
        kind="summary",
        run=look.layout.digests[job.start : job.end],
        rendered=text.message,
        tokens=tokens.message(text.message),
        source_tokens=job.source_tokens,
        method=text.method,
        model=text.model,
        usage=text.usage,
        created=time.time(),
        transcript_length=len(look.raw),
    )


def mask_segment(
    digest: str, line: Message, *, tokens: int, source_tokens: int, transcript_length: int
) -> Segment:
    """The segment by which `line` stands for the message of that digest."""
    return Segment(
        kind="mask",
        run=(digest,),
        rendered=line,
        tokens=tokens,
        source_tokens=source_tokens,
        method="static",
        created=time.time(),
        transcript_length=transcript_length,
    )
