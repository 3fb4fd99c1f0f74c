"""Count what is left of round 1 after nine rounds of compression of one growing session.

    python -m tests.benchmarks.rounds [--corpus FILE]

Static, with a terse model, and with that model down in rounds 2 and 4. A user constraint counts
when its sentence stands verbatim in the last view; a file when its path and the last thing done to
it stand on one line, or in a call kept verbatim; a pinned text when the view has it word for word.
With `--corpus` recorded sessions of agents grow message by message instead. The last view is
searched for the user's sentences, the pinned text, and each file that a call changed: it counts
when the view names it, or when a range of files that the view leaves out reads it.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from praison_compressor import CompressorConfig, CompressResult, ContextCompressor
from praison_compressor.messages import Message, text_of, tool_calls_of
from praison_compressor.messages.calls import paths_changed
from tests.benchmarks.common import options, read_sessions, show
from tests.benchmarks.oracle import down
from tests.helpers.transcripts import find_repairs, step

CONSTRAINTS = (
    "Never change anything under src/legacy/billing.",
    "Always run make lint-strict before a commit.",
    "The service must listen on port 7443, nothing else.",
    "Keep Python 3.10 compatibility in all modules.",
    "Do not add dependencies without asking me first.",
)
PIN = "Deploy window: Tuesdays 06:00 to 06:40 UTC;\n  `make ship` <never> on Fridays."
ACTIONS = ("created", "edited", "deleted", "moved")
FILES_PER_ACTION = 5
ROUNDS = 9


def planted_files() -> dict[str, str]:
    """Map each path to its last change, all in round 1."""
    return {
        f"src/{action}/module_{number:02d}.py": action
        for action in ACTIONS
        for number in range(FILES_PER_ACTION)
    }


def _touch(path: str, action: str) -> list[Message]:
    id = f"call_{path}"
    if action == "created":
        return step(id, f"wrote {path}", "write_file", path=path, content="return 1\n" * 12)
    if action == "edited":
        return step(id, f"edited {path}", "edit_file", path=path, old="return 1", new="return 2")
    if action == "deleted":
        return step(id, f"rm '{path}'", "bash", command=f"git rm {path}")
    moved = path.replace("src/moved", "lib/moved")
    return step(id, "", "bash", command=f"git mv {path} {moved}")


def session(rounds: int) -> list[Message]:
    """Return the session up to a round; each round ends with a user message."""
    messages: list[Message] = [{"role": "system", "content": "You are a coding agent."}]
    messages.append({"role": "user", "content": "Port the billing service to the new framework."})
    for text in CONSTRAINTS:
        messages.append({"role": "user", "content": text})
        messages.append({"role": "assistant", "content": "Understood."})
    for path, action in planted_files().items():
        messages += _touch(path, action)
    for turn in range(rounds * 12):
        messages.append({"role": "user", "content": f"Next, look at step {turn} of the port."})
        for part in range(3):
            path = f"docs/notes/step_{turn}_{part}.md"
            body = f"Notes of step {turn} part {part}. " + "It works as described here. " * 60
            messages += step(f"call_{turn}_{part}", body, path=path)
        messages.append({"role": "assistant", "content": f"Step {turn} needs no change."})
    return messages[:-1]


def score(view: list[Message]) -> tuple[int, int]:
    """Count the constraints and files of round 1 in the view."""
    text = "\n".join(text_of(message) for message in view)
    flat = " ".join(text.split())
    constraints = sum(words in flat for words in CONSTRAINTS)
    lines = text.split("\n")
    files = sum(
        any(_names(line, path) and action in line.lower() for line in lines)
        for path, action in planted_files().items()
    )
    return constraints, files


def _names(line: str, path: str) -> bool:
    return path in line or "/".join(path.split("/")[-2:]) in line


async def oracle(messages: list[Message]) -> str:
    """Write prose that lists nothing."""
    return "## Done\nThe port goes on as planned; the steps so far need no change."


def play(model_in: Callable[[int], Any]) -> tuple[list[CompressResult], ContextCompressor]:
    """Play nine rounds; `model_in(round)` is the round's summarizer, None for static."""
    answering: list[Any] = [None]

    async def model(messages: list[Message]) -> str:
        return str(await answering[0](messages))

    config = CompressorConfig(
        model="gpt-4o",
        context_window=24_000,
        protect_last_n_tokens=4_000,
        summary_max_retries=0,
        tool_policies={"*": "summarize"},
        pinned=(PIN,),
    )
    static = model_in(1) is None
    ours = ContextCompressor(config, summarizer=None if static else model)
    results = []
    for number in range(1, ROUNDS + 1):
        answering[0] = model_in(number)
        results.append(ours.compress_sync(session(number)))
    return results, ours


SETTINGS: dict[str, Callable[[int], Any]] = {
    "static": lambda number: None,
    "a terse model": lambda number: oracle,
    "model down in rounds 2 and 4": lambda number: down if number in (2, 4) else oracle,
}


