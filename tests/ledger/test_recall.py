"""An agent finds again, word for word, what was summarized away: its own and no more."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from praison_compressor import (
    CompressorConfig,
    ContextCompressor,
    MemoryStore,
    Store,
    StoreUnavailable,
)
from praison_compressor.ledger.recall import recall_tools
from praison_compressor.ledger.segments import Session
from praison_compressor.ledger.sql.store import SqlStore, open_store
from praison_compressor.messages import content_digest, digest
from praison_compressor.view.masks import reference_of
from tests.helpers.native import to_native
from tests.helpers.talks import NAMESPACE, committed, segment, talk
from tests.helpers.transcripts import step

pytest_plugins = ["tests.helpers.stores"]


def count(text: str) -> int:
    """As good a count as any for these tests: four characters a token."""
    return (len(text) + 3) // 4


def tools(store: Store, session_id: str = "s", budget: int = 2_000):
    """The agent's two functions."""
    return recall_tools(
        store, lambda: store.open(NAMESPACE, session_id), count, budget_tokens=budget
    )


def test_a_detail_is_found_and_read(store: Store) -> None:
    """Search gives a reference, reading it gives the words."""
    session = committed(store, "s", talk(8, "alpha"), talk(8, "beta"))
    search, read = tools(store)
    found = search("beta number3")
    assert "s2.4 assistant: beta number3 says hello 23757" in found
    assert "beta number3 says hello 23757" in read("s2.4")
    assert "alpha" not in read("s2.4")
    assert 'read_file({"path": "src/alpha_1.py"})' in read("s1.2")
    folded = [*talk(8, "alpha"), *talk(2, "gamma")]
    store.commit(session, [(segment(folded), folded)])
    assert "s3.4" in search("alpha number3", 1)


def test_a_segment_is_read_from_any_message_on(store: Store) -> None:
    """A segment as a whole, or its rest."""
    committed(store, "s", talk(4, "alpha"))
    _, read = tools(store)
    assert [f"[s1.{n}]" in read("s1") for n in (1, 2, 3, 4)] == [True] * 4
    assert [f"[s1.{n}]" in read("s1.3+") for n in (1, 2, 3, 4)] == [False, False, True, True]


@pytest.mark.parametrize("budget", [120, 300, 1_000])
def test_no_answer_exceeds_the_budget(store: Store, budget: int) -> None:
    """However much matches or is asked for, and what was left out can be asked for."""
    long = [{"role": "tool", "tool_call_id": "c", "content": "needle " + "漢字 word " * 3_000}]
    committed(store, "s", talk(200, "needle"), long)
    search, read = tools(store, budget=budget)
    endless = "nowhere " * 3_000
    for answer in (search("needle", 60), read("s1"), read("s2"), read(), search(endless)):
        assert count(answer) <= budget
    assert count(read(endless)) <= budget
    assert "more" in read("s1")


def test_a_long_message_can_be_read_to_its_end(store: Store) -> None:
    """Cut answers say where to go on; put together they are the message."""
    text = " ".join(f"w{n}" for n in range(2_000))
    committed(store, "s", [{"role": "user", "content": text}])
    _, read = tools(store, budget=400)
    pieces, offset = [], 0
    for _ in range(100):
        answer = read("s1.1", offset)
        body = answer.split("[s1.1] user\n", 1)[1]
        piece, cut, rest = body.partition("\n\n(cut: go on with ")
        pieces.append(piece)
        offset = int(rest.rstrip(")").rpartition("offset=")[2] or 0)
        if not cut:
            break
    assert "".join(pieces) == text


def test_an_agent_sees_its_own_session_only(store: Store) -> None:
    """Another session's words are not found, by search or by reference; a fork's parent's are."""
    committed(store, "s", talk(4, "alpha"))
    committed(store, "other", talk(4, "secret"), talk(4, "secrets"))
    search, read = tools(store)
    assert "No archived message matches" in search("secret")
    assert "There is no segment s2" in read("s2")
    store.open(NAMESPACE, "f", "s")
    assert "alpha number3" in tools(store, "f")[0]("alpha number3")


def test_a_session_without_an_archive_says_so(store: Store) -> None:
    """Before the first compression there is nothing to find, and that is no error."""
    search, read = tools(store, "new")
    assert search("anything") == read() == read("s1")
    assert "Nothing of this conversation has been archived" in search("anything")


@pytest.mark.parametrize("wrong", [None, "3", "many", 2.5, float("inf"), ["hello"], {}], ids=repr)
def test_arguments_of_a_wrong_type_are_answered_in_words(store: Store, wrong: Any) -> None:
    """A model that writes a number as text, or none at all, does not end the turn."""
    committed(store, "s", talk(4))
    search, read = tools(store)
    assert "s1." in search("hello", wrong)
    assert "[s1." in read("s1", wrong)
    assert search(wrong)
    assert read(wrong)


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("s9", "the segments are s1 to s1"),
        ("s0", "the segments are s1 to s1"),
        ("s1.9", "has the messages s1.1 to s1.4"),
        ("s1.2.3", "is no reference; expected one like"),
        ("s" + "9" * 5_000, "is no reference; expected one like"),
        ("", "s1: 4 messages, from: topic number0"),
    ],
)
def test_a_wrong_reference_is_answered_with_what_there_is(
    store: Store, reference: str, said: str
) -> None:
    """A model that invents one learns the range, or the form; without one it gets the list."""
    committed(store, "s", talk(4))
    assert said in tools(store)[1](reference)


