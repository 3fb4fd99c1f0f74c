"""The recall tools: search and read the originals of what was compressed.

    python examples/recall_tool.py

No model is needed: the program calls the two tools as a model would. In a loop of your own, offer
them to the model with your other tools. Each summary says how to read its originals.
"""

from __future__ import annotations

from typing import Any

from praison_compressor import CompressorConfig, ContextCompressor

SESSION = "harbour"


def conversation() -> list[dict[str, Any]]:
    """Return sixty days of a log, one of them with a ship."""
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "You keep the harbour's log."},
        {"role": "user", "content": "Note every ship that comes in."},
    ]
    for day in range(60):
        ship = "the Marigold, with a broken mast, 14 crates of tea" if day == 23 else "nothing"
        note = f"Day {day}: {ship}. " + "The sea was calm and the pier was swept. " * 8
        messages.append({"role": "user", "content": note})
        messages.append({"role": "assistant", "content": f"Noted for day {day}."})
    return messages


def main() -> str:
    compressor = ContextCompressor(
        CompressorConfig(
            model="gpt-4o", context_window=4_000, protect_last_n_tokens=800, recall=True
        )
    )
    result = compressor.compress_sync(conversation(), session_id=SESSION)
    print(f"{result.tokens_before:,} -> {result.tokens_after:,} tokens")
    search, read = result.recall_tools  # and `result.recall_schemas` for the request's `tools`
    answer = search("Marigold mast")
    print(f"\nsearch says:\n{answer}")
    reference = "s" + answer.partition("\n[s")[2].partition("]")[0]
    original = read(reference)
    print(f"\n{reference} reads:\n{original}")
    return original


if __name__ == "__main__":
    main()