def rows() -> Iterator[tuple[object, ...]]:
    """Yield every round of every setting."""
    for name, model_in in SETTINGS.items():
        for number, result in enumerate(play(model_in)[0], 1):
            constraints, files = score(result.messages)
            kept = f"{constraints}/{len(CONSTRAINTS)}", f"{files}/{len(planted_files())}"
            sizes = result.tokens_before, result.tokens_after
            valid = find_repairs(result.messages) == []
            yield name, number, *sizes, result.summary_method, *kept, is_pinned(result), valid


def is_pinned(result: CompressResult) -> bool:
    """Return whether a view has the pinned text word for word."""
    return any(PIN in text_of(message) for message in result.messages)


# -------------------------------------------------------------- recorded sessions

FEWEST_CALLS = 20
"""A session of fewer tool calls is no agent's."""
TYPED_CHARS = 1_500
"""A longer message of the user is pasted: its beginning and end are quoted."""
_HOSTS = re.compile(
    r"<(local-command-caveat|bash-\w+|command-name|command-message)>.*?</\1>|</?command-args>", re.S
)
"""What a host writes into the user's messages."""


def sentences(messages: list[Message]) -> Iterator[str]:
    """Yield the typed sentences, without the shortest and the lines of a stack trace."""
    for message in messages:
        text = _HOSTS.sub("\n", text_of(message))
        if message["role"] == "user" and len(text) <= TYPED_CHARS:
            for line in text.splitlines():
                parts = re.split(r"(?<=[.!?])\s+", line.strip())
                yield from (
                    " ".join(one.split()) for one in parts if len(one) > 8 and one[:3] != "at "
                )


async def terse(messages: list[Message], **_: Any) -> str:
    """Write one sentence with some words of the messages."""
    words = re.findall(r"[A-Za-z_./-]{9,}", " ".join(text_of(m) for m in messages[1:]))
    return f"The work went on with {', '.join(list(dict.fromkeys(words))[-12:])}."


_MORE_FILES = re.compile(r"more files? not shown[^:]*: ([^)]*)")


def edited_files(messages: list[Message]) -> set[str]:
    """Return the paths that the calls of a session change."""
    return {p for m in messages for call in tool_calls_of(m) for p in paths_changed(call)}


def reached_files(paths: set[str], view: list[Message], ours: ContextCompressor) -> int:
    """Count the paths that a view names, or that its range of files left out reads."""
    shown = json.dumps(view, ensure_ascii=False)
    ranges = (re.sub(r" to s\d+\.", "-", places) for places in _MORE_FILES.findall(shown))
    left_out = "".join(ours.read(each, session_id="one", tokens=1_000_000) for each in ranges)
    return sum(_names(shown, path) or path in left_out for path in paths)


def grown(messages: list[Message], model: Any) -> tuple[int, CompressResult, ContextCompressor]:
    """Return the summaries that a growing session took, and its last result."""
    config = CompressorConfig(model="gpt-4o", context_window=48_000, recall=True, pinned=(PIN,))
    ours, taken = ContextCompressor(config, summarizer=model), 0
    for number in range(1, len(messages) + 1):
        result = ours.compress_sync(messages[:number], session_id="one")
        taken += result.newly_summarized > 0
    return taken, result, ours


def of_users(corpus: Path) -> Iterator[tuple[object, ...]]:
    """Yield each agent's session, and what its last view has of what it should have."""
    agents = [
        each
        for each in read_sessions(corpus)
        if sum(len(tool_calls_of(m)) for m in each["messages"]) >= FEWEST_CALLS
    ]
    for name, model in (("static", None), ("a terse model", terse)):
        total = Counter[str]()
        for each in agents:
            taken, result, ours = grown(each["messages"], model)
            view = " ".join(" ".join(map(text_of, result.messages)).split())
            typed, paths = list(sentences(each["messages"])), edited_files(each["messages"])
            counts = Counter(
                typed=len(typed),
                quoted=sum(words in view for words in typed),
                edited=len(paths),
                reached=reached_files(paths, result.messages, ours),
                compressed=taken > 0,
                pinned=taken > 0 and is_pinned(result),
            )
            total.update(counts)
            yield each["id"][:24], name, taken, result.tokens_after, *shares(counts)
        yield "all", name, "", "", *shares(total)


def shares(counts: Counter[str]) -> Iterator[str]:
    """Yield the share of sentences, of edited files, and of views with the pinned text."""
    for part, whole in (("quoted", "typed"), ("reached", "edited"), ("pinned", "compressed")):
        yield f"{counts[part]:d}/{counts[whole]:d}"


def main() -> None:
    if corpus := options(__doc__, corpus=Path).corpus:
        columns = ["session", "summaries", "compressed", "view", "sentences", "files", "pinned"]
        show("what the user typed, edited files and pinned texts", columns, of_users(corpus))
        return
    columns = ["summaries", "round", "tokens", "view", "by", "constraints", "files", "pinned"]
    show("what was planted in round 1", (*columns, "valid"), rows())


if __name__ == "__main__":
    main()
