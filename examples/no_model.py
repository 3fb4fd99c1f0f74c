"""The library alone: no agent, no model, no network.

    python examples/no_model.py

Any loop that keeps a list of chat messages can use it: append to the full list, send the view.
The list itself is never changed.
"""

from __future__ import annotations

from typing import Any

from praison_compressor import CompressorConfig, CompressResult, ContextCompressor

Message = dict[str, Any]

compressor = ContextCompressor(
    CompressorConfig(model="gpt-4o", context_window=6_000, protect_last_n_tokens=1_000)
)


def conversation() -> list[Message]:
    """A task and many tool calls, one of which fails."""
    messages: list[Message] = [
        {"role": "system", "content": "You look after a warehouse."},
        {"role": "user", "content": "Count the shelves A to Z. Never touch shelf Q: it is leased."},
    ]
    for number in range(26):
        shelf = chr(ord("A") + number)
        messages += _count(shelf, number)
    return messages


def _count(shelf: str, number: int) -> list[Message]:
    call = {
        "id": f"call_{number}",
        "type": "function",
        "function": {"name": "count_shelf", "arguments": f'{{"shelf": "{shelf}"}}'},
    }
    rows = "\n".join(
        f"shelf {shelf}, row {row}: {(number * 7 + row) % 40} boxes" for row in range(30)
    )
    result = "PermissionError: shelf Q is leased" if shelf == "Q" else rows
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call["id"], "content": result},
    ]


def main() -> CompressResult:
    messages = conversation()
    result = compressor.compress_sync(messages, session_id="warehouse")
    print(f"{len(messages)} messages, {result.tokens_before:,} tokens")
    print(
        f"{len(result.messages)} to send, {result.tokens_after:,} tokens: {result.context_status}"
    )
    for segment in result.segments:
        print(f"\n{segment.rendered['content']}")
    return result


if __name__ == "__main__":
    main()
