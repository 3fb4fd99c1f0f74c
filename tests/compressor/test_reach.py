"""The result's tools and `read` reach what a view leaves out, in every store."""

import json
import pickle
import random
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from praison_compressor import CompressorConfig, CompressResult, ContextCompressor, MemoryStore
from praison_compressor.ledger.segments import DROPPED
from praison_compressor.ledger.sql.store import SqlStore
from praison_compressor.ledger.stores import BoundedStore
from praison_compressor.messages import text_of
from tests.benchmarks.references import cited, leads_back
from tests.helpers.compressing import Model
from tests.helpers.native import to_native
from tests.helpers.talks import segment, talk
from tests.helpers.transcripts import call, coding_turns, said, step, user

CONFIG = CompressorConfig(model="gpt-4o", recall=True)
SESSION = "s"
TURNS = coding_turns(14)


@pytest.fixture
def ours(store):
    """Return a compressor on each store."""
    return ContextCompressor(CONFIG, store=store)


def compressed(ours: ContextCompressor, name: str = SESSION) -> CompressResult:
    """Return the result of a session whose first turns are compressed."""
    return ours.compress_sync(TURNS, session_id=name, target_tokens=1_500, force=True)


def test_a_results_tools_find_and_read_what_its_view_lacks(ours):
    """A result's tools, called by name with JSON, find and read compressed messages."""
    result = compressed(ours)
    tools = {tool.__name__: tool for tool in result.recall_tools}
    described = [schema["function"] for schema in result.recall_schemas]
    assert [each["name"] for each in described] == list(tools)
    assert all(name in str(result.messages) for name in tools)
    search, read = tools.values()
    assert "END-3-1" not in str(result.messages)
    found = search(**json.loads('{"query": "END-3-1", "limit": 1}'))
    reference = found.partition("\n[")[2].partition("]")[0]
    assert "END-3-1" in read(**{next(iter(described[1]["parameters"]["properties"])): reference})


def test_recall_tools_come_when_configured_or_compressed(ours):
    """Tools come with the first result, or the first compressed one without `recall=True`."""
    result = ours.compress_sync(coding_turns(2), session_id="short")
    assert [len(result.recall_tools), len(result.recall_schemas)] == [2, 2]
    assert [type(result.recall_tools), type(ours.recall_tools())] == [tuple, tuple]
    assert "Nothing of this conversation" in result.recall_tools[0]("END-1-1")
    result.recall_schemas[0]["function"].clear()
    assert result.recall_schemas[0]["function"]["name"] == "search_conversation_archive"
    unasked = ContextCompressor(replace(CONFIG, recall=None), store=ours.store)
    whole = unasked.compress_sync(coding_turns(2), session_id="short")
    assert (whole.recall_tools, whole.recall_schemas) == ((), [])
    assert len(compressed(unasked).recall_tools) == 2


def test_a_result_can_be_handed_to_another_process(ours):
    """A result is pickled without its tools."""
    result = compressed(ours)
    handed = pickle.loads(pickle.dumps(result))
    assert handed.messages == result.messages
    assert handed.recall_tools == ()


def test_read_gives_every_message_word_for_word(ours):
    """`read` returns each message word for word."""
    compressed(ours)
    held = ours.store.open("default", SESSION)
    originals = ours.store.originals(held, held.entries[0])
    assert originals
    read = [ours.read(f"s1.{n}", session_id=SESSION) for n in range(1, len(originals) + 1)]
    pairs = [
        (m["content"], answer) for m, answer in zip(originals, read, strict=True) if m["content"]
    ]
    assert len(pairs) > 15
    flat = [(words.replace("\n", ""), answer.replace("\n", "")) for words, answer in pairs]
    assert [words for words, answer in flat if words not in answer] == []


@pytest.mark.parametrize(("reference", "outline"), [(("s1",), "s1.1"), ((), "s1: ")])
def test_read_outlines_a_segment_or_the_session(ours, reference, outline):
    """A reference to no message is answered by an outline."""
    compressed(ours)
    assert outline in ours.read(*reference, session_id=SESSION)


