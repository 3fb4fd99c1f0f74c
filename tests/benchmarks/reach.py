"""Count what the recall tools add to each request: tokens, at most 300.

    python -m tests.benchmarks.reach

Schemas and frame are counted as the provider counts them. `tests.benchmarks.search` has the time of
a search, `tests.benchmarks.exam` the tokens of a question.
"""

from collections.abc import Iterator

from praison_compressor import TokenCounter
from praison_compressor.recall.answers import APIS, schemas_for
from praison_compressor.view.frame import IN_REACH, frame_summary
from tests.benchmarks.common import options, show

MOST_TOKENS = 300


def tokens_of_a_request() -> Iterator[tuple[object, ...]]:
    """Yield the schemas' tokens for each API, and with the frame of a summary."""
    tokens = TokenCounter("gpt-4o")
    framed = tokens.text(
        frame_summary("", count=99, method="model", reference="s99", in_reach=IN_REACH)
    )
    for api in APIS:
        size = tokens.tools(schemas_for(api))
        total = size + framed
        yield f"schemas ({api}) and frame, tokens", f"{size} + {framed} = {total}", MOST_TOKENS


def main() -> None:
    options(__doc__)
    show("the archive in reach", ("measure", "figure", "at most"), tokens_of_a_request())


if __name__ == "__main__":
    main()
