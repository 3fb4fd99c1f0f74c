"""Transcripts in Anthropic's shape."""

import json
from typing import Any

import httpx
from hypothesis import strategies as st

from praison_compressor.messages import Message
from praison_compressor.testing import LocalProvider, Refusal, Rules
from tests.helpers.provider import Anthropic
from tests.helpers.transcripts import transcripts, user


def use(id: str, name: str = "read_file", **arguments: Any) -> Message:
    """Return a call as a block."""
    return {"type": "tool_use", "id": id, "name": name, "input": arguments}


def result(id: str, content: Any = "done", **more: Any) -> Message:
    """Return a result as a block."""
    return {"type": "tool_result", "tool_use_id": id, "content": content, **more}


def text(words: str) -> Message:
    return {"type": "text", "text": words}


def asks(*blocks: Message) -> Message:
    """Return an assistant message."""
    return {"role": "assistant", "content": list(blocks)}


def brings(*blocks: Message) -> Message:
    """Return a user message."""
    return {"role": "user", "content": list(blocks)}


class Block:
    """A client's object with `model_dump`."""

    def __init__(self, **fields: Any) -> None:
        self._fields = fields

    def model_dump(self, *, exclude_none: bool = False) -> Message:
        return {k: v for k, v in self._fields.items() if not (exclude_none and v is None)}


def to_native(messages: list[Message]) -> list[Message]:
    """Return the conversation in Anthropic's shape, without system messages."""
    native: list[Message] = []
    waiting: list[Message] = []
    for message in messages:
        if message["role"] == "tool":
            waiting.append(result(message["tool_call_id"], _blocks(message.get("content"))))
            continue
        if waiting:
            native.append(brings(*waiting))
            waiting = []
        if message["role"] == "assistant":
            native.append(asks(*_blocks(message.get("content")), *_uses(message)))
        elif message["role"] == "user":
            native.append({"role": "user", "content": _blocks(message.get("content"))})
    return [*native, brings(*waiting)] if waiting else native


def _uses(message: Message) -> list[Message]:
    return [
        use(c["id"], c["function"]["name"], **json.loads(c["function"]["arguments"]))
        for c in message.get("tool_calls") or ()
    ]


def _blocks(content: Any) -> list[Message]:
    if content is None:
        return []
    parts = [text(content)] if isinstance(content, str) else content
    # As litellm does: the API refuses empty texts.
    return [_block(part) for part in parts if part["type"] != "text" or part["text"].strip()]


def _block(part: Message) -> Message:
    source = {"type": "base64", "media_type": "image/png", "data": "AAAA"}
    return part if part["type"] == "text" else {"type": "image", "source": source}


def post(provider: LocalProvider, messages: list[Message], **more: Any) -> httpx.Response:
    """Send a conversation to Anthropic's API."""
    body = {"model": "claude-sonnet-4-5", "max_tokens": 2_000, "messages": messages, **more}
    return httpx.post(f"{provider.base_url}/messages", json=body, timeout=30)


def refusal_of(view: Any) -> str | None:
    """Return the refusal of Anthropic's API, or None."""
    body = {"model": "claude", "max_tokens": 1_000, "messages": list(view)}
    try:
        Anthropic().check_request(body, Rules())
    except Refusal as refusal:
        return refusal.message
    return None


natives = transcripts().map(to_native)


@st.composite
def broken_natives(draw: st.DrawFn) -> list[Message]:
    """Generate faulty conversations: messages and blocks lost, doubled, mixed."""
    messages = draw(transcripts(max_turns=4).map(to_native))
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(1, max(1, len(messages) - 1)))
        messages[at : at + 1] = [
            each
            for message in messages[at : at + 1]
            for each in _spoilt(message, draw(st.sampled_from(FAULTS)))
        ]
    return messages


FAULTS = ("drop", "double", "split", "say", "shuffle", "twin", "id", "name", "input", "tool_use_id")


def _spoilt(message: Message, fault: str) -> list[Message]:
    """Return the messages that a faulty host makes of one."""
    said = message["content"]
    blocks = [text(said)] if isinstance(said, str) else said
    hurry = {"role": "user", "content": "Hurry up."}
    lost = [{k: v for k, v in block.items() if k != fault} for block in blocks]
    made: dict[str, list[Message]] = {
        "drop": [],
        "double": [message, dict(message)],
        "split": [{**message, "content": [block]} for block in blocks],
        "say": [hurry, message],
        "shuffle": [{**message, "content": [text("And this?"), *reversed(blocks)]}],
        "twin": [{**message, "content": [*blocks, *blocks]}],
    }
    return made.get(fault, [{**message, "content": lost}])


def session(turns: int, steps: int = 3, parallel: int = 1, words: int = 60) -> list[Message]:
    """Return a coding session; the user names a port beside each turn's last result."""
    messages: list[Message] = []
    for t in range(turns):
        messages.append(user(f"Now look after module {t}. " + "Thanks. " * 6))
        for k in range(steps):
            ids = [f"toolu_{t}_{k}_{p}" for p in range(parallel)]
            calls = [use(id, path=f"src/mod_{t}/part_{k}_{n}.py") for n, id in enumerate(ids)]
            body = f"module {t} part {k}: " + "lorem ipsum dolor " * words + f"END-{t}-{k}"
            messages.append(asks(text("I look."), *calls))
            said = [text(f"The port of module {t} must stay {9000 + t}.")] if k == steps - 1 else []
            messages.append(brings(*(result(id, [text(body)]) for id in ids), *said))
        messages.append(asks(text(f"Module {t} is in order. " * 8)))
    return messages[:-1]