def test_read_knows_its_own_session_only(ours):
    """A reference of another session names nothing."""
    compressed(ours)
    assert "has been archived" in ours.read("s1.1", session_id="another")


# ---------------------------------------------------------------- an archive with a limit


def long_work(turns: int) -> list[dict[str, Any]]:
    """Return a session with results that no store makes small."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": "You keep the books."}]
    for turn in range(turns):
        chance = random.Random(turn)
        body = f"needle{turn} " + " ".join(f"{chance.getrandbits(64):x}" for _ in range(80))
        messages.append(user(f"Look at part {turn}, port 80{turn:02}."))
        messages += step(f"call_{turn}", body, path=f"src/part_{turn}.py")
        messages.append(said(f"Part {turn} is in order."))
    return messages[:-1]


WORK = long_work(36)


@pytest.fixture
def full():
    """Return a compressor that folds summaries of originals its archive dropped."""
    store = MemoryStore()
    store.limit_mb = 0.03
    small = replace(CONFIG, context_window=12_000, protect_last_n_tokens=1_000, fold_ratio=0.05)
    return ContextCompressor(small, store=store)


def requests(ours: ContextCompressor) -> Iterator[CompressResult]:
    """Send the long session turn by turn; yield each result."""
    for end in range(4, len(WORK) + 1, 4):
        yield ours.compress_sync(WORK[:end], session_id=SESSION)


def test_a_full_archive_changes_no_view(full):
    """With a full archive each view comes again with readable references."""
    for turn, result in enumerate(requests(full), 1):
        written = " ".join(str(text.message["content"]) for text in result.written)
        for reference in re.findall(r"\bs\d+\.\d+", written):
            assert "no longer archived" not in full.read(reference, session_id=SESSION)
        again = full.compress_sync(WORK[: 4 * turn], session_id=SESSION)
        assert again.messages == result.messages


ABOVE_LIMIT = {"session_id": SESSION, "target_tokens": 3_000, "force": True}
"""Options of a compression of more than 0.02 MB."""


def read_named(ours: ContextCompressor) -> list[str]:
    """Compress above the archive's limit; return the answer to each reference in the view."""
    view = str(ours.compress_sync(WORK, **ABOVE_LIMIT).messages)
    named = sorted(set(re.findall(r"\bs\d+\.\d+", view)))
    return [ours.read(reference, session_id=SESSION) for reference in named]


@pytest.mark.parametrize("is_previewed", [False, True])
def test_a_view_names_no_message_that_its_compression_drops(ours, is_previewed, monkeypatch):
    """In every store, a view above the archive's limit names only messages that read back."""
    monkeypatch.setattr(MemoryStore, "limit_mb", 0.02)
    for _ in range(is_previewed):
        ours.preview(WORK, **ABOVE_LIMIT)
    answers = read_named(ours)
    assert len(answers) > 30
    assert [answer for answer in answers if "no longer archived" in answer] == []


def write_shown(ours: ContextCompressor) -> None:
    ours.preview(WORK, write=True, **ABOVE_LIMIT)


def write_undone(ours: ContextCompressor) -> None:
    ours.compress_sync(WORK, **ABOVE_LIMIT)
    ours.undo(SESSION)


@pytest.mark.parametrize("write", [write_shown, write_undone])
def test_a_text_is_written_again_if_it_names_a_dropped_message(write, monkeypatch):
    """A previewed or undone text that names messages dropped since is written again."""
    ours = ContextCompressor(CONFIG, summarizer=Model(), store=MemoryStore())
    write(ours)
    monkeypatch.setattr(MemoryStore, "limit_mb", 0.02)
    assert [answer for answer in read_named(ours) if "no longer archived" in answer] == []


def test_a_compression_that_drops_messages_logs_the_numbers(caplog, full):
    """A warning names the dropped messages, the megabytes, and the options to change."""
    full.compress_sync(WORK, session_id=SESSION, force=True)
    (logged,) = [m for m in caplog.messages if "dropped" in m]
    said = r"namespace default: \d+ .* \(0.\d\d MB\) .* limit_mb is 0.03; raise limit_mb.*store_url"
    assert re.match(said, logged)


