"""Read back every line of every view that has a reference, and compare the words beside it.

    python -m tests.benchmarks.references [--file CORPUS/visible.jsonl] [--rounds 4] [--share .25]

Each session grows in rounds and is compressed in each, without a model. Every reference of a
summary's quote, of an outline and of a masked output, in any view, is read back as a reader
would, and all words beside it must stand in the answer. The same is asked of another message of the
segment, as a control: a check that anything passes is none.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from praison_compressor import BudgetTooSmall, CompressorConfig, ContextCompressor, MemoryStore
from praison_compressor.messages import Message, result_text
from praison_compressor.quotes.rendering import HEADING, OUTLINE
from praison_compressor.view.frame import is_framed, unframe
from tests.benchmarks.common import options, read_sessions, show
from tests.helpers.transcripts import coding_turns

Row = tuple[str, int, int, int, str]
ENTRY = re.compile(r"^- ((?:\[s\d+\.\d+\] )+)(.*(?:\n  .*)*)", re.M)
CALL = re.compile(r"(.*?)((?: s\d+\.\d+)+)(?:, |$)")
MASK = re.compile(r"^\[masked\] (.*); (s\d+\.\d+)$", re.M | re.S)
LABEL = re.compile(
    r"\(newest of [\d,]+\)|\((?:no output|[\d,]+ lines?, [\d,]+ characters)\)|"
    r"no result was recorded|exit code -?\d+|in the user's role|in the result of |answering |"
    r"is_error: |^\d+\. |with a command|"
    r"typed as a command|sent while the agent worked|result of the newest call: |"
    # A label of a quote that was cut; the size of a mask.
    r"[\d,]+ characters\)$|: \d[\d,]* lines?, [\d,]+ characters"
)
GAP = re.compile(r"\w*\s*(?:\[… [\d,]+ (?:of [\d,]+ characters|lines) …\]|…)\s*\w*")
GENEROUS = 100_000
"""Tokens of an answer in which every message of the corpus is whole."""
AWAY = 7
"""Messages between a line's message and its control."""


def compressed(
    messages: Sequence[Message], rounds: int, share: float
) -> tuple[ContextCompressor, list[list[Message]]]:
    """Return the compressor of a session that grew in rounds, and its view in each."""
    ours = ContextCompressor(CompressorConfig(model="gpt-4o", recall=True), store=MemoryStore())
    views: list[list[Message]] = []
    for number in range(1, rounds + 1):
        part = list(messages[: len(messages) * number // rounds])
        size = ours.tokens.messages(part)
        try:
            result = ours.compress_sync(
                part, session_id="s", target_tokens=max(1, int(share * size)), force=True
            )
        except BudgetTooSmall:
            continue
        views.append(result.messages)
    return ours, views


def cited(view: Sequence[Message]) -> list[tuple[str, str]]:
    """Return each reference in a view, with the words that it stands beside."""
    pairs = []
    for message in view:
        if is_framed(message):
            text, _, outline = unframe(message).partition(f"\n{HEADING}{OUTLINE}\n")
            pairs += [*ENTRY.findall(text), *calls_named(outline)]
        pairs += [(where, said) for said, where in MASK.findall(result_text(message))]
    return pairs


def calls_named(outline: str) -> Iterator[tuple[str, str]]:
    """Yield each reference of an outline, with its tool and the arguments of the call."""
    for tool, rest in re.findall(r"^- (.*?): (.*)$", outline, re.M):
        for name, references in CALL.findall(f" {rest}"):
            yield from ((f"[{place}]", f"{tool} {name}") for place in references.split())


def leads_back(ours: ContextCompressor, references: str, beside: str) -> bool:
    """Return whether a reader of the reference gets all words beside it."""
    read = (ours.read(each, session_id="s", tokens=GENEROUS) for each in references.split())
    return words(quoted(beside)) <= words("\n".join(read))


def away(ours: ContextCompressor, references: str) -> str:
    """Return references to other messages of the same segments."""
    entries = ours.store.open("default", "s").entries
    others = []
    for segment, place in re.findall(r"s(\d+)\.(\d+)(?:-\d+)?", references):
        length = len(entries[int(segment) - 1].segment.run)
        others.append(f"[s{segment}.{(int(place) + AWAY - 1) % length + 1}]")
    return " ".join(others)


def quoted(beside: str) -> str:
    """Return the words beside a reference, without labels, sizes and gaps."""
    return GAP.sub(" ", LABEL.sub(" ", beside))


def words(text: str) -> set[str]:
    """Return the words of a text, without the escapes of JSON."""
    return set(re.findall(r"\w+", re.sub(r"\\+[nrt]", " ", text).casefold()))


def row(name: str, messages: Sequence[Message], rounds: int, share: float) -> Row:
    """Return the counts of one session's references."""
    ours, views = compressed(messages, rounds, share)
    pairs = list(dict.fromkeys(pair for view in views for pair in cited(view)))
    wrong = [pair for pair in pairs if not leads_back(ours, *pair)]
    other = sum(leads_back(ours, away(ours, named), beside) for named, beside in pairs)
    first = f"{wrong[0][0]} {wrong[0][1][:60]}" if wrong else ""
    return name[:40], len(pairs), len(pairs) - len(wrong), other, first


def main() -> None:
    args = options(__doc__, file=Path, rounds=4, share=0.25)
    sessions = {"generated": coding_turns(60)}
    if args.file is not None:
        sessions = {each["id"]: each["messages"] for each in read_sessions(args.file)}
    rows = [row(name, each, args.rounds, args.share) for name, each in sessions.items()]
    total = (f"sessions: {len(rows)}", *map(sum, [*zip(*rows, strict=True)][1:4]), "")
    columns = ("session", "references", "lead back", "another would", "the first that does not")
    show("references in the views", columns, [*rows, (), total])


if __name__ == "__main__":
    main()
