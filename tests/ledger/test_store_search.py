"""What is archived is found by its words."""

from __future__ import annotations

import pytest

from praison_compressor import ConfigError, SessionNotFound
from praison_compressor.ledger.sql.store import SqlStore
from praison_compressor.ledger.words import rank, snippet, words
from praison_compressor.messages import content_digest
from tests.helpers.talks import NAMESPACE, committed, segment, talk

pytest_plugins = ["tests.helpers.stores"]


@pytest.mark.parametrize(
    ("query", "ordinal"),
    [
        ("number3", 3),
        ("NUMBER3 hello", 3),
        ("src/topic_5.py", 5),
        ("read_file topic 1", 1),
        ("漢字 result6", 6),
        ("ÜNÏCODE result2", 2),
        ("hello number3 nonsense", 3),  # no message has all; the rarer word counts for more
    ],
)
def test_a_message_is_found_by_its_words(sql_store: SqlStore, query: str, ordinal: int) -> None:
    """Words, paths, tool arguments, other scripts; case is ignored; the place is told."""
    session = committed(sql_store, "s", talk(8))
    best = sql_store.search(NAMESPACE, query, "s")[0]
    assert (best.ordinal, best.entry) == (ordinal, session.entries[0].hash)
    assert best.message == talk(8)[ordinal]
    assert best.digest == content_digest(best.message)


def test_a_search_stays_in_its_session(sql_store: SqlStore) -> None:
    """Equal words in another session or namespace are not found; a fork finds its parent's."""
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


@pytest.mark.parametrize("name", ["s", "fork", None])
def test_every_message_of_a_transcript_is_found(sql_store: SqlStore, name: str | None) -> None:
    """Also those that no summary stands for, by the digest that forgets them; of these recall,
    whose agent has them before it, lists none."""
    whole = talk(8)
    session = sql_store.open(NAMESPACE, "s")
    outline = (whole[0], 0, whole[6], whole[7])
    sql_store.commit(session, [(segment(whole[1:6]), whole[1:6])], outline)
    committed(sql_store, "t", whole[1:6])
    sql_store.open(NAMESPACE, "fork", "s")
    for number, word in {0: "number0", 3: "number3", 6: "result6", 7: "number7"}.items():
        (hit,) = sql_store.search(NAMESPACE, f"topic {word}", name)
        assert (hit.message, hit.digest) == (whole[number], content_digest(whole[number]))
        archived = sql_store.search(NAMESPACE, word, name, archived_only=True)
        assert [found.message for found in archived] == [whole[3]] * (number == 3)
    sql_store.forget(NAMESPACE, content_digest(whole[7]))
    assert sql_store.search(NAMESPACE, "number7", name) == []


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_below_one_is_refused(sql_store: SqlStore, limit: int) -> None:
    """Rather than answered with hits that were not asked for."""
    committed(sql_store, "s", talk(8))
    with pytest.raises(ConfigError, match=f"limit={limit}"):
        sql_store.search(NAMESPACE, "hello", limit=limit)


@pytest.mark.parametrize(
    "query", ["", "  ", "!!! ---", '"', "'", "NOT", "zz OR q", "x*", "\\", ":"]
)
def test_no_query_is_a_syntax_error(sql_store: SqlStore, query: str) -> None:
    """What a database would read as an operator is only words."""
    committed(sql_store, "s", talk(4))
    assert sql_store.search(NAMESPACE, query, "s") == []


def test_a_whole_document_is_a_query(sql_store: SqlStore) -> None:
    """However many words a model pastes, the first of them are looked for."""
    committed(sql_store, "s", talk(8))
    pasted = " ".join(f"{'word' * 10}{number}" for number in range(40_000))
    assert sql_store.search(NAMESPACE, f"number3 {pasted}", "s")[0].ordinal == 3


def test_a_phrase_ranks_before_its_words() -> None:
    """Of texts with the same words, the one that has them together comes first."""
    texts = ["a connection time out happened", "time in, time to go out"]
    assert [index for _, index in rank("time out", texts)] == [0, 1]


def test_a_snippet_shows_the_place() -> None:
    """A long text is cut round the match, and says where it was cut."""
    text = "start " * 200 + "the NEEDLE is here" + " end" * 200
    cut = snippet("needle", text, width=60)
    assert "NEEDLE is" in cut
    assert cut.startswith("…")
    assert cut.endswith("…")
    assert len(cut) <= 62


def test_words_are_folded_and_distinct() -> None:
    """No case, no underscores, no punctuation; a script without spaces goes by characters."""
    assert words("Foo_bar foo, ＢＡＲ! 漢字x") == ["foo", "bar", "漢", "字", "x"]
