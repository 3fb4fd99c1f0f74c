"""Hold the state of an agent's conversations between requests."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..compressor.context_compressor import ContextCompressor
from ..compressor.preview import Preview
from ..compressor.result import CompressResult
from ..concurrency import renew_after_fork
from ..errors import ConfigError
from ..ledger.segments import Entry
from ..messages import Message, content_digest, is_system, leading_count, text_of
from ..messages.digests import CachedMessage
from .journal import Journal, KeptSteps, count_kept_steps
from .request_shapes import HostRequest

MOST_DIGESTS = 50_000
"""Digests of sent messages that one conversation remembers."""

TURN_MESSAGES = 40
"""A long turn gets a new budget for recall after this number of messages."""

MOST_CONVERSATIONS = 256

JOURNALED_TOKENS = 8_000_000
"""Tokens of all journals of an agent in memory."""

LONG_CHARS = 40
"""Shorter messages ("hi", "yes, go on") occur in many conversations."""


@dataclass(frozen=True)
class ShownMessage:
    """A message of a preview."""

    index: int
    """Index after the leading system messages; an edit may move the message."""
    digest: str


ChosenMessage = ShownMessage | str
"""A message of a preview, or a reference that no preview located."""


@dataclass(frozen=True)
class Choices:
    """The user's choices for the next compression of a conversation."""

    keep: tuple[ChosenMessage, ...] = ()
    """Messages that stay verbatim; the next compression records them in the ledger."""
    since: ChosenMessage | None = None
    until: ChosenMessage | None = None
    """The first message after the range that begins with `since`."""
    focus: str | None = None

    @property
    def has_range(self) -> bool:
        """Whether the user chose which messages to compress."""
        return (self.since, self.until) != (None, None)

    def options(self, messages: Sequence[Message]) -> dict[str, Any]:
        """Return the choices as options for a compression of these messages.

        Raises:
            ConfigError: a message that ends the range has left the conversation.
        """
        keep = [index for m in self.keep if (index := _index_now(m, messages)) is not None]
        named = {"since": self.since, "until": self.until}
        ends = {name: _index_now(end, messages) for name, end in named.items() if end}
        if None in ends.values():
            raise ConfigError(
                "a message that ends the chosen range has left the conversation: choose the range "
                "again, or clear it by /compact from"
            )
        return ({"keep": keep} if keep else {}) | ends


def _index_now(chosen: ChosenMessage, messages: Sequence[Message]) -> int | str | None:
    """Return a message's index now, or None; a reference stays."""
    if isinstance(chosen, str):
        return chosen
    shown = leading_count(messages) + chosen.index
    # Begin with the shown index: few edits move a message, so one digest is usually enough.
    nearest = sorted(range(len(messages)), key=lambda index: abs(index - shown))
    return next((n for n in nearest if content_digest(messages[n]) == chosen.digest), None)


@dataclass(frozen=True)
class CurrentRequest:
    """A conversation's last request; after a command, its next request."""

    result: CompressResult | None = None
    """The result whose view is sent; None before the first request."""
    is_sent: bool = True
    """False after a command that changed the next request."""
    model: str | None = None
    overhead_tokens: int = 0
    """Tokens of the request beside its messages."""
    tool_tokens: int = 0
    """Tokens of the tools that were sent last; a turn's last request may have no tools."""
    kept_steps: KeptSteps = field(default_factory=KeptSteps)


