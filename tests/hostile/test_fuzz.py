"""A fast share of the fuzzing: transcripts, model outputs, store rows and files of the command.

The long runs are `python -m tests.benchmarks.fuzz`.
"""

from __future__ import annotations

import contextlib
import io
import json
import random
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from praison_compressor import CompressorConfig, ContextCompressor, LedgerError
from praison_compressor.cli import main
from praison_compressor.ledger.sql.store import open_store
from praison_compressor.messages import check, text_of
from tests.benchmarks.fuzz import generate
from tests.helpers.transcripts import session
from tests.hostile.generating import BLOBS, case, hostile, text
from tests.hostile.invariants import Workshop, broken_promises, pure_broken, quickly_broken

SMALL = CompressorConfig(model="gpt-4o", context_window=3_000, protect_last_n_tokens=300)
CALM = settings(deadline=None, max_examples=40, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def workshop() -> Workshop:
    """Compressors that share one vocabulary."""
    return Workshop()


def test_what_is_read_repaired_and_planned_keeps_every_promise() -> None:
    """A thousand transcripts, valid, broken and hostile, through the pure half."""
    assert [p for n in range(1_000) for p in pure_broken(generate(11, n))] == []


def test_the_best_view_is_always_there(workshop: Workshop) -> None:
    """Three hundred more through `best_view`: nothing raised, nothing invalid, newest intact."""
    assert [p for n in range(300) for p in quickly_broken(generate(12, n), workshop)] == []


@CALM
@given(st.randoms(use_true_random=False))
def test_any_case_keeps_every_promise(chance: random.Random) -> None:
    """In full, and found again by Hypothesis in its smallest form: budget, archive, idempotence."""
    assert broken_promises(case(chance), Workshop()) == []


@CALM
@given(st.one_of(st.text(max_size=300), st.sampled_from(BLOBS), st.randoms().map(text)))
def test_any_answer_of_a_model_leaves_a_valid_view(answer: str) -> None:
    """Whatever a model says, it is either refused or framed once, as data in the user's role."""

    async def model(messages: list[dict[str, Any]]) -> str:
        return answer

    result = ContextCompressor(SMALL, summarizer=model).compress_sync(session(9))
    texts = [text_of(segment.rendered) for segment in result.segments]
    assert check(result.messages) == []
    assert [t.lower().count("</conversation-summary>") for t in texts] == [1] * len(texts)
    assert {segment.rendered["role"] for segment in result.segments} == {"user"}


# ---------------------------------------------------------------- store rows


def rows_of(path: Path) -> list[tuple[str, str, int]]:
    """Every cell of every table: table, column, rowid."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        tables = [
            name for (name,) in db.execute("select name from sqlite_master where type='table'")
        ]
        plain = [name for name in tables if "fts" not in name and not name.startswith("sqlite")]
        return [
            (name, column[1], rowid)
            for name in plain
            for column in db.execute(f'pragma table_info("{name}")').fetchall()
            for rowid in _rowids(db, name)
        ]


def _rowids(db: sqlite3.Connection, table: str) -> Iterator[int]:
    with contextlib.suppress(sqlite3.Error):  # a table without rowids has none to change
        yield from (rowid for (rowid,) in db.execute(f'select rowid from "{table}" limit 5'))


@pytest.fixture
def written(tmp_path: Path) -> tuple[Path, bytes]:
    """A store on disk with one compressed session, and its bytes."""
    path = tmp_path / "ledger.db"
    ours = ContextCompressor(SMALL, store=open_store(path))
    ours.compress_sync(session(9), session_id="s")
    ours.close()
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("pragma wal_checkpoint(truncate)")
    return path, path.read_bytes()


def test_a_store_whose_rows_were_changed_ends_no_turn(written: tuple[Path, bytes]) -> None:
    """Any cell replaced by nonsense: an error of ours when asked strictly, a view in any case."""
    path, sound = written
    chance = random.Random(5)
    values: tuple[Any, ...] = (None, "", "x", -1, 10**9, b"", b"\x00\xff", "sha256:" + "0" * 64)
    outcomes: list[str] = []
    for table, column, rowid in chance.sample(rows_of(path), 24):
        for leftover in path.parent.glob("ledger.db-*"):
            leftover.unlink()
        path.write_bytes(sound)
        with contextlib.closing(sqlite3.connect(path)) as db, contextlib.suppress(sqlite3.Error):
            db.execute(
                f'update "{table}" set "{column}"=? where rowid=?', (chance.choice(values), rowid)
            )
            db.commit()
        ours = ContextCompressor(SMALL, store=open_store(path))
        outcomes.append(_outcome(ours, f"{table}.{column}"))
        ours.close()
    assert [outcome for outcome in outcomes if outcome] == []


def _outcome(ours: ContextCompressor, where: str) -> str:
    """What went wrong in a way that it must not, if anything did."""
    try:
        ours.compress_sync(session(9), session_id="s")
    except LedgerError:
        pass
    except Exception as error:
        return f"{where}: {error!r}"
    view = ours.best_view(session(9), session_id="s")
    return "" if check(view) == [] and view[-1] == session(9)[-1] else f"{where}: no view"


# ---------------------------------------------------------------- files of the command


@settings(CALM, max_examples=25)
@given(st.one_of(st.binary(max_size=200), st.randoms(use_true_random=False)))
def test_any_file_given_to_the_command_ends_in_words(tmp_path_factory: Any, given: Any) -> None:
    """Bytes, JSON and JSON lines of any shape: an exit code and one line, never a traceback."""
    path = tmp_path_factory.mktemp("cli") / "file.json"
    path.write_bytes(given if isinstance(given, bytes) else _encoded(given))
    # Only the error stream: the transcript's own text, on the other, may speak of tracebacks.
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        code = _exit_code("compress", str(path), "--target", "400", "--json")
    assert code in range(10)
    assert "Traceback" not in said.getvalue()


def _encoded(chance: random.Random) -> bytes:
    messages = hostile(chance)
    listed = list(messages) if isinstance(messages, (list, tuple)) else messages
    if chance.randint(0, 1) and isinstance(listed, list):
        return "\n".join(json.dumps(m, default=str, skipkeys=True) for m in listed).encode()
    return json.dumps(listed, default=str, skipkeys=True).encode()


def _exit_code(*arguments: str) -> Any:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sys, "argv", ["praison-compressor", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
    return ended.value.code or 0
