"""Flip one bit in every byte of a ledger, and count the flips that `verify` does not name.

python -m tests.benchmarks.tamper                every byte, SQLite and PostgreSQL
python -m tests.benchmarks.tamper --every 10     every tenth
"""

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

from sqlalchemy import Engine, create_engine, text

from praison_compressor.ledger.sql.database import parse_url
from praison_compressor.ledger.sql.store import SqlStore, open_store
from tests.benchmarks.common import databases, options, show
from tests.helpers.talks import NAMESPACE, committed, segment, talk

COLUMNS = {
    "summary": [("entries", "sealed"), ("entries", "kind")],
    "archive": [("messages", "body"), ("messages", "digest")],
    "transcript": [("sessions", "transcript")],
    "chain": [
        *(("entries", name) for name in ("epoch", "parent", "commitment", "hash")),
        *(("sessions", name) for name in ("id", "parent_id", "base_head", "head")),
    ],
}


def fill(store: SqlStore) -> None:
    """Commit two sessions, one a fork of the other."""
    session = committed(store, "s", talk(8, "alpha"), talk(8, "beta"))
    store.record_transcript(session, (*talk(2, "head"), 0, 1, *talk(4, "tail")))
    fork = store.open(NAMESPACE, "f", "s")
    run = talk(6, "gamma")
    store.commit(fork, [(segment(run), run)], (*talk(2, "head"), 0, 1, 2))


def tamper(url: str, every: int) -> tuple[Counter[str], list[str]]:
    """Flip bits; count them by part, and list those that `verify` did not name."""
    store, engine = open_store(url), create_engine(parse_url(url))
    fill(store)
    chance = random.Random(1)
    flips: Counter[str] = Counter()
    unnamed: list[str] = []
    for part, columns in COLUMNS.items():
        for table, column in columns:
            for key, value in _values(engine, table, column):
                for place in range(0, len(value), every):
                    _write(engine, table, column, key, flipped(value, place, chance))
                    flips[part] += 1
                    if not store.verify():
                        unnamed.append(f"{table}.{column} of {key}, byte {place}")
                _write(engine, table, column, key, value)
    assert store.verify() == [], "what was changed was not changed back"
    store.close()
    engine.dispose()
    return flips, unnamed


def _values(engine: Engine, table: str, column: str) -> list[Any]:
    query = f"SELECT key, {column} FROM compressor_{table} WHERE {column} IS NOT NULL"
    with engine.begin() as connection:
        return list(connection.execute(text(query)).all())


def _write(engine: Engine, table: str, column: str, key: int, value: Any) -> None:
    change = text(f"UPDATE compressor_{table} SET {column} = :value WHERE key = :key")
    with engine.begin() as connection:
        connection.execute(change, {"value": value, "key": key})


def flipped(value: Any, place: int, chance: random.Random) -> Any:
    """Return the value with one bit of one byte changed; text stays text."""
    if isinstance(value, str):
        return (
            value[:place] + chr(ord(value[place]) ^ 1 << chance.randrange(5)) + value[place + 1 :]
        )
    data = bytearray(value)
    data[place] ^= 1 << chance.randrange(8)
    return bytes(data)


def main() -> None:
    args = options(__doc__, every=1)

    def rows() -> Iterator[tuple[object, ...]]:
        for name, new_url in databases():
            flips, unnamed = tamper(new_url(), args.every)
            yield name, *(flips[part] for part in COLUMNS), "\n".join(unnamed[:5]) or 0

    show("bits flipped", ("database", *COLUMNS, "not named"), rows())


if __name__ == "__main__":
    main()