@dataclass(eq=False)
class Conversation:
    """The state that one conversation keeps between its requests."""

    session_id: str
    host_id: str | None = None
    """The id from a bot, the host or `context=`, if any."""
    earlier_sessions: tuple[str, ...] = ()
    """Sessions that the user left by `/new` or `/resume` to come here."""
    last_messages: tuple[Message, ...] = ()
    """Copies of the last request's messages, including system messages."""
    current_request: CurrentRequest = field(default_factory=CurrentRequest)
    pinned: tuple[str, ...] = ()
    choices: Choices = field(default_factory=Choices)
    last_preview: Preview | None = None
    """The preview whose references the user's choices name."""
    notice: str | None = None
    history: list[Any] | None = field(default=None, repr=False)
    """The host's list of messages; None once another conversation uses that list."""
    digests: tuple[str, ...] = ()
    """Digests of the history after the last turn, and of messages that the host dropped before."""
    identifying: set[str] = field(default_factory=set)
    """Digests of long messages, by which the conversation is found."""
    first_sent: dict[str, int] = field(default_factory=dict)
    """Digest -> length of `digests` before the turn that first sent the message."""
    journal: Journal = field(init=False, repr=False)
    last_host_digests: tuple[str, ...] = ()
    """Digests of the last request as the host sent it."""
    taken_back: set[str] = field(default_factory=set)
    """Digests of messages that the user took back (undo, retry, edit)."""

    def __post_init__(self) -> None:
        self.journal = Journal(self.session_id)

    @property
    def options(self) -> dict[str, Any]:
        """The options of every compression of this conversation."""
        pins = {"pinned": self.pinned} if self.pinned else {}
        return {"session_id": self.session_id, **pins}

    @property
    def progress(self) -> tuple[int, int]:
        """The count of turns, and of runs of TURN_MESSAGES messages."""
        users = sum(message.get("role") == "user" for message in self.last_messages)
        return users, len(self.last_messages) // TURN_MESSAGES

    def may_recall(self, entry: Entry) -> bool:
        """Return whether recall may read an entry: no message was taken back."""
        return self.taken_back.isdisjoint(entry.segment.run)

    def is_continued_by(self, sent: Sequence[str]) -> bool:
        """Return whether `sent` contains the end of `digests` unbroken."""
        if not self.digests or self.digests[-1] not in sent:
            return False
        last = len(sent) - 1 - sent[::-1].index(self.digests[-1])
        common = min(last + 1, len(self.digests))
        return sent[last + 1 - common : last + 1] == self.digests[len(self.digests) - common :]

    # ------------------------------------------------------------ its turns

    def begin_turn(self, sent: Sequence[str]) -> tuple[int, int]:
        """Take back messages that `sent` lacks; return the turn's offset and length."""
        offset, length = self._align(sent)
        if length < len(self.digests):
            self._rewind(length, sent)
            self.choose(Choices(), None)
        return offset, length

    def _align(self, sent: Sequence[str]) -> tuple[int, int]:
        """Return where `sent` begins in `digests`, and how many digests stay."""
        indices = {digest: index for index, digest in enumerate(sent)}
        for end in range(len(self.digests), 0, -1):
            index = indices.get(self.digests[end - 1])
            if index is not None:
                # A repeated question takes back its first occurrence and the answer.
                is_retry = end < len(self.digests) and index == len(sent) - 1
                return end - 1 - index, end - is_retry
        return 0, 0

    def _rewind(self, length: int, sent: Sequence[str]) -> None:
        gone = {digest for digest, before in self.first_sent.items() if before >= length}
        gone = (gone | set(self.digests[length:])) - set(sent)
        self.taken_back |= gone
        self.identifying -= gone
        self.digests = self.digests[:length]
        for digest in gone:
            self.first_sent.pop(digest, None)

    def add_sent(self, sent: Sequence[str], length_before: int) -> None:
        """Add a request's digests; `length_before`: length of `digests` before the turn."""
        for digest in sent:
            self.first_sent.setdefault(digest, length_before)
        while len(self.first_sent) > MOST_DIGESTS:
            del self.first_sent[next(iter(self.first_sent))]
        self.taken_back.difference_update(sent)

    def receive(self, cached: Sequence[CachedMessage], length_before: int) -> None:
        """Record a request's messages; `length_before` as in `add_sent`."""
        self.add_sent(digests_without_system(cached), length_before)
        self.last_messages = tuple(message.plain for message in cached)

    def remember_sent(
        self, result: CompressResult, request: HostRequest, compressor: ContextCompressor
    ) -> None:
        """Record the result whose view is sent."""
        overhead = request.schema_tokens(compressor.tokens)
        self.current_request = CurrentRequest(
            result=result,
            model=request.model,
            overhead_tokens=overhead,
            tool_tokens=overhead or self.current_request.tool_tokens,
            kept_steps=count_kept_steps(request.restored, compressor, result.messages),
        )

    def remember_next(
        self, result: CompressResult, restored: Sequence[Message], compressor: ContextCompressor
    ) -> None:
        """Record a command's result, whose view the next request has."""
        self.current_request = replace(
            self.current_request,
            result=result,
            is_sent=False,
            kept_steps=count_kept_steps(restored, compressor, result.messages),
        )

    def end_turn(self, offset: int, history: Sequence[str]) -> None:
        """Replace the digests from `offset` on by the history's."""
        self.digests = (*self.digests[: max(0, offset)], *history)

    def identify_by(self, messages: Iterable[CachedMessage]) -> None:
        """Identify the conversation by the long messages among these."""
        self.identifying.update(m.digest for m in messages if len(text_of(m.plain)) >= LONG_CHARS)

    # ------------------------------------------------------------ its user

    def choose(self, choices: Choices, preview: Preview | None) -> None:
        """Record the user's choices, and the preview that shows them."""
        self.choices, self.last_preview = choices, preview

    def drop_kept(self, count: int) -> None:
        """Drop the first `count` kept messages, which the ledger has now."""
        self.choices = replace(self.choices, keep=self.choices.keep[count:])

    def pin(self, text: str) -> None:
        """Keep a text in every compressed view."""
        self.pinned = tuple(dict.fromkeys((*self.pinned, text)))