def test_the_tools_name_what_a_full_archive_dropped(full):
    """A reference to a dropped message is answered by the reason."""
    *_, result = requests(full)
    held = full.store.open("default", SESSION)
    gone = full.store.originals(held, held.entries[0]).index(DROPPED) + 1
    search, read = result.recall_tools
    assert f"s1.{gone} is no longer archived: the archive's memory limit" in read(f"s1.{gone}")
    assert "archive has a limit" not in read("s1", about="part archive limit")
    assert "matches 'needle0'" in search("needle0")


def test_the_tools_find_what_a_full_archive_has_left(full):
    """The tools find and read what a full archive has left."""
    *_, result = requests(full)
    search, read = result.recall_tools
    assert "Look at part 1, port 8001." in read("s1.1-6")
    assert "needle30" in search("needle30")


def test_a_session_with_a_full_archive_is_saved_and_resumed(full):
    """A session whose archive is full resumes at its newest message."""
    assert list(requests(full))
    assert full.verbatim(WORK, session_id=SESSION) == WORK
    assert full.save(WORK, session_id=SESSION)
    resumed = ContextCompressor(full.config, store=full.store).resume(SESSION).messages
    assert [message["role"] for message in resumed[:2]] == ["system", "user"]
    assert resumed[-1] == WORK[-1]


def test_a_fork_of_an_older_compression_ends_where_that_ended():
    """A fork of an epoch has that epoch's transcript, also after originals were dropped."""
    store = MemoryStore()
    ours = ContextCompressor(replace(CONFIG, context_window=4_000, output_reserve=500), store=store)
    messages: list[dict[str, Any]] = [{"role": "system", "content": "You keep the books."}]
    for turn in range(36):
        body = random.Random(turn).randbytes(600 if turn < 6 else 80).hex()
        messages += [user(f"Look at part {turn}: {body}"), said(f"In order. {body[::-1]}")]
    epochs = [
        ours.compress_sync(messages[:end], session_id=SESSION, force=True).session_id
        for end in (25, 49, 73)
    ]
    assert ours.save(messages, session_id=SESSION)
    held = store.open("default", SESSION)
    store.limit_mb = 0.1
    while DROPPED not in (store.originals(held, held.entries[0]) or ()):
        store.limit_mb -= 0.001
        store.commit(store.open("default", "other"), [(segment(talk(1)), talk(1))])
    first, second, third = (
        store.transcript(store.open("default", f"fork-{epoch}", parent_session_id=epoch))
        for epoch in epochs
    )
    assert (second[-1], third[-1]) == (messages[48], messages[72])
    # A later summary would name later things: only the fork's own replaces dropped messages.
    assert [message for message in first if message not in messages[:25]] == [
        held.entries[0].segment.rendered
    ]


def test_memory_is_limited_and_databases_are_not():
    """Only memory is limited, to 256 MB a namespace."""
    assert MemoryStore.limit_mb == 256
    assert not issubclass(SqlStore, BoundedStore)


# ---------------------------------------------------------------- references


def test_a_reference_stays_through_folds_forks_and_restarts(store):
    """A reference reads the same words after folds, forks and restarts."""
    config = CompressorConfig(model="gpt-4o", recall=True, namespace="n")
    first = ContextCompressor(config, store=store)
    messages = coding_turns(40)
    view = first.compress_sync(messages[:60], session_id="s", target_tokens=2_500, force=True)
    (reference, words), *_ = cited(view.messages)
    _, read = first.recall_tools("s")
    answer = read(reference)
    assert words.strip() in answer
    for length in (90, 120, 150):
        first.compress_sync(messages[:length], session_id="s", target_tokens=2_500, force=True)
    later = ContextCompressor(config, store=store)
    later.compress_sync(messages, session_id="f", parent_session_id="s", target_tokens=3_000)
    for name in ("s", "f"):
        assert later.recall_tools(name)[1](reference) == answer