def test_what_was_forgotten_cannot_be_read(sql_store: SqlStore) -> None:
    """A forgotten segment says so; a forgotten message is not found."""
    committed(sql_store, "s", talk(4, "alpha"), talk(4, "beta"))
    sql_store.forget(NAMESPACE, content_digest(talk(4, "beta")[3]))
    search, read = tools(sql_store)
    assert read("s2") == "Segment s2 was forgotten."
    assert "alpha number3" in read("s1.4")
    assert "beta number3" not in search("beta number3")


def test_a_store_that_is_away_is_an_answer(tmp_path: Path) -> None:
    """Inside a turn nothing is raised: the agent reads what is wrong and goes on."""
    (tmp_path / "file").write_text("")
    broken = open_store(tmp_path / "file" / "ledger.db")
    with pytest.raises(StoreUnavailable):
        broken.open(NAMESPACE, "s")
    search, read = tools(broken)
    assert search("x").startswith("The archive cannot be read just now: store sqlite:")
    assert read("s1").startswith("The archive cannot be read just now: store sqlite:")


def test_tools_explain_themselves() -> None:
    """A host makes a schema of name, signature and docstring: each argument is described."""
    for tool in recall_tools(MemoryStore(), lambda: Session("n", "s", "s", None), count):
        document = inspect.getdoc(tool) or ""
        parameters = inspect.signature(tool).parameters
        assert parameters
        assert all(f"{name}: " in document for name in parameters)
        assert all(p.annotation in ("str", "int") for p in parameters.values())


# ---------------------------------------------------------------- masked outputs


CONFIG = CompressorConfig(
    model="gpt-4o", context_window=8_000, protect_last_n_tokens=1_000, namespace=NAMESPACE
)


def outputs(turns: int) -> list[dict[str, Any]]:
    """A session of little talk and large outputs."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": "You are a coding agent."}]
    for t in range(turns):
        body = f"part {t}: " + "lorem ipsum dolor " * 100 + f"END-{t}"
        messages.append({"role": "user", "content": f"Look at part {t}."})
        messages += step(f"call_{t}", body, path=f"src/part_{t}.py")
        messages.append({"role": "assistant", "content": f"Part {t} is in order."})
    return messages[:-1]


async def model(messages: Sequence[Any]) -> str:
    """A summarizer."""
    return "## Done\nThe parts up to here are in order."


def test_every_masked_output_says_how_it_is_read_whole(store: Store) -> None:
    """Its line's reference gives the output word for word: also once a summary stands for it."""
    ours = ContextCompressor(replace(CONFIG, recall=True), summarizer=model, store=store)
    messages = outputs(20)
    view = ours.compress_sync(messages, session_id="s")
    assert view.context_status == "masked"
    whole = {
        re.findall(r'read_conversation_archive\("(m\w+)"\)', sent["content"])[0]: given["content"]
        for sent, given in zip(view.messages, messages, strict=True)
        if sent != given
    }
    assert len(whole) == view.masked >= 10
    _, read = ours.recall_tools("s")
    assert [text in read(reference) for reference, text in whole.items()] == [True] * len(whole)
    later = ours.compress_sync(outputs(60), session_id="s", force=True)
    assert later.context_status == "summarized"
    assert [text in read(reference) for reference, text in whole.items()] == [True] * len(whole)


def test_a_message_of_a_segment_is_read_by_its_digest_too(store: Store) -> None:
    """A mask that was only shown, and never recorded, leads to what stands for it later."""
    committed(store, "s", talk(8, "alpha"), talk(8, "beta"))
    _, read = tools(store)
    answer = read(reference_of(digest(talk(8, "beta")[2])))
    assert "[s2.3] tool" in answer
    assert "beta result2" in answer
    assert "[s2.4]" not in answer
    assert "call the tool again" in read("m" + "0" * 12)


# ---------------------------------------------------------------- resumed without the tools


@pytest.mark.parametrize("shape", [list, to_native], ids=["texts", "blocks"])
@pytest.mark.parametrize(("turns", "status"), [(20, "masked"), (60, "summarized")])
def test_who_has_no_recall_tool_is_not_told_of_it_by_older_summaries(
    store: Store, turns: int, status: str, shape: Callable[..., list[dict[str, Any]]]
) -> None:
    """Written for an agent with the tools, sent to one without; each knows the other's view."""
    having = ContextCompressor(replace(CONFIG, recall=True), summarizer=model, store=store)
    messages = shape(outputs(turns))
    told = having.compress_sync(messages, session_id="s", force=status == "summarized")
    assert "read_conversation_archive" in str(told.messages)
    without = ContextCompressor(CONFIG, store=store)
    view = without.compress_sync(messages, session_id="s")
    assert (view.context_status, view.written) == (told.context_status, ())
    assert view.context_status == status
    assert len(view.messages) == len(told.messages)
    assert "read_conversation_archive" not in str(view.messages)
    assert without.compress_sync(messages, session_id="s").messages == view.messages
    for sent in (told.messages, view.messages):
        assert having.compress_sync(sent, session_id="s").messages == told.messages
        assert without.compress_sync(sent, session_id="s").messages == view.messages
        assert without.verbatim(sent, session_id="s") == messages
