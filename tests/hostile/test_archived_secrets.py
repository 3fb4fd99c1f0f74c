"""What is on disk holds no key and no token, and is found again all the same."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from praison_compressor import CompressorConfig, ContextCompressor
from praison_compressor.ledger.segments import verify
from praison_compressor.ledger.sql.store import SqlStore, open_store
from praison_compressor.ledger.words import words
from praison_compressor.messages import Message
from tests.helpers.command import Run, runner
from tests.helpers.transcripts import session, step
from tests.hostile.test_secrets import SECRETS, TEXTS, with_secrets

SMALL = CompressorConfig(model="gpt-4o", context_window=6_000, protect_last_n_tokens=1_000)
MASKING = CompressorConfig(
    model="gpt-4o",
    context_window=8_000,
    protect_last_n_tokens=1_000,
    tool_policies="keep_none",  # type: ignore[arg-type]
)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """The command."""
    return runner(monkeypatch, capfd)


def ours(path: Path, config: CompressorConfig = SMALL, **options: Any) -> ContextCompressor:
    """A compressor with its ledger in that file."""
    return ContextCompressor(config, store=open_store(path / "ledger.db", **options))


def written(path: Path, store: SqlStore) -> tuple[str, set[str]]:
    """All that the files say: their bytes, every payload unpacked, and the words of the index."""
    bytes_ = b"".join(file.read_bytes() for file in sorted(path.iterdir()))
    with sqlite3.connect(path / "ledger.db") as connection:
        packed = [row[0] for row in connection.execute("SELECT body FROM compressor_messages")]
        packed += [row[0] for row in connection.execute("SELECT sealed FROM compressor_entries")]
        recorded = connection.execute("SELECT transcript FROM compressor_sessions")
        packed += [row[0] for row in recorded if row[0] is not None]
        connection.execute(
            "CREATE VIRTUAL TABLE temp.found USING fts5vocab('main', 'compressor_search', 'row')"
        )
        index = {row[0] for row in connection.execute("SELECT term FROM temp.found")}
    store.check()
    texts = [store._database.packer.unpack(body).decode("utf-8") for body in packed]
    return bytes_.decode("latin-1") + "".join(texts), index


def leaked(path: Path, store: SqlStore) -> set[str]:
    """The kinds of secrets that the files tell."""
    text, index = written(path, store)
    escaped = {kind: json.dumps(secret)[1:-1] for kind, secret in SECRETS.items()}
    in_text = {k for k, secret in SECRETS.items() if secret in text or escaped[k] in text}
    return in_text | {k for k, secret in SECRETS.items() if set(words(secret)) <= index}


def outputs(turns: int = 20) -> list[Message]:
    """A session whose large outputs are masked one by one; one call and its output are secret."""
    messages = [{"role": "system", "content": "You are a coding agent."}]
    for turn in range(turns):
        messages.append({"role": "user", "content": f"Look at part {turn}."})
        command, body = f"cat part_{turn}", f"part {turn}: " + "lorem ipsum dolor " * 100
        if turn == 3:
            command = f"curl -H 'Authorization: {SECRETS['github-token']}' api.example.com"
            body = "\n".join(TEXTS.values()) + body
        messages += step(f"call_{turn}", body, "bash", command=command)
        messages.append({"role": "assistant", "content": f"Part {turn} is in order."})
    return messages[:-1]


both_ways = pytest.mark.parametrize(
    ("config", "messages"),
    [(SMALL, with_secrets()), (MASKING, outputs())],
    ids=["summary", "masks"],
)


@both_ways
def test_no_secret_is_on_the_disk(
    tmp_path: Path, config: CompressorConfig, messages: list[Message]
) -> None:
    """Neither in the archive nor in summaries, masks, the index, free pages or the WAL."""

    async def repeats(asked: list[Message]) -> str:
        return "## Done\nThe token is " + "\n".join(TEXTS.values())

    mine = ContextCompressor(config, store=open_store(tmp_path / "ledger.db"), summarizer=repeats)
    result = mine.compress_sync(messages, session_id="s")
    store = mine.store
    quiet = mine.compress_sync(messages, session_id="s")
    assert result.context_status != "full"
    assert isinstance(store, SqlStore)
    assert leaked(tmp_path, store) == set()
    assert store.verify() == []
    verify(store.open("default", "s").entries)
    assert result.masked_secrets == quiet.masked_secrets >= len(SECRETS)


def with_secrets_at_the_end() -> list[Message]:
    """A session whose secrets are in the newest messages, which no segment covers."""
    return [*session(20), *step("call_env", "\n".join(TEXTS.values()), "bash", command="env")]


def test_the_newest_messages_are_recorded_without_secrets(tmp_path: Path) -> None:
    """The whole transcript is kept for a resume; its end is not archived with any segment."""
    mine = ours(tmp_path)
    result = mine.compress_sync(with_secrets_at_the_end(), session_id="s")
    assert isinstance(mine.store, SqlStore)
    assert leaked(tmp_path, mine.store) == set()
    assert SECRETS["github-token"] in str(result.messages)
    mine.close()
    assert leaked(tmp_path, open_store(tmp_path / "ledger.db")) == set()


def test_a_session_resumed_with_masks_goes_on(tmp_path: Path) -> None:
    """What was read back masked is compressed again when it has grown, and nothing is lost."""
    ours(tmp_path).compress_sync(with_secrets(), session_id="s")
    again = ours(tmp_path)
    resumed = again.resume("s", 100_000).messages
    grown = [*resumed, *session(20)[1:]]
    result = again.compress_sync(grown, session_id="s")
    assert len(again.store.open("default", "s").entries) == 2
    assert again.store.verify() == []
    assert again.verbatim(result.messages, session_id="s") == grown


def test_the_search_of_these_tests_would_find_them(tmp_path: Path) -> None:
    """With the option off every secret is in the files: the test above can fail."""
    mine = ours(tmp_path, mask_secrets=False)
    mine.compress_sync(with_secrets(), session_id="s")
    assert isinstance(mine.store, SqlStore)
    assert leaked(tmp_path, mine.store) == set(SECRETS)


@both_ways
def test_what_is_masked_is_found_again(
    tmp_path: Path, config: CompressorConfig, messages: list[Message]
) -> None:
    """By another process, by the view itself and by what is read back: one view, paid for once."""
    asked: list[int] = []

    async def model(request: list[Message]) -> str:
        asked.append(1)
        return "## Done\nThe modules so far are in order."

    def fresh() -> ContextCompressor:
        store = open_store(tmp_path / "ledger.db")
        return ContextCompressor(config, store=store, summarizer=model)

    first = fresh().compress_sync(messages, session_id="s")
    paid = len(asked)
    read_back = fresh().verbatim(first.messages, session_id="s")
    for transcript in (messages, first.messages, read_back):
        again = fresh().compress_sync(transcript, session_id="s")
        assert again.messages == first.messages
    assert len(asked) == paid
    assert len(read_back) == len(messages)


def test_what_is_read_back_shows_masks_and_the_same_ones_everywhere(tmp_path: Path) -> None:
    """Only secrets differ; a secret that comes twice has one mask, in archive and summary."""
    messages = with_secrets()
    mine = ours(tmp_path)
    result = mine.compress_sync(messages, session_id="s")
    read_back = mine.verbatim(result.messages, session_id="s")
    changed = [m for m, original in zip(read_back, messages, strict=True) if m != original]
    assert len(changed) == 1
    assert str(changed[0]["content"]).count("[secret:") >= len(SECRETS)
    assert [s for s in SECRETS.values() if s in str(read_back)] == []
    assert mine.store.export("default", "s")  # type: ignore[attr-defined]


def test_a_fold_of_what_was_read_back_is_found_too(tmp_path: Path) -> None:
    """A view that is compressed further stands for the same transcript."""
    messages = [*with_secrets(), *session(30)[2:]]
    mine = ours(tmp_path)
    view = mine.compress_sync(messages, session_id="s").messages
    folded = mine.compress_sync(view, session_id="s", target_tokens=2_000, force=True)
    again = ours(tmp_path).compress_sync(messages, session_id="s")
    assert folded.messages != view
    assert again.messages == folded.messages
    assert again.masked_secrets >= len(SECRETS)
    assert mine.store.verify() == []  # type: ignore[attr-defined]


def test_people_are_told_how_many_and_never_which(tmp_path: Path, run: Run) -> None:
    """The command in words and as JSON, the report page, the event."""
    file, page, url = tmp_path / "talk.json", tmp_path / "page.html", tmp_path / "ledger.db"
    file.write_text(json.dumps(with_secrets()))
    options = ("compress", file, "--window", 6_000, "--keep-tokens", 1_000, "--store", url)
    done = run(*options, "--session", "s", "--json")
    count = done.json["masked_secrets"]
    said = run(*options, "--session", "s").out
    run("report", "s", "--store", url, "--out", page)
    told = page.read_text()
    assert count >= len(SECRETS)
    assert f"Keys and tokens masked in the archive: {count}." in said
    assert f"{count} keys and tokens are masked in the archive." in told
    assert [s for s in SECRETS.values() if s in told or s in said + done.out] == []


def test_a_view_of_the_size_asked_for_has_room_for_its_masks(tmp_path: Path) -> None:
    """A mask may be longer than its secret: the plan counts what the store will keep."""
    mine = ours(tmp_path, MASKING)
    whole = mine.tokens.messages(outputs())
    for target in range(whole // 2, whole, whole // 10):
        result = mine.compress_sync(outputs(), session_id=f"s{target}", target_tokens=target)
        assert result.tokens_after <= target


def test_a_session_that_was_exported_and_imported_has_its_masks(tmp_path: Path) -> None:
    """The copy verifies, holds no secret, and is found by the transcript that has them."""
    mine = ours(tmp_path)
    result = mine.compress_sync(with_secrets(), session_id="s")
    exported = mine.store.export("default", "s")  # type: ignore[attr-defined]
    assert [s for s in SECRETS.values() if s in json.dumps(exported)] == []
    (tmp_path / "copy").mkdir()
    copy = ours(tmp_path / "copy")
    copy.store.import_("default", json.loads(json.dumps(exported)))  # type: ignore[attr-defined]
    assert copy.compress_sync(with_secrets(), session_id="s").messages == result.messages
    assert copy.store.verify() == []  # type: ignore[attr-defined]


def test_memory_keeps_what_it_was_given() -> None:
    """Nothing is on a disk: the round trip is exact."""
    messages = with_secrets()
    mine = ContextCompressor(SMALL)
    result = mine.compress_sync(messages)
    assert mine.verbatim(result.messages) == messages


def test_the_option_archives_originals_as_they_are(tmp_path: Path) -> None:
    """`redact_archive=False`: an exact archive, for who needs one."""
    url = str(tmp_path / "ledger.db")
    config = CompressorConfig(**{**vars(SMALL), "store_url": url, "redact_archive": False})
    mine = ContextCompressor(config)
    messages = with_secrets()
    result = mine.compress_sync(messages, session_id="s")
    assert mine.verbatim(result.messages, session_id="s") == messages
