"""Read messages as a valid transcript of steps; divide them into exchanges.

An exchange is a question with its work (calls and results) and its answer. Exchanges match by
question and answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import pairwise, takewhile
from typing import Any

from ..concurrency import computed_once
from ..errors import InvalidMessages
from .digests import CachedMessage
from .repair import pair_results, repair_message
from .shapes import (
    Message,
    has_user_part,
    is_result,
    is_system,
    leading_count,
    makes_calls,
    result_blocks,
)


@dataclass(frozen=True)
class Transcript:
    """A valid list of messages, with its steps."""

    messages: tuple[Message, ...]
    """The caller's own dictionaries, and copies of repaired messages."""
    origins: tuple[int | None, ...]
    """Each message's index in the caller's list; a stub's index is None."""
    steps: tuple[range, ...]

    @computed_once
    def leading(self) -> int:
        """The number of leading system messages."""
        return leading_count(self.messages)

    @computed_once
    def users(self) -> tuple[int, ...]:
        """The indices of messages with the user's words."""
        numbered = enumerate(self.messages)
        return tuple(n for n, m in numbered if m.get("role") == "user" and has_user_part(m))

    def origins_of(self, indices: Iterable[int]) -> list[int]:
        """Return the sorted indices of the messages in the caller's list."""
        return sorted(o for index in indices if (o := self.origins[index]) is not None)

    @property
    def stub_count(self) -> int:
        """Number of stubs for missing results."""
        return sum(origin is None for origin in self.origins)


def read_transcript(messages: Any) -> Transcript:
    """Read chat messages; repair copies of those that a provider would refuse.

    A missing result becomes a stub, a result without a call becomes text; results move after their
    calls.

    Raises:
        InvalidMessages: not a list, a message that is no mapping, or an unknown role.
    """
    repaired = [repair_message(at, message) for at, message in enumerate(as_list(messages))]
    placed = list(pair_results(repaired))
    sent = tuple([message for _, message in placed])
    origins = tuple([origin for origin, _ in placed])
    return Transcript(messages=sent, origins=origins, steps=tuple(split_steps(sent)))


def as_list(messages: Any) -> Sequence[Any]:
    """Return the messages as a sequence."""
    if isinstance(messages, (str, bytes, Mapping)) or not isinstance(messages, Iterable):
        raise InvalidMessages(None, type(messages).__name__, "a list of chat messages")
    return messages if isinstance(messages, Sequence) else list(messages)


def split_steps(messages: Sequence[Mapping[str, Any]]) -> list[range]:
    """Return the steps of a valid list."""
    ranges: list[range] = []
    start = 0
    while start < len(messages):
        end = start + 1
        if makes_calls(messages[start]):
            while end < len(messages) and (
                is_result(messages[end]) or result_blocks(messages[end])
            ):
                end += 1
        ranges.append(range(start, end))
        start = end
    return ranges


# -------------------------------------------------------------- exchanges


@dataclass(frozen=True)
class Exchange:
    """A question, the work of its turn, and the answer."""

    question: CachedMessage | None
    """None if the list does not begin with a question."""
    work: tuple[CachedMessage, ...] = ()
    answer: tuple[CachedMessage, ...] = ()
    """The answer, and all messages up to the next question."""
    is_open: bool = False
    """Whether the answer is missing."""
    is_cut: bool = False
    """Whether the host cut the exchange from its list's front."""
    model: str | None = None
    """The model that made the calls; None: unknown."""

    @property
    def key(self) -> tuple[str, str]:
        """Digests of question and answer; "" for a missing question or answer."""
        answers = (item.digest for item in self.answer if not is_system(item.plain))
        return "" if self.question is None else self.question.digest, next(answers, "")

    @property
    def cached(self) -> tuple[CachedMessage, ...]:
        """All messages, in order."""
        return (*(() if self.question is None else (self.question,)), *self.work, *self.answer)

    def asks_like(self, other: Exchange | None) -> bool:
        """Return whether both questions are equal."""
        return other is not None and self.key[0] != "" and self.key[0] == other.key[0]


def cached_messages(exchanges: Iterable[Exchange]) -> list[CachedMessage]:
    """Return all messages of exchanges."""
    return [item for exchange in exchanges for item in exchange.cached]


def read_exchanges(cached: Sequence[CachedMessage]) -> list[Exchange]:
    """Return a list's exchanges."""
    starts = [at for at, item in enumerate(cached) if at and _is_question(item.plain)]
    bounds = [0, *starts, len(cached)]
    exchanges = [_read_exchange(cached[a:b]) for a, b in pairwise(bounds) if a < b]
    if exchanges and exchanges[-1].question is not None and not exchanges[-1].key[1]:
        exchanges[-1] = replace(exchanges[-1], is_open=True)
    return exchanges


def _read_exchange(cached: Sequence[CachedMessage]) -> Exchange:
    question = cached[0] if _is_question(cached[0].plain) else None
    after = tuple(cached[question is not None :])
    end = end_of_work(after)
    return Exchange(question, after[:end], after[end:])


def _is_question(message: Message) -> bool:
    return message.get("role") == "user" and has_user_part(message)


def end_of_work(cached: Sequence[CachedMessage]) -> int:
    """Return the index after the last call or result."""
    for end in range(len(cached), 0, -1):
        message = cached[end - 1].plain
        if makes_calls(message) or is_result(message) or result_blocks(message):
            return end
    return 0


def open_exchange(exchanges: Sequence[Exchange]) -> Exchange | None:
    """Return the last exchange if it is open."""
    return exchanges[-1] if exchanges and exchanges[-1].is_open else None


def closed_exchanges(exchanges: Sequence[Exchange]) -> Sequence[Exchange]:
    """Return the exchanges without an open one."""
    return exchanges[:-1] if open_exchange(exchanges) else exchanges


def ends_with(exchanges: Sequence[Exchange], cached: Sequence[CachedMessage]) -> bool:
    """Return whether the last exchange ends with these messages."""
    last = exchanges[-1].cached[-len(cached) :] if exchanges else ()
    return [item.digest for item in last] == [item.digest for item in cached]


# -------------------------------------------------------------- matching


def match_exchanges(listed: Sequence[Exchange], carried: Sequence[Exchange]) -> dict[int, Exchange]:
    """Return index in `listed` -> equal exchange of `carried`.

    An open exchange matches by its question alone.
    """
    closed = [exchange for exchange in carried if not exchange.is_open]
    pairs = _align_keys(
        [exchange.key for exchange in listed], [exchange.key for exchange in closed]
    )
    matched = {place: closed[at] for place, at in pairs}
    running = open_exchange(carried)
    after = range(max(matched, default=-1) + 1, len(listed))
    place = next((at for at in after if listed[at].asks_like(running)), None)
    return matched if place is None or running is None else {**matched, place: running}


def _align_keys(first: Sequence[Any], second: Sequence[Any]) -> Iterator[tuple[int, int]]:
    same = common_length(first, second)
    yield from zip(range(same), range(same), strict=True)
    matcher = SequenceMatcher(None, first[same:], second[same:], autojunk=False)
    for a, b, size in matcher.get_matching_blocks():
        yield from ((same + a + i, same + b + i) for i in range(size))


def common_length(first: Sequence[object], second: Sequence[object]) -> int:
    """Return the length of the equal beginning."""
    pairs = zip(first, second, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
