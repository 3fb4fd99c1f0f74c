"""Old tool outputs as one line each, now and without a model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..compressor import ContextCompressor
from ..laying import lay
from ..ledger import Segment
from ..masks import MaskLines
from ..messages import Message, Transcript, digest, read, to_plain
from ..recording import mask_segment

__all__ = ["prune"]


def prune(engine: ContextCompressor, messages: Sequence[Any], session_id: str) -> int:
    """Record a mask for every large output before the newest turn; returns how many.

    Raises:
        LedgerError: the store cannot be read or written.
    """
    session = engine.store.open(engine.config.namespace, session_id)
    segments = [entry.segment for entry in session.entries]
    known = {segment.run[0] for segment in segments if segment.kind == "mask"}
    transcript = read(messages)
    found = [
        (segment, [to_plain(original)])
        for segment, original in _masks(engine, transcript, segments, len(messages))
        if segment.run[0] not in known
    ]
    if found:
        engine.store.commit(session, found)
        engine.save(messages, session_id=session_id)
    return len(found)


def _masks(
    engine: ContextCompressor, transcript: Transcript, segments: Sequence[Segment], length: int
) -> Iterator[tuple[Segment, Message]]:
    messages, count = transcript.messages, engine.tokens.message
    users = [index for index, message in enumerate(messages) if message["role"] == "user"]
    newest = users[-1] if users else 0
    tiles = lay(list(map(digest, messages)), segments, [True] * len(messages))
    summarized = {i for t in tiles if t.segment is not None for i in range(t.start, t.end)}
    tokens = [count(message) for message in messages]
    for index, line in MaskLines(engine.tokens.cache)(messages, tokens, engine.config):
        size = count(line)
        if index < newest and index not in summarized and size < tokens[index]:
            segment = mask_segment(
                digest(messages[index]),
                line,
                tokens=size,
                source_tokens=tokens[index],
                transcript_length=length,
            )
            yield segment, messages[index]
