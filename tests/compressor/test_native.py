"""Conversations in Anthropic's own shape, compressed: sent to its API as they are."""

import copy
from typing import Any

import pytest

from praison_compressor import ContextCompressor
from praison_compressor.ledger.segments import chain_faults
from praison_compressor.messages import text_of
from praison_compressor.messages.secrets import Redactor
from praison_compressor.summaries.prompts import render_messages
from praison_compressor.testing import Call, Reply
from tests.helpers.compressing import Model, compressor, requests_of
from tests.helpers.native import (
    asks,
    brings,
    post,
    refusal_of,
    result,
    session,
    text,
    use,
)
from tests.helpers.transcripts import Message

PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA"}}
SESSIONS: dict[str, Any] = {
    "turns": session(8, steps=2, words=150),
    "one long turn": [{"role": "user", "content": "go on"}, *session(1, steps=28, words=150)[1:]],
    "parallel calls": session(8, steps=2, parallel=4, words=40),
}


@pytest.mark.parametrize(("name", "model"), [*zip(SESSIONS, (Model(), None, Model()), strict=True)])
def test_every_request_of_a_growing_session_is_answered(name, model, provider):
    """Every view of a growing session is accepted by the API, through several compressions."""
    before = copy.deepcopy(SESSIONS[name])
    ours = compressor(model)
    compressions = set()
    for messages in requests_of(SESSIONS[name]):
        found = ours.compress_sync(messages, session_id="s")
        compressions.add((found.masked, *(segment.run for segment in found.segments)))
        reply = post(provider, found.messages)
        assert reply.status_code == 200, reply.text
    assert len(compressions) >= 3
    assert provider.refused == []
    assert ours.compress_sync(found.messages, session_id="s").messages == found.messages
    assert ours.verbatim(found.messages, session_id="s") == messages
    assert before == SESSIONS[name]


def test_a_tool_loop_with_signed_thinking_goes_on(provider):
    """Signed thinking stays with its calls through every compression."""
    provider.answer_with(
        lambda asked: Reply(
            "", (Call("read", {"path": f"{asked.number}.py"}),), thinking="Hm. " * 9
        )
    )
    # Masks alone would do, and change no number of messages.
    ours = compressor(Model(), tool_policies={"*": "summarize"})
    messages: list[Message] = [{"role": "user", "content": "Read all of it."}]
    sizes = []
    for _ in range(24):
        view = ours.compress_sync(messages, session_id="s").messages
        reply = post(provider, view, thinking={"type": "enabled", "budget_tokens": 1_024})
        assert reply.status_code == 200, reply.text
        content = reply.json()["content"]
        (id,) = [block["id"] for block in content if block["type"] == "tool_use"]
        messages += [asks(*content), brings(result(id, "lorem ipsum dolor " * 150))]
        sizes.append(len(view))
    assert sizes != sorted(sizes)
    assert "thinking" in str(view)


def test_the_summarizer_is_shown_calls_and_whose_words_are_whose():
    """The summarizer sees calls, results, failures, pictures and speakers."""
    shown = render_messages(
        [
            asks(
                text("I look."), use("a", "read_file", path="a.py"), use("b", "bash", command="x")
            ),
            brings(
                result("b", "boom", is_error=True),
                result("a", [text("port = 1"), PICTURE]),
                text("Use port 2."),
            ),
        ]
    )
    assert shown == [
        '[assistant]\nI look.\n[calls read_file] {"path": "a.py"}\n[calls bash] {"command": "x"}',
        "[result of bash] (an error)\nboom\n[result of read_file]\nport = 1\n"
        "(1 attachment not shown)\n[user]\nUse port 2.",
    ]


def test_words_beside_a_result_stay_with_the_call():
    """The user's newest words beside a result are never dropped, nor their call."""
    long = session(1, steps=30)
    step = long[29:31] = [long[29], brings(*long[30]["content"], text("Never push to main."))]
    long[-1] = brings(long[-1]["content"][0])
    view = compressor(protect_last_n_tokens=500).compress_sync(long).messages
    assert len(view) < 12
    assert [m for m in view if m in step] == step
    assert refusal_of(view) is None


