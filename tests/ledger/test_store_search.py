"""Archived messages are found by their words."""

import random

import pytest

from praison_compressor import ConfigError, MemoryStore, SessionNotFound
from praison_compressor.ledger.sql.index import SearchSizes
from praison_compressor.ledger.sql.store import SqlStore
from praison_compressor.messages import content_digest
from tests.helpers.talks import NAMESPACE, committed, segment, talk, tools

FOUND = {
    "number3": 3,
    "NUMBER3 hello": 3,
    "src/topic_5.py": 5,
    "read_file topic 1": 1,
    "漢字 result6": 6,
    "ÜNÏCODE result2": 2,
    "hello number3 nonsense": 3,  # no message has all; the rarer word counts for more
    # However many words a model pastes, the first of them are looked for.
    "number3 " + " ".join(f"{'word' * 10}{number}" for number in range(40_000)): 3,
}
NOTHING = ("", "  ", "!!! ---", '"', "'", "NOT", "zz OR q", "x*", "\\", ":")


def test_a_message_is_found_by_its_words(sql_store):
    """Words, paths, arguments, other scripts and a database's operators are found as words."""
    session = committed(sql_store, "s", talk(8))
    for query, ordinal in FOUND.items():
        best = sql_store.search(NAMESPACE, query, "s")[0]
        assert (best.ordinal, best.entry) == (ordinal, session.entries[0].hash), query[:40]
        assert best.message == talk(8)[ordinal]
        assert best.digest == content_digest(best.message)
    assert [query for query in NOTHING if sql_store.search(NAMESPACE, query, "s")] == []


@pytest.mark.parametrize("limit", [0, -1])
@pytest.mark.parametrize("query", ["hello", ""])
def test_a_search_without_a_result_is_refused(store, query, limit):
    """A limit below one is an error."""
    with pytest.raises(ConfigError, match=f"limit={limit}"):
        store.search(NAMESPACE, query, limit=limit)


@pytest.mark.parametrize("query", ["hello", ""])
def test_a_search_in_an_unknown_session_is_refused(store, query):
    """A search in a session that the store does not have is an error."""
    with pytest.raises(SessionNotFound):
        store.search(NAMESPACE, query, "nobody")


def test_a_search_stays_in_its_session(sql_store):
    """A search reaches just its session and that session's parent."""
    committed(sql_store, "s", talk(4, "secret"))
    sql_store.open(NAMESPACE, "f", "s")
    committed(sql_store, "s", talk(4, "later"))
    committed(sql_store, "t", talk(4, "other"))
    assert sql_store.search(NAMESPACE, "secret", "t") == []
    assert len(sql_store.search(NAMESPACE, "secret", "f")) > 0
    assert sql_store.search(NAMESPACE, "later", "f") == []
    assert {hit.session_id for hit in sql_store.search(NAMESPACE, "hello")} == {"s", "t"}
    assert sql_store.search("another tenant", "secret") == []
    with pytest.raises(SessionNotFound):
        sql_store.search(NAMESPACE, "secret", "nobody")


def test_every_message_of_a_transcript_is_found(sql_store):
    """Messages that no summary covers are found too, except with `archived_only`."""
    whole = talk(8)
    session = sql_store.open(NAMESPACE, "s")
    skeleton = (whole[0], 0, whole[6], whole[7])
    sql_store.commit(session, [(segment(whole[1:6]), whole[1:6])], skeleton)
    committed(sql_store, "t", whole[1:6])
    sql_store.open(NAMESPACE, "fork", "s")
    names = ("s", "fork", None)
    for name in names:
        for number, word in {0: "number0", 3: "number3", 6: "result6", 7: "number7"}.items():
            (hit,) = sql_store.search(NAMESPACE, f"topic {word}", name)
            assert (hit.message, hit.digest) == (whole[number], content_digest(whole[number]))
            archived = sql_store.search(NAMESPACE, word, name, archived_only=True)
            assert [found.message for found in archived] == [whole[3]] * (number == 3)
    sql_store.forget(NAMESPACE, content_digest(whole[7]))
    assert [name for name in names if sql_store.search(NAMESPACE, "number7", name)] == []


