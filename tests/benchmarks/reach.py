"""What the archive in an agent's reach costs: tokens of a request, CPU time of a search.

    python -m tests.benchmarks.reach [--messages 2000]

Schemas and frame are counted as the provider counts them. A search is the tool's whole answer, from
SQLite, in one session of that many messages, the best of five. `tests.benchmarks.store` has the
same of a store of a million messages, `tests.benchmarks.exam` the tokens of a question.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from praison_compressor import TokenCounter
from praison_compressor.ledger.sql import open_store
from praison_compressor.recall import recall_tools
from praison_compressor.recall.tools import APIS, schemas_for
from praison_compressor.view.frame import frame_summary
from tests.benchmarks.common import options, show
from tests.benchmarks.store import conversation
from tests.helpers.talks import NAMESPACE, segment

MOST_TOKENS, MOST_MS = 300, 50
RUN = 200
"""Messages of one compression."""
QUERIES = {
    "a rare word": "message 4321:",
    "two common words": "error test",
    "six words, none has all": "session error test function module nowhere",
    "a word that no message has": "xylophone",
}


def tokens_of_a_request() -> Iterator[tuple[object, ...]]:
    """Yield the schemas' tokens for each API, and with the frame of a summary."""
    tokens = TokenCounter("gpt-4o")
    framed = tokens.text(frame_summary("", count=99, method="model", reference="s99", recall=True))
    for api in APIS:
        size = tokens.tools(schemas_for(api))
        total = size + framed
        yield f"schemas ({api}) and frame, tokens", f"{size} + {framed} = {total}", MOST_TOKENS


def searches(messages: int) -> Iterator[tuple[object, ...]]:
    """Yield the milliseconds of each query in a session of that many messages."""
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(Path(folder) / "ledger.db")
        session = store.open(NAMESPACE, "s")
        for start in range(0, messages, RUN):
            run = conversation(1, start, RUN)
            session = store.commit(session, [(segment(run), run)])
        count = TokenCounter("gpt-4o").text
        search, _ = recall_tools(lambda: store, lambda: session, count, turn_tokens=None)
        for name, query in QUERIES.items():
            times = []
            for _ in range(5):
                started = time.process_time()
                search(query)
                times.append((time.process_time() - started) * 1_000)
            yield (
                f"search in {messages:,} messages, {name}, ms of CPU",
                f"{min(times):.0f}",
                MOST_MS,
            )
        store.close()


def main() -> None:
    given = options(__doc__, messages=2_000)
    rows = [*tokens_of_a_request(), *searches(given.messages)]
    show("the archive in reach", ("measure", "figure", "at most"), rows)


if __name__ == "__main__":
    main()
