"""The state that a conversation keeps between requests, and the running turn."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from ..compressor.bills import Bill, short
from ..compressor.context_compressor import ContextCompressor
from ..compressor.preview import Preview
from ..compressor.result import CompressResult
from ..ledger.segments import Entry
from ..messages import Message, is_system, leading_in
from ..messages.digests import Seen
from ..tokens.models import model_limits
from .journal import Journal, KeptSteps, kept_of
from .ledgers import place_of

NOTHING = Bill()

CARRIED = 50_000
"""Messages of one conversation that are remembered by their digests."""


Place = int | str
"""A message's number behind the leading system messages, or a reference that nobody resolved."""


@dataclass(frozen=True)
class Choices:
    """What the user asks of the next compression of a conversation."""

    keep: tuple[Place, ...] = ()
    """Messages that stay verbatim; the ledger remembers them once a request has passed."""
    since: Place | None = None
    """The first message to compress."""
    until: Place | None = None
    """The first one after the range."""
    focus: str | None = None
    """What the summary must keep."""

    def options(self, messages: Sequence[Message]) -> dict[str, Any]:
        """Return the options of a compression of these messages that are given."""
        leading = leading_in(messages)

        def at(place: Place) -> Place:
            return place + leading if isinstance(place, int) else place

        found: dict[str, Any] = {"keep": [*map(at, self.keep)]} if self.keep else {}
        ends = {"since": self.since, "until": self.until}
        return found | {name: at(place) for name, place in ends.items() if place is not None}


