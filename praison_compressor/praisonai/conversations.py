"""Hold the state of an agent's conversations between requests."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..compressor.bills import Bill, short_count
from ..compressor.context_compressor import ContextCompressor
from ..compressor.preview import Preview
from ..compressor.result import CompressResult
from ..concurrency import renew_after_fork
from ..ledger.segments import Entry
from ..messages import Message, is_system, leading_count, text_of
from ..messages.digests import CachedMessage
from ..tokens.models import model_limits
from .agent_ledger import place_of
from .journal import Journal, KeptSteps, kept_of
from .request_shapes import HostRequest

NOTHING = Bill()

MOST_DIGESTS = 50_000
"""Messages of one conversation that are remembered by their digests."""

TURN_MESSAGES = 40
"""After that number of messages a long turn may read the archive again."""

REMEMBERED = 256
"""Conversations of one agent that are remembered, the newest ones."""

JOURNALED_TOKENS = 8_000_000
"""Tokens of all journals of an agent in memory; a store on disk has the others too."""

IDENTIFYING_CHARS = 40
"""Shorter messages ("hi", "yes, go on") occur in many conversations."""

Place = int | str
"""A message's index after the leading system messages, or a reference not yet resolved."""


@dataclass(frozen=True)
class Choices:
    """The user's choices for the next compression of a conversation."""

    keep: tuple[Place, ...] = ()
    """Messages that stay verbatim; the next request records them in the ledger."""
    since: Place | None = None
    """The first message to compress."""
    until: Place | None = None
    """The first message after them."""
    focus: str | None = None
    """A subject that the summary must keep."""

    def options(self, messages: Sequence[Message]) -> dict[str, Any]:
        """Return the choices as options for a compression of these messages."""
        leading = leading_count(messages)

        def at(place: Place) -> Place:
            return place + leading if isinstance(place, int) else place

        found: dict[str, Any] = {"keep": [*map(at, self.keep)]} if self.keep else {}
        ends = {"since": self.since, "until": self.until}
        return found | {name: at(place) for name, place in ends.items() if place is not None}


