"""Generated input of every kind: transcripts, model outputs, store rows, files of the command.

More seeded transcripts: `FUZZ_CASES=100000 python -m pytest tests/hostile/test_fuzz.py`.
"""

import contextlib
import io
import json
import os
import random
import sqlite3
import sys
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from praison_compressor import CompressorConfig, ContextCompressor, LedgerError, open_store
from praison_compressor.cli import main
from praison_compressor.messages import text_of
from tests.helpers.transcripts import coding_turns, find_repairs
from tests.hostile.generating import BLOBS, Case, case, hostile, text
from tests.hostile.invariants import broken_promises

SMALL = CompressorConfig(model="gpt-4o", context_window=3_000, protect_last_n_tokens=300)
CALM = settings(deadline=None, max_examples=25, suppress_health_check=list(HealthCheck))
CHANCES = st.randoms(use_true_random=False)


def generate(number: int) -> Case:
    """Return the case of a number, the same on every machine."""
    return case(random.Random(f"11/{number}"))


def test_seeded_transcripts_give_valid_views():
    """A seeded transcript of any kind keeps every promise of a view."""
    cases = int(os.environ.get("FUZZ_CASES", "200"))
    for number in range(cases):
        print(f"case {number}")  # shown where it raises
        assert broken_promises(generate(number)) == []


@CALM
@given(CHANCES)
def test_any_case_keeps_every_promise(chance):
    """A generated transcript keeps every promise of a compression."""
    assert broken_promises(case(chance), pays=True) == []


# A longer tail once left a summary of these transcripts less than its smallest size.
@pytest.mark.parametrize(
    ("number", "target"), [(368, 189), (687, 240), (5491, 240), (5754, 466), (12410, 174)]
)
def test_a_small_view_keeps_to_its_target(number, target):
    """A view fits a target that is little larger than its newest messages."""
    found = generate(number)
    assert broken_promises(Case(found.kind, found.messages, target), pays=True) == []


@CALM
@given(st.one_of(st.text(max_size=300), st.sampled_from(BLOBS), CHANCES.map(text)))
def test_any_answer_of_a_model_leaves_a_valid_view(answer):
    """Any answer of a model is refused or framed once."""

    async def model(messages: list[dict[str, Any]]) -> str:
        return answer

    result = ContextCompressor(SMALL, summarizer=model).compress_sync(coding_turns(9))
    texts = [text_of(segment.rendered) for segment in result.segments]
    assert find_repairs(result.messages) == []
    assert [t.lower().count("</conversation-summary>") for t in texts] == [1] * len(texts)
    assert {segment.rendered["role"] for segment in result.segments} == {"user"}


# ---------------------------------------------------------------- store rows


def cells_of(db: sqlite3.Connection) -> list[tuple[str, str, int]]:
    """Return a cell of each column of our tables: table, column, rowid."""
    kinds = "type='table' and name like 'compressor_%' and sql not like '%WITHOUT ROWID%'"
    names = db.execute(f"select name from sqlite_master where {kinds}").fetchall()
    tables = [name for (name,) in names if "search" not in name]
    return [
        (table, column[1], rowid)
        for table in tables
        for column in db.execute(f'pragma table_info("{table}")').fetchall()
        for (rowid,) in db.execute(f'select rowid from "{table}" limit 1').fetchall()
    ]


def test_a_store_whose_rows_were_changed_ends_no_turn(tmp_path):
    """With any one cell of the store changed, a turn still gets a valid view."""
    sound, messages = tmp_path / "sound.db", coding_turns(9)
    ours = ContextCompressor(SMALL, store=open_store(sound))
    ours.compress_sync(messages, session_id="s")
    ours.close()
    chance = random.Random(5)
    values: tuple[Any, ...] = ("x", -1, b"\x00\xff", "sha256:" + "0" * 64)
    with contextlib.closing(sqlite3.connect(sound)) as db:
        cells = cells_of(db)
    assert len(cells) > 30
    for number, (table, column, rowid) in enumerate(cells):
        path = tmp_path / f"{number}.db"
        with contextlib.closing(sqlite3.connect(sound)) as whole, sqlite3.connect(path) as db:
            whole.backup(db)
            with contextlib.suppress(sqlite3.IntegrityError):
                change = f'update "{table}" set "{column}"=? where rowid=?'
                db.execute(change, (chance.choice(values), rowid))
        db.close()
        ours = ContextCompressor(SMALL, store=open_store(path))
        with contextlib.suppress(LedgerError):
            ours.compress_sync(messages, session_id="s")
        view = ours.fallback_view(messages, session_id="s").messages
        with contextlib.suppress(LedgerError):
            ours.store.verify()
        with contextlib.suppress(LedgerError):
            ours.store.lineage("default", "s")
        ours.close()
        assert (find_repairs(view), view[-1]) == ([], messages[-1]), f"{table}.{column}"


# ---------------------------------------------------------------- files of the command


@settings(CALM, max_examples=15)
@given(st.one_of(st.binary(max_size=200), CHANCES.map(hostile)), st.booleans())
def test_any_file_given_to_the_command_ends_in_words(tmp_path_factory, given, lines):
    """Any file ends the command with an exit code instead of a traceback."""
    path = tmp_path_factory.mktemp("cli") / "file.json"
    if not isinstance(given, bytes):
        parts = given if lines and isinstance(given, list) else [given]
        given = "\n".join(json.dumps(p, default=str, skipkeys=True) for p in parts).encode()
    path.write_bytes(given)
    # Only the error stream: the transcript's own text, on the other, may speak of tracebacks.
    said = io.StringIO()
    command = ["praison-compressor", "compress", str(path), "--target", "400", "--json"]
    with (
        patch.object(sys, "argv", command),
        contextlib.redirect_stderr(said),
        contextlib.redirect_stdout(io.StringIO()),
        pytest.raises(SystemExit) as ended,
    ):
        main()
    assert (ended.value.code or 0) in range(10)
    assert "Traceback" not in said.getvalue()