@pytest.mark.parametrize("seed", range(6))
def test_every_store_finds_the_same(store_url, seed):
    """However many messages have a word, both databases find what the memory store finds."""
    chance, memory = random.Random(seed), MemoryStore()
    sql_store = SqlStore(store_url, search_sizes=SMALL)
    for number in range(6):
        runs = [_messages(chance, number, count) for count in (45, 1, 15)]
        name, parent = f"s{number}", f"s{number - 2}" if number > 3 else None
        for store in (sql_store, memory):
            session = store.open(NAMESPACE, name, parent)
            for run in runs:
                session = store.commit(session, [(segment(run), run)])
    for query in ("alpha", "alpha beta", "alpha beta gamma rare1", "rare2 call3", "call1 done1"):
        for reach in ("s1", "s4", None):
            found, expected = (
                {hit.digest for hit in store.search(NAMESPACE, query, reach, 400) if hit.is_whole}
                for store in (sql_store, memory)
            )
            assert found == expected, (query, reach)


def test_a_frequent_word_is_compared_in_the_texts(sql_store, statements):
    """A search reads only the messages that have the query's rarest word."""
    has_both = [n for n in range(0, 5_000, 10) if n % 20 == 0 or n < 500]
    said = [
        f"{n} {'rare' if n % 10 == 0 else ''} {'frequent' if n % 10 or n in has_both else ''}"
        for n in range(5_000)
    ]
    committed(sql_store, "s", [{"role": "user", "content": text} for text in said])
    statements.clear()
    found = sql_store.search(NAMESPACE, "frequent rare", "s", 400)
    assert sorted(hit.ordinal for hit in found) == has_both
    assert all(hit.is_complete for hit in found)
    # Two widening parts of the rare word's list, one of the frequent word's.
    assert sum("compressor_search" in sent for sent in statements) == 3
    assert sum("compressor_messages.body" in sent for sent in statements) == 500 // 200 + 1


def test_long_words_differ_in_every_character(sql_store):
    """A word is compared whole although the index has its first characters only."""
    hashes = [f"{'0123456789abcdef' * 3}{n:03}" for n in range(450)]
    committed(sql_store, "s", [{"role": "user", "content": f"commit {name}"} for name in hashes])
    for n in (0, 449):
        found = sql_store.search(NAMESPACE, hashes[n], "s")
        assert [(hit.ordinal, hit.is_whole) for hit in found if hit.is_whole] == [(n, True)]


def test_a_score_does_not_depend_on_the_order_of_names():
    """A set's order, which differs between processes, changes no score."""
    names = [f"name{number}x" for number in range(30)]
    store = MemoryStore()
    said = [" and ".join(names[: n + 1]) for n in range(30)]
    committed(store, "s", [{"role": "user", "content": text} for text in said])
    chance, scores = random.Random(1), set[tuple[float, ...]]()
    for _ in range(20):
        query = " ".join([*chance.sample(names, len(names)), "nothing"])
        scores.add(tuple(hit.score for hit in store.search(NAMESPACE, query, "s", 30)))
    assert len(scores) == 1


def test_a_count_that_is_not_exact_says_so(store_url):
    """An answer states "or more" where not every message was looked at."""
    sql_store = SqlStore(store_url, search_sizes=SMALL)
    said = ["alpha", "beta", "alpha beta", "gamma"] * 9
    committed(sql_store, "s", [{"role": "user", "content": f"{n} {w}"} for n, w in enumerate(said)])
    search, _ = tools(sql_store)
    assert "9 or more archived messages match" in search("alpha beta")
    assert "No archived message was found with all of it" in search("alpha gamma")
    assert "18 archived messages match" in search("alpha")


SMALL = SearchSizes(
    sqlite_band_keys=32,
    postgresql_band_keys=32,
    gap_keys=4,
    first_span_keys=16,
    widening_factor=2,
    most_listed=4,
    most_without_index=4,
)
"""Limits at which a few hundred messages take the ways of a million."""


def _messages(chance: random.Random, number: int, count: int) -> list[dict[str, object]]:
    """Return messages with common and rare words, some of them calls with results."""
    found: list[dict[str, object]] = []
    for place in range(count):
        said = f"{number} {place} " + " ".join(chance.sample(WORDS, 4))
        if place % 5 == 3:
            call = {"name": f"call{place % 7}", "arguments": "{}"}
            called = [{"id": f"c{place}", "type": "function", "function": call}]
            found.append({"role": "assistant", "content": said, "tool_calls": called})
        elif place % 5 == 4:
            said = f"{number} {place} done{place % 4}"
            found.append({"role": "tool", "tool_call_id": f"c{place - 1}", "content": said})
        else:
            found.append({"role": "user", "content": said})
    return found


WORDS = [*["alpha", "beta", "gamma", "alphas"] * 4, *(f"rare{n}" for n in range(9))]