def masking(**options: Any) -> ContextCompressor:
    return compressor(Model(), context_window=8_000, **options)


def outputs(turns: int, *, name: str = "read_file") -> list[Message]:
    """Return little talk, large outputs beside a small one, and the user's words."""
    messages: list[Message] = []
    for t in range(turns):
        body = f"part {t}: " + "lorem ipsum dolor " * 100 + f"END-{t}"
        messages.append({"role": "user", "content": f"Look at part {t}."})
        messages.append(
            asks(use(f"a{t}", name, path=f"{t}.py"), use(f"b{t}", "bash", command="ls"))
        )
        messages.append(brings(result(f"a{t}", body), result(f"b{t}", "ok"), text(f"Port {t}.")))
        messages.append(asks(text(f"Part {t} is in order.")))
    return messages[:-1]


def test_old_results_are_masked_within_their_blocks():
    """A mask replaces nothing but the large result within its message."""
    messages = outputs(16)
    ours = masking()
    found = ours.compress_sync(messages)
    assert found.context_status == "masked"
    assert found.masked >= 5
    lines = [m for m in found.messages if "[masked]" in text_of(m)]
    assert len(lines) == found.masked
    at = found.messages.index(lines[0])
    large, small, said = lines[0]["content"]
    assert large["content"].startswith("[masked] read_file ")
    assert (large["tool_use_id"], [small, said]) == (
        messages[at]["content"][0]["tool_use_id"],
        messages[at]["content"][1:],
    )
    assert refusal_of(found.messages) is None
    assert ours.compress_sync(found.messages).messages == found.messages
    assert ours.verbatim(found.messages) == messages


def test_a_host_may_edit_every_block_of_a_view():
    """An edit of what is sent, as a cache mark, reaches neither the ledger nor the next view."""
    messages, ours = outputs(16), masking()
    sent = ours.compress_sync(messages, session_id="s").messages
    before = copy.deepcopy(sent)
    masked = [m["content"][0] for m in sent if "[masked]" in text_of(m)]
    for block in masked:
        block["cache_control"] = {"type": "ephemeral"}
    assert masked
    assert ours.compress_sync([*messages], session_id="s").messages == before
    entries = ours.store.open("default", "s").entries
    assert [fault for entry in entries for fault in chain_faults(entry, None)] == []


def test_a_large_result_is_cut_to_its_ends_within_its_block():
    """An excerpt in a block names lines of the whole message."""
    body = "\n".join(f"line {n} of the log" for n in range(1, 4_000))
    ours = masking(recall=True)
    messages = [
        {"role": "user", "content": "Look."},
        asks(use("a", "bash"), use("b", "read_log")),
        brings(result("a", "two\nlines"), result("b", body), text("Port 80.")),
    ]
    found = ours.compress_sync(messages)
    small, large, said = found.messages[-1]["content"]
    assert [small, said] == [messages[-1]["content"][0], messages[-1]["content"][2]]
    shown, _, rest = large["content"].partition("\n[… lines ")
    last = shown.rpartition("\n")[2]
    first = rest.partition('archive("')[2].partition("-")[0]
    number = int(last.split()[1])
    assert first == f"s1.1:{number + 2 + 1}"
    assert f"line {number + 1} of the log" in ours.read(first + "-")
    assert refusal_of(found.messages) is None
    assert ours.compress_sync(found.messages).messages == found.messages
    assert ours.verbatim(found.messages) == messages


def test_ids_pair_also_where_secrets_are_redacted():
    """A call id that looks like a key is not masked."""
    key = "sk-ant-api03-" + "a1B2" * 23 + "-abcdeAA"
    messages = [asks(use(key)), brings(result(key, f"key={key}"))]
    safe, secrets = Redactor().redact(messages)
    assert secrets == 1
    assert refusal_of([{"role": "user", "content": "go"}, *safe]) is None
