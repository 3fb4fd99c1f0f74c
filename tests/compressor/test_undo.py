"""Undone compressions leave the views of every process, and stay in the ledger."""

import subprocess
import sys
from typing import Any

import pytest

from praison_compressor import CompressorConfig, ContextCompressor, Store, Usage, open_store
from tests.helpers.compressing import SMALL, Model
from tests.helpers.talks import archived, verify
from tests.helpers.transcripts import coding_turns, said, step, user

LIMIT = 4_500
"""Tokens that a view may have in a window of 6,000; it is compressed above 3,600."""
TURNS = coding_turns(5)
"""Between the two."""


def over(store: Store, **options: Any) -> tuple[ContextCompressor, Model]:
    """Return a compressor as a process that begins has it, and the model that it asks."""
    model = Model()
    given = {**vars(SMALL), "tool_policies": {"*": "summarize"}, **options}
    return ContextCompressor(CompressorConfig(**given), summarizer=model, store=store), model


def sent(ours: ContextCompressor, messages: Any = TURNS, name: str = "s", **more: Any) -> Any:
    return ours.compress_sync(messages, session_id=name, **more)


@pytest.mark.parametrize("background", [False, True])
def test_undo_sends_the_originals_again(store, background):
    """After `undo` every process sends the originals without a model's call."""
    ours, model = over(store)
    before = sent(ours)
    assert ours.undo("s") == before.segments != ()
    again, other = over(store, background=background)
    for one in (ours, again):
        for given in (TURNS, before.messages):
            assert sent(one, given).messages == TURNS
    more = [*TURNS, said("All is in order.")]
    assert sent(again, more).messages == more
    assert again.wait_for_summaries(10)
    assert again.resume("s", 10**6).messages == again.verbatim(session_id="s") == TURNS
    assert (len(model.requests), other.requests) == (1, [])


def test_undo_without_a_compression_changes_nothing(store):
    """`undo` changes nothing in a session without a compression."""
    ours, _ = over(store)
    assert sent(ours).segments
    assert ours.undo("s")
    assert (ours.undo("s"), ours.undo("never heard of")) == ((), ())


def test_a_forced_compression_uses_an_undone_summary(store):
    """A forced compression after `undo` reuses the undone summary."""
    ours, model = over(store)
    sent(ours)
    ours.undo("s")
    forced = sent(ours, force=True)
    assert (forced.summary_method, len(model.requests)) == ("reused", 1)
    assert sent(over(store)[0], forced.messages).messages == forced.messages
    verify(store.open("default", "s").entries)


def test_a_record_of_a_choice_says_which_choice(store):
    """Reading a record of kept or undone messages says what it records."""
    ours, _ = over(store)
    assert sent(ours, force=True, keep=(5,)).segments
    ours.undo("s")
    kinds = [entry.segment.kind for entry in store.open("default", "s").entries]
    kept = ours.read(f"s{kinds.index('keep') + 1}", session_id="s")
    number = kinds.index("undo") + 1
    undone = ours.read(f"s{number}", session_id="s")
    assert " records that you kept messages; read them by" in kept
    assert undone.startswith(f"Segment s{number} undoes others, and holds no messages.")


def test_an_undone_text_is_not_paid_for_again(store):
    """The same compression with the same instructions takes the undone text, in any process."""
    ours, model = over(store)
    before = sent(ours, force=True)
    for _ in range(2):
        ours.undo("s")
        ours, _ = over(store)
        again = sent(ours, force=True)
        assert (again.summary_method, again.usage, len(model.requests)) == ("reused", Usage(), 1)
        assert again.messages == before.messages
        assert again.newly_summarized == before.newly_summarized > 0
        assert ours.verbatim(again.messages, session_id="s") == TURNS
    ours.undo("s")
    other, asked = over(store, summary_instructions="Keep the ports.")
    assert (sent(other, force=True).summary_method, len(asked.requests)) == ("model", 1)
    verify(store.open("default", "s").entries)


def test_a_full_window_is_compressed_again_after_undo(store):
    """After `undo` a full window is compressed again."""
    ours, model = over(store)
    sent(ours)
    ours.undo("s")
    assert sent(ours).tokens_after > 3_600
    results = [sent(ours, coding_turns(turns)) for turns in (6, 7, 8, 9, 10)]
    assert max(result.tokens_after for result in results) <= LIMIT
    assert results[0].summary_method == "model"
    assert all(result.tokens_after <= 3_600 for result in results)
    assert len(model.requests) < 1 + len(results)


def test_an_excerpt_of_a_result_too_large_stays(store):
    """`undo` leaves excerpts of oversized results."""
    ours, model = over(store)
    first = [*coding_turns(3), *step("call_big", "a row of the table\n" * 2_000, path="big.csv")]
    then = [*first, said("Read."), user("Go on.")]
    excerpt = sent(ours, first, "s").messages[-1]
    summarized = sent(ours, then, force=True)
    assert ours.undo("s") == summarized.segments
    then += step("call_more", "another row of it\n" * 2_000, path="more.csv")
    view = sent(ours, then).messages
    assert (view[: len(first)], len(view)) == ([*first[:-1], excerpt], len(then))
    kinds = [entry.segment.kind for entry in store.open("default", "s").entries]
    assert kinds == ["excerpt", "summary", "undo", "excerpt"]
    assert (sent(ours, then).messages, len(model.requests)) == (view, 1)


def test_each_epoch_and_its_forks_stay_as_they_were(sql_store):
    """`undo` changes only its own session's newest epoch."""
    ours, _ = over(sql_store)
    first, second = sent(ours), sent(ours, coding_turns(9))
    assert len(second.segments) == 2
    before = archived(sql_store, "s", "default")
    # In a fork, then in the session itself.
    sql_store.open("default", "fork", "s")
    assert ours.undo("fork") == second.segments[1:]
    assert sent(ours, coding_turns(9)).messages == second.messages
    assert ours.undo("s") == second.segments[1:]
    tip = sql_store.open("default", "s").tip
    assert ours.undo("s") == first.segments
    # Each epoch names the session as it was in it.
    for number, (epoch, stand) in enumerate(
        [(first.session_id, 1), (second.session_id, 2), (tip, 1), ("s", 0)]
    ):
        sql_store.open("default", f"of-{number}", epoch)
        view = sent(ours, coding_turns(9), f"of-{number}", extends=False, target_tokens=10**6)
        assert view.segments == second.segments[:stand]
    assert archived(sql_store, "s", "default") == before
    assert sql_store.verify() == []


UNDOES = """
import sys
from praison_compressor import CompressorConfig, ContextCompressor
ours = ContextCompressor(CompressorConfig(store_url=sys.argv[1]))
print(len(ours.undo("s")))
"""


def test_another_process_takes_back_masks(store_url):
    """`undo` in another process restores masked outputs."""
    store = open_store(store_url)
    turns = coding_turns(3, words=140)
    ours, model = over(store, tool_policies={}, protect_last_n_tokens=0)
    masked = sent(ours, turns)
    assert (masked.context_status, model.requests) == ("masked", [])
    run = subprocess.run([sys.executable, "-c", UNDOES, store_url], capture_output=True, text=True)
    assert (run.stdout, run.stderr) == (f"{masked.newly_masked}\n", "")
    assert sent(ours, turns).messages == turns
    assert sent(ours, turns, force=True).newly_masked == masked.newly_masked
    store.close()