def test_a_view_that_is_recorded_nowhere_names_no_place():
    """A view that is not recorded has no references."""
    ours = ContextCompressor(CompressorConfig(model="gpt-4o", recall=True))
    view = ours.fallback_view(coding_turns(30), target_tokens=3_000).messages
    assert "conversation-summary" in str(view)
    assert re.findall(r"\bs\d+\.\d+", "\n".join(map(text_of, view))) == []


# ---------------------------------------------------------------- each line of a view


BUILD = "compiling part\n" * 60 + "error: port 9090 is taken\n" + "cleaning up\n" * 60


def result_of(id: str, text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id, "content": text}


def todos(*items: tuple[str, str]) -> list[dict[str, str]]:
    return [{"content": content, "status": status} for content, status in items]


def work() -> list[dict[str, Any]]:
    """Return calls with results, parallel calls, a plan, files, and a refusal with words."""
    both = [call("p1", "bash", command="make build"), call("p2", "web_search", query="port 9090")]
    plan = {"todos": todos(("Mend the build", "in_progress"), ("Tell the team", "pending"))}
    refused = "The user denied this operation.\n<feedback>Use bun, never npm.</feedback>"
    return [
        user("Look at the harbour gauge."),
        said("It does not build."),
        user("Mend the build of the harbour gauge."),
        *step("t", "Todos have been modified.", "todo_write", **plan),
        {"role": "assistant", "content": "Two at once.", "tool_calls": both},
        result_of("p1", BUILD),
        result_of("p2", "Nothing was found about that."),
        *step("n1", "Task #7 created", "task_create", subject="Ask the harbour master"),
        *step("n2", "Updated task #7 status", "task_update", task_id="7", status="completed"),
        *step("e", "0 replacements made", "edit_file", path="src/gauge.py", old="80", new="90"),
        *step("b", refused, "bash", command="npm install left-pad"),
        said("The build stops at a port that is taken."),
        user("Then free the port."),
    ]


@pytest.fixture(scope="module", params=[list, to_native], ids=["texts", "blocks"])
def lines_read(request):
    """Return the compressor and each reference in the view with the words beside it."""
    config = CompressorConfig(model="gpt-4o", recall=True, protect_last_n_tokens=200)
    ours = ContextCompressor(config, store=MemoryStore())
    later = [{"role": "user", "content": f"Go on with part {n}. " * 40} for n in range(6)]
    messages = request.param([*work(), *later])
    view = ours.compress_sync(messages, session_id="s", target_tokens=1_200, force=True).messages
    return ours, cited(view)


LINE_KINDS = (
    *("make build ->", "web_search port 9090 ->", "src/gauge.py: edit_file ->"),
    *("[in_progress] Mend the build", "7. [completed] Ask the harbour master"),
    *("Use bun, never npm.", "npm install left-pad ->"),
)


def test_every_line_reads_back_what_stands_beside_it(lines_read):
    """A reference reads its line's words: of calls, files, plan items, a refusal's words."""
    ours, lines = lines_read
    assert [pair for pair in lines if not leads_back(ours, *pair)] == []
    shown = "\n".join(beside for _, beside in lines)
    assert [kind for kind in LINE_KINDS if kind not in shown] == []


def test_a_result_names_its_call_and_a_call_its_result(lines_read):
    """A result and its call name each other."""
    ours, lines = lines_read
    named = next(references for references, beside in lines if beside.startswith("make build"))
    place = int(named.strip(" []").rpartition(".")[2])
    of_result = ours.read(f"s1.{place}", session_id="s")
    assert f'[s1.{place - 1}] assistant\n-> bash({{"command": "make build"}})' in of_result
    assert ("-> web_search" in of_result) == ("Nothing was found" in of_result)
    of_call = ours.read(f"s1.{place - 1}", session_id="s")
    assert f"=> [s1.{place}] compiling part" in of_call
    assert "Nothing was found about that." in of_call
