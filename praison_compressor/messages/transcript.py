"""Read a list of messages as a valid transcript of steps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..concurrency import computed_once
from ..errors import InvalidMessages
from .repair import pair_results, repair_message
from .shapes import Message, has_user_part, is_result, leading_count, makes_calls, result_blocks


@dataclass(frozen=True)
class Transcript:
    """A valid list of messages, its steps and its origins."""

    messages: tuple[Message, ...]
    """The caller's own dictionaries, and copies of repaired ones."""
    origins: tuple[int | None, ...]
    """Each message's index in the caller's list; None for an inserted stub."""
    steps: tuple[range, ...]

    @computed_once
    def leading(self) -> int:
        """Return the number of system and developer messages at the front."""
        return leading_count(self.messages)

    @computed_once
    def users(self) -> tuple[int, ...]:
        """Return the indices of user messages with more than results."""
        numbered = enumerate(self.messages)
        return tuple(n for n, m in numbered if m.get("role") == "user" and has_user_part(m))

    def origins_of(self, indices: Iterable[int]) -> list[int]:
        """Return the caller's indices of messages, sorted; stubs have none."""
        return sorted(o for index in indices if (o := self.origins[index]) is not None)

    @property
    def stub_count(self) -> int:
        """Number of inserted stubs."""
        return sum(origin is None for origin in self.origins)


def read_transcript(messages: Any) -> Transcript:
    """Read chat messages; repair copies of those that a provider would refuse.

    Objects become dictionaries, private keys are dropped, empty content is marked, arguments become
    JSON text, results move behind their calls, a missing result becomes a stub, and a result
    without a call becomes text.

    Raises:
        InvalidMessages: not a list, a message that is no mapping, or an unknown role.
    """
    placed = list(
        pair_results([repair_message(i, message) for i, message in enumerate(as_list(messages))])
    )
    sent = tuple([message for _, message in placed])
    origins = tuple([origin for origin, _ in placed])
    return Transcript(messages=sent, origins=origins, steps=tuple(split_steps(sent)))


def as_list(messages: Any) -> Sequence[Any]:
    """Return the messages as a sequence; consume an iterator.

    Raises:
        InvalidMessages: it is no list of messages.
    """
    if isinstance(messages, (str, bytes, Mapping)) or not isinstance(messages, Iterable):
        raise InvalidMessages(None, f"a {type(messages).__name__}", "a list of chat messages")
    return messages if isinstance(messages, Sequence) else list(messages)


def split_steps(messages: Sequence[Mapping[str, Any]]) -> list[range]:
    """Return the steps of a valid list, as ranges in order."""
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
