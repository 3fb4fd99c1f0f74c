"""Read a session's archived messages from its store."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass

from ..concurrency import computed_once
from ..errors import LedgerError
from ..ledger.segments import DROPPED, Entry, Session
from ..ledger.stores import ALL_MESSAGES, Store
from ..ledger.words import distinct_words
from ..messages import Message
from ..messages.display import message_as_text
from .around import Around
from .layout import shared_endings

NEIGHBOURS = 32
"""Messages before and after others, among which calls and results are paired."""
SAMPLED_MESSAGES = 100
"""Messages among which lines are looked for that end several."""
COMPARED_WORDS = 5_000
"""Words of the newest segments that a query without a match is compared with."""


@dataclass(frozen=True)
class SessionArchive:
    """The messages that a session's segments replace."""

    store: Store
    session: Session

    @property
    def entries(self) -> Sequence[Entry]:
        """The session's entries; a reference counts them from 1."""
        return self.session.entries

    def originals(self, entry: Entry, wanted: slice = ALL_MESSAGES) -> list[Message] | None:
        """Return an entry's messages, unwanted ones perhaps blank; None if forgotten."""
        # A tombstone may be recall's alone, and its originals in the store.
        forgotten = entry.is_forgotten
        return None if forgotten else self.store.originals(self.session, entry, wanted)

    def around(self, segment: int, places: range) -> Around:
        """Return the messages at the ordinals with neighbours; none if damaged."""
        start = max(0, places.start - NEIGHBOURS)
        wanted = slice(start, places.stop + NEIGHBOURS)
        messages: list[Message] = []
        # A damaged message beside the wanted ones does not keep these from being read.
        with contextlib.suppress(LedgerError):
            messages = (self.originals(self.entries[segment - 1], wanted) or [])[wanted]
        return Around(segment, start, messages, self.endings)

    @computed_once
    def endings(self) -> frozenset[str]:
        """Return lines that end several of the newest messages."""
        texts: list[str] = []
        for entry in reversed(self.entries):
            wanted = slice(max(0, SAMPLED_MESSAGES - len(texts)))
            with contextlib.suppress(LedgerError):
                texts += map(message_as_text, (self.originals(entry, wanted) or [])[wanted])
            if len(texts) >= SAMPLED_MESSAGES:
                break
        return shared_endings(texts)

    def newest_words(self) -> list[str]:
        """Return the distinct words of the newest segments."""
        distinct: dict[str, None] = {}
        for entry in reversed(self.entries):
            for message in self.originals(entry) or ():
                if message != DROPPED:
                    distinct.update(dict.fromkeys(distinct_words(message_as_text(message))))
            if len(distinct) > COMPARED_WORDS:
                break
        return list(distinct)