@dataclass(eq=False)
class Conversation:
    """What one conversation leaves to its next request."""

    session_id: str
    """The ledger's session; another conversation never has the same."""
    key: str | None = None
    """The host's id for it; None where the host gives none."""
    earlier: tuple[str, ...] = ()
    """Sessions that its user left for it, by `/new` or `/resume`."""
    transcript: tuple[Message, ...] = ()
    """Private copies of the messages of its last request, system messages included."""
    result: CompressResult | None = None
    """Of the last request."""
    is_sent: bool = True
    """Whether `result` was sent; False after a command that changed the next request."""
    model: str | None = None
    """The model that the last request asked."""
    overhead_tokens: int = 0
    """Sent beside the messages of the last request."""
    tool_tokens: int = 0
    """Tokens of the last tools sent: the host ends some turns without tools."""
    progress: tuple[int, int] = (0, 0)
    """A change lets a turn read the archive again."""
    pinned: tuple[str, ...] = ()
    """Texts that every compressed view keeps word for word."""
    choices: Choices = field(default_factory=Choices)
    """For the next compression."""
    shown: Preview | None = None
    """The preview that the user saw last: its references name messages."""
    notice: str | None = None
    """The line that reported the last compression."""
    history: list[Any] | None = field(default=None, repr=False)
    """The host's own list of its messages, while no other conversation uses that list."""
    left: tuple[str, ...] = ()
    """Digests of the history after the last turn, including a front the host dropped."""
    own: set[str] = field(default_factory=set)
    """Digests of long messages that its own turns added: they identify it."""
    carried: dict[str, int] = field(default_factory=dict)
    """Digest -> length of `left` at the start of the turn that first carried it."""
    journal: Journal = field(init=False, repr=False)
    """What its requests carried, including tool steps the host drops."""
    kept: KeptSteps = field(default_factory=KeptSteps)
    """Earlier turns' steps that its last request had."""
    before: tuple[str, ...] = ()
    """Digests of the last request's messages as the host made it."""
    taken_back: set[str] = field(default_factory=set)
    """Digests of messages that the user took back (undo, retry, edit): recall omits them."""

    def remember(
        self,
        result: CompressResult,
        engine: ContextCompressor,
        overhead_tokens: int,
        model: str | None,
        back: Sequence[Message],
        *,
        is_sent: bool = True,
    ) -> None:
        """Take the result of its newest request to a model.

        `back`: the messages that the host had left out. `is_sent`: False after a command.
        """
        self.result, self.overhead_tokens, self.model = result, overhead_tokens, model
        self.tool_tokens = overhead_tokens or self.tool_tokens
        self.kept, self.is_sent = kept_of(back, engine, result.messages), is_sent

    @property
    def options(self) -> dict[str, Any]:
        """Return the options of a compression that are the conversation's."""
        pins = {"pinned": self.pinned} if self.pinned else {}
        return {"session_id": self.session_id, **pins}

    def status(self, engine: ContextCompressor, bill: Bill = NOTHING) -> Status:
        """Return the status of the last request, empty before the first."""
        config, result = engine.config, self.result
        window = model_limits(config.model, config.context_window).window
        store, session = place_of(engine.store), self.session_id
        if result is None:
            return Status(
                *(session, session, "full", config.model, window, 0), store=store, bill=bill
            )
        count = engine.tokens.message
        system = sum(count(message) for message in result.messages if is_system(message))
        summaries = sum(segment.tokens for segment in result.segments)
        return Status(
            session_id=session,
            epoch=result.session_id,
            context_status=result.context_status,
            model=config.model,
            window=window,
            tokens_before=result.tokens_before + self.overhead_tokens,
            system_tokens=system,
            summary_tokens=summaries,
            kept_tokens=max(0, result.tokens_after - system - summaries),
            tool_tokens=self.overhead_tokens,
            summaries=len(result.segments),
            store=store,
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
        """Return the place of `sent` in `left`, and `left`'s kept length."""
        places = {digest: at for at, digest in enumerate(sent)}
        for end in range(len(self.left), 0, -1):
            at = places.get(self.left[end - 1])
            if at is not None:
                # A question asked again takes back what followed its first asking.
                is_retry = end < len(self.left) and at == len(sent) - 1
                return end - 1 - at, end - is_retry
        return 0, 0

    def goes_on(self, sent: Sequence[str]) -> bool:
        """Return whether `sent` carries the newest end of `left` unbroken."""
        if not self.left or self.left[-1] not in sent:
            return False
        at = len(sent) - 1 - sent[::-1].index(self.left[-1])
        common = min(at + 1, len(self.left))
        return sent[at + 1 - common : at + 1] == self.left[len(self.left) - common :]

    def carry(self, sent: Sequence[str], begun: int) -> None:
        """Remember a request's messages; `begun`: length of `left` at the turn's start."""
        for each in sent:
            self.carried.setdefault(each, begun)
        while len(self.carried) > CARRIED:
            del self.carried[next(iter(self.carried))]
        self.taken_back.difference_update(sent)

    def rewind(self, length: int, sent: Sequence[str]) -> None:
        """Take back messages behind the first `length` that `sent` lacks."""
        gone = {digest for digest, mark in self.carried.items() if mark >= length}
        gone = (gone | set(self.left[length:])) - set(sent)
        self.taken_back |= gone
        self.own -= gone
        self.left = self.left[:length]
        for each in gone:
            self.carried.pop(each, None)


# ------------------------------------------------------------ its status


@dataclass(frozen=True)
class Status:
    """A conversation's last or next request, in tokens of its model."""

    session_id: str
    epoch: str
    """The newest; the session's id itself before the first compression."""
    context_status: str
    model: str | None
    window: int
    tokens_before: int
    """Of the whole conversation, tool schemas included."""
    system_tokens: int = 0
    summary_tokens: int = 0
    kept_tokens: int = 0
    tool_tokens: int = 0
    summaries: int = 0
    store: str = "memory"
    """Where the ledger is."""
    earlier: KeptSteps = field(default_factory=KeptSteps)
    """Steps of earlier turns among the kept tokens, which the host had dropped."""
    is_sent: bool = True
    """False: a command changed the next request, which the numbers describe."""
    bill: Bill = NOTHING
    """What the conversation has cost."""

    @property
    def tokens(self) -> int:
        """Return the tokens that were sent."""
        return self.system_tokens + self.summary_tokens + self.kept_tokens + self.tool_tokens

    @property
    def used(self) -> float:
        """Return the share of the window."""
        return self.tokens / self.window

    def __str__(self) -> str:
        return f"{self.parts} ({self.context_status}){self.of_earlier}"

    @property
    def parts(self) -> str:
        """Return the parts' tokens, their sum and share, in words."""
        return (
            f"{short(self.tokens)} (system {short(self.system_tokens)}, "
            f"summary {short(self.summary_tokens)}, kept {short(self.kept_tokens)}, "
            f"tools {short(self.tool_tokens)}) · {round(100 * self.used)} % of {short(self.window)}"
        )

    @property
    def of_earlier(self) -> str:
        """Return words for the kept steps of earlier turns, "" without any."""
        return f"; {self.earlier}" if self.earlier.steps else ""


# ------------------------------------------------------------ the running turn


@dataclass(eq=False)
class Turn:
    """One turn of an agent: all its requests are of one conversation."""

    owner: Any
    """The agent's compressor; None for an agent that did not ask."""
    history: list[Any] | None = None
    """The host's list of messages when the turn began."""
    before: tuple[str, ...] = ()
    """Digests of that list then."""
    conversation: Conversation | None = None
    """Known from the first request on that carries it."""
    offset: int = 0
    """Messages of the conversation that the host dropped before the first one it sends."""
    begun: int = 0
    """Length of the conversation's history when the turn began."""
    bound: int = 0
    """Messages to which the host bounds that list; 0: unknown."""


_running: ContextVar[Turn | None] = ContextVar("praison_compressor_turn", default=None)


def running() -> Turn | None:
    """Return the turn that is running in this context, or None."""
    return _running.get()


@contextmanager
def during(turn: Turn | None) -> Iterator[None]:
    """Run a block in a turn; None hides a caller's turn."""
    token = _running.set(turn)
    try:
        yield
    finally:
        _running.reset(token)


def each_step_during(turn: Turn, stream: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
    """Yield from a stream; set the turn only during each step.

    A generator runs in the context of the caller that asks for its next item. Set once at the
    stream's start, the turn would leak into the caller, and two interleaved streams would swap
    their turns.
    """
    try:
        while True:
            with during(turn):
                try:
                    item = next(stream)
                except StopIteration as stop:
                    return stop.value
            yield item
    finally:
        with during(turn):
            stream.close()


def current() -> Any:
    """Return the sender of the agent whose turn runs here, or None."""
    turn = running()
    return None if turn is None else turn.owner


def said(seen: Iterable[Seen]) -> tuple[str, ...]:
    """Return the digests of messages, without those of system messages."""
    return tuple(each.digest for each in seen if not is_system(each.plain))
