"""Facts of a field of one's own: what a shipping desk's summaries must never lose.

    python examples/own_facts.py

Needs no model. The compressor knows the usual tools and identifiers; a domain's own are named in
the configuration: what its tools do to which document, and how the names look that nobody guesses.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

from praison_compressor import CompressorConfig, CompressResult, ContextCompressor

CONFIG = CompressorConfig(
    model="gpt-4o",
    context_window=4_000,
    protect_last_n_tokens=600,
    fact_tools={
        "open_sheet": "read:sheet",  # the argument `sheet` names what is read
        "book_*": "edited:sheet",  # book_container, book_truck, ...
        "run_customs_check": "command:container",
    },
    fact_patterns={
        "container": r"\b[A-Z]{4} \d{6}-\d\b",
        "order": r"\bORD \d{4}\b",
    },
    # No words of the user: the desk's host puts them before each request.
    host_prefixes=("[tariff table]",),
)


def tool(number: int, name: str, arguments: dict[str, str], result: str) -> list[dict[str, Any]]:
    """A call and its result."""
    call = {"id": f"call_{number}", "type": "function"}
    function = {"name": name, "arguments": json.dumps(arguments)}
    return [
        {"role": "assistant", "content": None, "tool_calls": [{**call, "function": function}]},
        {"role": "tool", "tool_call_id": f"call_{number}", "content": result},
    ]


def conversation() -> list[dict[str, Any]]:
    """Forty bookings; one container is held back."""
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "You run the shipping desk."},
        {"role": "user", "content": "Book what comes in. Nothing leaves without customs."},
    ]
    for number in range(40):
        container, order = f"MSKU {400000 + 37 * number}-{number % 10}", f"ORD {7000 + number}"
        checked = "error: seal broken, held" if number == 11 else "cleared"
        sheet = {"sheet": f"week-{number // 10}"}
        padding = "berth, crane and crew as usual; " * 12
        messages += tool(3 * number, "open_sheet", sheet, f"{order}: {container}. {padding}")
        messages += tool(3 * number + 1, "run_customs_check", {"container": container}, checked)
        messages += tool(3 * number + 2, "book_container", sheet, f"{order} is done. {padding}")
        messages.append({"role": "user", "content": "[tariff table] unchanged. Next one, please."})
    return messages


def held(config: CompressorConfig) -> tuple[CompressResult, int]:
    """The view, and how many of the forty containers it still names."""
    result = ContextCompressor(config).compress_sync(conversation())
    text = str(result.messages)
    return result, len(set(re.findall(CONFIG.fact_patterns["container"], text)))


def main() -> tuple[CompressResult, int, int]:
    taught, with_facts = held(CONFIG)
    _, without = held(replace(CONFIG, fact_tools={}, fact_patterns={}, host_prefixes=()))
    print(f"{taught.tokens_before:,} -> {taught.tokens_after:,} tokens\n")
    print(f"containers still named: {with_facts} of 40; {without} with the usual facts alone\n")
    for segment in taught.segments:
        print(segment.rendered["content"])
    return taught, with_facts, without


if __name__ == "__main__":
    main()