@dataclass(eq=False)
class Conversation:
    """The state that one conversation keeps between its requests."""

    session_id: str
    """The ledger's session, of this conversation alone."""
    key: str | None = None
    """The host's id, if it gives one."""
    earlier: tuple[str, ...] = ()
    """Sessions from which the user came here, by `/new` or `/resume`."""
    transcript: tuple[Message, ...] = ()
    """Private copies of the messages of its last request, system messages included."""
    result: CompressResult | None = None
    """The result for the last request."""
    is_sent: bool = True
    """Whether `result` was sent; False after a command that changed the next request."""
    model: str | None = None
    """The model of the last request."""
    overhead_tokens: int = 0
    """Tokens of the last request beside its messages."""
    tool_tokens: int = 0
    """Tokens of the last tools sent: some requests at the end of a turn have none."""
    progress: tuple[int, int] = (0, 0)
    """Changes when recall tools may read the archive again."""
    pinned: tuple[str, ...] = ()
    """Texts that every compressed view keeps word for word."""
    choices: Choices = field(default_factory=Choices)
    shown: Preview | None = None
    """The last preview, to whose references the user's choices refer."""
    notice: str | None = None
    """The line that reported the last compression."""
    history: list[Any] | None = field(default=None, repr=False)
    """The host's own list of messages; None once another conversation uses that list."""
    digests: tuple[str, ...] = ()
    """Digests of the history after the last turn, with a front that the host dropped."""
    identifying: set[str] = field(default_factory=set)
    """Digests of long messages of its own turns, which identify it."""
    carried: dict[str, int] = field(default_factory=dict)
    """Digest -> length of `digests` when the turn began that first sent the message."""
    journal: Journal = field(init=False, repr=False)
    """All messages of its requests, with the tool steps that the host drops."""
    kept: KeptSteps = field(default_factory=KeptSteps)
    """Steps of earlier turns in its last request."""
    last_sent: tuple[str, ...] = ()
    """Digests of the last request's messages, without those we added."""
    taken_back: set[str] = field(default_factory=set)
    """Digests of messages that the user took back (undo, retry, edit): recall omits them."""

    def remember(
        self,
        result: CompressResult,
        engine: ContextCompressor,
        request: HostRequest,
        overhead_tokens: int,
        *,
        is_sent: bool = True,
    ) -> None:
        """Take the result for a request; `is_sent` is False after a command."""
        self.result, self.model, self.is_sent = result, request.model, is_sent
        self.overhead_tokens = overhead_tokens
        self.tool_tokens = overhead_tokens or self.tool_tokens
        self.kept = kept_of(request.back, engine, result.messages)
        users = sum(message.get("role") == "user" for message in request.messages)
        self.progress = users, len(request.messages) // TURN_MESSAGES

    @property
    def options(self) -> dict[str, Any]:
        """Return the options of every compression of this conversation."""
        pins = {"pinned": self.pinned} if self.pinned else {}
        return {"session_id": self.session_id, **pins}

    def status(self, engine: ContextCompressor, bill: Bill = NOTHING) -> Status:
        """Return the status of the last request, with zeros before the first."""
        config, result = engine.config, self.result
        messages, segments = (result.messages, result.segments) if result else ((), ())
        system = sum(map(engine.tokens.message, filter(is_system, messages)))
        summaries = sum(segment.tokens for segment in segments)
        return Status(
            session_id=self.session_id,
            epoch=result.session_id if result else self.session_id,
            context_status=result.context_status if result else "full",
            model=config.model,
            window=model_limits(config.model, config.context_window).window,
            tokens_before=result.tokens_before + self.overhead_tokens if result else 0,
            system_tokens=system,
            summary_tokens=summaries,
            kept_tokens=max(0, result.tokens_after - system - summaries) if result else 0,
            tool_tokens=self.overhead_tokens,
            summaries=len(segments),
            store=place_of(engine.store),
            earlier=self.kept,
            is_sent=self.is_sent,
            bill=bill,
        )

    def __post_init__(self) -> None:
        self.journal = Journal(self.session_id)

    def reads(self, entry: Entry) -> bool:
        """Return whether recall may read an entry: no message was taken back."""
        return self.taken_back.isdisjoint(entry.segment.run)

    def aligned(self, sent: Sequence[str]) -> tuple[int, int]:
        """Return where in `digests` `sent` begins, and how many digests stay."""
        places = {digest: at for at, digest in enumerate(sent)}
        for end in range(len(self.digests), 0, -1):
            at = places.get(self.digests[end - 1])
            if at is not None:
                # A question that is asked again takes back the first answer.
                is_retry = end < len(self.digests) and at == len(sent) - 1
                return end - 1 - at, end - is_retry
        return 0, 0

    def is_continued_by(self, sent: Sequence[str]) -> bool:
        """Return whether `sent` contains the end of `digests` unbroken."""
        if not self.digests or self.digests[-1] not in sent:
            return False
        at = len(sent) - 1 - sent[::-1].index(self.digests[-1])
        common = min(at + 1, len(self.digests))
        return sent[at + 1 - common : at + 1] == self.digests[len(self.digests) - common :]

    def carry(self, sent: Sequence[str], begun: int) -> None:
        """Remember a request's messages; `begun`: `digests`' length before its turn."""
        for each in sent:
            self.carried.setdefault(each, begun)
        while len(self.carried) > MOST_DIGESTS:
            del self.carried[next(iter(self.carried))]
        self.taken_back.difference_update(sent)

    def rewind(self, length: int, sent: Sequence[str]) -> None:
        """Take back the messages after the first `length` that `sent` lacks."""
        gone = {digest for digest, mark in self.carried.items() if mark >= length}
        gone = (gone | set(self.digests[length:])) - set(sent)
        self.taken_back |= gone
        self.identifying -= gone
        self.digests = self.digests[:length]
        for each in gone:
            self.carried.pop(each, None)


# ------------------------------------------------------------ an agent's conversations


