"""Old tool outputs as one line each, now and without a model."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

from ..compressor import ContextCompressor
from ..ledger import Segment
from ..masks import mask, maskable, reference_of
from ..messages import Message, Transcript, digest, read, to_plain

__all__ = ["prune"]


def prune(engine: ContextCompressor, messages: Sequence[Any], session_id: str) -> int:
    """Record a mask for every large output before the newest turn; returns how many.

    Raises:
        LedgerError: the store cannot be read or written.
    """
    session = engine.store.open(engine.config.namespace, session_id)
    known = {e.segment.run[0] for e in session.entries if e.segment.kind == "mask"}
    transcript = read(messages)
    found = [
        (segment, [to_plain(original)])
        for segment, original in _masks(engine, transcript, len(messages))
        if segment.run[0] not in known
    ]
    if found:
        engine.store.commit(session, found)
        engine.save(messages, session_id=session_id)
    return len(found)


def _masks(
    engine: ContextCompressor, transcript: Transcript, length: int
) -> Iterator[tuple[Segment, Message]]:
    messages, count = transcript.messages, engine.tokens.message
    users = [index for index, message in enumerate(messages) if message["role"] == "user"]
    newest = users[-1] if users else 0
    tokens = [count(message) for message in messages]
    for index, call in maskable(messages, tokens, engine.config).items():
        found = digest(messages[index])
        rendered = mask(
            call,
            messages[index],
            reference_of(found) if engine.config.recall else None,
            host_prefixes=engine.config.host_prefixes,
        )
        if index < newest and count(rendered) < tokens[index]:
            yield (
                Segment(
                    kind="mask",
                    run=(found,),
                    rendered=rendered,
                    tokens=count(rendered),
                    source_tokens=tokens[index],
                    method="static",
                    created=time.time(),
                    transcript_length=length,
                ),
                messages[index],
            )
