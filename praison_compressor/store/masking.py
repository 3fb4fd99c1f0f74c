"""What is written to a disk is written without keys and tokens.

A segment is found again by the digests of the messages as the agent has them. The archive holds
them masked, and says under which digests: so the chain, the archive and the index agree with each
other, and what is read back from the archive is found like what was archived.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ..ledger import Outline, Segment
from ..messages import Message, digest, read
from ..redact import Redactor, masks_in

__all__ = ["outline_without_secrets", "without_secrets"]

Recorded = tuple[Segment, list[Message]]


def without_secrets(namespace: str, segments: Iterable[Recorded]) -> list[Recorded]:
    """The segments and originals to store; those without a secret as they are."""
    redactor = Redactor(namespace)
    return [_masked(redactor, segment, originals) for segment, originals in segments]


def outline_without_secrets(namespace: str, outline: Outline) -> Outline:
    """The outline to store: what stands in it word for word, masked as in the archive."""
    held = [item for item in outline if not isinstance(item, int)]
    masked = iter(Redactor(namespace).messages(held)[0])
    return tuple(item if isinstance(item, int) else next(masked) for item in outline)


def _masked(redactor: Redactor, segment: Segment, originals: list[Message]) -> Recorded:
    kept, found = redactor.messages(originals)
    (rendered,), shown = redactor.messages([segment.rendered])
    # Masked before, where a view was read as the transcript that it stands for.
    count = masks_in(kept)
    if not (count or shown):
        return segment, originals
    archived = _archived_as(segment.run, originals, kept) if found else ()
    return replace(segment, rendered=rendered, archived_as=archived, secrets=count), list(kept)


def _archived_as(
    run: Sequence[str], originals: Sequence[Message], kept: Sequence[Message]
) -> tuple[tuple[int, str], ...]:
    """The places of a run whose messages are archived under another digest, and that digest.

    Masks of one result are recorded with the message as it is, summaries with their whole run as
    it is read. Where neither gives the run, the masked messages stand for nothing.
    """
    for digests in (_as_they_are, _as_read):
        if digests(originals) == list(run):
            pairs = zip(run, digests(kept), strict=True)
            return tuple((at, new) for at, (old, new) in enumerate(pairs) if new != old)
    return ()


def _as_they_are(messages: Sequence[Message]) -> list[str]:
    return [digest(message) for message in messages]


def _as_read(messages: Sequence[Message]) -> list[str]:
    return [digest(message) for message in read(messages).messages]