# ------------------------------------------------------------ an agent's conversations


class Conversations:
    """The newest conversations of one agent; hold `lock` from look-up to change."""

    def __init__(self) -> None:
        self.lock = renew_after_fork(threading.RLock())
        self._by_session: OrderedDict[str, Conversation] = OrderedDict()

    def get(self, session_id: str) -> Conversation | None:
        """Return the conversation of a session, or None if not remembered."""
        return self._by_session.get(session_id)

    def newest(self) -> list[Conversation]:
        """Return the conversations, the newest first."""
        with self.lock:
            return [*reversed(self._by_session.values())]

    def with_host_id(self, host_id: str | None) -> list[Conversation]:
        """Return the conversations with a host id, the newest first."""
        return [conversation for conversation in self.newest() if conversation.host_id == host_id]

    def find_unused(self, host_id: str | None) -> Conversation | None:
        """Return a conversation with that host id and no request, or None."""
        return next((c for c in self.with_host_id(host_id) if not c.first_sent), None)

    def remember(self, conversation: Conversation) -> Conversation:
        """Remember a conversation as the newest; forget the oldest."""
        with self.lock:
            self._by_session[conversation.session_id] = conversation
            self._by_session.move_to_end(conversation.session_id)
            while len(self._by_session) > MOST_CONVERSATIONS:
                self._by_session.popitem(last=False)
        return conversation

    def forget(self, conversation: Conversation) -> None:
        """Forget a conversation without a request."""
        del self._by_session[conversation.session_id]

    def assign_history(self, conversation: Conversation, history: list[Any] | None) -> None:
        """Assign the host's list to this conversation alone."""
        for other in self._by_session.values():
            if other.history is history:
                other.history = None
        conversation.history = history

    def count_hits(self, conversation: Conversation, before: Collection[str]) -> int:
        """Count the messages that identify only this conversation."""
        hits = conversation.identifying.intersection(before)
        if hits:
            for other in self.newest():
                if other is not conversation:
                    hits = hits.difference(other.first_sent, other.identifying)
        return len(hits)

    def bound_journals(self) -> None:
        """Keep the newest journals, up to JOURNALED_TOKENS; drop the other journals."""
        left = JOURNALED_TOKENS
        for conversation in self.newest():
            left -= conversation.journal.tokens
            if left < 0:
                conversation.journal = Journal(conversation.session_id)


def digests_without_system(messages: Iterable[CachedMessage]) -> tuple[str, ...]:
    """Return the digests of messages except system messages."""
    return tuple(message.digest for message in messages if not is_system(message.plain))