class Conversations:
    """The newest conversations of one agent and their identifying messages.

    Callers hold `lock` while they decide and change more than one thing.
    """

    def __init__(self) -> None:
        self.lock = renew_after_fork(threading.RLock())
        self._known: OrderedDict[str, Conversation] = OrderedDict()
        self._owners: dict[str, str | None] = {}
        """Digest of a long message -> session id; None where two conversations have it."""

    def get(self, session_id: str) -> Conversation | None:
        """Return the conversation of a ledger's session, if it is remembered."""
        return self._known.get(session_id)

    def newest(self) -> list[Conversation]:
        """Return the conversations, the newest first."""
        with self.lock:
            return [*reversed(self._known.values())]

    def under(self, key: str | None) -> list[Conversation]:
        """Return the conversations with a host's id, the newest first."""
        return [each for each in self.newest() if each.key == key]

    def unused(self, key: str | None) -> Conversation | None:
        """Return a conversation with that id which no request has carried yet."""
        return next((each for each in self.under(key) if not each.carried), None)

    def keep(self, found: Conversation) -> Conversation:
        """Remember a conversation as the newest; forget the oldest beyond REMEMBERED."""
        with self.lock:
            self._known[found.session_id] = found
            self._known.move_to_end(found.session_id)
            while len(self._known) > REMEMBERED:
                _, gone = self._known.popitem(last=False)
                for each in gone.identifying:
                    if self._owners.get(each) == gone.session_id:
                        del self._owners[each]
        return found

    def forget(self, found: Conversation) -> None:
        """Forget a conversation that no request has carried."""
        del self._known[found.session_id]

    def assign_history(self, found: Conversation, history: list[Any] | None) -> None:
        """Record the host's list as this conversation's alone."""
        for each in self._known.values():
            if each.history is history:
                each.history = None
        found.history = history

    def identify_by(self, found: Conversation, seen: Iterable[CachedMessage]) -> None:
        """Record the long messages that this conversation's own turns added."""
        for each in seen:
            if len(text_of(each.plain)) < IDENTIFYING_CHARS:
                continue
            owner = self._owners.setdefault(each.digest, found.session_id)
            if owner != found.session_id:
                self._owners[each.digest] = None
            found.identifying.add(each.digest)

    def share(self, sent: Iterable[str]) -> None:
        """Let messages of another conversation identify none from now on."""
        self._owners.update(dict.fromkeys(self._owners.keys() & {*sent}))

    def hits(self, each: Conversation, before: Collection[str]) -> int:
        """Return the number of messages that only this conversation has."""
        common = each.identifying.intersection(before)
        return sum(self._owners.get(digest) == each.session_id for digest in common)

    def bound_journals(self) -> None:
        """Drop the oldest conversations' journals, until the rest fits."""
        left = JOURNALED_TOKENS
        for found in self.newest():
            left -= found.journal.tokens
            if left < 0:
                found.journal = Journal(found.session_id)


# ------------------------------------------------------------ its status


@dataclass(frozen=True)
class Status:
    """The parts of a conversation's last or next request, in tokens."""

    session_id: str
    epoch: str
    """The newest epoch; the session's id before the first compression."""
    context_status: str
    model: str | None
    window: int
    tokens_before: int
    """Tokens of the whole conversation, with tool schemas."""
    system_tokens: int = 0
    summary_tokens: int = 0
    kept_tokens: int = 0
    tool_tokens: int = 0
    summaries: int = 0
    store: str = "memory"
    """The ledger's place."""
    earlier: KeptSteps = field(default_factory=KeptSteps)
    """Dropped steps of earlier turns, a part of the kept tokens."""
    is_sent: bool = True
    """False: the numbers describe the next request, which a command changed."""
    bill: Bill = NOTHING
    """The conversation's cost so far."""

    @property
    def tokens(self) -> int:
        """Return the tokens that were sent."""
        return self.system_tokens + self.summary_tokens + self.kept_tokens + self.tool_tokens

    def __str__(self) -> str:
        return f"{self.parts} ({self.context_status}){self.of_earlier}"

    @property
    def parts(self) -> str:
        """Return the parts, their sum and share of the window, in words."""
        share = round(100 * self.tokens / self.window)
        return (
            f"{short_count(self.tokens)} (system {short_count(self.system_tokens)}, "
            f"summary {short_count(self.summary_tokens)}, kept {short_count(self.kept_tokens)}, "
            f"tools {short_count(self.tool_tokens)}) · {share} % of {short_count(self.window)}"
        )

    @property
    def of_earlier(self) -> str:
        """Return words for the kept steps of earlier turns, "" without any."""
        return f"; {self.earlier}" if self.earlier.steps else ""


def digests_of(seen: Iterable[CachedMessage]) -> tuple[str, ...]:
    """Return the digests of messages, without those of system messages."""
    return tuple(each.digest for each in seen if not is_system(each.plain))
