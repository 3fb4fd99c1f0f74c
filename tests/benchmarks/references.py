"""Whether each reference in a view leads to the message whose words stand beside it.

    python -m tests.benchmarks.references [--file CORPUS/visible.jsonl] [--rounds 4] [--share .25]

Each session grows in rounds, is compressed in each, without a model. Of the last view every
`[s2.14]` is looked up in the archive, and the words beside it are looked for in that message and,
where it is a result, the call that it answers: most of them must stand there. The same is asked of
another message of the segment, as a control: a check that anything passes is none.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from praison_compressor import BudgetTooSmall, CompressorConfig, ContextCompressor, MemoryStore
from praison_compressor.ledger.references import parse
from praison_compressor.messages import is_result
from praison_compressor.messages.display import in_words
from praison_compressor.view.frame import is_framed, unframe
from tests.helpers.transcripts import session

Message = dict[str, Any]
CITED = re.compile(r"\[(s\d+\.\d+)\]")


def compressed(
    messages: Sequence[Message], rounds: int, share: float
) -> tuple[ContextCompressor, list[Message]]:
    """The compressor of a session that grew in rounds, and its last view."""
    ours = ContextCompressor(CompressorConfig(model="gpt-4o", recall=True), store=MemoryStore())
    view: list[Message] = []
    for number in range(1, rounds + 1):
        part = list(messages[: len(messages) * number // rounds])
        size = ours.tokens.messages(part)
        try:
            view = ours.compress_sync(
                part, session_id="s", target_tokens=int(share * size), force=True
            ).messages
        except BudgetTooSmall:
            continue
    return ours, view


def cited(view: Sequence[Message]) -> Iterator[tuple[str, str]]:
    """Each reference in the summaries of a view, with the words that it stands beside."""
    for message in filter(is_framed, view):
        for line in unframe(message).split("\n"):
            if line.startswith(("- ", "[")) and "(edited" not in line:
                yield from _beside(line)


def _beside(line: str) -> Iterator[tuple[str, str]]:
    places = list(CITED.finditer(line))
    is_list = re.match(r"- [\w ]+(?:\(|:)", line) and line.rstrip().endswith("]")
    for number, place in enumerate(places):
        before = places[number - 1].end() if number else 0
        after = places[number + 1].start() if number + 1 < len(places) else len(line)
        text = line[before : place.start()] if is_list else line[place.end() : after]
        yield place[1], text


MOST = 0.7
"""Share of the words that must stand in the message."""


def leads_back(ours: ContextCompressor, reference: str, words: str, away: int = 0) -> bool:
    """Whether most of the words stand in the message that the reference names, or one `away`."""
    named = parse(reference)
    assert named is not None
    assert named.message is not None
    opened = ours.store.open("default", "s")
    originals = ours.store.originals(opened, opened.entries[named.segment - 1]) or []
    place = (named.message - 1 + away) % len(originals)
    shown = [originals[place]]
    while is_result(originals[place]) and place:
        place -= 1
        shown = [originals[place], *shown] if not is_result(originals[place]) else shown
    held = _words(" ".join(map(in_words, shown)))
    # What followed, and what replaced it, is told beside it and stands elsewhere.
    asked = _words(re.split(r" ×| \(then: | \(superseded later", words)[0])
    return len(asked & held) >= MOST * len(asked)


def _words(text: str) -> set[str]:
    plain = re.sub(r"\\\\[nrt]|\\[nrt]", " ", text)
    return set(re.findall(r"\w+", plain.casefold())) - {"ok", "failed", "exit"}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--file", type=Path)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--share", type=float, default=0.25)
    given = parser.parse_args()
    sessions = {"generated": session(60)}
    if given.file is not None:
        with given.file.open(encoding="utf-8") as lines:
            sessions = {each["id"]: each["messages"] for each in map(json.loads, lines)}
    table = Table("session", "references", "lead back", "another would")
    total = right = other = 0
    for name, messages in sessions.items():
        ours, view = compressed(messages, given.rounds, given.share)
        found = list(cited(view))
        wrong = [pair for pair in found if not leads_back(ours, *pair)]
        total, right = total + len(found), right + len(found) - len(wrong)
        other += sum(leads_back(ours, *pair, away=7) for pair in found)
        if wrong:
            table.add_row(name[:40], str(len(found)), str(len(found) - len(wrong)), "")
            Console().print("\n".join(f"{name[:20]} {r}: {w[:150]}" for r, w in wrong[:3]))
    table.add_row("all", f"{total:,}", f"{right:,}", f"{other:,}")
    Console().print(table)


if __name__ == "__main__":
    main()
