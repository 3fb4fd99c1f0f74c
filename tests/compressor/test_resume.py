"""The store alone returns a session: whole where it fits, else its view."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given, reject, settings

from praison_compressor import (
    BudgetTooSmall,
    CompressorConfig,
    ContextCompressor,
    MemoryStore,
    SessionNotFound,
    Store,
    open_store,
)
from praison_compressor.messages import content_digest, to_plain
from tests.helpers.compressing import Model
from tests.helpers.talks import NAMESPACE
from tests.helpers.transcripts import broken_transcripts, coding_turns, said, transcripts, user

CONFIG = CompressorConfig(
    model="gpt-4o", context_window=5_000, protect_last_n_tokens=800, namespace=NAMESPACE
)


def over(store: Store, summarizer: Any = None, **changes: Any) -> ContextCompressor:
    """Return a compressor as a new process would make it."""
    return ContextCompressor(replace(CONFIG, **changes), summarizer=summarizer, store=store)


def grown(ours: ContextCompressor, turns: int, **options: Any) -> Any:
    """Return the result of the last turn of a conversation whose last turn compressed."""
    options.setdefault("session_id", "s")
    results = [ours.compress_sync(coding_turns(n), **options) for n in range(2, turns, 2)]
    return [*results, ours.compress_sync(coding_turns(turns), force=True, **options)][-1]


@pytest.fixture
def unasked() -> Iterator[Model]:
    """Yield a summarizer; a test in which something asks it fails."""
    model = Model()
    yield model
    assert model.requests == []


# ---------------------------------------------------------------- the whole session


@settings(max_examples=50)
@given(transcripts() | broken_transcripts())
def test_any_transcript_comes_back_as_it_came(messages):
    """Any transcript is restored message for message, without repairs."""
    ours = over(MemoryStore(), context_window=2_000, output_reserve=0, token_floor=0)
    try:
        done = ours.compress_sync(messages, session_id="s", force=True)
    except BudgetTooSmall:
        reject()
    assume(done.session_id != "s")
    assert ours.verbatim(session_id="s") == [to_plain(message) for message in messages]


def test_an_unknown_session_is_an_error(store):
    """An unknown session is an error."""
    for ask in (over(store).resume, lambda name: over(store).verbatim(session_id=name)):
        with pytest.raises(SessionNotFound, match="nowhere"):
            ask("nowhere")


# ---------------------------------------------------------------- going on from it


def test_a_transcript_that_fits_is_resumed_in_full(store, unasked):
    """A transcript that fits is resumed without summaries."""
    grown(over(store), 16)
    whole = over(store, unasked).resume("s", 100_000)
    assert whole.context_status == "full"
    assert whole.messages == coding_turns(16)
    assert over(store, unasked, context_window=200_000).resume("s").messages == whole.messages
    ours = over(store, unasked)
    assert ours.resume("s", whole.tokens_after).context_status == "full"
    assert ours.resume("s", whole.tokens_after - 1).context_status == "summarized"


def test_a_transcript_that_does_not_fit_is_resumed_as_its_view(store, unasked):
    """A transcript that does not fit is resumed as its recorded view."""
    before = grown(over(store), 16)
    ours = over(store, unasked)
    resumed = ours.resume("s")
    assert json.dumps(resumed.messages) == json.dumps(before.messages)
    assert resumed.context_status == "summarized"
    assert over(store).verbatim(resumed.messages, session_id="s") == coding_turns(16)
    assert store.open(NAMESPACE, "s").tip == before.session_id


def test_a_resumed_view_keeps_to_its_tokens(store, unasked):
    """A resumed view never exceeds the tokens that are asked for."""
    room = grown(over(store), 16).tokens_after - 200
    ours = over(store, unasked)
    assert ours.resume("s", room).tokens_after <= room
    with pytest.raises(BudgetTooSmall, match=r"the budget is 10; raise target_tokens$"):
        ours.resume("s", 10)


def test_a_resumed_view_goes_on_as_the_session_would(store):
    """A session continues from its resumed view as from its transcript."""
    epoch = grown(over(store), 16).session_id
    for name in ("s", epoch):
        assert over(store).verbatim(session_id=name) == coding_turns(16)
    new = [said("Done."), user("Go on.")]
    resumed = over(store).resume("s").messages
    one = over(store).compress_sync([*resumed, *new], session_id="s")
    two = over(store).compress_sync([*coding_turns(16), *new], session_id="s")
    assert json.dumps(one.messages) == json.dumps(two.messages)
    assert one.summary_method == "reused"
    over(store).compress_sync([*resumed, *new], session_id="s", force=True)
    assert over(store).verbatim(session_id="s") == [*coding_turns(16), *new]


def test_a_fork_of_an_older_epoch_has_its_transcript(store, unasked):
    """A fork of an older epoch has that epoch's transcript."""
    ours = over(store)
    grown(ours, 12)
    then = store.open(NAMESPACE, "s")
    grown(ours, 24)
    assert len(store.open(NAMESPACE, "s").entries) > len(then.entries)
    fork = store.open(NAMESPACE, "f", then.tip)
    assert fork.entries == then.entries
    assert over(store).verbatim(session_id="f") == coding_turns(12)
    assert over(store).verbatim(session_id="s") == coding_turns(24)
    resumed = over(store, unasked).resume("f", 2_500)
    assert resumed.context_status == "summarized"


