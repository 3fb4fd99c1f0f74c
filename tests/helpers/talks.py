"""Conversations for store tests, segments that replace them, and recall of these."""

from collections.abc import Callable, Sequence
from typing import Any

from praison_compressor import MemoryStore, Segment, Store, Usage
from praison_compressor.ledger.segments import GENESIS, Entry, Session, chain_faults
from praison_compressor.messages import Message, digest
from praison_compressor.recall.answers import recall_tools

NAMESPACE = "tests"


def talk(count: int, about: str = "topic") -> list[Message]:
    """Return messages with distinct words, calls and results among them."""
    return [_message(number, about) for number in range(count)]


def _message(number: int, about: str) -> Message:
    if number % 4 == 1:
        arguments = f'{{"path": "src/{about}_{number}.py"}}'
        function = {"name": "read_file", "arguments": arguments}
        call = {"id": f"call_{number}", "type": "function", "function": function}
        return {"role": "assistant", "content": None, "tool_calls": [call]}
    if number % 4 == 2:
        text = f"{about} result{number}: 漢字 and ünïcode, exit code {number}"
        return {"role": "tool", "tool_call_id": f"call_{number - 1}", "content": text}
    role = "assistant" if number % 4 == 3 else "user"
    return {"role": role, "content": f"{about} number{number} says hello {number * 7919}"}


def segment(messages: Sequence[Message], text: str = "a summary", **changes: Any) -> Segment:
    """Return a segment that replaces the messages."""
    values: dict[str, Any] = {
        "kind": "summary",
        "run": tuple(digest(message) for message in messages),
        "rendered": {"role": "user", "content": text},
        "tokens": 5,
        "source_tokens": 50,
        "method": "model",
        "model": "a-model",
        "usage": Usage(100, 10, 3, 4, 0.25),
        "created": 1_700_000_000.25,
    }
    return Segment(**{**values, **changes})


def committed(store: Store, session_id: str, *runs: Sequence[Message]) -> Session:
    """Commit each run; return the session."""
    session = store.open(NAMESPACE, session_id)
    for number, run in enumerate(runs):
        session = store.commit(session, [(segment(run, f"summary {number}"), run)])
    return session


def archived(store: Store, session_id: str, namespace: str = NAMESPACE) -> list[Message]:
    """Return each archived original of a session once, in order of compression."""
    session = store.open(namespace, session_id)
    found: list[Message] = []
    for entry in session.entries:
        found += [m for m in store.originals(session, entry) or () if m not in found]
    return found


def verify(entries: Sequence[Entry], parent: str = GENESIS) -> None:
    """Assert that every hash of the chain agrees."""
    for entry in entries:
        assert list(chain_faults(entry, parent)) == []
        parent = entry.hash


# ---------------------------------------------------------------- recall


def count(text: str) -> int:
    """Return the tokens of a text, four characters each."""
    return (len(text) + 3) // 4


def tools(
    store: Store, session_id: str = "s", turn_tokens: int | None = None
) -> tuple[Callable[..., str], ...]:
    """Return the agent's two recall functions."""
    return recall_tools(
        lambda: store,
        lambda: store.open(NAMESPACE, session_id),
        count,
        turn_tokens=turn_tokens,
    )


def holding(*runs: Sequence[Any]) -> tuple[Callable[..., str], ...]:
    """Return the recall functions of a session with these compressed runs."""
    store = MemoryStore()
    committed(store, "s", *runs)
    return tools(store)
