"""Whether each reference in a view leads to the message whose words stand beside it.

    python -m tests.benchmarks.references [--file CORPUS/visible.jsonl] [--rounds 4] [--share .25]

Each session grows in rounds, is compressed in each, without a model. Of the last view every
`[s2.14]` is looked up in the archive, and the words beside it are looked for in that message and,
where it is a result, the call that it answers: most of them must stand there. The same is asked of
another message of the segment, as a control: a check that anything passes is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from praison_compressor import BudgetTooSmall, CompressorConfig, ContextCompressor, MemoryStore
from praison_compressor.ledger.references import parse
from praison_compressor.messages import is_result
from praison_compressor.messages.display import in_words
from praison_compressor.view.frame import is_framed, unframe
from tests.benchmarks.common import options, recorded, show
from tests.helpers.transcripts import session

Message = dict[str, Any]
Row = tuple[str, int, int, int, str]
CITED = re.compile(r"\[(s\d+\.\d+)\]")
COUNTED = re.compile(r"\[… [\d,]+ of [\d,]+ characters …\]|\([\d,]+ lines?, [\d,]+ characters\)")


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
    is_list = re.match(r"- [\w ]+(?:\(|:)", line) and re.search(r"\[s\d+\.\d+\]$", line.rstrip())
    for number, place in enumerate(places):
        before = places[number - 1].end() if number else 0
        after = places[number + 1].start() if number + 1 < len(places) else len(line)
        text = line[before : place.start()] if is_list else line[place.end() : after]
        if _words(text):  # of several references to one statement the first stands beside it
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
    # Of rules and requests that differ by a number most words are the same.
    return asked & held >= _numbered(asked) and len(asked & held) >= MOST * len(asked)


def _numbered(words: set[str]) -> set[str]:
    return {word for word in words if any(map(str.isdigit, word))}


def _words(text: str) -> set[str]:
    # Gaps and sizes are counted; of a word behind a gap only the end may be left.
    plain = COUNTED.sub(" ", text)
    plain = re.sub(r"\\\\[nrt]|\\[nrt]|… \w+", " ", plain)
    return set(re.findall(r"\w+", plain.casefold())) - {"ok", "failed", "exit", "unknown"}


def row(name: str, messages: Sequence[Message], rounds: int, share: float) -> Row:
    """What became of one session's references."""
    ours, view = compressed(messages, rounds, share)
    found = list(cited(view))
    wrong = [pair for pair in found if not leads_back(ours, *pair)]
    other = sum(leads_back(ours, *pair, away=7) for pair in found)
    first = f"{wrong[0][0]} {wrong[0][1][:60]}" if wrong else ""
    return name[:40], len(found), len(found) - len(wrong), other, first


def main() -> None:
    given = options(__doc__, file=Path, rounds=4, share=0.25)
    sessions = {"generated": session(60)}
    if given.file is not None:
        sessions = {each["id"]: each["messages"] for each in recorded(given.file)}
    rows = [row(name, each, given.rounds, given.share) for name, each in sessions.items()]
    total = ("all", *(sum(each[n] for each in rows) for n in (1, 2, 3)), "")  # type: ignore[misc]
    columns = ("session", "references", "lead back", "another would", "the first that does not")
    show("references in the last view", columns, [*rows, (), total])


if __name__ == "__main__":
    main()
