"""Parse a list of messages as it came into a transcript of steps and turns that may be sent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import InvalidMessages
from .cleaning import cleaned
from .forks import lazy
from .pairing import paired
from .shapes import Message, is_result, is_spoken, is_system, makes_calls, result_blocks


@dataclass(frozen=True)
class Transcript:
    """A list of messages read once: valid to send, with what it takes to find it again."""

    messages: tuple[Message, ...]
    """What may be sent: the caller's own dictionaries, except where one had to be repaired."""
    origins: tuple[int | None, ...]
    """For each message its index in the caller's list; None for a stub that repair put in."""
    steps: tuple[range, ...]

    @lazy
    def leading(self) -> int:
        """How many system and developer messages stand in front."""
        count = 0
        while count < len(self.messages) and is_system(self.messages[count]):
            count += 1
        return count

    @lazy
    def users(self) -> tuple[int, ...]:
        """The indices of the user's messages; those that carry nothing but results are none."""
        return tuple(
            index
            for index, message in enumerate(self.messages)
            if message.get("role") == "user" and is_spoken(message)
        )

    @property
    def repaired(self) -> int:
        """How many stubs repair put in."""
        return sum(origin is None for origin in self.origins)


def read(messages: Any) -> Transcript:
    """Read and, where a provider would refuse it, repair a list of chat messages.

    Repaired in the result only, never in the caller's list: objects become dictionaries, private
    keys go, empty content is named, arguments become JSON text, results move behind their calls,
    a missing result gets a stub that says so, a result without a call becomes plain text.

    Raises:
        InvalidMessages: not a list, a message that is no mapping, or an unknown role.
    """
    placed = list(paired([cleaned(i, message) for i, message in enumerate(as_list(messages))]))
    sent = tuple(message for _, message in placed)
    return Transcript(
        messages=sent,
        origins=tuple(origin for origin, _ in placed),
        steps=tuple(steps(sent)),
    )


def check(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """The places of what a provider would refuse, so that `read` repairs it; empty when nothing."""
    got = read(messages)
    placed = enumerate(zip(got.origins, got.messages, strict=True))
    return [f"messages[{at}]" for at, (old, new) in placed if old != at or new != messages[at]]


def as_list(messages: Any) -> Sequence[Any]:
    """The messages as a sequence; an iterator is read here, once.

    Raises:
        InvalidMessages: something else than a list of messages.
    """
    if isinstance(messages, (str, bytes, Mapping)) or not isinstance(messages, Iterable):
        raise InvalidMessages(None, f"a {type(messages).__name__}", "a list of chat messages")
    return messages if isinstance(messages, Sequence) else list(messages)


def steps(messages: Sequence[Mapping[str, Any]]) -> list[range]:
    """The atoms of a valid list, as ranges of indices that together cover it in order."""
    found: list[range] = []
    start = 0
    while start < len(messages):
        end = start + 1
        if makes_calls(messages[start]):
            while end < len(messages) and _is_answer(messages[end]):
                end += 1
        found.append(range(start, end))
        start = end
    return found


def _is_answer(message: Mapping[str, Any]) -> bool:
    return is_result(message) or bool(result_blocks(message))