# ---------------------------------------------------------------- when it is recorded


def test_a_quiet_turn_writes_nothing_and_a_close_does(sql_store, statements):
    """A quiet turn is first recorded by `close` or `save`."""
    ours = over(sql_store)
    grown(ours, 8)
    more = [*coding_turns(8), said("Done."), user("And now?")]
    statements.clear()
    assert ours.compress_sync(more, session_id="s").summary_method == "reused"
    assert [s for s in statements if not s.startswith(("SELECT", "BEGIN"))] == []
    assert over(sql_store).verbatim(session_id="s") == coding_turns(8)
    ours.close()
    assert over(sql_store).verbatim(session_id="s") == more
    more.append(said("In order."))
    assert over(sql_store).save(more, session_id="s")
    assert over(sql_store).verbatim(session_id="s") == more
    assert sql_store.verify() == []


# ---------------------------------------------------------------- forgotten, carried, checked


@pytest.mark.parametrize("what", ["the session", "a message of the tail"])
def test_close_does_not_record_forgotten_messages_again(sql_store, store_url, what):
    """`close` does not record forgotten messages again."""
    ours = over(sql_store)
    grown(ours, 8)
    messages = coding_turns(8)
    sent = [*messages, said("Done.")]
    ours.compress_sync(sent, session_id="s")
    elsewhere = open_store(store_url)
    target = "s" if what == "the session" else content_digest(messages[-1])
    elsewhere.forget(NAMESPACE, target)
    left = over(elsewhere).verbatim(session_id="s")
    ours.close()
    assert over(elsewhere).verbatim(session_id="s") == left
    assert messages[-1] not in left
    elsewhere.close()


def test_a_fork_logs_what_its_parent_forgot(sql_store, caplog):
    """A fork logs which of its messages were forgotten with its parent."""
    grown(over(sql_store), 8)
    longer = coding_turns(16)
    sql_store.open(NAMESPACE, "f", "s")
    assert over(sql_store).save(longer, session_id="f")
    assert over(sql_store).verbatim(session_id="f") == longer
    assert "were forgotten" not in caplog.text
    sql_store.forget(NAMESPACE, "s")
    left = over(sql_store).resume("f", 100_000).messages
    assert longer[-1] in left
    assert len(left) < len(longer)
    assert "session f: " in caplog.text
    assert "of its segments were forgotten" in caplog.text


def test_a_message_of_the_tail_can_be_forgotten(sql_store):
    """A message of the tail is forgotten by its digest, in forks too."""
    grown(over(sql_store), 8)
    sql_store.open(NAMESPACE, "f", "s")
    whole = coding_turns(8)
    erased = sql_store.forget(NAMESPACE, content_digest(whole[-1]))
    assert (erased.messages, erased.segments, erased.sessions) == (1, 0, ("f", "s"))
    for name in ("f", "s"):
        assert over(sql_store).verbatim(session_id=name) == whole[:-1]
    with pytest.raises(SessionNotFound):
        sql_store.forget(NAMESPACE, content_digest(whole[-1]))
    assert sql_store.verify() == []
