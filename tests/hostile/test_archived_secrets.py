"""A store on a disk holds no key and no token, and finds masked messages again."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from praison_compressor.ledger.sql.archive import Packer
from praison_compressor.ledger.words import words
from praison_compressor.messages import Message
from tests.helpers.compressing import Model, compressor
from tests.helpers.stores import bytes_of
from tests.helpers.talks import verify
from tests.helpers.transcripts import session, step
from tests.hostile.test_secrets import SECRETS, TEXTS, with_secrets

MASKING = {"context_window": 8_000, "tool_policies": "keep_none"}


def ours(path: Path, summarizer: Any = None, **options: Any) -> Any:
    """Return a compressor with its ledger in that folder."""
    return compressor(summarizer, store_url=str(path / "ledger.db"), **options)


def leaked(path: Path) -> set[str]:
    """Return the kinds of secrets in the store's files, payloads and index."""
    with sqlite3.connect(path / "ledger.db") as connection:
        packed = [row[0] for row in connection.execute("SELECT body FROM compressor_messages")]
        packed += [row[0] for row in connection.execute("SELECT sealed FROM compressor_entries")]
        recorded = connection.execute("SELECT transcript FROM compressor_sessions")
        packed += [row[0] for row in recorded if row[0] is not None]
        connection.execute(
            "CREATE VIRTUAL TABLE temp.found USING fts5vocab('main', 'compressor_search', 'row')"
        )
        index = {row[0] for row in connection.execute("SELECT term FROM temp.found")}
    unpacked = b"".join(map(Packer().unpack, packed))
    text = bytes_of(path).decode("latin-1") + unpacked.decode("utf-8")
    return {
        kind
        for kind, secret in SECRETS.items()
        if secret in text or json.dumps(secret)[1:-1] in text or set(words(secret)) <= index
    }


def outputs(turns: int = 20) -> list[Message]:
    """Return a session of large outputs, one call and its output secret."""
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


def at_the_end() -> list[Message]:
    """Return a session with secrets in its newest messages."""
    return [*session(20), *step("call_env", "\n".join(TEXTS.values()), "bash", command="env")]


BOTH_WAYS = [pytest.param({}, with_secrets(), id="summary"),
             pytest.param(MASKING, outputs(), id="masks")]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "messages"), [*BOTH_WAYS, pytest.param({}, at_the_end(), id="newest messages")]
)
def test_no_secret_is_on_the_disk(
    tmp_path: Path, options: dict[str, Any], messages: list[Message]
) -> None:
    """No payload, index, free page or log holds a secret."""
    mine = ours(tmp_path, Model("## Done\nThe token is " + "\n".join(TEXTS.values())), **options)
    result = mine.compress_sync(messages, session_id="s")
    quiet = mine.compress_sync(messages, session_id="s")
    assert result.context_status != "full"
    assert leaked(tmp_path) == set()
    assert mine.store.verify() == []
    verify(mine.store.open("default", "s").entries)
    assert result.masked_secrets == quiet.masked_secrets
    mine.close()
    assert leaked(tmp_path) == set()


def test_the_option_archives_originals_as_they_are(tmp_path: Path) -> None:
    """With `redact_secrets=False` the archive is exact."""
    mine = ours(tmp_path, redact_secrets=False)
    result = mine.compress_sync(with_secrets(), session_id="s")
    assert leaked(tmp_path) == set(SECRETS)
    assert mine.verbatim(result.messages, session_id="s") == with_secrets()


@pytest.mark.parametrize(("options", "messages"), BOTH_WAYS)
def test_what_is_masked_is_found_again(
    tmp_path: Path, options: dict[str, Any], messages: list[Message]
) -> None:
    """Transcript, view and restored transcript give one view, paid once."""
    model = Model()

    def fresh() -> Any:
        return ours(tmp_path, model, **options)

    first = fresh().compress_sync(messages, session_id="s")
    paid = len(model.requests)
    read_back = fresh().verbatim(first.messages, session_id="s")
    for transcript in (messages, first.messages, read_back):
        assert fresh().compress_sync(transcript, session_id="s").messages == first.messages
    assert len(model.requests) == paid
    (changed,) = [m for m, original in zip(read_back, messages, strict=True) if m != original]
    assert str(changed).count("[secret:") >= len(SECRETS)


def test_a_session_resumed_with_masks_goes_on(tmp_path: Path) -> None:
    """A restored session with masks is compressed again without loss."""
    ours(tmp_path).compress_sync(with_secrets(), session_id="s")
    again = ours(tmp_path)
    grown = [*again.resume("s", 100_000).messages, *session(20)[1:]]
    before = again.store.open("default", "s").entries
    result = again.compress_sync(grown, session_id="s")
    assert len(again.store.open("default", "s").entries) == len(before) + 1
    assert again.store.verify() == []
    assert again.verbatim(result.messages, session_id="s") == grown


def test_a_view_of_the_size_asked_for_has_room_for_its_masks(tmp_path: Path) -> None:
    """The plan counts the masks, which may be longer than secrets."""
    mine = ours(tmp_path, **MASKING)
    whole = mine.tokens.messages(outputs())
    for target in range(whole // 2, whole, whole // 10):
        result = mine.compress_sync(outputs(), session_id=f"s{target}", target_tokens=target)
        assert result.tokens_after <= target
